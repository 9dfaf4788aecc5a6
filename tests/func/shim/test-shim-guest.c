/*
 * test-shim-guest.c: libsbeet.so leaves nothing behind in a program that exits, forks, cancels its
 * threads or closes descriptors, whatever sbeetd does meanwhile.
 *
 * As in test-shim.c, the test plays the daemon by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"

/* Thread sanitizer takes a cancelled thread to be in the call that it ended in, so it does not see
 * the locks that are taken then; and its own locks may be held for ever in a child made by _Fork().
 */
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN true
#elif defined(__has_feature)
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define UNDER_TSAN false
#endif

/* ---- exit ---- */

/* A thread waits for a grant while another one exits. sbeetd answers the goodbye by closing, as it
 * does when no job runs: the waiting thread must not connect again. */
static void shim_makes_no_connection_during_exit(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 slow-exit", 0);
	mini_do(m, "@1 device", 0);
	mini_tell(m, "@1 launch");
	mini_request(fd, NULL);
	mini_tell(m, "@0 exit");
	mini_free(mini_expect(fd, SBEET__TO_DAEMON__BODY_GOODBYE));
	close(fd);
	mini_answers(m, "1 launch 0");
	assert_false(mini_is_called(m));
	assert_int_equal(mini_said(m, "sbeet:"), 0);
	mini_do(m, "@2 end-exit", 0);
}

/* Grants what is asked for until the guest says goodbye or is gone. Tells it to exit after @n jobs.
 */
static void serve_until_exit(struct mini *m, int fd, unsigned n) {
	Sbeet__ToDaemon *message;
	bool gone = false;

	while (!gone && (message = mini_next(fd))) {
		if (message->body_case == SBEET__TO_DAEMON__BODY_REQUEST) {
			gone = !mini_try_grant(fd, message->request->job, WHOLE);
		} else if (message->body_case == SBEET__TO_DAEMON__BODY_DONE && --n == 0) {
			mini_tell(m, "@0 exit");
		}
		gone |= message->body_case == SBEET__TO_DAEMON__BODY_GOODBYE;
		mini_free(message);
	}
	close(fd);
}

/* Three threads are in CUDA calls all the time. */
static void shim_leaves_no_session_behind_in_200_exits(void **state) {
	struct mini *m = *state;

	for (int i = 0; i < 200; i++) {
		int fd = mini_begin(m, mini_plain);

		mini_tell(m, "@1 churn");
		mini_tell(m, "@2 churn");
		mini_tell(m, "@3 churn");
		serve_until_exit(m, fd, 1 + (unsigned)i % 10);
		mini_end(m);
		assert_false(mini_is_called(m));
		assert_int_equal(mini_said(m, "sbeet:"), 0);
		mini_unlisten(m);
	}
}

/* ---- children ---- */

/* A child that pthread_atfork() does not know of has a copy of everything, the connection included,
 * which is not its own. */
static void shim_leaves_the_connection_to_the_parent(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	if (UNDER_TSAN) {
		skip();
	}
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 bare-fork", 0); /* while a job runs */
	mini_do(m, "@0 bare-fork 3", 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 1); /* and nothing else was said */
	mini_do(m, "@0 bare-fork 3", 0);		  /* while none does */
	assert_true(mini_is_quiet(fd));
	assert_false(mini_is_called(m));
	mini_open_job(m, fd);
	close(fd);
}

/* ---- cancelled threads ---- */

/* One thread reads for both when they are cancelled; both get their grants, and then end. */
static void shim_survives_cancelled_threads(void **state) {
	struct mini *m = *state;
	uint64_t jobs[2];
	int fd;

	if (UNDER_TSAN) {
		skip();
	}
	fd = mini_begin(m, mini_by_thread);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@2 device", 0);
	mini_tell(m, "@1 launch");
	jobs[0] = mini_request(fd, NULL);
	mini_tell(m, "@2 launch");
	jobs[1] = mini_request(fd, NULL);
	mini_do(m, "@0 cancel 1", 0);
	mini_do(m, "@0 cancel 2", 0);
	mini_tell(m, "@0 launch"); /* another thread waits as well */
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	mini_grant(fd, jobs[1], WHOLE);
	mini_grant(fd, jobs[0], WHOLE);
	mini_do(m, "@0 join 1", 0);
	mini_do(m, "@0 join 2", 0);
	mini_do(m, "@0 launches", 3);
	close(fd);
}

