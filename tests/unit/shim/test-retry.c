/*
 * test-retry.c: when a lost daemon is tried again, on a clock that the test sets.
 */
#include "shim/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START (1000 * NSEC_PER_SEC)

static int setup(void **state) {
	retry_reset();
	return 0;
}

/* The pause before the next try, if one fails at @now. */
static nsec_t pause_after(nsec_t now, bool stuck, bool hurry) {
	nsec_t at;

	retry_failed(now, stuck, hurry);
	at = retry_at();
	assert_true(at > now);
	assert_false(retry_is_due(at - 1));
	assert_true(retry_is_due(at));
	return at - now;
}

static void retry_waits_a_second_for_a_daemon_that_refuses(void **state) {
	assert_true(retry_is_due(0));
	for (int i = 0; i < 10; i++) {
		assert_int_equal(pause_after(START, false, false), NSEC_PER_SEC);
	}
}

static void retry_doubles_the_pause_after_tries_that_cost_a_wait(void **state) {
	static const unsigned seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		assert_int_equal(pause_after(START, true, false), seconds[i] * NSEC_PER_SEC);
	}
	retry_reset();
	assert_true(retry_is_due(0));
	assert_int_equal(pause_after(START, true, false), NSEC_PER_SEC);
}

/* From 2 ms doubled up to 100 ms, less up to a half. */
static void check_restart_pauses(nsec_t now, bool hurry) {
	nsec_t most = RETRY_RESTART_MIN_NS;

	for (int i = 0; i < 12; i++) {
		nsec_t pause = pause_after(now + (nsec_t)i, false, hurry);

		assert_in_range(pause, most / 2, most);
		most = most * 2 < RETRY_RESTART_MAX_NS ? most * 2 : RETRY_RESTART_MAX_NS;
	}
}

static void retry_is_quick_while_a_restart_is_expected(void **state) {
	const nsec_t wait = 5 * NSEC_PER_SEC;

	retry_lost(START, wait);
	assert_true(retry_is_due(START));
	assert_true(retry_hopes(START + wait - 1));
	assert_false(retry_hopes(START + wait));
	check_restart_pauses(START, false);
	assert_int_equal(pause_after(START + wait, false, false), NSEC_PER_SEC);
}

static void retry_is_quick_while_jobs_are_held(void **state) {
	assert_false(retry_hopes(START));
	check_restart_pauses(START, true);
	assert_int_equal(pause_after(START, false, false), NSEC_PER_SEC);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(retry_waits_a_second_for_a_daemon_that_refuses),
		CASE(retry_doubles_the_pause_after_tries_that_cost_a_wait),
		CASE(retry_is_quick_while_a_restart_is_expected),
		CASE(retry_is_quick_while_jobs_are_held),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
