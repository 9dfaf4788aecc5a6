/*
 * test-shim-daemons.c: libsbeet.so when sbeetd is missing, ends, is silent, refuses or talks
 * nonsense: the program goes on, and its user is told why.
 *
 * As in test-shim.c, the test plays the daemon by hand.
 */
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"
#include "proto/units.h"

#define NOT_READY_CODE 802 /* CUDA_ERROR_SYSTEM_NOT_READY */

/* ---- none, or one that goes away ---- */

/* Thread 0's launch waits for its grant when the connection ends; it runs nevertheless. */
static void die_while_job_waits(struct mini *m, int fd) {
	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	mini_unlisten(m);
	close(fd);
	mini_answers(m, "0 launch 0");
}

static void shim_goes_on_when_daemon_dies_while_job_waits_awake(void **state) {
	struct mini *m = *state;
	int fd;

	m->spin_ns = PROTO_SPIN_MAX_NS;
	fd = mini_begin(m, mini_plain);
	die_while_job_waits(m, fd);
	mini_do(m, "@0 launches", 1);
}

static void shim_runs_unmanaged_and_says_so_once(void **state) {
	struct mini *m = *state;

	mini_start(m, mini_plain);
	mini_do(m, "@0 init", 0);
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 launch 1000", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 launches", 1000);
	assert_int_equal(mini_said(m, "running unmanaged"), 1);
	assert_int_equal(mini_said(m, "sbeet:"), 1);
}

static void shim_goes_on_when_daemon_dies_while_job_waits(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	die_while_job_waits(m, fd);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 launches", 1);
	assert_int_equal(mini_said(m, "running unmanaged"), 1);
}

/* The wait for the next one is told of, and happens once: the jobs after that find no daemon, and
 * no wait, however long that one was. */
static void shim_waits_once_for_the_next_daemon(void **state) {
	static const char *const second[] = {"SBEET_WAIT=1s", NULL}, *const none[] = {
									     "SBEET_WAIT=0s", NULL};
	struct mini *m = *state;
	nsec_t began, first, rest;
	int fd = mini_begin(m, second);

	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	mini_unlisten(m);
	began = nsec_now();
	close(fd);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 sync", 0);
	first = nsec_now() - began;
	began = nsec_now();
	for (int i = 0; i < 10; i++) {
		mini_do(m, "@0 launch", 0);
		mini_do(m, "@0 sync", 0);
	}
	rest = nsec_now() - began;
	assert_true(first >= NSEC_PER_SEC);
	assert_true(rest < 10 * first); /* else each of them has waited */
	assert_int_equal(mini_said(m, "1s at most (SBEET_WAIT)"), 1);
	assert_int_equal(mini_said(m, "running unmanaged"), 1);

	mini_deinit(m);
	mini_init(m);
	fd = mini_begin(m, none);
	die_while_job_waits(m, fd);
	assert_int_equal(mini_said(m, "SBEET_WAIT"), 0);
	assert_int_equal(mini_said(m, "running unmanaged"), 1);
}

