/*
 * test-daemon.c: a real sbeetd with scripted clients: what it grants, to whom, and what becomes of
 * those who die, cancel or misbehave.
 */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

/* One process plays several here: those that it hangs up are not to wait for its death. */
#define NO_DRAIN "--drain", "1ms"

static const char *const mps[] = {"--gpus", "80,40", "--sharing", "mps", NO_DRAIN, NULL};
static const char *const exclusive[] = {"--gpus",    "80,40",  "--sharing",
					"exclusive", NO_DRAIN, NULL};
static const char *const fcfs[] = {"--gpus", "80", "--policy", "fcfs", NO_DRAIN, NULL};

/* For real processes that die. */
static const char *const patient[] = {"--gpus", "80", "--policy", "fcfs", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* Every test ends with a daemon that still works and exits by itself. */
static void finish(void) {
	struct shim s = shim_open("last", MASK_ALL);

	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void assert_sms(const struct grant *g, const char *expected) {
	char text[SMSET_TEXT_MAX];

	smset_print(&g->sms, text, sizeof(text));
	assert_string_equal(text, expected);
}

static bool no_jobs_and_one_session(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == 0 && status->n_sessions == 1;
}

static bool n_jobs_is(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == *(size_t *)data;
}

static void daemon_grants_whole_gpu_under_fcfs(void **state) {
	struct shim a, b;
	struct grant g;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	assert_sms(&g, "0-79");
	assert_int_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	assert_int_equal(g.gpu_sms, 80);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	assert_true(shim_granted(b.fd, 1).sequence > g.sequence);
	shim_done(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	finish();
}

/* Asleep as soon as it can be, and never before its end: it serves alike, and heeds SIGTERM. */
static void daemon_grants_awake_and_asleep(void **state) {
	static const char *const spins[] = {"0s", "1ns", "1s"};

	for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
		struct shim a, b;

		harness_start(&harness, (const char *const[]){"--gpus", "80", "--policy", "fcfs",
							      "--spin", spins[i], NO_DRAIN, NULL});
		a = shim_open("a", MASK_ALL);
		b = shim_open("b", MASK_ALL);
		for (uint64_t job = 1; job < 20; job++) {
			shim_request(a.fd, job, 0, MASK_ALL);
			shim_granted(a.fd, job);
			shim_request(b.fd, job, 0, MASK_ALL);
			shim_done(a.fd, job);
			shim_granted(b.fd, job);
			shim_done(b.fd, job);
		}
		shim_close(&a);
		shim_close(&b);
		finish();
	}
}

static bool daemon_sleeps(void) {
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", harness.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

/* Between the jobs of somebody it may stay awake; with nobody there it does not. */
static void daemon_sleeps_when_nothing_happens(void **state) {
	struct shim s;

	harness_start(&harness, (const char *const[]){"--gpus", "80", "--spin", "50ms", NULL});
	s = shim_open("a", MASK_ALL);
	for (uint64_t job = 1; job < 5; job++) {
		shim_request(s.fd, job, 0, MASK_ALL);
		shim_granted(s.fd, job);
		shim_done(s.fd, job);
	}
	for (unsigned tries = 0; !daemon_sleeps(); tries++) {
		assert_in_range(tries, 0, 30000); /* only one that never sleeps gets there */
		usleep(1000);
	}
	shim_close(&s);
	finish();
}

static void daemon_runs_two_processes_side_by_side_under_mps(void **state) {
	struct shim a, b;
	struct grant ga, gb;

	harness_start(&harness, mps);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	assert_true(a.session != b.session);
	shim_request(a.fd, 1, 0, MASK_ALL);
	ga = shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	gb = shim_granted(b.fd, 1);
	assert_sms(&ga, "0-39");
	assert_sms(&gb, "40-79");
	assert_int_equal(ga.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	assert_int_equal(gb.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT);
	/* A third one waits, on this GPU; the other one is free. */
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_request(b.fd, 3, 1, MASK_ALL);
	ga = shim_granted(b.fd, 3);
	assert_sms(&ga, "0-19");
	shim_done(a.fd, 1);
	ga = shim_granted(b.fd, 2);
	assert_sms(&ga, "0-39");
	shim_close(&a);
	shim_close(&b);
	finish();
}

/* One launch of @job, which was confined @how. */
static void send_launch(int fd, uint64_t job, Sbeet__Enforcement how) {
	Sbeet__Op op = SBEET__OP__INIT, *list[] = {&op};
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.enforcement = how;
	batch.job = job;
	batch.ops = list;
	batch.n_ops = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	shim_send(fd, &m);
}

/* Status of the only job. */
static void assert_held(Sbeet__Enforcement how, bool exact) {
	Sbeet__Control__Status *status;

	harness_settle();
	status = status_get();
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->enforcement, how);
	assert_int_equal(status->jobs[0]->exact, exact);
	status_free(status);
}

static void daemon_shows_no_set_as_held_that_is_not(void **state) {
	struct shim a;

	harness_start(&harness, exclusive);
	a = shim_open("a", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	assert_int_equal(shim_granted(a.fd, 1).enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_held(SBEET__ENFORCEMENT__ENFORCEMENT_SMID, true);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_NONE);
	send_launch(a.fd, 1, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_held(SBEET__ENFORCEMENT__ENFORCEMENT_NONE, false);
	shim_done(a.fd, 1);
	shim_close(&a);
	finish();
}

static void daemon_lets_one_process_at_a_time_on_an_exclusive_gpu(void **state) {
	struct shim a, b;
	struct grant g1, g2;

	harness_start(&harness, exclusive);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_request(a.fd, 2, 0, MASK_ALL);
	g1 = shim_granted(a.fd, 1);
	g2 = shim_granted(a.fd, 2);
	assert_sms(&g1, "0-39");
	assert_sms(&g2, "40-79");
	assert_int_equal(g1.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	assert_int_equal(g2.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_SMID);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 2);
	g1 = shim_granted(b.fd, 1);
	assert_sms(&g1, "0-39");
	shim_close(&a);
	shim_close(&b);
	finish();
}

static void daemon_gives_a_job_that_cannot_be_split_the_whole_gpu(void **state) {
	const uint32_t smid = MASK_WHOLE | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID;
	struct shim a, b;
	struct grant g;

	harness_start(&harness, mps);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", smid); /* which holds in one process only, and this GPU is shared */
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	harness_settle();
	shim_request(a.fd, 2, 0, MASK_ALL); /* would fit, but came later */
	shim_expect_silence(a.fd);
	shim_done(a.fd, 1);
	g = shim_granted(b.fd, 1);
	assert_sms(&g, "0-79");
	assert_int_equal(g.enforcement, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE);
	shim_expect_silence(a.fd);
	shim_done(b.fd, 1);
	g = shim_granted(a.fd, 2);
	assert_sms(&g, "0-39");
	shim_close(&a);
	shim_close(&b);
	finish();
}

/* A program asks whether sbeetd is there while its job waits; then it gives up, which may cross a
 * refusal of the job. */
static void daemon_answers_a_ping_while_jobs_wait(void **state) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	struct shim a;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	ping.number = 77;
	m.body_case = SBEET__TO_DAEMON__BODY_PING;
	m.ping = &ping;
	shim_send(a.fd, &m);
	answer = shim_receive(a.fd);
	assert_non_null(answer);
	assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_PONG);
	assert_int_equal(answer->pong->number, 77);
	packet_free(&answer->base);
	shim_cancel(a.fd, 2);
	shim_cancel(a.fd, 2); /* there is no such job any more */
	shim_expect_silence(a.fd);
	shim_done(a.fd, 1);
	shim_request(a.fd, 3, 0, MASK_ALL);
	shim_granted(a.fd, 3);
	shim_close(&a);
	finish();
}

static void daemon_takes_back_what_is_cancelled(void **state) {
	struct shim a, b;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_request(b.fd, 2, 0, MASK_ALL);
	shim_cancel(b.fd, 1); /* waits */
	harness_settle();
	shim_cancel(a.fd, 1); /* runs, and was never used */
	shim_granted(b.fd, 2);
	shim_expect_silence(b.fd);
	shim_close(&a);
	shim_close(&b);
	finish();
}

static void daemon_lets_jobs_end_after_goodbye(void **state) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	struct shim a, b;

	harness_start(&harness, fcfs);
	a = shim_open("a", MASK_ALL);
	b = shim_open("b", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	harness_settle();
	shim_request(b.fd, 1, 0, MASK_ALL);
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(a.fd, &m);
	shim_expect_silence(b.fd); /* job 1 of a runs on; its job 2 is forgotten */
	shim_done(a.fd, 1);
	shim_closed(a.fd);
	shim_granted(b.fd, 1);
	shim_close(&a);
	shim_close(&b);
	finish();
}

/* --- death ---------------------------------------------------------------------------------- */

/* A process that opens a session, asks for @n jobs, takes as many grants as @n_granted, tells us,
 * and waits to be killed. */
enum victim {
	VICTIM_PLAIN,
	VICTIM_KEPT,	 /* a child of it keeps the socket open beyond its death */
	VICTIM_HANGS_UP, /* it closes the socket, and lives on */
};

static pid_t start_victim(uint64_t n, uint64_t n_granted, enum victim kind, int *ret_keeper_pipe) {
	int ready[2], keep[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(keep), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct shim s = shim_open("victim", MASK_ALL);

		close(keep[1]);
		for (uint64_t job = 1; job <= n; job++) {
			shim_request(s.fd, job, 0, MASK_ALL);
		}
		for (uint64_t job = 1; job <= n_granted; job++) {
			shim_granted(s.fd, job);
		}
		if (kind == VICTIM_HANGS_UP) {
			shim_close(&s);
		}
		if (kind == VICTIM_KEPT && fork() == 0) {
			close(ready[1]);
			_exit(read(keep[0], &byte, 1) < 0); /* until our parent's parent lets go */
		}
		_exit(write(ready[1], "r", 1) < 0 || pause());
	}
	close(ready[1]);
	close(keep[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*ret_keeper_pipe = keep[1];
	return pid;
}

static void kill_victim(pid_t pid) {
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void daemon_takes_back_sms_of_the_dead_while_running(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(1, 1, VICTIM_PLAIN, &pipe_fd);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	finish();
}

static void daemon_forgets_the_dead_while_waiting(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_granted(other.fd, 1);
	pid = start_victim(3, 0, VICTIM_PLAIN, &pipe_fd);
	status_until(n_jobs_is, &(size_t){4});
	kill_victim(pid);
	status_until(n_jobs_is, &(size_t){1});
	shim_done(other.fd, 1);
	shim_request(other.fd, 2, 0, MASK_ALL);
	shim_granted(other.fd, 2);
	close(pipe_fd);
	shim_close(&other);
	finish();
}

static void daemon_forgets_the_dead_between_jobs(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(0, 0, VICTIM_PLAIN, &pipe_fd);
	kill_victim(pid);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	finish();
}

/* The socket says nothing then: only the pidfd does. */
static void daemon_notices_death_though_the_socket_stays_open(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(1, 1, VICTIM_KEPT, &pipe_fd);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	close(pipe_fd);
	shim_close(&other);
	finish();
}

static bool one_draining(const Sbeet__Control__Status *status, void *data) {
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (strcmp(status->sessions[i]->state, "draining") == 0) {
			return status->n_jobs == *(size_t *)data;
		}
	}
	return false;
}

/* Its kernels may still run: nobody else may have their SMs, and what it waits for is dropped. */
static void daemon_keeps_sms_of_a_program_that_hangs_up_until_it_dies(void **state) {
	struct shim other;
	int pipe_fd;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = start_victim(3, 1, VICTIM_HANGS_UP, &pipe_fd);
	status_until(one_draining, &(size_t){1});
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	status_until(no_jobs_and_one_session, NULL);
	close(pipe_fd);
	shim_close(&other);
	finish();
}

static void daemon_keeps_sms_of_a_misbehaving_program_too(void **state) {
	struct shim other;
	pid_t pid;

	harness_start(&harness, patient);
	other = shim_open("other", MASK_ALL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct shim s = shim_open("victim", MASK_ALL);

		shim_request(s.fd, 1, 0, MASK_ALL);
		shim_granted(s.fd, 1);
		shim_done(s.fd, 99); /* no such job: the connection ends */
		_exit(pause());
	}
	status_until(one_draining, &(size_t){1});
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	kill_victim(pid);
	shim_granted(other.fd, 1);
	shim_done(other.fd, 1);
	shim_close(&other);
	finish();
}

static void daemon_gives_sms_of_a_program_that_hangs_up_back_in_the_end(void **state) {
	struct shim other, gone;

	harness_start(&harness, fcfs);
	other = shim_open("other", MASK_ALL);
	gone = shim_open("gone", MASK_ALL);
	shim_request(gone.fd, 1, 0, MASK_ALL);
	shim_granted(gone.fd, 1);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_expect_silence(other.fd);
	shim_close(&gone);
	shim_granted(other.fd, 1);
	shim_close(&other);
	finish();
}

static void daemon_lets_a_program_that_comes_back_go_on(void **state) {
	struct shim s;

	harness_start(&harness, patient);
	s = shim_open("app", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	status_until(one_draining, &(size_t){1});
	s = shim_open("app", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	finish();
}

/* --- bad packets ---------------------------------------------------------------------------- */

/* A witness that must notice nothing. */
static struct shim start_with_witness(void) {
	struct shim witness;

	harness_start(&harness, mps);
	witness = shim_open("witness", MASK_ALL);
	shim_request(witness.fd, 1, 0, MASK_ALL);
	shim_granted(witness.fd, 1);
	return witness;
}

static void finish_with_witness(struct shim *witness, uint64_t n_errors) {
	Sbeet__Control__Status *status = status_get();

	assert_int_equal(status->service->protocol_errors, n_errors);
	assert_int_equal(status->n_sessions, 1);
	assert_int_equal(status->n_jobs, 1);
	status_free(status);
	shim_done(witness->fd, 1);
	shim_request(witness->fd, 2, 1, MASK_ALL);
	shim_granted(witness->fd, 2);
	shim_close(witness);
	finish();
}

static void daemon_refuses_packets_cut_short(void **state) {
	struct shim witness = start_with_witness();
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char program[] = "cut";
	uint8_t bytes[64];
	size_t n;

	hello.version = PROTO_VERSION;
	hello.program = program;
	hello.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	n = protobuf_c_message_pack(&m.base, bytes);
	for (size_t cut = 1; cut < n; cut++) {
		int fd = shim_connect();

		assert_int_equal(send(fd, bytes, cut, 0), cut);
		shim_error(fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
		shim_closed(fd);
		close(fd);
	}
	finish_with_witness(&witness, n - 1);
}

static void daemon_refuses_oversized_packets(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("large", MASK_ALL);
	char *bytes = calloc(1, PROTO_PACKET_MAX + 1);

	assert_non_null(bytes);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	assert_int_equal(send(s.fd, bytes, PROTO_PACKET_MAX + 1, 0), PROTO_PACKET_MAX + 1);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(s.fd);
	shim_close(&s);
	free(bytes);
	status_until(n_jobs_is, &(size_t){1}); /* it may still have run, until --drain */
	finish_with_witness(&witness, 1);
}

static void daemon_answers_unknown_messages_and_goes_on(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("newer", MASK_ALL);
	static const uint8_t unknown[] = {0xd0, 0x05, 1}; /* field 90 = 1 */

	assert_int_equal(send(s.fd, unknown, sizeof(unknown), 0), sizeof(unknown));
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN);
	shim_request(s.fd, 1, 1, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

static void daemon_refuses_messages_in_the_wrong_state(void **state) {
	struct shim witness = start_with_witness(), s;
	int fd = shim_connect();

	shim_request(fd, 1, 0, MASK_ALL); /* before hello */
	shim_error(fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(fd);
	close(fd);
	s = shim_open("twice", MASK_ALL);
	shim_hello(s.fd, "twice", NULL, MASK_ALL);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	s = shim_open("done", MASK_ALL);
	shim_done(s.fd, 1); /* no such job */
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	s = shim_open("early", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_WHOLE); /* waits for the witness */
	shim_done(s.fd, 1);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	shim_closed(s.fd);
	shim_close(&s);
	finish_with_witness(&witness, 4);
}

static void daemon_refuses_another_protocol_version(void **state) {
	static const uint32_t versions[] = {PROTO_VERSION - 1, PROTO_VERSION + 1, UINT32_MAX};
	struct shim witness = start_with_witness();
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	char expected[64];

	hello.enforcement_mask = MASK_ALL;
	hello.shim_version = (char[]){"9.8.7"};
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	for (size_t i = 0; i < 3; i++) {
		int fd = shim_connect();

		hello.version = versions[i];
		shim_send(fd, &m);
		answer = shim_receive(fd);
		assert_non_null(answer);
		assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_ERROR);
		assert_int_equal(answer->error->code, SBEET__ERROR_CODE__ERROR_CODE_VERSION);
		snprintf(expected, sizeof(expected), "libsbeet.so 9.8.7 speaks protocol %u,",
			 versions[i]);
		assert_non_null(strstr(answer->error->text, expected));
		assert_non_null(strstr(answer->error->text, "install the same version of both"));
		packet_free(&answer->base);
		shim_closed(fd);
		close(fd);
	}
	finish_with_witness(&witness, 3);
}

static void daemon_says_which_request_it_cannot_serve(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("s", MASK_ALL);

	shim_request(s.fd, 1, 7, MASK_ALL);
	shim_error(s.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	shim_request(s.fd, 2, 0, MASK_ALL);
	shim_granted(s.fd, 2);
	shim_request(s.fd, 2, 0, MASK_ALL);
	shim_error(s.fd, 2, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE);
	for (uint64_t job = 3; job < 3 + PROTO_JOBS_PER_SESSION - 1; job++) {
		shim_request(s.fd, job, 0, MASK_ALL);
	}
	shim_request(s.fd, 1000, 0, MASK_ALL);
	shim_error(s.fd, 1000, SBEET__ERROR_CODE__ERROR_CODE_QUOTA);
	shim_done(s.fd, 2);
	shim_granted(s.fd, 3);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

static void daemon_counts_kernels_once(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("k", MASK_ALL);
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__Control__Status *status;

	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	for (uint32_t id = PROTO_KERNELS_MAX; id > 0; id /= 2) {
		kernel.id = id;
		kernel.enforcement_mask = id % 2 ? MASK_WHOLE : MASK_ALL;
		shim_send(s.fd, &m);
	}
	kernel.id = 1024;
	shim_send(s.fd, &m);
	shim_error(s.fd, 0, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE);
	status = status_get();
	assert_int_equal(status->sessions[1]->kernels, 17);
	assert_int_equal(status->sessions[1]->kernels_confinable, 16);
	status_free(status);
	shim_close(&s);
	status_until(n_jobs_is, &(size_t){1});
	finish_with_witness(&witness, 0);
}

/* Asks and asks, reads nothing, until it is thrown out. */
static void daemon_disconnects_a_slow_reader(void **state) {
	struct shim witness = start_with_witness(), s = shim_open("slow", MASK_ALL);
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {99};
	int r = 0;

	request.job = 1;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.enforcement_mask = MASK_ALL;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	for (int i = 0; i < 100000 && r == 0; i++) {
		r = packet_send(s.fd, &m.base, -1);
	}
	assert_true(r == -EPIPE || r == -ECONNRESET);
	shim_close(&s);
	finish_with_witness(&witness, 0);
}

/* --- deadlines ------------------------------------------------------------------------------ */

static void daemon_counts_missed_deadlines(void **state) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Control__Status *status;
	char name[] = "camera";
	struct grant g;
	nsec_t before;
	int fd;

	harness_start(&harness, fcfs);
	fd = shim_connect();
	task.name = name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.deadline_ns = 1; /* can't be met */
	shim_hello(fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	before = nsec_now();
	shim_request(fd, 1, 0, MASK_ALL);
	g = shim_granted(fd, 1);
	assert_true(g.deadline_ns > before && g.deadline_ns <= nsec_now() + 1);
	shim_done(fd, 1);
	status = status_get();
	assert_int_equal(status->sessions[0]->misses, 1);
	assert_int_equal(status->sessions[0]->deadline_ns, 1);
	assert_true(status->sessions[0]->max_response_ns > 0);
	assert_string_equal(status->sessions[0]->task, "camera");
	assert_string_equal(status->sessions[0]->program, "app");
	assert_int_equal(status->sessions[0]->task_class, SBEET__TASK_CLASS__TASK_CLASS_REALTIME);
	status_free(status);
	close(fd);
	finish();
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_grants_whole_gpu_under_fcfs),
		CASE(daemon_grants_awake_and_asleep),
		CASE(daemon_sleeps_when_nothing_happens),
		CASE(daemon_runs_two_processes_side_by_side_under_mps),
		CASE(daemon_lets_one_process_at_a_time_on_an_exclusive_gpu),
		CASE(daemon_shows_no_set_as_held_that_is_not),
		CASE(daemon_gives_a_job_that_cannot_be_split_the_whole_gpu),
		CASE(daemon_answers_a_ping_while_jobs_wait),
		CASE(daemon_takes_back_what_is_cancelled),
		CASE(daemon_lets_jobs_end_after_goodbye),
		CASE(daemon_takes_back_sms_of_the_dead_while_running),
		CASE(daemon_forgets_the_dead_while_waiting),
		CASE(daemon_forgets_the_dead_between_jobs),
		CASE(daemon_notices_death_though_the_socket_stays_open),
		CASE(daemon_keeps_sms_of_a_program_that_hangs_up_until_it_dies),
		CASE(daemon_keeps_sms_of_a_misbehaving_program_too),
		CASE(daemon_lets_a_program_that_comes_back_go_on),
		CASE(daemon_gives_sms_of_a_program_that_hangs_up_back_in_the_end),
		CASE(daemon_refuses_packets_cut_short),
		CASE(daemon_refuses_oversized_packets),
		CASE(daemon_answers_unknown_messages_and_goes_on),
		CASE(daemon_refuses_messages_in_the_wrong_state),
		CASE(daemon_refuses_another_protocol_version),
		CASE(daemon_says_which_request_it_cannot_serve),
		CASE(daemon_counts_kernels_once),
		CASE(daemon_disconnects_a_slow_reader),
		CASE(daemon_counts_missed_deadlines),
	};

	return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
