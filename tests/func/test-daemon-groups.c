/*
 * test-daemon-groups.c: what sbeetd makes of channel groups and descriptors that a program hands
 * over, whatever they are: it keeps none that it has no use for, and goes on.
 */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/packet.h"

static struct harness harness;
static const char *const args[] = {"--gpus",   "8",	"--log-level", "error",
				   "--policy", "steer", NULL};

/* A program that reads terms, takes a board and, if @preempt, sees channel groups. */
static int connect_program(bool preempt) {
	static const char *const features[] = {PROTO_FEATURE_TERMS, PROTO_FEATURE_COPIES,
					       PROTO_FEATURE_PREEMPT};

	return shim_open_with("guest", NULL, features, preempt ? 3 : 2, MASK_ALL).fd;
}

static void fill(Sbeet__ToDaemon *m, Sbeet__ChannelGroup *group, uint8_t uuid[PROTO_UUID_BYTES]) {
	sbeet__to_daemon__init(m);
	sbeet__channel_group__init(group);
	memset(uuid, 0, PROTO_UUID_BYTES);
	uuid[0] = 1;
	group->gpu_uuid.data = uuid;
	group->gpu_uuid.len = PROTO_UUID_BYTES;
	group->client = 100;
	group->object = 200;
	m->body_case = SBEET__TO_DAEMON__BODY_GROUP;
	m->group = group;
}

static void send_group(int fd, int passed_fd) {
	uint8_t uuid[PROTO_UUID_BYTES];
	Sbeet__ChannelGroup group;
	Sbeet__ToDaemon m;

	fill(&m, &group, uuid);
	assert_int_equal(packet_send(fd, &m.base, passed_fd), 0);
}

/* The program is told of its mistake, and has no connection any more. */
static void expect_end(int fd, Sbeet__ErrorCode code) {
	shim_error(fd, 0, code);
	shim_closed(fd);
	close(fd);
}

/* Of sbeetd. */
static unsigned count_descriptors(void) {
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", harness.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir)) {
		n++;
	}
	closedir(dir);
	return n;
}

/* When it has nothing to do: the connection that harness_settle() has used is gone, too. */
static unsigned count_at_rest(void) {
	unsigned n, same = 0;

	harness_settle();
	n = count_descriptors();
	while (same < 20) {
		unsigned before = n;

		usleep(1000);
		n = count_descriptors();
		same = n == before ? same + 1 : 0;
	}
	return n;
}

static void wait_for_descriptors(unsigned n) {
	harness_settle();
	for (unsigned i = 0; count_descriptors() != n; i++) {
		if (i == 20000) {
			fail_msg("sbeetd keeps descriptors");
		}
		usleep(1000);
	}
}

static void other_files_are_refused(void **state) {
	int null = open("/dev/null", O_RDWR | O_CLOEXEC),
	    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned before;
	int fd;

	harness_start(&harness, args);
	before = count_at_rest();
	fd = connect_program(true);
	send_group(fd, null); /* a character device, but not that one */
	expect_end(fd, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	fd = connect_program(true);
	send_group(fd, file);
	expect_end(fd, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	wait_for_descriptors(before);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
	close(null);
	close(file);
}

static void groups_that_nobody_wants_are_refused(void **state) {
	unsigned before;
	int fd;

	harness_start(&harness, args);
	before = count_at_rest();
	fd = connect_program(false);
	send_group(fd, fd);
	expect_end(fd, SBEET__ERROR_CODE__ERROR_CODE_STATE);
	/* One that could be wanted is not, on a GPU that does not exist. */
	fd = connect_program(true);
	for (unsigned i = 0; i < 100; i++) {
		send_group(fd, -1);
	}
	close(fd);
	wait_for_descriptors(before);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* @n descriptors with one packet. */
static void send_many(int fd, unsigned n) {
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control = {0};
	uint8_t packet[256], uuid[PROTO_UUID_BYTES];
	struct iovec iov = {.iov_base = packet};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	Sbeet__ChannelGroup group;
	Sbeet__ToDaemon m;

	fill(&m, &group, uuid);
	iov.iov_len = sbeet__to_daemon__pack(&m, packet);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (unsigned i = 0; i < n; i++) {
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	assert_true(sendmsg(fd, &msg, MSG_NOSIGNAL) > 0);
}

static void several_descriptors_are_refused(void **state) {
	unsigned before;
	int fd;

	harness_start(&harness, args);
	before = count_at_rest();
	for (unsigned n = 2; n <= 16; n *= 2) {
		fd = connect_program(true);
		send_many(fd, n);
		expect_end(fd, SBEET__ERROR_CODE__ERROR_CODE_INVALID);
	}
	wait_for_descriptors(before);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Whatever the packet is that brings one. */
static void descriptors_that_come_along_are_closed(void **state) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim *answer;
	unsigned before;
	int fd;

	harness_start(&harness, args);
	fd = connect_program(true);
	before = count_at_rest();
	m.body_case = SBEET__TO_DAEMON__BODY_PING;
	m.ping = &ping;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(packet_send(fd, &m.base, fd), 0);
		answer = shim_receive(fd);
		assert_int_equal(answer->body_case, SBEET__TO_SHIM__BODY_PONG);
		packet_free(&answer->base);
	}
	wait_for_descriptors(before);
	close(fd);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

#define CASE(f) cmocka_unit_test_teardown(f, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(other_files_are_refused),
		CASE(groups_that_nobody_wants_are_refused),
		CASE(several_descriptors_are_refused),
		CASE(descriptors_that_come_along_are_closed),
	};

	return cmocka_run_group_tests_name("daemon-groups", tests, NULL, NULL);
}
