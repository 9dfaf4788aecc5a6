/*
 * test-simgpu-memory.c: the simulated GPU's memory: bounds, owners, and giving pages back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/simgpu/memory.h"

#define BASE (1ull << 48)
#define SIZE (64ull * 4096)

static const int a, b; /* two owners */

static int setup(void **state) {
	static struct memory m;

	*state = &m;
	return memory_init(&m, BASE, SIZE);
}

static int teardown(void **state) {
	memory_deinit(*state);
	return 0;
}

static void memory_resolves_inside_an_allocation_only(void **state) {
	struct memory *m = *state;
	uint64_t addr, start = 0, end = 0;

	assert_int_equal(memory_alloc(m, 100, &a, &addr), 0);
	assert_non_null(memory_resolve(m, addr, 100, &a, &start, &end));
	assert_int_equal(start, addr);
	assert_int_equal(end, addr + 100);
	assert_non_null(memory_resolve(m, addr + 99, 1, &a, NULL, NULL));
	assert_null(memory_resolve(m, addr + 100, 1, &a, NULL, NULL));
	assert_null(memory_resolve(m, addr + 99, 2, &a, NULL, NULL));
	assert_null(memory_resolve(m, addr - 1, 1, &a, NULL, NULL));
	assert_null(memory_resolve(m, addr, UINT64_MAX, &a, NULL, NULL));
	assert_null(memory_resolve(m, 0, 1, &a, NULL, NULL));
	assert_null(memory_resolve(m, addr, 1, &b, NULL, NULL)); /* not b's */
}

static void memory_keeps_a_gap_between_allocations(void **state) {
	struct memory *m = *state;
	uint64_t first, second;

	assert_int_equal(memory_alloc(m, 4096, &a, &first), 0);
	assert_int_equal(memory_alloc(m, 4096, &a, &second), 0);
	assert_true(second >= first + 2 * 4096);
	assert_null(memory_resolve(m, first + 4096, 1, &a, NULL, NULL));
}

static void memory_is_zero_again_after_it_was_freed(void **state) {
	struct memory *m = *state;
	uint64_t addr, again = 0;

	assert_int_equal(memory_alloc(m, 4096, &a, &addr), 0);
	memset(memory_resolve(m, addr, 4096, &a, NULL, NULL), 0xff, 4096);
	assert_int_equal(memory_free(m, addr, &b), -EINVAL);
	assert_int_equal(memory_free(m, addr + 1, &a), -EINVAL);
	assert_int_equal(memory_free(m, addr, &a), 0);
	assert_int_equal(memory_free(m, addr, &a), -EINVAL);
	assert_null(memory_resolve(m, addr, 1, &a, NULL, NULL));
	assert_int_equal(m->used, 0);
	while (again != addr) { /* round the arena, to the same place */
		assert_int_equal(memory_alloc(m, 4096, &b, &again), 0);
		assert_int_equal(*memory_resolve(m, again, 4096, &b, NULL, NULL), 0);
		assert_int_equal(memory_free(m, again, &b), 0);
	}
}

static void memory_runs_out_and_recovers(void **state) {
	struct memory *m = *state;
	uint64_t addr = 77;
	unsigned n = 0;

	assert_int_equal(memory_alloc(m, 0, &a, &addr), -EINVAL);
	assert_int_equal(memory_alloc(m, SIZE + 1, &a, &addr), -ENOMEM);
	assert_int_equal(memory_alloc(m, UINT64_MAX, &a, &addr), -ENOMEM);
	assert_int_equal(addr, 77);
	while (memory_alloc(m, 1, n % 2 ? &a : &b, &addr) == 0) {
		n++;
	}
	assert_int_equal(n, SIZE / 8192);
	memory_free_owner(m, &a);
	assert_int_equal(m->n_allocs, n / 2);
	assert_int_equal(memory_alloc(m, 1, &a, &addr), 0);
	memory_free_owner(m, &a);
	memory_free_owner(m, &b);
	assert_int_equal(m->n_allocs, 0);
	assert_int_equal(m->used, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_resolves_inside_an_allocation_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_keeps_a_gap_between_allocations, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_is_zero_again_after_it_was_freed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_runs_out_and_recovers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
