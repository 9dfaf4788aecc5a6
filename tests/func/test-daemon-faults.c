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

/* ---- the walk ---- */

static void say_nothing(int fd) {
}

static void say_hello(int fd) {
	Sbeet__ToShim *m;

	shim_hello(fd, "walker", NULL, MASK_ALL);
	m = shim_receive(fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	packet_free(&m->base);
}

static void say_kernel(int fd) {
	Sbeet__KernelDef def = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	def.id = 1;
	def.name = (char[]){"kernel"};
	def.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &def;
	shim_send(fd, &m);
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
static void say_request_that_waits(int fd) {
	shim_request(fd, 1, 0, MASK_WHOLE);
}

static void say_request(int fd) {
	shim_request(fd, 2, 1, MASK_WHOLE);
	hear(fd, 2);
}

static void say_records(int fd) {
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
	shim_send(fd, &m);
}

static void say_goodbye(int fd) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	goodbye.reason = (char[]){"exit"};
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(fd, &m);
}

static void say_done(int fd) {
	shim_done(fd, 2);
}

static const struct step {
	const char *state; /* of session and job after it */
	void (*say)(int fd);
	bool running; /* job 2 */
} steps[] = {
	{"connected, new", say_nothing, false},
	{"active", say_hello, false},
	{"active, a kernel declared", say_kernel, false},
	{"job waiting", say_request_that_waits, false},
	{"job running", say_request, true},
	{"job running, records sent", say_records, true},
	{"draining", say_goodbye, true},
	{"job done, closed", say_done, false},
};

#define N_STEPS (sizeof(steps) / sizeof(steps[0]))

/* Up to and with step @last. */
static int walk(size_t last) {
	int fd = shim_connect();

	for (size_t i = 0; i <= last; i++) {
		steps[i].say(fd);
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

/* A process of its own that walks, tells, and stands still. */
static pid_t start_walker(size_t last) {
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		walk(last);
		if (write(ready[1], "", 1) != 1) {
			_exit(1);
		}
		for (;;) {
			pause();
		}
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
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
		pid_t pid = start_walker(i);
		int status;

		print_message("  %s: %s\n", stopped_first ? "stopped, killed" : "killed",
			      steps[i].state);
		if (stopped_first) {
			assert_int_equal(kill(pid, SIGSTOP), 0);
			assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
			/* It may have been waiting for GPU 0, and be given it now. */
			if (i < 3) {
				witness_goes_on(&witness, &job);
			}
		}
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
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

/* As libsbeet.so does when the daemon is gone. */
static int come_back(bool running) {
	static uint8_t uuid[PROTO_UUID_BYTES] = {2}, sms[] = {0xff};
	Sbeet__Held held = SBEET__HELD__INIT, *list[] = {&held};
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	int fd = shim_connect();

	held.job = 2;
	held.gpu_uuid.data = uuid;
	held.gpu_uuid.len = sizeof(uuid);
	held.sms.data = sms;
	held.sms.len = sizeof(sms);
	held.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	held.enforcement_mask = MASK_WHOLE;
	hello.version = PROTO_VERSION;
	hello.program = (char[]){"walker"};
	hello.shim_version = (char[]){"test"};
	hello.enforcement_mask = MASK_ALL;
	hello.held = list;
	hello.n_held = running;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	shim_send(fd, &m);
	answer = shim_receive(fd);
	assert_non_null(answer);
	assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	packet_free(&answer->base);
	return fd;
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
		hear(fd, 0);
		close(fd);
		harness_start(&harness, plain);
		fd = come_back(running);
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
			fd = i == 0 ? shim_connect() : fd;
			steps[i].say(fd);
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

/* Those who are connected are served; the next daemon is there for all again. */
static void daemon_goes_on_when_its_sockets_are_removed(void **state) {
	char path[128];
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", harness.directory,
			 i ? "control.sock" : "shim.sock");
		assert_int_equal(unlink(path), 0);
	}
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(client_may_be_killed_at_each_step),
		CASE(client_may_be_stopped_at_each_step),
		CASE(daemon_may_be_killed_at_each_step),
		CASE(daemon_may_be_stopped_at_each_step),
		CASE(daemon_goes_on_when_its_sockets_are_removed),
	};

	return cmocka_run_group_tests_name("daemon-faults", tests, NULL, NULL);
}