static void shim_goes_on_when_daemon_dies_while_job_runs(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_do(m, "@0 hold 1", 0);
	mini_open_job(m, fd);
	mini_unlisten(m);
	close(fd);
	mini_do(m, "@0 launch 100", 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 launch 100", 0);
	mini_do(m, "@0 launches", 201);
}

static void shim_goes_on_when_daemon_dies_in_the_greeting(void **state) {
	struct mini *m = *state;

	mini_listen(m);
	mini_start(m, mini_plain);
	mini_tell(m, "@0 init");
	close(mini_accept_only(m));
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	mini_unlisten(m);
	mini_do(m, "@0 launch", 0);
}

static void shim_goes_on_when_daemon_never_answers(void **state) {
	struct mini *m = *state;
	int fd;

	mini_listen(m);
	mini_start(m, mini_plain);
	mini_tell(m, "@0 init");
	fd = mini_accept_only(m);
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 launch", 0);
	close(fd);
}

/* No signal begins the wait for an answer anew. */
static void shim_goes_on_when_daemon_never_answers_and_signals_come(void **state) {
	struct mini *m = *state;

	mini_listen(m);
	mini_start(m, mini_plain);
	mini_do(m, "@0 alarms 100", 0);
	mini_do(m, "@0 init", 0);
}

static void shim_asks_the_next_daemon(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	close(fd); /* restarted while the program was idle: it still listens, or listens again */
	mini_tell(m, "@0 launch");
	fd = mini_accept(m);
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
}

/* Welcomes a program that says this of MPS. */
static int accept_saying(struct mini *m, bool initialised, const char *mps) {
	int fd = mini_accept_only(m);
	Sbeet__ToDaemon *hello = mini_expect(fd, SBEET__TO_DAEMON__BODY_HELLO);

	assert_int_equal(hello->hello->initialised, initialised);
	assert_string_equal(hello->hello->mps_pipe_directory, mps);
	mini_free(hello);
	mini_welcome(m, fd);
	return fd;
}

/* CUDA has looked for MPS once: before, its environment counts, then what the first Welcome said.
 */
static void shim_tells_the_next_daemon_of_its_mps(void **state) {
	static const char *const own[] = {"CUDA_MPS_PIPE_DIRECTORY=/tmp/pipe-of-test", NULL};
	static const char *const empty[] = {"CUDA_MPS_PIPE_DIRECTORY=", NULL};
	static const struct {
		const char *const *environment;
		const char *first;
	} cases[] = {{mini_plain, ""}, {own, "/tmp/pipe-of-test"}, {empty, "/"}};
	struct mini *m = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd;

		mini_listen(m);
		mini_start(m, cases[i].environment);
		mini_tell(m, "@0 init");
		fd = accept_saying(m, false, cases[i].first);
		mini_answers(m, "0 init 0");
		mini_do(m, "@0 device", 0);
		close(fd);
		mini_tell(m, "@0 launch");
		fd = accept_saying(m, true, "/tmp/pipe-of-test");
		mini_grant(fd, mini_request(fd, NULL), WHOLE);
		mini_answers(m, "0 launch 0");
		close(fd);
		mini_deinit(m);
		mini_init(m);
	}
}

/* The job that runs is another daemon's before it ends, though the program asks for nothing. */
static void shim_tells_the_next_daemon_what_it_holds(void **state) {
	struct mini *m = *state;
	int fd;
	uint64_t job;

	m->resumes = true;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	for (int i = 0; i < 3; i++) {
		close(fd);
		fd = mini_accept_held(m, job);
	}
	mini_do(m, "@0 launch 10", 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done_after(fd, job, 1).launches, 11);
	close(fd);
	mini_tell(m, "@0 launch");
	fd = mini_accept(m); /* nothing is held any more */
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
	assert_int_equal(mini_said(m, "unmanaged"), 0);
}

/* Nobody may have read that it ended, whether it did so before or after the daemon was gone; what a
 * later grant has confirmed is not told again. */
static void shim_tells_the_next_daemon_what_has_ended(void **state) {
	struct mini *m = *state;
	uint64_t first, second;
	int fd;

	m->resumes = true;
	fd = mini_begin(m, mini_plain);
	first = mini_open_job(m, fd);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done(fd, first).launches, 1);
	mini_do(m, "@0 hold 1", 0);
	second = mini_open_job(m, fd);
	mini_unlisten(m);
	close(fd);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0); /* it ends while there is none */
	mini_listen(m);
	fd = mini_accept_ended(m, second);
	close(fd);
	mini_tell(m, "@0 launch");
	fd = mini_accept_ended(m, second); /* that one has not confirmed it, either */
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	assert_int_equal(mini_said(m, "unmanaged"), 0);
	close(fd);
}

/* Who waits asks the next one again. */
static void shim_waits_on_at_the_next_daemon(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->resumes = true;
	fd = mini_begin(m, mini_plain);
	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	for (int i = 0; i < 3; i++) {
		mini_unlisten(m);
		close(fd);
		mini_listen(m);
		fd = mini_accept(m);
		assert_int_equal(mini_request(fd, NULL), job);
	}
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	assert_int_equal(mini_said(m, "unmanaged"), 0);
	close(fd);
}

