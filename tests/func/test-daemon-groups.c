/*
 * test-daemon-groups.c: what sbeetd makes of channel groups and descriptors that a program hands
 * over, whatever they are: it keeps none that it has no use for, and goes on. Users share the places
 * of the process that preempts.
 */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/preempt/rule.h"
#include "proto/packet.h"

static struct harness harness;
static const char *const args[] = {"--gpus",   "8",	"--log-level", "error",
				   "--policy", "steer", NULL};

static uint8_t gpu_uuid[PROTO_UUID_BYTES] = {1}; /* of the groups */

/* A program that reads terms, takes a board and, if @preempt, sees channel groups. */
static int connect_program(bool preempt) {
	static const char *const features[] = {PROTO_FEATURE_TERMS, PROTO_FEATURE_COPIES,
					       PROTO_FEATURE_PREEMPT};

	return shim_open_with("guest", NULL, features, preempt ? 3 : 2, MASK_ALL).fd;
}

static void fill(Sbeet__ToDaemon *m, Sbeet__ChannelGroup *group, uint8_t uuid[PROTO_UUID_BYTES]) {
	sbeet__to_daemon__init(m);
	sbeet__channel_group__init(group);
	memcpy(uuid, gpu_uuid, PROTO_UUID_BYTES);
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

/* ---- places of the process that preempts ---- */

/* Two users have more programs than there are places. The last one of each finds its user's board
 * full. */
#define CROWD (PROTO_BOARD_SLOTS + 1)
#define USERS 2

/* What only the driver's control device is, without the driver: -1 where it can't be made. */
static int open_control(void) {
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/control-device", harness.directory);
	fd = mknod(path, S_IFCHR | 0600, makedev(195, 255)) == 0 ? open(path, O_PATH | O_CLOEXEC)
								 : -1;
	unlink(path);
	return fd;
}

static void allow_everybody(const char *name, mode_t mode) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, mode), 0);
}

/* A channel group of a program that has just connected, once it was asked for. */
static void show_group(int fd, int control) {
	const int expected[] = {SBEET__TO_SHIM__BODY_BOARD, SBEET__TO_SHIM__BODY_WANT_GROUPS};

	for (unsigned i = 0; i < 2; i++) {
		Sbeet__ToShim *m = shim_receive(fd);

		assert_non_null(m);
		assert_int_equal(m->body_case, expected[i]);
		packet_free(&m->base);
	}
	send_group(fd, control);
}

/* Programs of @uid, which show channel groups if @control is one, and stay until the pipe @hold is
 * closed. @ready is told of the last one. */
static void be_a_crowd(uid_t uid, int control, int hold, int ready) {
	char c;

	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0) {
		_exit(99);
	}
	harness.pid = 0;
	for (unsigned i = 0; i < CROWD; i++) {
		int fd = connect_program(true);

		if (control >= 0 && i < PROTO_BOARD_SLOTS) {
			show_group(fd, control);
		}
	}
	if (write(ready, "+", 1) == 1) {
		while (read(hold, &c, 1) > 0) {
		}
	}
	_exit(0);
}

/* A simulated GPU that is shared by time slices. */
static void start_sliced(void) {
	const char *const steer[] = {"--policy", "steer", NULL};
	Sbeet__Control__Status *status;

	harness_prepare(&harness);
	setenv("SIMGPU", "rtx3070", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_listen(&harness);
	harness_start(&harness, steer);
	status = status_get();
	memcpy(gpu_uuid, status->gpus[0]->uuid.data, PROTO_UUID_BYTES);
	status_free(status);
}

struct crowds {
	int hold, control; /* hold: its end keeps them */
	pid_t pids[USERS];
};

static void start_crowds(struct crowds *c, bool with_groups) {
	int hold[2], ready[2];
	char told;

	c->control = open_control();
	if (c->control < 0 || geteuid() != 0) {
		skip(); /* other users and device files are root's to make */
	}
	allow_everybody("", 0755);
	allow_everybody("shim.sock", 0666);
	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(ready), 0);
	c->hold = hold[1];
	for (uid_t i = 0; i < USERS; i++) {
		c->pids[i] = fork();
		if (c->pids[i] == 0) {
			close(hold[1]);
			be_a_crowd(60001 + i, with_groups ? c->control : -1, hold[0], ready[1]);
		}
	}
	close(hold[0]);
	close(ready[1]);
	for (unsigned i = 0; i < USERS; i++) {
		assert_int_equal(read(ready[0], &told, 1), 1);
	}
	close(ready[0]);
	harness_settle();
}

static void end_crowds(struct crowds *c) {
	close(c->hold);
	for (unsigned i = 0; i < USERS; i++) {
		int status;

		assert_int_equal(waitpid(c->pids[i], &status, 0), c->pids[i]);
		assert_int_equal(status, 0);
	}
	close(c->control);
}

/* Sessions of @uid whose preemption is @state; of all users: @uid is -1. */
struct count {
	int uid;
	const char *state;
	unsigned n;
};

static bool are_so_many(const Sbeet__Control__Status *status, void *data) {
	const struct count *want = data;
	unsigned n = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		const Sbeet__Control__Session *s = status->sessions[i];

		n += (want->uid < 0 || s->uid == (unsigned)want->uid) &&
		     strcmp(s->preemption, want->state) == 0;
	}
	return n == want->n;
}

static void expect(int uid, const char *state, unsigned n) {
	status_until(are_so_many, &(struct count){uid, state, n});
}

static void programs_without_groups_take_no_place(void **state) {
	struct crowds crowds;
	int fd;

	start_sliced();
	start_crowds(&crowds, false);
	fd = connect_program(true);
	show_group(fd, crowds.control);
	expect(0, "yes", 1);
	expect(-1, "unseen", USERS * PROTO_BOARD_SLOTS);
	expect(-1, "no-place", USERS);
	close(fd);
	end_crowds(&crowds);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void users_share_the_places(void **state) {
	struct crowds crowds;
	int fd, other;

	start_sliced();
	start_crowds(&crowds, true);
	expect(-1, "yes", RULE_OWNERS_MAX);
	assert_true(harness_said(&harness, "can't be preempted: all places are taken") > 0);
	fd = connect_program(true);
	show_group(fd, crowds.control);
	other = connect_program(true);
	show_group(other, crowds.control);
	expect(0, "yes", 2);
	expect(-1, "yes", RULE_OWNERS_MAX);
	assert_true(harness_said(&harness, "another user's program needs its place") > 0);
	/* The places come back to those that were left out. */
	close(fd);
	close(other);
	expect(0, "yes", 0);
	expect(-1, "yes", RULE_OWNERS_MAX);
	end_crowds(&crowds);
	expect(-1, "yes", 0);
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
		CASE(programs_without_groups_take_no_place),
		CASE(users_share_the_places),
	};

	return cmocka_run_group_tests_name("daemon-groups", tests, NULL, NULL);
}