/* All threads share one job: those that wait for the cancelled one's grant go on. */
static void shim_survives_cancelled_thread_that_opens_a_job(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	if (UNDER_TSAN) {
		skip();
	}
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@1 device", 0);
	mini_tell(m, "@1 launch");
	job = mini_request(fd, NULL);
	mini_do(m, "@0 cancel 1", 0);
	mini_tell(m, "@0 launch");
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 join 1", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 2);
	mini_open_job(m, fd);
	close(fd);
}

/* As without libsbeet.so it ends there and then; its job ends when the driver has done its work. */
static void shim_ends_job_of_thread_cancelled_in_the_driver(void **state) {
	struct mini *m = *state;
	struct mini_sums sums;
	uint64_t job;
	int fd;

	if (UNDER_TSAN) {
		skip();
	}
	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@0 hold 1", 0);
	mini_tell(m, "@1 fetch"); /* waits in the driver */
	job = mini_request(fd, NULL);
	mini_grant(fd, job, WHOLE);
	mini_do(m, "@0 cancel 1", 0);
	mini_do(m, "@0 join 1", 0);
	mini_do(m, "@0 questions-wait", 0);
	assert_true(mini_is_quiet(fd));
	mini_do(m, "@0 hold 0", 0);
	sums = mini_done(fd, job);
	assert_int_equal(sums.copies, 0);
	assert_true(sums.cancelled);
	close(fd);
}

/* ---- silence ---- */

static const char *const impatient[] = {"SBEET_TIMEOUT=200ms", NULL};

static void send_pong(int fd, uint64_t number) {
	Sbeet__Pong pong = SBEET__PONG__INIT;
	Sbeet__ToShim message = SBEET__TO_SHIM__INIT;

	pong.number = number;
	message.body_case = SBEET__TO_SHIM__BODY_PONG;
	message.pong = &pong;
	mini_send(fd, &message);
}

static uint64_t expect_ping(int fd) {
	Sbeet__ToDaemon *message = mini_expect(fd, SBEET__TO_DAEMON__BODY_PING);
	uint64_t number = message->ping->number;

	mini_free(message);
	return number;
}

static void expect_withdrawn(int fd, uint64_t job) {
	Sbeet__ToDaemon *message = mini_expect(fd, SBEET__TO_DAEMON__BODY_DONE);

	assert_int_equal(message->done->job, job);
	assert_true(message->done->cancelled);
	mini_free(message);
}

/* sbeetd is stopped while two threads wait. They go on unmanaged, their requests are withdrawn, and
 * nobody else waits. When sbeetd wakes, it is asked again over the same connection. */
static void shim_goes_on_while_daemon_is_silent(void **state) {
	static const char *const by_thread[] = {"SBEET_SCOPE=thread", "SBEET_TIMEOUT=200ms", NULL};
	struct mini *m = *state;
	uint64_t jobs[2], ping;
	char answer[MINI_ANSWER_MAX];
	int fd;

	m->pings = true;
	fd = mini_begin(m, by_thread);
	mini_do(m, "@1 device", 0);
	mini_tell(m, "@0 launch");
	jobs[0] = mini_request(fd, NULL);
	mini_tell(m, "@1 launch");
	jobs[1] = mini_request(fd, NULL);
	ping = expect_ping(fd);
	mini_answer(m, answer);
	assert_string_equal(answer + 1, " launch 0");
	mini_answer(m, answer);
	assert_string_equal(answer + 1, " launch 0");
	expect_withdrawn(fd, jobs[1]);
	expect_withdrawn(fd, jobs[0]);
	mini_do(m, "@0 launch 10", 0);
	mini_do(m, "@1 launch 10", 0);
	assert_true(mini_is_quiet(fd));
	assert_int_equal(mini_said(m, "running unmanaged"), 1);
	assert_int_equal(mini_said(m, "200ms (SBEET_TIMEOUT)"), 1);

	mini_grant(fd, jobs[0], WHOLE); /* before it reads that it was withdrawn */
	send_pong(fd, ping);
	mini_open_job(m, fd);
	assert_int_equal(mini_said(m, "sbeet:"), 1);
	assert_false(mini_is_called(m));
	close(fd);
}

