/*
 * test-board.c: who waits for whose copies, and for how long at most. The clock is the test's.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/board.h"

#define MS  NSEC_PER_MSEC
#define GPU 3
#define OWN 7

static struct board board;
static struct board_gate gate;
static struct board_yield yield;

static int clear(void **state) {
	memset(&board, 0, sizeof(board));
	memset(&gate, 0, sizeof(gate));
	memset(&yield, 0, sizeof(yield));
	return 0;
}

static void announce(unsigned slot, uint64_t due) {
	atomic_store(&board.slots[GPU][slot].due_ns, due);
}

static bool is_before_piece(uint64_t due, nsec_t takes, nsec_t now) {
	return board_is_before(&board, GPU, OWN, &(struct board_copy){due, takes}, now);
}

static bool is_before(uint64_t due, nsec_t now) {
	return is_before_piece(due, 0, now);
}

static bool piece_may_begin(uint64_t due, nsec_t takes, nsec_t now) {
	return board_gate_is_open(&gate, &board, GPU, OWN, &(struct board_copy){due, takes}, now);
}

static bool is_open(uint64_t due, nsec_t now) {
	return piece_may_begin(due, 0, now);
}

static void board_lets_earlier_deadlines_go_first(void **state) {
	assert_false(is_before(100 * MS, 50 * MS));
	announce(OWN, 60 * MS); /* one's own */
	announce(8, 100 * MS);	/* no earlier */
	atomic_store(&board.slots[GPU + 1][9].due_ns, 60 * MS);
	assert_false(is_before(100 * MS, 50 * MS));
	assert_true(is_open(100 * MS, 50 * MS));
	assert_true(is_before(UINT64_MAX, 50 * MS)); /* has none itself */
	announce(PROTO_BOARD_SLOTS - 1, 100 * MS - 1);
	assert_true(is_before(100 * MS, 50 * MS));
	assert_false(is_open(100 * MS, 50 * MS));
	announce(PROTO_BOARD_SLOTS - 1, 0);
	assert_true(is_open(100 * MS, 50 * MS + 1));
}

static void board_forgets_deadlines_long_past(void **state) {
	announce(8, 50 * MS);
	assert_true(is_before(UINT64_MAX, 50 * MS + BOARD_STALE_NS));
	assert_false(is_before(UINT64_MAX, 50 * MS + BOARD_STALE_NS + 1));
	assert_true(is_open(UINT64_MAX, 50 * MS + BOARD_STALE_NS + 1));
}

static void gate_is_closed_only_so_long_for_a_deadline(void **state) {
	nsec_t t = 1000 * MS;

	announce(8, t + 100 * MS);
	assert_false(is_open(UINT64_MAX, t));
	assert_false(is_open(UINT64_MAX, t + BOARD_HOLD_MAX_NS - 1));
	assert_true(is_open(UINT64_MAX, t + BOARD_HOLD_MAX_NS));
	/* Not for the same one again, even if it went in the meantime. */
	assert_true(is_open(UINT64_MAX, t + BOARD_HOLD_MAX_NS + 1));
	announce(8, 0);
	assert_true(is_open(UINT64_MAX, t + 10 * MS));
	announce(8, t + 100 * MS);
	assert_true(is_open(UINT64_MAX, t + 11 * MS));
	/* The next one counts, from when it is seen. */
	announce(8, t + 101 * MS);
	assert_false(is_open(UINT64_MAX, t + 20 * MS));
	assert_false(is_open(UINT64_MAX, t + 25 * MS - 1));
	assert_true(is_open(UINT64_MAX, t + 25 * MS));
}

