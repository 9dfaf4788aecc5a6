/*
 * test-daemon-faults.c: client or daemon is killed or stopped at each step of the protocol, and
 * everybody else goes on; what was held comes back.
 *
 * The steps are those of the pictures in sbeet-protocol(7): one walk through the states of a
 * session and of a job, so that each state is one in which something dies.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

static const char *const plain[] = {"--gpus", "8,8", "--sharing", "mps", "--drain", "1h", NULL};

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* ---- the walk: each step takes the connection, and may replace it ---- */

static void connect_only(int *fd) {
	*fd = shim_connect();
}

static void say_hello(int *fd) {
	Sbeet__ToShim *m;

	shim_hello(*fd, "walker", NULL, MASK_ALL);
	m = shim_receive(*fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	packet_free(&m->base);
}

static void say_kernel(int *fd) {
	Sbeet__KernelDef def = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	def.id = 1;
	def.name = (char[]){"kernel"};
	def.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &def;
	shim_send(*fd, &m);
}

/* The grant of @job, or the end if it is 0; that of job 1 may come before where nobody holds GPU 0.
 */
static void hear(int fd, uint64_t job) {
	for (;;) {
		Sbeet__ToShim *m = shim_receive(fd);
		uint64_t granted = 0;

		if (!m) {
			assert_int_equal(job, 0);
			return;
		}
		assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
		granted = m->grant->job;
		packet_free(&m->base);
		if (granted == job) {
			return;
		}
		assert_int_equal(granted, 1);
	}
}

/* Where there is a witness GPU 0 is his alone; GPU 1 is free. */
static void say_request_that_waits(int *fd) {
	shim_request(*fd, 1, 0, MASK_WHOLE);
}

static void say_request(int *fd) {
	shim_request(*fd, 2, 1, MASK_WHOLE);
	hear(*fd, 2);
}

static void say_records(int *fd) {
	Sbeet__Op op = SBEET__OP__INIT, *ops[] = {&op};
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.time_ns = nsec_now();
	op.kernel = 1;
	batch.job = 2;
	batch.ops = ops;
	batch.n_ops = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	shim_send(*fd, &m);
}

static void hang_up(int *fd) {
	close(*fd);
	*fd = -1;
}

static void come_back(int *fd) {
	struct grant whole = {.sms = smset_range(0, 8),
			      .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE};
	struct claim claim;

	claim_init(&claim, 2, 1, &whole);
	*fd = shim_come_back("walker", &claim, 1);
}

static void say_cancel(int *fd) {
	shim_cancel(*fd, 1);
}

static void say_goodbye(int *fd) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	goodbye.reason = (char[]){"exit"};
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(*fd, &m);
}

static void say_done(int *fd) {
	shim_done(*fd, 2);
}

