/*
 * test-daemon-systemd.c: sbeetd under a service manager, which this test plays: it is told of
 * readiness, of the end and of every beat of the watchdog, and passes the sockets.
 */
#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct harness harness;
static int notify_fd;

static const char *const plain[] = {"--gpus", "8", NULL};

static int bound_socket(const char *name, int type) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.64s/%s", harness.directory, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int setup(void **state) {
	char path[128];

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/notify", harness.directory);
	notify_fd = bound_socket("notify", SOCK_DGRAM);
	setenv("NOTIFY_SOCKET", path, 1);
	return 0;
}

static int teardown(void **state) {
	close(notify_fd);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	for (int i = 0; i < harness.n_passed; i++) {
		close(harness.passed[i]);
	}
	harness_clean(&harness);
	return 0;
}

/* Waits for a notification that holds this text. */
static void expect_notification(const char *text) {
	struct pollfd p = {.fd = notify_fd, .events = POLLIN};
	char message[512] = "";

	while (!strstr(message, text)) {
		ssize_t n;

		assert_int_equal(poll(&p, 1, 30000), 1);
		n = recv(notify_fd, message, sizeof(message) - 1, 0);
		assert_true(n > 0);
		message[n] = '\0';
	}
}

static void daemon_tells_the_service_manager(void **state) {
	harness_start(&harness, plain);
	expect_notification("READY=1");
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	expect_notification("STOPPING=1");
}

static void daemon_beats_for_the_watchdog(void **state) {
	setenv("WATCHDOG_USEC", "20000", 1);
	harness_start(&harness, plain);
	for (int i = 0; i < 3; i++) {
		expect_notification("WATCHDOG=1");
	}
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_takes_sockets_that_are_passed(void **state) {
	struct shim s;
	struct stat st;
	char path[128];

	/* The other way round than the daemon asks for them: names decide. */
	harness.passed[0] = bound_socket("control.sock", SOCK_SEQPACKET);
	harness.passed[1] = bound_socket("shim.sock", SOCK_SEQPACKET);
	harness.n_passed = 2;
	harness.passed_names = "control:shim";
	assert_int_equal(listen(harness.passed[0], 8), 0);
	assert_int_equal(listen(harness.passed[1], 8), 0);
	harness_start(&harness, plain);
	s = shim_open("s", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/shim.sock", harness.directory);
	assert_int_equal(stat(path, &st), 0); /* the service manager's, not ours to remove */
}

static void daemon_refuses_a_socket_of_another_kind(void **state) {
	char errors[1024];

	harness.passed[0] = bound_socket("shim.sock", SOCK_STREAM);
	harness.n_passed = 1;
	harness.passed_names = "shim";
	assert_int_equal(listen(harness.passed[0], 8), 0);
	assert_int_equal(harness_run(&harness, plain, errors, sizeof(errors)), 1);
	assert_non_null(strstr(errors, "ListenSequentialPacket="));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_tells_the_service_manager),
		CASE(daemon_beats_for_the_watchdog),
		CASE(daemon_takes_sockets_that_are_passed),
		CASE(daemon_refuses_a_socket_of_another_kind),
	};

	return cmocka_run_group_tests_name("daemon-systemd", tests, NULL, NULL);
}