/* An announcement may be there for longer than its copy. */
static void gate_is_closed_as_long_as_copies_may_take(void **state) {
	const nsec_t length = MS / 3, one = 2 * length + BOARD_HOLD_MIN_NS;
	nsec_t t = 1000 * MS;

	atomic_store(&board.slots[GPU][8].length_ns, length);
	announce(8, t + 100 * MS);
	assert_false(is_open(UINT64_MAX, t));
	assert_false(is_open(UINT64_MAX, t + one - 1));
	assert_true(is_open(UINT64_MAX, t + one));
	/* Those of several, one after the other. */
	t += 10 * MS;
	announce(8, t + 100 * MS);
	assert_false(is_open(UINT64_MAX, t));
	atomic_store(&board.slots[GPU][9].length_ns, length);
	announce(9, t + 90 * MS);
	assert_false(is_open(UINT64_MAX, t + one - 1));
	announce(8, 0);
	assert_false(is_open(UINT64_MAX, t + 2 * one - 1));
	assert_true(is_open(UINT64_MAX, t + 2 * one));
	/* Another copy for the same deadline. */
	t += 10 * MS;
	announce(9, t + 90 * MS);
	assert_false(is_open(UINT64_MAX, t));
	atomic_store(&board.slots[GPU][9].length_ns, 2 * length);
	assert_false(is_open(UINT64_MAX, t + one));
	assert_false(is_open(UINT64_MAX, t + one + 2 * length - 1));
	assert_true(is_open(UINT64_MAX, t + one + 2 * length));
}

static void expect_copy(unsigned slot, nsec_t from, uint32_t late, uint64_t due) {
	atomic_store(&board.needs[GPU][slot].copy_from_ns, from);
	atomic_store(&board.needs[GPU][slot].copy_late_ns, late);
	atomic_store(&board.needs[GPU][slot].copy_due_ns, due);
}

/* If they would still run then. */
static void pieces_wait_for_copies_that_are_expected(void **state) {
	const nsec_t t = 1000 * MS, from = t + MS, piece = MS / 10, late = MS / 5;
	const uint64_t due = t + 10 * MS, later = t + 50 * MS;

	expect_copy(8, from, late, due);
	assert_false(is_before_piece(later, piece, from - piece)); /* done in time */
	assert_true(piece_may_begin(later, piece, from - piece));
	assert_true(is_before_piece(later, piece, from - piece + 1));
	assert_false(piece_may_begin(later, piece, from - piece + 1));
	assert_false(is_before_piece(due, piece, from)); /* due as early */
	assert_true(is_before_piece(later, piece, from + late - 1));
	assert_false(piece_may_begin(later, piece, from + late - 1));
	assert_false(is_before_piece(later, piece, from + late)); /* it does not come */
	assert_true(piece_may_begin(later, piece, from + late));
	/* It comes: what is announced is waited for, whatever is expected then. */
	announce(8, due);
	assert_true(is_before_piece(later, piece, from + late));
	expect_copy(8, from + 20 * MS, late, due + 20 * MS);
	assert_false(piece_may_begin(later, piece, from + late));
	announce(8, 0);
	assert_true(piece_may_begin(later, piece, from + late + 1));
	/* One's own is no reason to wait. */
	expect_copy(8, 0, 0, 0);
	expect_copy(OWN, from, late, due);
	assert_false(is_before_piece(later, piece, from));
}

/* However many announce or expect, and whatever: what is held goes on. */
static void gate_opens_in_time_whatever_others_write(void **state) {
	nsec_t t = 1000 * MS, closed = 0, longest = 0;

	for (unsigned i = 0; i < 20000; i++, t += 10 * NSEC_PER_USEC) {
		announce(i % PROTO_BOARD_SLOTS, i % 3 ? t + i : UINT64_MAX - i);
		expect_copy(i * 5 % PROTO_BOARD_SLOTS, i % 7 ? t + MS : 1, UINT32_MAX - i % 2,
			    i % 5 ? t + i : UINT64_MAX - i);
		closed = is_open(UINT64_MAX, t) ? 0 : closed + 10 * NSEC_PER_USEC;
		longest = closed > longest ? closed : longest;
	}
	assert_true(longest > 0 && longest <= BOARD_HOLD_MAX_NS);
}

/* ---- kernels ---- */

static void await(unsigned slot, uint64_t due) {
	atomic_store(&board.slots[GPU][slot].job_due_ns, due);
}

static bool is_awaited(uint64_t due, nsec_t takes, nsec_t now) {
	return board_is_awaited(&board, GPU, OWN, &(struct board_kernel){due, takes}, now);
}

static bool yields_not(uint64_t due, nsec_t takes, nsec_t now) {
	return board_yield_is_open(&yield, &board, GPU, OWN, &(struct board_kernel){due, takes},
				   now);
}

static bool may_begin(uint64_t due, nsec_t now) {
	bool is = is_awaited(due, 0, now);
	bool open = yields_not(due, 0, now);

	assert_true(is || open);
	return open;
}