/* A policy may let a job wait for longer than that. */
static void shim_waits_for_daemon_that_answers(void **state) {
	static const char *const patient[] = {"SBEET_TIMEOUT=4s", NULL};
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->pings = true;
	fd = mini_begin(m, patient);
	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	for (int i = 0; i < 3; i++) {
		send_pong(fd, expect_ping(fd));
	}
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	assert_int_equal(mini_said(m, "sbeet:"), 0);
	close(fd);
}

/* An older daemon does not know the question. */
static void shim_waits_for_older_daemon(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, impatient);
	uint64_t job;

	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	usleep(1000000);
	assert_true(mini_is_quiet(fd));
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	assert_int_equal(mini_said(m, "sbeet:"), 0);
	close(fd);
}

static void shim_fails_launch_when_required_daemon_is_silent(void **state) {
	static const char *const required[] = {"SBEET_TIMEOUT=50ms", "SBEET_REQUIRE=50ms", NULL};
	struct mini *m = *state;
	uint64_t job, ping;
	int fd;

	m->pings = true;
	fd = mini_begin(m, required);
	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	ping = expect_ping(fd);
	mini_answers(m, "0 launch 802");
	expect_withdrawn(fd, job);
	mini_do(m, "@0 launches", 0);
	assert_int_equal(mini_said(m, "waiting for it, 50ms at most (SBEET_REQUIRE)"), 1);
	assert_int_equal(mini_said(m, "CUDA calls fail"), 1);

	send_pong(fd, ping);
	mini_open_job(m, fd);
	close(fd);
}

/* A job runs, and what it did fills the socket: in the end the connection is given up. The next one
 * is told of the job. */
static void shim_goes_on_when_daemon_does_not_read(void **state) {
	struct mini *m = *state;
	struct mini_sums sums = {.elsewhere = 200001};
	uint64_t job;
	int fd, again;

	m->resumes = true;
	fd = mini_begin(m, impatient);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	mini_tell(m, "@0 launch 200000");
	again = mini_accept_held(m, job);
	while (!mini_wait(m, again)) {
		assert_false(mini_read(again, job, &sums));
	}
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 hold 0", 0);
	mini_tell(m, "@0 sync");
	while (!mini_read(again, job, &sums)) {
	}
	mini_answers(m, "0 sync 0");
	assert_int_equal(sums.launches, 200001);
	close(fd);
	close(again);
}

/* ---- standard error ---- */

static void shim_writes_only_to_what_was_stderr(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 reuse-stderr", 0);
	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	mini_unlisten(m);
	close(fd);
	mini_answers(m, "0 launch 0"); /* unmanaged, which is a reason for a message */
	mini_do(m, "@0 stderr-size", 0);
	assert_int_equal(mini_said(m, "sbeet:"), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(shim_makes_no_connection_during_exit),
		MINI_CASE(shim_leaves_no_session_behind_in_200_exits),
		MINI_CASE(shim_leaves_the_connection_to_the_parent),
		MINI_CASE(shim_survives_cancelled_threads),
		MINI_CASE(shim_survives_cancelled_thread_that_opens_a_job),
		MINI_CASE(shim_ends_job_of_thread_cancelled_in_the_driver),
		MINI_CASE(shim_goes_on_while_daemon_is_silent),
		MINI_CASE(shim_waits_for_daemon_that_answers),
		MINI_CASE(shim_waits_for_older_daemon),
		MINI_CASE(shim_fails_launch_when_required_daemon_is_silent),
		MINI_CASE(shim_goes_on_when_daemon_does_not_read),
		MINI_CASE(shim_writes_only_to_what_was_stderr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
