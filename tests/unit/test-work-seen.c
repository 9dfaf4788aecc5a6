/*
 * test-work-seen.c: what is learnt of a program's jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/session/work-seen.h"

static struct work_seen seen;
static uint64_t launches, waves;

static int setup(void **state) {
	seen = (struct work_seen){0};
	return 0;
}

static unsigned add(unsigned n, uint64_t l, uint64_t w) {
	unsigned found = 0;

	while (n-- > 0) {
		found += work_seen_add(&seen, l, w, 1);
	}
	return found;
}

static bool is(uint64_t l, uint64_t w) {
	return work_seen_shape(&seen, &launches, &waves) && launches == l && waves == w;
}

static void shape_is_known_from_the_third_job_on(void **state) {
	assert_int_equal(add(2, 2, 6), 0);
	assert_false(is(2, 6));
	assert_int_equal(add(1, 2, 6), 1);
	assert_true(is(2, 6));
	assert_int_equal(add(100, 2, 6), 0); /* nothing new */
	assert_int_equal(seen.shapes, 1);
}

/* Two launches were taken for one, and three for two, as long as the program ran. */
static void jobs_that_launch_nothing_do_not_count(void **state) {
	assert_int_equal(add(5, 0, 0), 0);
	assert_int_equal(add(3, 2, 2), 1);
	add(1, 0, 0);
	assert_true(is(2, 2));
}

static void shape_is_that_of_the_mean_job(void **state) {
	add(2, 3, 9);
	add(3, 2, 8);
	assert_true(is(2, 8)); /* 2.4 and 8.4 */
	add(2, 3, 9);
	assert_true(is(3, 9)); /* 2.6 and 8.6 */
}

/* The first ones were not like the others. */
static void shape_is_looked_at_once_more(void **state) {
	assert_int_equal(add(3, 1, 1), 1);
	assert_int_equal(add(60, 10, 20), 0);
	assert_int_equal(add(1, 10, 20), 1);
	assert_int_equal(add(100, 1, 1), 0);
	assert_int_equal(seen.shapes, 2);
}

/* Of graphs nobody knows the blocks. */
static void waves_may_be_unknown(void **state) {
	add(10, 1, 0);
	assert_false(is(1, 0));
	assert_false(work_seen_shape(&seen, &launches, &waves));
}

/* However large the numbers are, and though their sums overflow. */
static void lies_are_no_shape_of_nothing(void **state) {
	static const uint64_t lies[] = {UINT64_MAX / 3, UINT64_MAX / 3 + 1, UINT64_MAX};

	for (unsigned i = 0; i < 9; i++) {
		setup(state);
		add(3, lies[i % 3], lies[i / 3]);
		if (work_seen_shape(&seen, &launches, &waves)) {
			assert_true(launches >= 1 && waves >= 1);
		}
	}
	setup(state);
	add(3, UINT64_MAX / 3, UINT64_MAX / 3);
	assert_true(is(UINT64_MAX / 3, UINT64_MAX / 3));
}

/* In a row, whatever was before; told when that changes. */
static void jobs_that_copy_nothing_are_known_after_a_while(void **state) {
	unsigned told = 0;

	add(5, 2, 2);
	for (unsigned i = 0; i < WORK_SEEN_COPIES; i++) {
		assert_false(work_seen_copies_nothing(&seen));
		told += work_seen_add(&seen, 2, 2, 0);
	}
	assert_true(work_seen_copies_nothing(&seen));
	assert_int_equal(told, 1);
	assert_false(work_seen_add(&seen, 2, 2, 0));
	assert_true(work_seen_add(&seen, 0, 0, 1)); /* a copy alone */
	assert_false(work_seen_copies_nothing(&seen));
	for (unsigned i = 0; i < 10 * WORK_SEEN_COPIES; i++) {
		work_seen_add(&seen, 0, 0, 0); /* nothing at all */
	}
	assert_false(work_seen_copies_nothing(&seen));
}

/* One that copies each hundred jobs surprises others once. */
static void jobs_that_copy_now_and_then_are_found_out(void **state) {
	unsigned surprises = 0;

	for (unsigned i = 1; i <= 100000; i++) {
		surprises += i % 100 == 0 && work_seen_copies_nothing(&seen);
		work_seen_add(&seen, 2, 2, i % 100 == 0);
	}
	assert_int_equal(surprises, 1);
	for (unsigned i = 0; i < 8 * WORK_SEEN_COPIES; i++) {
		assert_false(work_seen_copies_nothing(&seen));
		work_seen_add(&seen, 2, 2, 0);
	}
	assert_true(work_seen_copies_nothing(&seen));
}

/* Whose jobs are others now is soon found out. */
static void a_program_that_is_started_again_is_known(void **state) {
	add(1000, 2, 6);
	seen.tasks = 5;
	seen = work_seen_again(&seen);
	assert_true(is(2, 6));
	assert_int_equal(seen.tasks, 5);
	assert_int_equal(seen.shapes, 1);
	assert_int_equal(add(WORK_SEEN_WELL, 2, 9), 1);
	assert_true(is(2, 9));
	/* Of one that had too few jobs nothing is. */
	seen = (struct work_seen){.tasks = 5};
	add(2, 2, 6);
	seen = work_seen_again(&seen);
	assert_int_equal(seen.tasks, 5);
	assert_int_equal(add(3, 4, 7), 1);
	assert_true(is(4, 7));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(shape_is_known_from_the_third_job_on, setup),
		cmocka_unit_test_setup(jobs_that_launch_nothing_do_not_count, setup),
		cmocka_unit_test_setup(shape_is_that_of_the_mean_job, setup),
		cmocka_unit_test_setup(shape_is_looked_at_once_more, setup),
		cmocka_unit_test_setup(waves_may_be_unknown, setup),
		cmocka_unit_test_setup(lies_are_no_shape_of_nothing, setup),
		cmocka_unit_test_setup(jobs_that_copy_nothing_are_known_after_a_while, setup),
		cmocka_unit_test_setup(jobs_that_copy_now_and_then_are_found_out, setup),
		cmocka_unit_test_setup(a_program_that_is_started_again_is_known, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
