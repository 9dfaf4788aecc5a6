/*
 * test-table.c: the map that launches read without a lock, alone and while another thread changes
 * it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim/base/table.h"

static size_t n_allocated; /* times */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
	n_allocated++;
	return __real_calloc(n, size);
}

static void table_finds_what_was_put(void **state) {
	struct table t = TABLE_NULL;
	int a, b;

	assert_null(table_get(&t, 1));
	assert_null(table_take(&t, 1));
	assert_int_equal(table_put(&t, 1, &a), 0);
	assert_ptr_equal(table_get(&t, 1), &a);
	assert_null(table_get(&t, 2));
	assert_int_equal(table_put(&t, 1, &b), 0);
	assert_ptr_equal(table_get(&t, 1), &b);
	assert_ptr_equal(table_take(&t, 1), &b);
	assert_null(table_take(&t, 1));
	assert_null(table_get(&t, 1));
	assert_int_equal(table_put(&t, 1, &a), 0);
	assert_ptr_equal(table_get(&t, 1), &a);
	table_deinit(&t);
	assert_null(table_get(&t, 1));
}

static uint64_t prng(uint64_t *s) {
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void table_agrees_with_an_array(void **state) {
	static char marks[1000];
	bool in[1000] = {false};
	struct table t = TABLE_NULL;
	uint64_t seed = 42;

	for (unsigned round = 0; round < 200000; round++) {
		unsigned i = prng(&seed) % 1000;
		/* Handles are addresses: multiples of 16, far apart. */
		uintptr_t key = 0x7F0000000000u + i * 0x110;

		assert_ptr_equal(table_get(&t, key), in[i] ? &marks[i] : NULL);
		if (prng(&seed) % 2) {
			assert_int_equal(table_put(&t, key, &marks[i]), 0);
			in[i] = true;
		} else {
			assert_ptr_equal(table_take(&t, key), in[i] ? &marks[i] : NULL);
			in[i] = false;
		}
	}
	table_deinit(&t);
}

#define HANDLES 200

/* As those of a program that makes and destroys streams and graphs for days. */
static void table_takes_no_more_for_keys_that_come_back(void **state) {
	struct table t = TABLE_NULL;
	size_t after_first = 0;
	uint64_t seed = 42;
	int value;

	n_allocated = 0;
	for (unsigned i = 0; i < 100000; i++) {
		uintptr_t key = (prng(&seed) % HANDLES + 1) << 4;

		assert_int_equal(table_put(&t, key, &value), 0);
		assert_ptr_equal(table_take(&t, key), &value);
		if (i == 100 * HANDLES) {
			after_first = n_allocated;
		}
	}
	assert_true(after_first > 0);
	assert_int_equal(n_allocated, after_first);
	table_deinit(&t);
}

#define N_KEYS 4096

struct race {
	struct table t;
	_Atomic(uintptr_t) published; /* all keys up to here are in */
	_Atomic(bool) wrong;
};

static void *read_all(void *p) {
	struct race *r = p;
	uintptr_t n;

	do {
		n = atomic_load(&r->published);
		for (uintptr_t k = 1; k <= n; k++) {
			if (table_get(&r->t, k << 4) != (void *)k) {
				atomic_store(&r->wrong, true);
			}
		}
	} while (n < N_KEYS);
	return NULL;
}

static void table_is_read_while_it_grows(void **state) {
	struct race r = {.t = TABLE_NULL};
	pthread_t readers[2];

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, &r), 0);
	}
	for (uintptr_t k = 1; k <= N_KEYS; k++) {
		assert_int_equal(table_put(&r.t, k << 4, (void *)k), 0);
		/* One that comes and goes makes dead slots among them. */
		assert_int_equal(table_put(&r.t, (k << 4) + 8, &r), 0);
		assert_ptr_equal(table_take(&r.t, (k << 4) + 8), &r);
		atomic_store(&r.published, k);
	}
	for (size_t i = 0; i < 2; i++) {
		pthread_join(readers[i], NULL);
	}
	assert_false(atomic_load(&r.wrong));
	table_deinit(&r.t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_finds_what_was_put),
		cmocka_unit_test(table_agrees_with_an_array),
		cmocka_unit_test(table_takes_no_more_for_keys_that_come_back),
		cmocka_unit_test(table_is_read_while_it_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
