/*
 * test-keeper.c: what the keeper does to the gate of kernels, and everything when the process ends.
 */
#include "shim/real.h"

#include "tests/unit/keeper-world.h"

#include <unistd.h>

#include "shim/seat.h"

static void who_has_no_job_has_no_gate(void **state) {
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), 0);
}

static void kernels_wait_while_somebody_is_awaited(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	assert_false(may_begin(gate)); /* before the first one is handed over */
	for (int i = 0; i < 20; i++) {
		let_it_look();
		assert_false(may_begin(gate)); /* the clock stands still */
	}
	await(9, 0);
	wait_until(gate, true);
	await(9, 1250 * MS); /* later than ours */
	let_it_look();
	assert_true(may_begin(gate));
	await(10, 1150 * MS); /* another one, in the middle */
	wait_until(gate, false);
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), gate);
	assert_false(may_begin(gate)); /* the next kernel */
	close_job(gate);
	assert_true(may_begin(gate)); /* at rest it is open */
	assert_int_equal(open_job(1200 * MS), gate);
	assert_false(may_begin(gate)); /* and for the next job closed at once */
	close_job(gate);
}

/* Nor in front of a job that they would run into. */
static void kernels_do_not_begin_in_a_guard_band(void **state) {
	struct board_needs *needs = &board->needs[GPU][9];
	CUdeviceptr gate;

	atomic_store(&needs->since_ns, 990 * MS);
	atomic_store(&needs->next_due_ns, 1020 * MS);
	atomic_store(&needs->next_from_ns, 1005 * MS);
	atomic_store(&needs->next_until_ns, 1006 * MS);
	gate = open_job(1200 * MS); /* for all that is known its kernels take no time */
	let_it_look();
	assert_true(may_begin(gate));
	gate = keeper_gate(context, DEVICE, GPU, 4 * MS);
	let_it_look();
	assert_true(may_begin(gate));
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 6 * MS), gate); /* about as long */
	wait_until(gate, false);
	close_job(gate);
	atomic_store(&own_due, 1200 * MS);
	keeper_gate(context, DEVICE, GPU, 6 * MS);
	assert_false(may_begin(gate)); /* the first kernel of the next job */
	atomic_store(&now, 1006 * MS);
	wait_until(gate, true); /* the job has not come */
	close_job(gate);
}

/* Long kernels wait in front of a job where short ones still have time. */
static void the_band_is_as_long_as_the_kernel(void **state) {
	struct board_needs *needs = &board->needs[GPU][9];
	CUdeviceptr gates[3], again;

	atomic_store(&needs->since_ns, 990 * MS);
	atomic_store(&needs->next_due_ns, 1020 * MS);
	atomic_store(&needs->next_from_ns, 1005 * MS);
	atomic_store(&needs->next_until_ns, 1006 * MS);
	open_job(1200 * MS);
	gates[0] = keeper_gate(context, DEVICE, GPU, MS / 10);
	gates[1] = keeper_gate(context, DEVICE, GPU, 2 * MS);
	gates[2] = keeper_gate(context, DEVICE, GPU, 6 * MS);
	assert_false(may_begin(gates[2])); /* the first one of these */
	let_it_look();
	assert_true(may_begin(gates[0]));
	assert_true(may_begin(gates[1]));
	assert_false(may_begin(gates[2]));
	atomic_store(&now, 1004 * MS);
	wait_until(gates[1], false);
	let_it_look();
	assert_true(may_begin(gates[0]));
	/* What is seldom that long comes to count as short as the others are. */
	atomic_store(&now, 1000 * MS);
	for (int i = 0; i < 1000; i++) {
		keeper_gate(context, DEVICE, GPU, 4 * MS);
	}
	wait_until(gates[2], true);
	atomic_store(&now, 1001 * MS + 1);
	wait_until(gates[2], false);
	/* A job that is open closes all at once. */
	close_job(gates[2]);
	await(9, 1100 * MS);
	atomic_store(&own_due, 1200 * MS);
	again = keeper_gate(context, DEVICE, GPU, MS / 10);
	assert_int_equal(again, gates[0]);
	for (int i = 0; i < 3; i++) {
		assert_false(may_begin(gates[i]));
	}
	await(9, 0);
	close_job(gates[0]);
}