/* An older daemon is told nothing about a job that it does not know. */
static void shim_asks_an_older_daemon_as_ever(void **state) {
	struct mini *m = *state;
	uint64_t job;
	int fd;

	m->resumes = true;
	fd = mini_begin(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	job = mini_open_job(m, fd);
	m->resumes = false;
	close(fd);
	fd = mini_accept_held(m, job);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	mini_tell(m, "@0 launch");
	mini_grant(fd, mini_request(fd, NULL), WHOLE); /* the first that it says */
	mini_answers(m, "0 launch 0");
	close(fd);
}

/* Answers the Hello by an error. The program runs. */
static void refuse_hello(struct mini *m, Sbeet__ErrorCode code, const char *why) {
	int fd;

	mini_listen(m);
	mini_start(m, mini_plain);
	mini_tell(m, "@0 init");
	fd = mini_accept_only(m);
	mini_free(mini_expect(fd, SBEET__TO_DAEMON__BODY_HELLO));
	mini_error(fd, 0, code, why);
	close(fd);
	mini_unlisten(m);
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 launch 10", 0);
	mini_do(m, "@0 launches", 10);
}

/* What another version of sbeetd answers reaches the user, once. */
static void shim_says_that_versions_differ(void **state) {
	struct mini *m = *state;

	refuse_hello(m, SBEET__ERROR_CODE__ERROR_CODE_VERSION,
		     "this sbeetd speaks protocol 99: install the same version of both");
	assert_int_equal(mini_said(m, "install the same version of both"), 1);
}

static void shim_goes_on_when_refused(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_tell(m, "@0 launch");
	mini_error(fd, mini_request(fd, NULL), SBEET__ERROR_CODE__ERROR_CODE_NO_GPU,
		   "no such GPU here");
	mini_answers(m, "0 launch 0");
	assert_int_equal(mini_said(m, "no such GPU here"), 1);
	close(fd);
}

/* The next attempts are refused as well: the reason is said once, and never "no sbeetd". */
static void shim_says_why_it_is_refused(void **state) {
	struct mini *m = *state;

	refuse_hello(m, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "the deadline is too long");
	assert_int_equal(mini_said(m, "refuses this program: the deadline is too long"), 1);
	assert_int_equal(mini_said(m, "running unmanaged (correct it"), 1);
	assert_int_equal(mini_said(m, "sbeet:"), 1);
}

/* Root passes over modes; what a test starts can't once this is gone. */
static void drop_override(void) {
	if (geteuid() == 0) {
		assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE), 0);
	}
}

static void shim_says_that_permission_is_denied(void **state) {
	static const char *const required[] = {"SBEET_REQUIRE=30ms", NULL};
	struct mini *m = *state;

	drop_override();
	mini_listen(m);
	assert_int_equal(chmod(m->socket, 0), 0);
	mini_start(m, mini_plain);
	mini_do(m, "@0 init", 0);
	mini_do(m, "@0 device", 0);
	mini_do(m, "@0 launch", 0);
	assert_int_equal(mini_said(m, "permission denied; running unmanaged"), 1);
	assert_int_equal(mini_said(m, "usermod -aG sbeet"), 1);
	assert_int_equal(mini_said(m, "sbeet:"), 1);

	mini_deinit(m);
	mini_init(m);
	mini_listen(m);
	assert_int_equal(chmod(m->socket, 0), 0);
	mini_start(m, required);
	mini_do(m, "@0 init", NOT_READY_CODE);
	assert_int_equal(mini_said(m, "permission denied; SBEET_REQUIRE is set"), 1);
}

static void shim_fails_clearly_when_daemon_is_required(void **state) {
	static const char *const required[] = {"SBEET_REQUIRE=30ms", NULL};
	struct mini *m = *state;

	mini_start(m, required);
	mini_do(m, "@0 init", NOT_READY_CODE);
	assert_int_equal(mini_said(m, "SBEET_REQUIRE is set"), 1);
}

