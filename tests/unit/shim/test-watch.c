/*
 * test-watch.c: how often the tracker looks at a job, with a clock and jobs made up here.
 */
#include "shim/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LINGER (100 * NSEC_PER_USEC)

static struct watch watch;
static struct watch_view view;

static int setup(void **state) {
	watch = (struct watch){0};
	view = (struct watch_view){.now = NSEC_PER_SEC, .linger = LINGER};
	return 0;
}

/* After @pause, with @ops more handed over. Return: how long to wait for the next look. */
static nsec_t look(nsec_t pause, uint64_t ops) {
	nsec_t again;

	view.now += pause;
	view.ops += ops;
	again = watch_look(&watch, &view);
	return again ? again - view.now : 0;
}

static nsec_t again(void) {
	return watch_again(&watch, &view) - view.now;
}

static void next_job(void) {
	view.job++;
	view.ops = 0;
}

/* Jobs that are seen once, and not ended by the tracker. */
static void own_jobs(unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		next_job();
		look(NSEC_PER_MSEC, 1);
	}
}

static void a_busy_job_is_looked_at_less_and_less(void **state) {
	nsec_t pause = LINGER;

	next_job();
	assert_int_equal(look(0, 1), LINGER);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(look(pause, 1), 2 * pause);
		pause *= 2;
	}
	assert_int_equal(look(pause, 1), WATCH_MAX_NS);
	assert_int_equal(look(pause, 1), WATCH_MAX_NS);
}

static void a_quiet_job_is_asked_for(void **state) {
	next_job();
	assert_int_equal(look(0, 1), LINGER);
	assert_int_equal(look(LINGER - 1, 0), WATCH_MAX_NS / 5);
	assert_int_equal(look(1, 0), 0);
	assert_int_equal(again(), 20 * NSEC_PER_USEC);
	assert_int_equal(look(WATCH_MAX_NS, 0), 0);
	assert_in_range(again(), WATCH_MAX_NS / 16, WATCH_MAX_NS / 8);
	assert_int_equal(look(NSEC_PER_SEC, 0), 0);
	assert_int_equal(again(), NSEC_PER_MSEC / 2);
	view.waiting = true;
	assert_int_equal(again(), 5 * NSEC_PER_MSEC);
}

static void new_operations_put_the_question_off(void **state) {
	next_job();
	look(0, 1);
	assert_int_not_equal(look(LINGER, 1), 0);
	assert_int_not_equal(look(LINGER - 1, 0), 0);
	assert_int_equal(look(1, 0), 0);
}

static void an_operation_under_way_is_waited_for(void **state) {
	next_job();
	look(0, 1);
	view.inside = true;
	assert_int_equal(look(LINGER, 0), WATCH_MAX_NS);
	view.inside = false;
	assert_int_equal(look(WATCH_MAX_NS, 0), 0);
}

static void a_job_that_drains_is_asked_for_at_once(void **state) {
	next_job();
	view.draining = true;
	assert_int_equal(look(0, 1), 0);
	view.held = true;
	assert_int_equal(look(0, 0), WATCH_MAX_NS);
}

static void a_program_that_ends_its_jobs_is_looked_at_seldom(void **state) {
	own_jobs(WATCH_OWN_JOBS);
	assert_false(watch_is_seldom(&watch));
	next_job();
	assert_int_equal(look(0, 1), WATCH_SELDOM_NS);
	assert_true(watch_is_seldom(&watch));
	assert_int_equal(look(WATCH_SELDOM_NS, 1), WATCH_SELDOM_NS);
	assert_int_equal(look(WATCH_SELDOM_NS, 0), 0);
	view.waiting = true;
	assert_int_equal(again(), WATCH_SELDOM_NS);
	view.waiting = false; /* perhaps it will not, for once */
	assert_in_range(again(), WATCH_SELDOM_NS / 16, WATCH_SELDOM_NS / 8);
}

static void a_held_job_of_such_a_program_too(void **state) {
	own_jobs(WATCH_OWN_JOBS + 1);
	view.held = true;
	assert_int_equal(look(0, 1), WATCH_SELDOM_NS);
}

static void not_where_it_holds_sms_or_is_recorded(void **state) {
	own_jobs(WATCH_OWN_JOBS);
	view.prompt = true;
	next_job();
	assert_int_equal(look(0, 1), LINGER);
	assert_int_equal(look(WATCH_MAX_NS, 0), 0);
	view.waiting = true;
	assert_in_range(again(), WATCH_MAX_NS / 16, WATCH_MAX_NS / 8);
}

static void one_job_that_the_tracker_ends_changes_that(void **state) {
	own_jobs(WATCH_OWN_JOBS + 1);
	watch_ended(&watch);
	assert_false(watch_is_seldom(&watch));
	next_job();
	assert_int_equal(look(0, 1), LINGER);
	own_jobs(WATCH_OWN_JOBS - 1);
	assert_false(watch_is_seldom(&watch));
	own_jobs(1);
	assert_true(watch_is_seldom(&watch));
}

static void a_long_linger_is_no_reason_to_sleep_longer(void **state) {
	view.linger = NSEC_PER_SEC;
	next_job();
	assert_int_equal(look(0, 1), WATCH_MAX_NS);
	assert_int_equal(look(NSEC_PER_SEC - 1, 0), WATCH_MAX_NS);
	assert_int_equal(look(1, 0), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_busy_job_is_looked_at_less_and_less, setup),
		cmocka_unit_test_setup(a_quiet_job_is_asked_for, setup),
		cmocka_unit_test_setup(new_operations_put_the_question_off, setup),
		cmocka_unit_test_setup(an_operation_under_way_is_waited_for, setup),
		cmocka_unit_test_setup(a_job_that_drains_is_asked_for_at_once, setup),
		cmocka_unit_test_setup(a_program_that_ends_its_jobs_is_looked_at_seldom, setup),
		cmocka_unit_test_setup(a_held_job_of_such_a_program_too, setup),
		cmocka_unit_test_setup(not_where_it_holds_sms_or_is_recorded, setup),
		cmocka_unit_test_setup(one_job_that_the_tracker_ends_changes_that, setup),
		cmocka_unit_test_setup(a_long_linger_is_no_reason_to_sleep_longer, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
