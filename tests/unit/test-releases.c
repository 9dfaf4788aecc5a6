/*
 * test-releases.c: when the next job is expected, from the releases that were seen.
 */
#include "shim/releases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the headers that it needs */
#include <cmocka.h>

#include "proto/terms.h"

#define US     NSEC_PER_USEC
#define MS     NSEC_PER_MSEC
#define PERIOD (33 * MS)
#define START  (1000 * MS)

static struct releases r;

static int setup(void **state) {
	r = (struct releases){0};
	return 0;
}

static uint64_t random_state = 7;

static nsec_t below(nsec_t n) {
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

/* Nothing is known of the jitter yet. */
static void the_first_job_makes_a_grid(void **state) {
	releases_note(&r, START, PERIOD);
	assert_int_equal(releases_from(&r), START + PERIOD - PROTO_GUARD_NS);
	assert_int_equal(releases_until(&r), START + PERIOD + PROTO_GUARD_NS);
}

static void jobs_that_are_punctual_are_expected_punctually(void **state) {
	for (unsigned i = 0; i < 400; i++) {
		releases_note(&r, START + i * PERIOD, PERIOD);
	}
	assert_int_equal(releases_from(&r), START + 400 * PERIOD - 20 * US);
	for (unsigned i = 400; i < 3000; i++) {
		releases_note(&r, START + i * PERIOD, PERIOD);
	}
	assert_int_equal(releases_until(&r), START + 3000 * PERIOD + 20 * US);
}

/* Some wake up late, by up to 1 ms: nearly all of them come while they are expected, and the time
 * in which they are is at most twice what they differ by. */
static void jitter_is_learnt(void **state) {
	unsigned early = 0, late = 0;

	for (unsigned i = 0; i < 5000; i++) {
		nsec_t release = START + i * PERIOD + below(MS);

		if (i >= 1000) {
			early += release < releases_from(&r);
			late += release > releases_until(&r);
			assert_true(releases_until(&r) - releases_from(&r) < 2 * MS);
		}
		releases_note(&r, release, PERIOD);
	}
	assert_in_range(early, 20, 60); /* of 4000: by the quantile 40 */
	assert_in_range(late, 0, 20);
}

/* The period is not quite what it is said to be. */
static void the_grid_follows(void **state) {
	nsec_t release = START;

	for (unsigned i = 0; i < 1000; i++, release += PERIOD + 100 * US) {
		releases_note(&r, release, PERIOD);
	}
	assert_in_range(release, releases_from(&r), releases_until(&r));
	assert_true(releases_until(&r) - releases_from(&r) < MS);
}

/* After jobs that did not come, or another beginning. */
static void a_stray_job_makes_a_new_grid(void **state) {
	releases_note(&r, START, PERIOD);
	releases_note(&r, START + PERIOD, PERIOD);
	releases_note(&r, START + 10 * PERIOD + PERIOD / 2, PERIOD);
	assert_int_equal(releases_until(&r), START + 11 * PERIOD + PERIOD / 2 + PROTO_GUARD_NS);
	releases_note(&r, START + 11 * PERIOD, PERIOD); /* much too early */
	assert_int_equal(releases_until(&r), START + 12 * PERIOD + PROTO_GUARD_NS);
}

/* However short the period is, and wild the jitter. */
static void no_more_than_an_eighth_of_a_period_is_waited_for(void **state) {
	nsec_t release = START;

	for (unsigned i = 0; i < 1000; i++) {
		release += 1 + below(MS);
		releases_note(&r, release, MS / 2);
		assert_true(releases_until(&r) - releases_from(&r) <= MS / 8);
		assert_true(releases_from(&r) > release);
	}
	releases_note(&r, 0, 1);
	releases_note(&r, UINT64_MAX, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_job_makes_a_grid, setup),
		cmocka_unit_test_setup(jobs_that_are_punctual_are_expected_punctually, setup),
		cmocka_unit_test_setup(jitter_is_learnt, setup),
		cmocka_unit_test_setup(the_grid_follows, setup),
		cmocka_unit_test_setup(a_stray_job_makes_a_new_grid, setup),
		cmocka_unit_test_setup(no_more_than_an_eighth_of_a_period_is_waited_for, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
