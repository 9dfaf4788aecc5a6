/*
 * test-daemon-rude.c: a process that connects again and again waits for it, and nobody else does;
 * who makes mistakes and goes leaves nothing behind.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/gate.h"
#include "proto/limits.h"
#include "proto/packet.h"

#define CONNECTIONS (2 * GATE_WAITING_MAX)

static struct harness harness;
static const char *const plain[] = {"--gpus", "8", "--log-level", "error", NULL};

static void knock(const char *name) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path(name, path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	close(fd);
}

static void send_garbage(void) {
	int fd = shim_connect();

	/* It is closed already where too many of them wait to be heard. */
	assert_true(send(fd, "garbage", 7, MSG_NOSIGNAL) == 7 || errno == EPIPE);
	close(fd);
}

static void knock_at_both(void) {
	knock("shim.sock");
	knock("control.sock");
}

static void come_and_go(void) {
	struct shim s = shim_open("guest", MASK_ALL);

	shim_close(&s);
}

/* A process that does it without end. */
static pid_t start(void (*act)(void)) {
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			act();
		}
	}
	return pid;
}

/* Within so long, or it is not known. */
static bool is_closed(int fd, int timeout_ms) {
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, timeout_ms) > 0 && p.revents & POLLHUP;
}

/* Whether some are closed of many connections that this process makes at once. */
static bool some_are_closed(void) {
	int fds[CONNECTIONS];
	size_t n_closed = 0;

	for (size_t i = 0; i < CONNECTIONS; i++) {
		fds[i] = shim_connect();
	}
	is_closed(fds[CONNECTIONS - 1], 50);
	for (size_t i = 0; i < CONNECTIONS; i++) {
		n_closed += is_closed(fds[i], 0);
		close(fds[i]);
	}
	return n_closed > 0;
}

/* Says Hello on a new connection: it is heard a moment later, or there are too many. */
static bool is_heard(int fd) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	bool heard;
	int r;

	hello.version = PROTO_VERSION;
	hello.program = (char[]){"later"};
	hello.enforcement_mask = MASK_ALL;
	hello.shim_version = (char[]){"test"};
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	r = packet_send(fd, &m.base, -1);
	assert_true(r == 0 || r == -EPIPE);
	answer = shim_receive(fd);
	heard = answer && answer->body_case == SBEET__TO_SHIM__BODY_WELCOME;
	assert_true(heard || !answer || answer->body_case == SBEET__TO_SHIM__BODY_ERROR);
	packet_free(answer ? &answer->base : NULL);
	return heard;
}

static void process_that_comes_too_often_is_kept_waiting(void **state) {
	int fd;

	harness_start(&harness, plain);
	while (!some_are_closed()) {
	}
	while (!is_heard(fd = shim_connect())) { /* until some of those that wait were heard */
		close(fd);
	}
	shim_request(fd, 1, 0, MASK_ALL);
	shim_granted(fd, 1);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* This process is of the same user, and comes and goes as well, but as often as is usual. */
static void others_are_served_meanwhile(void **state) {
	void (*const acts[])(void) = {knock_at_both, send_garbage, come_and_go};
	pid_t rude[3];

	harness_start(&harness, plain);
	for (size_t i = 0; i < 3; i++) {
		rude[i] = start(acts[i]);
	}
	for (uint64_t i = 0; i < 20; i++) {
		struct shim s = shim_open("polite", MASK_ALL);
		Sbeet__Control__Status *status;

		shim_request(s.fd, 1, 0, MASK_ALL);
		shim_granted(s.fd, 1);
		status = status_get();
		assert_true(status->n_sessions >= 1);
		status_free(status);
		shim_done(s.fd, 1);
		shim_close(&s);
	}
	for (size_t i = 0; i < 3; i++) {
		int how;

		kill(rude[i], SIGKILL);
		assert_int_equal(waitpid(rude[i], &how, 0), rude[i]);
		assert_true(WIFSIGNALED(how)); /* it has not ended by itself */
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Its jobs wait, and far more mistakes than are answered at once stand before the end of file. */
static void who_makes_mistakes_and_goes_leaves_nothing(void **state) {
	Sbeet__Control__Status *status;
	struct shim holder, wrong;
	size_t n_jobs;

	harness_start(&harness, plain);
	holder = shim_open("holder", MASK_ALL);
	shim_request(holder.fd, 1, 0, MASK_WHOLE);
	shim_granted(holder.fd, 1);
	wrong = shim_open("wrong", MASK_ALL);
	for (size_t i = 0; i < 250; i++) {
		shim_request(wrong.fd, 1, 0, MASK_ALL);
	}
	shim_close(&wrong);
	do {
		status = status_get();
		n_jobs = status->n_jobs;
		assert_int_equal(status->jobs[0]->session, holder.session);
		status_free(status);
	} while (n_jobs > 1);
	shim_close(&holder);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(process_that_comes_too_often_is_kept_waiting),
		CASE(others_are_served_meanwhile),
		CASE(who_makes_mistakes_and_goes_leaves_nothing),
	};

	return cmocka_run_group_tests_name("daemon-rude", tests, NULL, NULL);
}