static void shim_waits_for_required_daemon(void **state) {
	static const char *const required[] = {"SBEET_REQUIRE=5min", NULL};
	struct mini *m = *state;
	char said[128];
	int fd;

	mini_start(m, required);
	mini_tell(m, "@0 init");
	snprintf(said, sizeof(said), "%s/stderr", m->directory);
	while (access(said, F_OK) < 0) {
		usleep(1000);
	}
	while (mini_said(m, "waiting for it, 5min at most (SBEET_REQUIRE; start sbeetd") == 0) {
		usleep(1000);
	}
	mini_listen(m);
	fd = mini_accept(m);
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	assert_int_equal(mini_said(m, "waiting for it"), 1);
	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	close(fd); /* and dies; another one takes over */
	fd = mini_accept(m);
	mini_grant(fd, mini_request(fd, NULL), WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
}

static void shim_fails_launch_when_required_daemon_stays_away(void **state) {
	static const char *const required[] = {"SBEET_REQUIRE=30ms", NULL};
	struct mini *m = *state;
	int fd = mini_begin(m, required);

	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	mini_unlisten(m);
	close(fd);
	mini_answers(m, "0 launch 802");
	mini_do(m, "@0 launches", 0);
}

/* ---- silence ---- */

/* Long enough that a busy machine answers in time where an answer is due. */
#define TIMEOUT "2s"

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
	static const char *const by_thread[] = {"SBEET_SCOPE=thread", "SBEET_TIMEOUT=" TIMEOUT,
						NULL};
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
	assert_int_equal(mini_said(m, TIMEOUT " (SBEET_TIMEOUT)"), 1);

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
	static const char *const required[] = {"SBEET_TIMEOUT=" TIMEOUT, "SBEET_REQUIRE=50ms",
					       NULL};
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

/* ---- what a daemon must not say ---- */

static void shim_takes_no_offence_at_unknown_messages(void **state) {
	/* A length-delimited field of number 99: a message that this build does not know. */
	static const uint8_t unknown[] = {0x9a, 0x06, 0x02, 0x08, 0x01};
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t job;

	assert_int_equal(write(fd, unknown, sizeof(unknown)), (ssize_t)sizeof(unknown));
	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	assert_int_equal(write(fd, unknown, sizeof(unknown)), (ssize_t)sizeof(unknown));
	mini_grant(fd, job + 1000, WHOLE); /* for nobody */
	mini_grant(fd, job, WHOLE);
	mini_answers(m, "0 launch 0");
	close(fd);
}

static void shim_leaves_daemon_that_talks_nonsense(void **state) {
	static const uint8_t nonsense[] = {0xff, 0xff, 0xff};
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);

	mini_tell(m, "@0 launch");
	mini_request(fd, NULL);
	mini_unlisten(m);
	assert_int_equal(write(fd, nonsense, sizeof(nonsense)), (ssize_t)sizeof(nonsense));
	mini_answers(m, "0 launch 0");
	mini_expect_end(fd);
	close(fd);
}

static void shim_does_not_trust_what_it_did_not_ask_for(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t job;

	mini_tell(m, "@0 launch");
	job = mini_request(fd, NULL);
	mini_unlisten(m);
	mini_grant(fd, job, COUNT); /* a launch that can only run on the whole GPU */
	mini_answers(m, "0 launch 0");
	mini_expect_end(fd);
	close(fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(shim_goes_on_when_daemon_dies_while_job_waits_awake),
		MINI_CASE(shim_runs_unmanaged_and_says_so_once),
		MINI_CASE(shim_goes_on_when_daemon_dies_while_job_waits),
		MINI_CASE(shim_waits_once_for_the_next_daemon),
		MINI_CASE(shim_goes_on_when_daemon_dies_while_job_runs),
		MINI_CASE(shim_goes_on_when_daemon_dies_in_the_greeting),
		MINI_CASE(shim_goes_on_when_daemon_never_answers),
		MINI_CASE(shim_goes_on_when_daemon_never_answers_and_signals_come),
		MINI_CASE(shim_asks_the_next_daemon),
		MINI_CASE(shim_tells_the_next_daemon_of_its_mps),
		MINI_CASE(shim_tells_the_next_daemon_what_it_holds),
		MINI_CASE(shim_tells_the_next_daemon_what_has_ended),
		MINI_CASE(shim_waits_on_at_the_next_daemon),
		MINI_CASE(shim_asks_an_older_daemon_as_ever),
		MINI_CASE(shim_says_that_versions_differ),
		MINI_CASE(shim_goes_on_when_refused),
		MINI_CASE(shim_says_why_it_is_refused),
		MINI_CASE(shim_says_that_permission_is_denied),
		MINI_CASE(shim_fails_clearly_when_daemon_is_required),
		MINI_CASE(shim_waits_for_required_daemon),
		MINI_CASE(shim_fails_launch_when_required_daemon_stays_away),
		MINI_CASE(shim_goes_on_while_daemon_is_silent),
		MINI_CASE(shim_waits_for_daemon_that_answers),
		MINI_CASE(shim_waits_for_older_daemon),
		MINI_CASE(shim_fails_launch_when_required_daemon_is_silent),
		MINI_CASE(shim_goes_on_when_daemon_does_not_read),
		MINI_CASE(shim_takes_no_offence_at_unknown_messages),
		MINI_CASE(shim_leaves_daemon_that_talks_nonsense),
		MINI_CASE(shim_does_not_trust_what_it_did_not_ask_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
