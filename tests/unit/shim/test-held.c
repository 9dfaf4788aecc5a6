/*
 * test-held.c: which jobs the next daemon is told about, on a clock that the test sets.
 */
#include "shim/held.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START (1000 * NSEC_PER_SEC)

static int setup(void **state) {
	held_clear();
	return 0;
}

static void add(uint64_t job) {
	const struct conn_ask ask = {.job = job, .release_ns = START - 1};
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	uint8_t sms[1] = {0x0f}, uuid[PROTO_UUID_BYTES] = {(uint8_t)job};

	grant.gpu_uuid.data = uuid; /* another one than was asked for */
	grant.gpu_uuid.len = sizeof(uuid);
	grant.sms.data = sms;
	grant.sms.len = sizeof(sms);
	grant.sequence = 100 + job;
	assert_true(held_add(&ask, &grant, START));
}

static void end(uint64_t job, nsec_t now) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;

	done.job = job;
	held_end(job, &done, job, now);
}

static void check_told(nsec_t now, size_t n_held, size_t n_ended) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;

	held_declare(&hello, now);
	assert_int_equal(hello.n_held, n_held);
	assert_int_equal(hello.n_ended, n_ended);
}

static void held_tells_of_running_jobs_however_old(void **state) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;

	assert_false(held_anything(START));
	add(1);
	assert_true(held_has(1));
	assert_true(held_anything(START + 1000 * HELD_TELL_MAX_NS));
	held_declare(&hello, START + 1000 * HELD_TELL_MAX_NS);
	assert_int_equal(hello.n_held, 1);
	assert_int_equal(hello.held[0]->job, 1);
	assert_int_equal(hello.held[0]->gpu_uuid.data[0], 1);
	assert_int_equal(hello.held[0]->sequence, 101);
	assert_int_equal(hello.held[0]->release_ns, START - 1);
	assert_int_equal(hello.held[0]->granted_ns, START);
	assert_int_equal(hello.held[0]->sms.len, 1);
}

/* A minute, and not a nanosecond more. */
static void held_tells_of_ends_for_a_minute(void **state) {
	const nsec_t minute = 60 * NSEC_PER_SEC;

	add(1);
	add(2);
	end(1, START);
	end(2, START + 1);
	assert_false(held_any());
	check_told(START + minute, 0, 2);
	assert_true(held_anything(START + minute));
	check_told(START + minute + 1, 0, 1);
	assert_true(held_anything(START + minute + 1));
	assert_false(held_anything(START + minute + 2));
	check_told(START + minute + 2, 0, 0);
}

/* The daemon reads in order: a later grant means that it has read the end. */
static void held_forgets_ends_that_a_grant_confirms(void **state) {
	add(1);
	add(2);
	end(1, START);
	held_confirm(1); /* asked for before that end was sent */
	check_told(START, 1, 1);
	held_confirm(2);
	check_told(START, 1, 0);
}

/* A job that was stopped holds nothing; the daemon that stopped it is told of its end alone. */
static void held_does_not_tell_of_stopped_jobs(void **state) {
	add(1);
	add(2);
	held_stop(1);
	assert_true(held_has(1));
	check_told(START, 1, 0);
	add(1); /* granted again */
	check_told(START, 2, 0);
	held_stop(1);
	held_stop(2);
	held_forget_stopped(1);
	assert_false(held_has(1));
	assert_true(held_has(2));
	end(2, START);
	check_told(START, 0, 1);
	assert_false(held_any());
	add(3);
	held_stop(3);
	held_forget_stopped(0);
	check_told(START, 0, 1);
	assert_false(held_any());
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(held_tells_of_running_jobs_however_old),
		CASE(held_tells_of_ends_for_a_minute),
		CASE(held_forgets_ends_that_a_grant_confirms),
		CASE(held_does_not_tell_of_stopped_jobs),
	};

	return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
