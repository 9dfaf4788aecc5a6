/*
 * test-daemon-close.c: a program hands over a file whose close() never returns, as that of a file
 * system in user space that does not answer: sbeetd goes on, and takes no more than two of a user.
 */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "faulty-page.h"
#include "proto/packet.h"

static struct harness harness;
static struct faulty_page *page;

static int teardown(void **state) {
	page = faulty_clean(page);
	harness_clean(&harness);
	return 0;
}

/* From a program that sees channel groups, /dev/null instead of the driver's device. */
static int hand_over(void) {
	static const char *const features[] = {PROTO_FEATURE_TERMS, PROTO_FEATURE_COPIES,
					       PROTO_FEATURE_PREEMPT};
	uint8_t uuid[PROTO_UUID_BYTES] = {1};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC),
	    fd = shim_open_with("guest", NULL, features, 3, MASK_ALL).fd;
	Sbeet__ChannelGroup group = SBEET__CHANNEL_GROUP__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	group.gpu_uuid.data = uuid;
	group.gpu_uuid.len = sizeof(uuid);
	group.client = group.object = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_GROUP;
	m.group = &group;
	assert_int_equal(packet_send(fd, &m.base, null), 0);
	close(null);
	return fd;
}

/* The program is told of its mistake, and has no connection any more. */
static void expect_refusal(int fd) {
	shim_error(fd, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	shim_closed(fd);
	close(fd);
}

/* Once sbeetd has heard it. */
static bool has_answer(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	harness_settle();
	return poll(&p, 1, 0) == 1;
}

static void files_whose_close_hangs_hang_nobody(void **state) {
	static const char *const args[] = {"--gpus", "8", "--policy", "steer", NULL};
	int fd;

	page = faulty_prepare(&harness);
	harness_listen(&harness);
	assert_true(faulty_try_start(&harness, args));
	page->null_hangs = true;
	expect_refusal(hand_over());
	expect_refusal(hand_over());
	/* A third is not even looked at. */
	fd = hand_over();
	assert_false(has_answer(fd));
	close(fd);
	/* When they are closed, one is again. */
	page->null_hangs = false;
	while (fd = hand_over(), !has_answer(fd)) {
		close(fd);
	}
	expect_refusal(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_whose_close_hangs_hang_nobody, teardown),
	};

	return cmocka_run_group_tests_name("daemon-close", tests, NULL, NULL);
}
