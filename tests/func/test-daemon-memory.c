/*
 * test-daemon-memory.c: every allocation of sbeetd that a client can cause fails once: that client
 * may be cut off, everybody else notices nothing, and nothing stays charged.
 */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failing-allocations.h"
#include "proto/limits.h"
#include "proto/packet.h"

static struct harness harness;
static struct failing_page *page;

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void start(void) {
	char path[128];
	int fd;

	harness_prepare(&harness);
	snprintf(path, sizeof(path), "%s/page", harness.directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);
	setenv(FAILING_PAGE, path, 1);
	setenv("LD_PRELOAD", FAILING_LIBRARY, 1);
	harness_start(&harness, (const char *[]){"--gpus", "8,8", "--drain", "1ms", "--log-level",
						 "error", NULL});
	unsetenv("LD_PRELOAD");
}

/* Whatever is answered, until the daemon is silent or has closed; nobody may wait for ever. */
static bool hear(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_true(poll(&p, 1, 30000) == 1);
	return packet_receive(fd, buffer, NULL) > 0;
}

static bool say(int fd, const Sbeet__ToDaemon *m) {
	return packet_send(fd, &m->base, -1) == 0 && hear(fd);
}

/* Hello, a request on GPU 1, its end. */
static void play_shim(void) {
	static uint8_t uuid[PROTO_UUID_BYTES] = {2};
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	int fd = shim_connect();

	hello.version = PROTO_VERSION;
	hello.program = (char[]){"victim"};
	hello.shim_version = (char[]){"test"};
	hello.enforcement_mask = MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	if (say(fd, &m)) {
		request.job = 1;
		request.gpu_uuid.data = uuid;
		request.gpu_uuid.len = sizeof(uuid);
		request.enforcement_mask = MASK_ALL;
		request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
		m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
		m.request = &request;
		if (say(fd, &m)) {
			done.job = 1;
			m.body_case = SBEET__TO_DAEMON__BODY_DONE;
			m.done = &done;
			packet_send(fd, &m.base, -1);
		}
	}
	close(fd);
}

static void play_control(void) {
	Sbeet__Control__StatusRequest status = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request m = SBEET__CONTROL__REQUEST__INIT;
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path("control.sock", path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	m.id = 1;
	m.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	m.status = &status;
	if (packet_send(fd, &m.base, -1) == 0) {
		hear(fd);
	}
	close(fd);
}

static bool one_session(const Sbeet__Control__Status *status, void *data) {
	return status->n_sessions == 1;
}

/* Return: how many allocations could fail. */
static unsigned long fail_each(void (*play)(void), struct shim *witness, uint64_t *job) {
	for (unsigned long n = 1; n < 1000; n++) {
		bool failed;

		harness_settle();
		page->countdown = n;
		play();
		failed = page->countdown == 0;
		page->countdown = 0;
		status_until(one_session, NULL);
		shim_request(witness->fd, ++*job, 0, MASK_ALL);
		shim_granted(witness->fd, *job);
		shim_done(witness->fd, *job);
		if (!failed) {
			return n - 1;
		}
	}
	fail_msg("it never ends");
	return 0;
}

static void daemon_survives_every_failing_allocation(void **state) {
	struct shim witness;
	uint64_t job = 0;

	start();
	witness = shim_open("witness", MASK_ALL);
	assert_true(fail_each(play_shim, &witness, &job) > 5);
	assert_true(fail_each(play_control, &witness, &job) > 2);
	shim_close(&witness);
	/* It asserts at its end that nothing is charged any more. */
	assert_int_equal(harness_stop(&harness, 15), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(daemon_survives_every_failing_allocation, clean),
	};

	return cmocka_run_group_tests_name("daemon-memory", tests, NULL, NULL);
}