/* Copies have a gate of their own. */
static void kernels_do_not_wait_for_copies(void **state) {
	CUdeviceptr gate = open_job(1200 * MS);
	struct keeper_copy copy;

	announce(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	let_it_look();
	assert_false(is_open(&copy));
	assert_true(may_begin(gate));
	announce(9, 0);
	await(9, 1100 * MS);
	wait_until(gate, false);
	while (!is_open(&copy)) {
		usleep(100);
	}
	finish(&copy);
	close_job(gate);
}

/* And not before they are, nor if there are more of them. */
static void others_hear_when_our_kernels_are_done(void **state) {
	struct board_needs *needs = &board->needs[GPU][OWN];
	struct keeper_word word;

	assert_false(keeper_kernels_end(context, DEVICE, &word)); /* there is no job */
	seat_job_opened(DEVICE, false);
	assert_true(keeper_kernels_end(context, DEVICE, &word));
	keeper_kernels_watch(context, &word);
	let_it_look();
	assert_int_not_equal(atomic_load(&needs->done), word.job);
	*(volatile uint32_t *)(uintptr_t)word.at = word.value;
	while (atomic_load(&needs->done) != word.job) {
		usleep(100);
	}
	keeper_kernels_go_on(context, DEVICE); /* a launch */
	assert_int_equal(atomic_load(&needs->done), 0);
	assert_true(keeper_kernels_end(context, DEVICE, &word));
	keeper_kernels_watch(context, &word);
	let_it_look();
	assert_int_equal(atomic_load(&needs->done), 0); /* what was written is older */
	keeper_kernels_go_on(context, DEVICE);
	*(volatile uint32_t *)(uintptr_t)word.at = word.value;
	seat_job_closed(DEVICE);
	assert_int_equal(atomic_load(&needs->done), 0);
}

static void kernels_begin_again_in_time(void **state) {
	CUdeviceptr gate;

	await(9, 2000 * MS);
	gate = open_job(BOARD_NO_DUE);
	let_it_look(); /* closed since now */
	atomic_fetch_add(&now, BOARD_YIELD_MAX_NS - 1);
	let_it_look();
	assert_false(may_begin(gate));
	atomic_fetch_add(&now, 1);
	wait_until(gate, true);
	let_it_look();
	assert_true(may_begin(gate));
	close_job(gate);
}

/* A job may end while the gate is closed: its last kernel had begun. */
static void kernels_have_not_waited_since_the_job_before(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	close_job(gate);
	atomic_fetch_add(&now, 50 * MS);
	await(9, 1101 * MS);
	open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	close_job(gate);
}

static void kernels_do_not_wait_for_a_keeper_without_a_cpu(void **state) {
	CUdeviceptr gate;
	nsec_t next;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	atomic_store(&stuck, true);
	wait_until_stuck();
	next = keeper_watch(atomic_load(&now));
	assert_true(next > atomic_load(&now) && next < 1001 * MS);
	assert_false(may_begin(gate));
	atomic_store(&now, next);
	assert_int_equal(keeper_watch(next), UINT64_MAX);
	assert_true(may_begin(gate));
	unstick();
	close_job(gate);
}

static void kernels_begin_when_the_terms_lapse(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(may_begin(gate));
	atomic_store(&steered, false);
	wait_until(gate, true);
	close_job(gate);
}

static void context_takes_its_kernels_with_it(void **state) {
	CUdeviceptr gate;

	await(9, 1100 * MS);
	gate = open_job(1200 * MS);
	let_it_look();
	keeper_context_destroying(context);
	assert_true(may_begin(gate));
	atomic_store(&own_due, 0);
}

/* The last test: nothing is held after that. */
static void leaving_opens_everything_for_good(void **state) {
	struct keeper_copy copy, more = {.gpu = GPU, .due = 1200 * MS, .held = true};
	CUdeviceptr gate;

	announce(9, 1100 * MS);
	await(9, 1100 * MS);
	copy = begin(1200 * MS, true);
	gate = open_job(1200 * MS);
	let_it_look();
	assert_false(is_open(&copy));
	assert_false(may_begin(gate));
	keeper_leave();
	assert_true(is_open(&copy));
	assert_true(may_begin(gate));
	assert_int_equal(keeper_gate(context, DEVICE, GPU, 0), 0);
	assert_int_equal(slot(OWN), 0);
	assert_false(keeper_begin(context, &more));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(who_has_no_job_has_no_gate),
		CASE(kernels_wait_while_somebody_is_awaited),
		CASE(kernels_do_not_begin_in_a_guard_band),
		CASE(the_band_is_as_long_as_the_kernel),
		CASE(kernels_do_not_wait_for_copies),
		CASE(others_hear_when_our_kernels_are_done),
		CASE(kernels_begin_again_in_time),
		CASE(kernels_have_not_waited_since_the_job_before),
		CASE(kernels_do_not_wait_for_a_keeper_without_a_cpu),
		CASE(kernels_begin_when_the_terms_lapse),
		CASE(context_takes_its_kernels_with_it),
		CASE(leaving_opens_everything_for_good),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