static const struct step {
	const char *state; /* of session and jobs after it */
	void (*take)(int *fd);
	bool waiting; /* job 1, for the witness's GPU */
	bool running; /* job 2 */
} steps[] = {
	{"connected, new", connect_only, false, false},
	{"active", say_hello, false, false},
	{"active, a kernel declared", say_kernel, false, false},
	{"job waiting", say_request_that_waits, true, false},
	{"job running, another waiting", say_request, true, true},
	{"job running, records sent", say_records, true, true},
	{"job running, connection gone", hang_up, false, true},
	{"job running, connected again", come_back, false, true},
	{"job running, another waiting again", say_request_that_waits, true, true},
	{"job running, the other cancelled", say_cancel, false, true},
	{"draining", say_goodbye, false, true},
	{"job done, closed", say_done, false, false},
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* Up to and with step @last. */
static int walk(size_t last) {
	int fd = -1;

	for (size_t i = 0; i <= last; i++) {
		steps[i].take(&fd);
	}
	return fd;
}

/* ---- what must hold ---- */

struct expected {
	size_t sessions;
	unsigned busy[2];
};

static bool is_as_expected(const Sbeet__Control__Status *status, void *data) {
	const struct expected *e = data;
	bool ok = status->n_sessions == e->sessions;

	for (size_t i = 0; i < 2; i++) {
		const ProtobufCBinaryData *bytes = &status->gpus[i]->sms_busy;
		struct smset sms;

		assert_int_equal(smset_from_bytes(bytes->data, bytes->len, &sms), 0);
		ok = ok && smset_count(&sms) == e->busy[i];
	}
	return ok;
}

/* The witness has job @job on GPU 0, gives it back and gets the next. */
static void witness_goes_on(struct shim *witness, uint64_t *job) {
	struct grant g;

	shim_done(witness->fd, *job);
	++*job;
	shim_request(witness->fd, *job, 0, MASK_WHOLE);
	g = shim_granted(witness->fd, *job);
	assert_int_equal(smset_count(&g.sms), 8);
}

/* A process of its own. What it does ends with its death. */
struct process {
	pid_t pid;
	int told; /* each byte here says that it is one step further */
};

static struct process start_process(void (*live)(int tell, size_t i), size_t i) {
	struct process p;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	p.told = fds[0];
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (p.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it is not to outlive a failed test */
		close(fds[0]);
		live(fds[1], i);
		for (;;) {
			pause();
		}
	}
	close(fds[1]);
	return p;
}

static void tell(int fd) {
	if (write(fd, "", 1) != 1) {
		_exit(1);
	}
}

static void await(const struct process *p) {
	char c;

	assert_int_equal(read(p->told, &c, 1), 1);
}

static void stop(const struct process *p) {
	int status;

	assert_int_equal(kill(p->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(p->pid, &status, WUNTRACED), p->pid);
}

static void end(const struct process *p) {
	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
	close(p->told);
}

static void live_and_walk(int fd, size_t last) {
	walk(last);
	tell(fd);
}

static void client_dies(bool stopped_first) {
	struct expected alone = {.sessions = 1, .busy = {8, 0}};
	struct shim witness;
	uint64_t job = 1;

	harness_start(&harness, plain);
	witness = shim_open("witness", MASK_ALL);
	shim_request(witness.fd, job, 0, MASK_WHOLE);
	shim_granted(witness.fd, job);
	for (size_t i = 0; i < N_STEPS; i++) {
		struct process walker = start_process(live_and_walk, i);

		await(&walker);
		print_message("  %s: %s\n", stopped_first ? "stopped, killed" : "killed",
			      steps[i].state);
		if (stopped_first) {
			stop(&walker);
			/* One that waits for GPU 0 would be given it now. */
			if (!steps[i].waiting) {
				witness_goes_on(&witness, &job);
			}
		}
		end(&walker);
		status_until(is_as_expected, &alone);
		witness_goes_on(&witness, &job);
	}
	shim_close(&witness);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void client_may_be_killed_at_each_step(void **state) {
	client_dies(false);
}

static void client_may_be_stopped_at_each_step(void **state) {
	client_dies(true);
}

static void live_and_be_revoked(int fd, size_t unused) {
	struct shim s = shim_open("holder", MASK_ALL);
	Sbeet__ToShim *m;

	shim_request(s.fd, 1, 0, MASK_WHOLE);
	shim_granted(s.fd, 1);
	tell(fd);
	m = shim_receive(s.fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_REVOKE);
	packet_free(&m->base);
	tell(fd);
}

/* The step that a program does not take by itself. */
static void client_may_die_when_its_job_is_revoked(void **state) {
	struct process holder;
	struct shim s;

	harness_start(&harness, (const char *[]){"--gpus", "8", "--sharing", "mps", "--drain", "1h",
						 "--max-hold", "1ms", NULL});
	for (int stopped = 0; stopped < 2; stopped++) {
		holder = start_process(live_and_be_revoked, 0);
		await(&holder);
		s = shim_open("heir", MASK_ALL);
		shim_request(s.fd, 1, 0, MASK_WHOLE);
		await(&holder);
		if (stopped) {
			stop(&holder);
		}
		shim_expect_silence(s.fd); /* its kernels may run */
		end(&holder);
		shim_granted(s.fd, 1);
		shim_done(s.fd, 1);
		shim_close(&s);
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Whatever it was doing, it goes on with the next daemon, and nothing is held in vain. */
static void daemon_may_be_killed_at_each_step(void **state) {
	for (size_t i = 0; i < N_STEPS; i++) {
		bool running = steps[i].running;
		struct expected before = {.sessions = 1, .busy = {0, running ? 8 : 0}};
		struct expected after = {.sessions = 1, .busy = {0, 0}};
		int fd;

		print_message("  killed: %s\n", steps[i].state);
		harness_start(&harness, plain);
		fd = walk(i);
		harness_settle();
		assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
		if (fd >= 0) {
			hear(fd, 0);
			close(fd);
		}
		harness_start(&harness, plain);
		if (running) {
			come_back(&fd);
		} else {
			fd = shim_come_back("walker", NULL, 0);
		}
		status_until(is_as_expected, &before);
		if (running) {
			shim_done(fd, 2);
		}
		status_until(is_as_expected, &after);
		shim_request(fd, 3, 1, MASK_WHOLE);
		shim_granted(fd, 3);
		shim_done(fd, 3);
		close(fd);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
		harness_clean(&harness);
	}
}

/* What is said to a daemon that stands still is answered when it goes on. */
static void daemon_may_be_stopped_at_each_step(void **state) {
	struct expected alone = {.sessions = 1, .busy = {8, 0}};
	struct shim witness;
	int status;

	harness_start(&harness, plain);
	witness = shim_open("witness", MASK_ALL);
	shim_request(witness.fd, 1, 0, MASK_WHOLE);
	shim_granted(witness.fd, 1);
	for (size_t stop = 0; stop < N_STEPS; stop++) {
		pid_t waker = -1;
		int fd = -1;

		print_message("  stopped before: %s\n", steps[stop].state);
		for (size_t i = 0; i < N_STEPS; i++) {
			if (i == stop) {
				assert_int_equal(kill(harness.pid, SIGSTOP), 0);
				assert_int_equal(waitpid(harness.pid, &status, WUNTRACED),
						 harness.pid);
				waker = fork();
				if (waker == 0) {
					usleep(20000); /* so that most of it is said before */
					kill(harness.pid, SIGCONT);
					_exit(0);
				}
			}
			steps[i].take(&fd);
			if (i == stop) {
				assert_int_equal(waitpid(waker, NULL, 0), waker);
			}
		}
		hear(fd, 0);
		close(fd);
		status_until(is_as_expected, &alone);
	}
	shim_close(&witness);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void expect_service(int fd, uint64_t job) {
	shim_request(fd, job, 0, MASK_ALL);
	shim_granted(fd, job);
	shim_done(fd, job);
}

static void remove_file(const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(unlink(path), 0);
}

static void await_line(const char *text, unsigned times) {
	nsec_t hang = nsec_now() + 30 * NSEC_PER_SEC;

	while (harness_said(&harness, text) < times) {
		assert_true(nsec_now() < hang);
		usleep(1000); /* between two looks, not in place of one */
	}
}

/* Those who are connected are served, and the sockets come back, with the lock. */
static void daemon_puts_its_sockets_back(void **state) {
	static const char *const names[] = {"shim.sock", "control.sock", "sbeetd.lock"};
	char errors[1024];
	struct shim s, other;

	harness_prepare(&harness);
	harness_listen(&harness);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	for (uint64_t round = 1; round <= 3; round++) {
		for (size_t i = 0; i < 3; i++) {
			remove_file(names[i]);
		}
		expect_service(s.fd, round);
		await_line("it is there again", 2 * (unsigned)round);
		other = shim_open("other", MASK_ALL);
		expect_service(other.fd, 1);
		shim_close(&other);
		status_free(status_get());
		assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 1);
		assert_non_null(strstr(errors, "runs there already"));
	}
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Without its directory it can't: it says so, serves those who are there, and the next one begins.
 */
static void daemon_says_that_its_directory_is_gone(void **state) {
	char moved[80];
	struct shim s;

	harness_prepare(&harness);
	harness_listen(&harness);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	snprintf(moved, sizeof(moved), "%s.moved", harness.directory);
	assert_int_equal(rename(harness.directory, moved), 0);
	await_line("programs that start now don't find sbeetd", 2);
	expect_service(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	assert_int_equal(rename(moved, harness.directory), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- too many ---- */

#define BOMB	  100 /* processes */
#define BOMB_ROOM 32  /* connections that their user may have */

/* Connects, says what it was told, and stays. */
static void live_and_crowd(int fd, size_t unused) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon say = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *m;
	char answer = '?';
	int s = shim_connect();

	hello.version = PROTO_VERSION;
	hello.program = hello.shim_version = (char[]){"crowd"};
	hello.enforcement_mask = MASK_ALL;
	say.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	say.hello = &hello;
	packet_send(s, &say.base, -1); /* or it is refused by now */
	m = shim_receive(s);
	if (m && m->body_case == SBEET__TO_SHIM__BODY_WELCOME) {
		answer = 'w';
	} else if (m && m->body_case == SBEET__TO_SHIM__BODY_ERROR &&
		   m->error->code == SBEET__ERROR_CODE__ERROR_CODE_QUOTA &&
		   strstr(m->error->text, "32 connections already")) {
		answer = 'q';
	}
	if (write(fd, &answer, 1) != 1) {
		_exit(1);
	}
}

/* Starts them all, lets the witness work, and ends them. Return: how many were welcome. */
static unsigned crowd(struct shim *witness, uint64_t *job) {
	struct process crowd[BOMB];
	unsigned welcome = 0;
	char answer;

	for (size_t i = 0; i < BOMB; i++) {
		crowd[i] = start_process(live_and_crowd, i);
		expect_service(witness->fd, ++*job);
	}
	for (size_t i = 0; i < BOMB; i++) {
		assert_int_equal(read(crowd[i].told, &answer, 1), 1);
		if (answer != 'w' && answer != 'q') {
			fail_msg("process %zu was neither welcome nor told why not", i);
		}
		welcome += answer == 'w';
		expect_service(witness->fd, ++*job);
	}
	for (size_t i = 0; i < BOMB; i++) {
		end(&crowd[i]);
	}
	return welcome;
}

static bool is_alone(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 1;
}

/* Again and again: a user's processes without end get what he may have, and are told so beyond it;
 * when they are gone there is room as before. */
static void daemon_bears_a_crowd_of_processes(void **state) {
	struct shim witness;
	char path[128];
	uint64_t job = 0;
	FILE *file;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/sbeetd.conf", harness.directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "[users]\nsessions = %d\n", BOMB_ROOM);
	assert_int_equal(fclose(file), 0);
	harness_start(&harness, plain);
	witness = shim_open("witness", MASK_ALL);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(crowd(&witness, &job), BOMB_ROOM - 1); /* the witness is one */
		status_until(is_alone, NULL);
	}
	shim_close(&witness);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(client_may_be_killed_at_each_step),
		CASE(client_may_be_stopped_at_each_step),
		CASE(client_may_die_when_its_job_is_revoked),
		CASE(daemon_may_be_killed_at_each_step),
		CASE(daemon_may_be_stopped_at_each_step),
		CASE(daemon_bears_a_crowd_of_processes),
		CASE(daemon_puts_its_sockets_back),
		CASE(daemon_says_that_its_directory_is_gone),
	};

	return cmocka_run_group_tests_name("daemon-faults", tests, NULL, NULL);
}