static void kernels_wait_for_jobs_that_are_due_earlier(void **state) {
	nsec_t t = 1000 * MS;

	assert_true(may_begin(t + 50 * MS, t));
	await(OWN, t + 1); /* one's own */
	await(8, t + 50 * MS);
	await(9, BOARD_NO_DUE);
	atomic_store(&board.slots[GPU + 1][9].job_due_ns, t + 1);
	announce(9, t + 1); /* a copy */
	assert_true(may_begin(t + 50 * MS, t));
	assert_true(may_begin(t + 40 * MS, t));
	assert_false(may_begin(t + 50 * MS + 1, t));
	await(8, 0);
	assert_true(may_begin(t + 50 * MS + 1, t));
	await(PROTO_BOARD_SLOTS - 1, t + 20 * MS);
	assert_false(may_begin(BOARD_NO_DUE, t));
}

/* How late a job may come. */
#define LATE (MS / 2)

static void expect(unsigned slot, nsec_t since, nsec_t from, uint64_t due) {
	atomic_store(&board.needs[GPU][slot].since_ns, since);
	atomic_store(&board.needs[GPU][slot].next_from_ns, from);
	atomic_store(&board.needs[GPU][slot].next_until_ns, from + LATE);
	atomic_store(&board.needs[GPU][slot].next_due_ns, due);
}

/* If they would still run then. */
static void kernels_wait_for_jobs_that_are_expected(void **state) {
	nsec_t t = 1000 * MS, from = t + 5 * MS, until = from + LATE;
	uint64_t due = t + 10 * MS, later = t + 50 * MS;

	expect(8, t - 5 * MS, from, due);
	assert_true(may_begin(later, t)); /* it takes no time */
	assert_false(is_awaited(later, from - t, t));
	assert_true(is_awaited(later, from - t + 1, t));
	assert_false(yields_not(later, from - t + 1, t));
	assert_false(is_awaited(due, from - t + 1, t)); /* due as early */
	assert_true(is_awaited(later, MS, until - 1));
	assert_false(is_awaited(later, MS, until)); /* it does not come */
	assert_true(yields_not(later, MS, until));
	/* It fits between no two jobs. */
	assert_true(is_awaited(later, from - (t - 5 * MS), t));
	assert_false(is_awaited(later, from - (t - 5 * MS) + 1, t));
	/* What is open counts more than what will be; one's own does not at all. */
	await(8, later);
	assert_false(is_awaited(later, MS, until - 1));
	await(8, 0);
	expect(8, 0, 0, 0);
	expect(OWN, 0, from, due);
	assert_false(is_awaited(later, MS, until - 1));
}

static sem_t go;
static _Atomic bool is_open_now, stop;

/* Each time, a job that was expected opens, and says when the next one is. */
static void *open_jobs(void *data) {
	nsec_t *t = data;

	while (sem_wait(&go) == 0 && !atomic_load(&stop)) {
		await(8, *t + 10 * MS);
		expect(8, 0, *t + 100 * MS, *t + 120 * MS);
		atomic_store(&is_open_now, true);
	}
	return NULL;
}

/* The kernel must wait at every moment. */
static void kernels_see_a_job_that_opens(void **state) {
	nsec_t t = 1000 * MS;
	pthread_t thread;
	unsigned begun = 0;

	sem_init(&go, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, open_jobs, &t), 0);
	for (unsigned i = 0; i < 5000; i++) {
		expect(8, 0, t + MS, t + 10 * MS);
		await(8, 0);
		atomic_store(&is_open_now, false);
		sem_post(&go);
		do {
			begun += !is_awaited(t + 50 * MS, 2 * MS, t);
		} while (!atomic_load(&is_open_now));
	}
	atomic_store(&stop, true);
	sem_post(&go);
	pthread_join(thread, NULL);
	assert_int_equal(begun, 0);
}

