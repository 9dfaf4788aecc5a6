/*
 * test-shapes.c: what a thread remembers of the kernels that it has launched.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/shapes.h"

#define EPOCH 7

static struct shapes shapes;

static int setup(void **state) {
	memset(&shapes, 0, sizeof(shapes));
	return 0;
}

static CUfunction function(uintptr_t n) {
	return (CUfunction)(0x5500000000 + n * 0x250);
}

static struct shape *add(CUfunction f, uint32_t threads, uint32_t shared) {
	return shapes_add(&shapes, &(struct shape){.function = f,
						   .epoch = EPOCH,
						   .block_threads = threads,
						   .shared_bytes = shared,
						   .wave_blocks = threads / 32});
}

static struct shape *find(CUfunction f, uint32_t threads, uint32_t shared) {
	return shapes_find(&shapes, f, threads, shared, EPOCH);
}

static void what_was_added_is_found(void **state) {
	struct shape *shape = add(function(1), 128, 64);

	assert_ptr_equal(find(function(1), 128, 64), shape);
	assert_int_equal(shape->wave_blocks, 4);
	assert_false(shape->may_follow);
	assert_null(find(function(2), 128, 64));
	assert_null(find(function(1), 64, 64));
	assert_null(find(function(1), 128, 0));
	assert_null(find(function(1), 129, 64)); /* in the same set */
	assert_null(find(function(1), 128, 65));
	assert_null(shapes_find(&shapes, function(1), 128, 64, EPOCH + 1));
}

/* Two that share a set, whichever those are, and a third one. */
static void two_of_a_set_stay(void **state) {
	const struct shape *set = shapes_set(&shapes, function(0), 32, 0);
	CUfunction same[3] = {function(0)};
	unsigned n = 1;

	for (uintptr_t i = 1; n < 3; i++) {
		if (shapes_set(&shapes, function(i), 32, 0) == set) {
			same[n++] = function(i);
		}
	}
	add(same[0], 32, 0);
	add(same[1], 32, 0);
	assert_ptr_equal(find(same[0], 32, 0)->function, same[0]);
	assert_ptr_equal(find(same[1], 32, 0)->function, same[1]);
	add(same[2], 32, 0);
	assert_null(find(same[0], 32, 0));
	assert_ptr_equal(find(same[1], 32, 0)->function, same[1]);
	assert_ptr_equal(find(same[2], 32, 0)->function, same[2]);
}

/* As many as an inference has, in sets of 128: handles lie at any distance from each other. */
static void most_kernels_of_a_program_stay(void **state) {
	static const uintptr_t distances[] = {0x40, 0x90, 0x100, 0x250, 0x400, 0x1000};

	for (size_t d = 0; d < sizeof(distances) / sizeof(*distances); d++) {
		unsigned n_found = 0;

		setup(NULL);
		for (uintptr_t i = 0; i < 64; i++) {
			add((CUfunction)(0x7f0012340000 + i * distances[d]), 128, 0);
		}
		for (uintptr_t i = 0; i < 64; i++) {
			n_found += find((CUfunction)(0x7f0012340000 + i * distances[d]), 128, 0) !=
				   NULL;
		}
		assert_true(n_found >= 56);
	}
}

static void waves_are_rounded_up(void **state) {
	struct shape shape = {.wave_blocks = 8};

	assert_int_equal(shape_waves(&shape, 1), 1);
	assert_int_equal(shape_waves(&shape, 8), 1);
	assert_int_equal(shape_waves(&shape, 9), 2);
	assert_int_equal(shape_waves(&shape, 16), 2);
	shape.wave_blocks = 0;
	assert_int_equal(shape_waves(&shape, 9), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_added_is_found, setup),
		cmocka_unit_test_setup(two_of_a_set_stay, setup),
		cmocka_unit_test_setup(most_kernels_of_a_program_stay, setup),
		cmocka_unit_test_setup(waves_are_rounded_up, setup),
	};

	return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
