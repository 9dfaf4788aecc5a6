/*
 * test-expected.c: what others are told of a job and of the next one, with terms and board in the
 * test's hands.
 */
#include "shim/expected.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the headers that it needs */
#include <cmocka.h>

#include "shim/seat.h"
#include "shim/terms.h"

#define US     NSEC_PER_USEC
#define MS     NSEC_PER_MSEC
#define START  (1000 * MS)
#define PERIOD (10 * MS)
#define DUE    (2 * MS) /* of the copy, from the release */

static struct terms_next next;
static nsec_t copy_due;
static struct seat_copy copy;
static struct seat_needs needs;
static unsigned n_copy, n_needs, n_over;
static struct lane lane;

bool __wrap_terms_next(CUdevice device, struct terms_next *ret);
bool __wrap_terms_next(CUdevice device, struct terms_next *ret) {
	*ret = next;
	return next.period > 0;
}

nsec_t __wrap_terms_copy_due(CUdevice device);
nsec_t __wrap_terms_copy_due(CUdevice device) {
	return copy_due;
}

void __wrap_seat_expect_copy(CUdevice device, const struct seat_copy *c);
void __wrap_seat_expect_copy(CUdevice device, const struct seat_copy *c) {
	copy = *c;
	n_copy++;
}

void __wrap_seat_needs(CUdevice device, const struct seat_needs *n);
void __wrap_seat_needs(CUdevice device, const struct seat_needs *n) {
	needs = *n;
	n_needs++;
}

void __wrap_seat_needs_over(CUdevice device);
void __wrap_seat_needs_over(CUdevice device) {
	n_over++;
}

static int setup(void **state) {
	lane = (struct lane){.device = 0};
	next = (struct terms_next){.period = PERIOD, .lead = MS, .spare = 80 * US};
	copy_due = DUE;
	n_copy = n_needs = n_over = 0;
	return 0;
}

/* A job of @release, which opens a little later. */
static void open_job(const struct terms *terms, nsec_t release) {
	struct books_job job = {
		.terms = terms_pack(terms), .release_ns = release, .began_ns = release + 5 * US};

	atomic_store(&lane.terms, job.terms);
	atomic_store(&lane.granted_ns, job.began_ns);
	atomic_store(&lane.due_ns, terms->awaited ? release + 5 * MS : 0);
	expected_opened(&lane, &job);
}

static const struct terms first = {.steered = true, .copies = TERMS_COPIES_FIRST};
static const struct terms held = {.steered = true, .copies = TERMS_COPIES_HELD};
static const struct terms guarded = {.steered = true, .awaited = true, .guarded = true};

/* Half of what it has to spare may be lost; of the jitter nothing is known yet. */
static void a_copy_that_goes_first_is_expected(void **state) {
	open_job(&first, START);
	assert_int_equal(n_copy, 1);
	assert_int_equal(copy.from, START + 5 * US); /* it is about to come */
	assert_int_equal(copy.late, BOARD_ABOUT_NS);
	assert_int_equal(copy.due, START + 5 * US + DUE);
	expected_closed(&lane);
	assert_int_equal(n_copy, 2);
	assert_int_equal(copy.from, START + PERIOD - PROTO_GUARD_NS + 40 * US);
	assert_int_equal(copy.from + copy.late, START + PERIOD + PROTO_GUARD_NS);
	assert_int_equal(copy.due, START + 5 * US + PERIOD + DUE);
	assert_int_equal(n_needs + n_over, 0);
}

static void the_better_jitter_is_known_the_shorter_is_the_band(void **state) {
	for (unsigned i = 0; i < 1000; i++) {
		open_job(&first, START + i * PERIOD);
		expected_closed(&lane);
	}
	assert_in_range(copy.from, START + 1000 * PERIOD, START + 1000 * PERIOD + 40 * US);
	assert_in_range(copy.from + copy.late, START + 1000 * PERIOD,
			START + 1000 * PERIOD + PROTO_GUARD_NS);
}

static void other_copies_are_not_expected(void **state) {
	open_job(&held, START);
	expected_closed(&lane);
	copy_due = 0; /* nobody waits for it */
	open_job(&first, START + PERIOD);
	expected_closed(&lane);
	assert_int_equal(n_copy + n_needs + n_over, 0);
}

/* The job that is open is about to copy, but others would hardly get between the next ones. */
static void copies_that_follow_each_other_are_not_expected(void **state) {
	next.period = next.lead + PROTO_APART_NS - 1;
	open_job(&first, START);
	expected_closed(&lane);
	assert_int_equal(n_copy, 1);
	next.period++;
	expected_closed(&lane);
	assert_int_equal(n_copy, 2);
	next.period = 0; /* it is no longer known */
	open_job(&first, START + MS);
	expected_closed(&lane);
	assert_int_equal(n_copy, 3);
}

static void jobs_that_are_guarded_are_expected(void **state) {
	open_job(&guarded, START);
	assert_int_equal(needs.from, START + 5 * US + next.lead);
	assert_int_equal(needs.next_from, START + PERIOD - PROTO_GUARD_NS + next.lead + 40 * US);
	assert_int_equal(needs.next_until, START + PERIOD + PROTO_GUARD_NS + next.lead);
	assert_int_equal(needs.next_due, START + PERIOD + 5 * MS);
	assert_int_equal(n_over, 0);
	expected_closed(&lane);
	assert_int_equal(n_over, 1);
	assert_int_equal(n_copy, 0);
	next.period = 0; /* not known: nothing of that holds any more */
	open_job(&guarded, START + PERIOD);
	assert_int_equal(n_needs, 2);
	assert_int_equal(needs.from + needs.next_from + needs.next_until, 0);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(a_copy_that_goes_first_is_expected),
		CASE(the_better_jitter_is_known_the_shorter_is_the_band),
		CASE(other_copies_are_not_expected),
		CASE(copies_that_follow_each_other_are_not_expected),
		CASE(jobs_that_are_guarded_are_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
