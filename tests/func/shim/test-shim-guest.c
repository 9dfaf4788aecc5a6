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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"

/* Thread sanitizer takes a cancelled thread to be in the call that it ended in, so it does not see
 * the locks that are taken then; its own locks may be held for ever in a child made by _Fork(); and
 * it lets no child of several threads have threads of its own. */
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
	mini_tell(m, "@2 end-exit"); /* it may be gone before it answers */
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

/* The tracker's question to the driver gets no answer, as if whoever exits did so in the middle of
 * a call, from a signal handler. */
static void shim_lets_go_of_a_program_that_exits_within_the_driver(void **state) {
	struct mini *m = *state;
	int fd, status;

	m->linger_ns = MINI_LINGER_SHORT_NS;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 gate 1", 0);
	mini_open_job_by(m, fd, "@0 thread-launch", WHOLE);
	mini_do(m, "@0 gate-wait", 0);
	mini_tell(m, "@0 exit");
	assert_int_equal(waitpid(m->guest, &status, 0), m->guest);
	assert_int_equal(status, 0);
	m->guest = 0;
	close(fd);
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

static void shim_lets_child_start_anew(void **state) {
	struct mini *m = *state;
	int fd, child;
	uint64_t job;

	if (UNDER_TSAN) {
		skip();
	}
	fd = mini_begin(m, mini_plain);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
	mini_tell(m, "@0 fork");
	m->n_welcomes = 0; /* another program: it has no secret */
	child = mini_accept(m);
	job = mini_request(child, NULL);
	mini_grant(child, job, WHOLE);
	assert_int_equal(mini_done(child, job).launches, 2);
	mini_answers(m, "0 fork 0");
	mini_open_job(m, fd); /* the parent's connection is what it was */
	close(child);
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
	mini_do(m, "@0 gate 1", 0);
	mini_tell(m, "@1 fetch"); /* waits in the driver */
	mini_tell(m, "@0 gate-wait");
	job = mini_let_in(m, fd, WHOLE);
	mini_answers(m, "0 gate-wait 0");
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

/* ---- descriptors ---- */

static void shim_survives_a_program_that_closes_everything(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain), again;

	mini_do(m, "@0 close-all", 0);
	mini_tell(m, "@0 launch");
	again = mini_accept(m);
	mini_expect_end(fd);
	mini_grant(again, mini_request(again, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 check-files", 0);
	close(fd);
	close(again);
}

/* A thread waits for its grant, awake or asleep, while another one closes the socket and opens
 * files in its place: the thread connects again, though sbeetd has not said anything. */
static void shim_leaves_what_is_opened_in_place_of_its_socket(void **state) {
	static const uint64_t spins[] = {0, PROTO_SPIN_MAX_NS};
	struct mini *m = *state;

	for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
		int fd, again;
		uint64_t job;

		m->spin_ns = spins[i];
		fd = mini_begin(m, mini_plain);
		mini_do(m, "@1 device", 0);
		mini_tell(m, "@1 launch");
		job = mini_request(fd, NULL);
		mini_do(m, "@0 close-all", 0);
		again = mini_accept(m);
		mini_expect_end(fd);
		assert_int_equal(mini_request(again, NULL), job);
		mini_grant(again, job, WHOLE);
		mini_answers(m, "1 launch 0");
		mini_do(m, "@0 check-files", 0);
		assert_int_equal(mini_said(m, "sbeet:"), 0);
		close(fd);
		close(again);
		mini_deinit(m);
		mini_init(m);
	}
}

/* The program closes "all" descriptors again and again: each time the waiting thread asks again. */
static void shim_asks_again_whenever_its_socket_is_closed(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@1 device", 0);
	mini_tell(m, "@1 launch");
	for (int i = 0; i < 5; i++) {
		int closed = fd;

		mini_request(fd, NULL);
		mini_do(m, "@0 close-all", 0);
		fd = mini_accept(m);
		close(closed);
	}
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "1 launch 0");
	assert_int_equal(mini_said(m, "sbeet:"), 0);
	close(fd);
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

/* ---- errno ---- */

static void shim_keeps_errno(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_open_job_by(m, fd, "@0 errno", WHOLE);
	mini_unlisten(m);
	close(fd);
	mini_do(m, "@0 errno", 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(shim_makes_no_connection_during_exit),
		MINI_CASE(shim_leaves_no_session_behind_in_200_exits),
		MINI_CASE(shim_lets_go_of_a_program_that_exits_within_the_driver),
		MINI_CASE(shim_leaves_the_connection_to_the_parent),
		MINI_CASE(shim_lets_child_start_anew),
		MINI_CASE(shim_survives_cancelled_threads),
		MINI_CASE(shim_survives_cancelled_thread_that_opens_a_job),
		MINI_CASE(shim_ends_job_of_thread_cancelled_in_the_driver),
		MINI_CASE(shim_survives_a_program_that_closes_everything),
		MINI_CASE(shim_leaves_what_is_opened_in_place_of_its_socket),
		MINI_CASE(shim_asks_again_whenever_its_socket_is_closed),
		MINI_CASE(shim_writes_only_to_what_was_stderr),
		MINI_CASE(shim_keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