static void kernels_wait_as_long_as_a_job_needs_sms(void **state) {
	struct board_needs *needs = &board.needs[GPU][8];
	nsec_t t = 1000 * MS;

	await(8, t + 10 * MS);
	atomic_store(&board.slots[GPU][8].jobs, UINT64_C(7) << 32 | 1);
	atomic_store(&needs->done, 6); /* of the job before */
	atomic_store(&needs->from_ns, t + MS);
	assert_false(is_awaited(BOARD_NO_DUE, MS, t)); /* done when the copy is */
	assert_true(is_awaited(BOARD_NO_DUE, MS + 1, t));
	assert_true(is_awaited(BOARD_NO_DUE, MS, t + 1));
	assert_true(is_awaited(BOARD_NO_DUE, 0, t)); /* nobody knows */
	atomic_store(&needs->done, 7);
	assert_false(is_awaited(BOARD_NO_DUE, 0, t));
	assert_true(yields_not(BOARD_NO_DUE, 9 * MS, t));
	/* The next one may be expected. */
	expect(8, t - MS, t + 5 * MS, t + 20 * MS);
	assert_true(is_awaited(BOARD_NO_DUE, 6 * MS, t));
	assert_false(is_awaited(t + 20 * MS, 6 * MS, t));
}

static void kernels_wait_only_so_long_for_a_deadline(void **state) {
	nsec_t t = 1000 * MS;

	await(8, t + 100 * MS);
	assert_false(may_begin(BOARD_NO_DUE, t));
	assert_false(may_begin(BOARD_NO_DUE, t + BOARD_YIELD_MAX_NS - 1));
	assert_true(yields_not(BOARD_NO_DUE, 0, t + BOARD_YIELD_MAX_NS));
	t += BOARD_YIELD_MAX_NS + 1;
	assert_true(yields_not(BOARD_NO_DUE, 0, t));
	/* The next one counts, from when it is seen. */
	await(8, t + 200 * MS);
	assert_false(may_begin(BOARD_NO_DUE, t + MS));
	await(9, t + 150 * MS); /* no longer for two */
	assert_false(may_begin(BOARD_NO_DUE, t + BOARD_YIELD_MAX_NS + MS - 1));
	assert_true(yields_not(BOARD_NO_DUE, 0, t + BOARD_YIELD_MAX_NS + MS));
	await(8, t + 300 * MS);
	await(9, 0);
	assert_false(may_begin(BOARD_NO_DUE, t + BOARD_YIELD_MAX_NS + 2 * MS));
	/* A program that is stopped, or was. */
	t += 300 * MS;
	assert_true(yields_not(BOARD_NO_DUE, 0, t + BOARD_STALE_NS + 1));
	assert_false(is_awaited(BOARD_NO_DUE, 0, t + BOARD_STALE_NS + 1));
}

static void kernels_begin_in_time_whatever_others_write(void **state) {
	nsec_t t = 1000 * MS, closed = 0, longest = 0;

	for (unsigned i = 0; i < 20000; i++, t += 10 * NSEC_PER_USEC) {
		await(i % PROTO_BOARD_SLOTS, i % 3 ? t + i : UINT64_MAX - i);
		expect(i * 7 % PROTO_BOARD_SLOTS, i % 5 ? 0 : t, i % 4 ? t + MS : UINT64_MAX - i,
		       i % 7 ? t + i : i);
		closed = yields_not(BOARD_NO_DUE, i % 2 ? 3 * MS : UINT64_MAX - t, t)
				 ? 0
				 : closed + 10 * NSEC_PER_USEC;
		longest = closed > longest ? closed : longest;
	}
	assert_true(longest > 0 && longest <= BOARD_YIELD_MAX_NS);
}

#define CLEARED(test) cmocka_unit_test_setup(test, clear)

int main(void) {
	const struct CMUnitTest tests[] = {
		CLEARED(board_lets_earlier_deadlines_go_first),
		CLEARED(board_forgets_deadlines_long_past),
		CLEARED(gate_is_closed_only_so_long_for_a_deadline),
		CLEARED(gate_is_closed_as_long_as_copies_may_take),
		CLEARED(pieces_wait_for_copies_that_are_expected),
		CLEARED(gate_opens_in_time_whatever_others_write),
		CLEARED(kernels_wait_for_jobs_that_are_due_earlier),
		CLEARED(kernels_wait_for_jobs_that_are_expected),
		CLEARED(kernels_see_a_job_that_opens),
		CLEARED(kernels_wait_as_long_as_a_job_needs_sms),
		CLEARED(kernels_wait_only_so_long_for_a_deadline),
		CLEARED(kernels_begin_in_time_whatever_others_write),
	};

	return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
