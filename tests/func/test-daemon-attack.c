/*
 * test-daemon-attack.c: sbeetd serves its other users while one user's processes send it whatever
 * they can think of, on both sockets: messages with arbitrary values, broken ones, wrong
 * descriptors, connections that are left half open or reset.
 *
 * ATTACK_S: for so many seconds (6). ATTACK_SEED: of the packets; else a new one, which is printed.
 * The attackers are another user, so the test needs root.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "proto/packet.h"

#define OTHER	  65533 /* no user of this machine */
#define ATTACKERS 3
#define OPEN_MAX  24 /* connections that an attacker leaves open */
#define FDS_MAX	  8

static struct harness harness;
static uint64_t seed;

/* ---- an attacker ---- */

struct attacker {
	struct hostile hostile;
	int open[OPEN_MAX];
	int fds[FDS_MAX]; /* what it sends along */
};

static void open_descriptors(struct attacker *a) {
	int pair[2];

	a->fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	a->fds[1] = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	a->fds[2] = memfd_create("attack", MFD_CLOEXEC);
	a->fds[3] = open("/", O_RDONLY | O_CLOEXEC);
	a->fds[4] = pipe2(pair, O_CLOEXEC) == 0 ? pair[0] : -1;
	a->fds[5] = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 ? pair[0] : -1;
	a->fds[6] = dup(a->fds[5]);
	a->fds[7] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int attack_connect(const char *name) {
	char path[PROTO_PATH_MAX];
	int fd;

	if (packet_socket_path(name, path, sizeof(path)) < 0) {
		return -1;
	}
	fd = packet_connect(path, NSEC_PER_SEC);
	if (fd >= 0) {
		fcntl(fd, F_SETFL, O_NONBLOCK);
	}
	return fd;
}

/* Without it sbeetd hears nothing else on that socket. */
static void say_hello(struct attacker *a, int fd) {
	static const char *const all[] = {"ping",    "secret",	   "counts", "terms", "copies",
					  "preempt", "choose-gpu", "stop",   "level", "any-gpu"};
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char name[32];

	snprintf(name, sizeof(name), "attack-%u", (unsigned)hostile_below(&a->hostile, 20));
	task.name = name;
	task.period_ns = hostile_below(&a->hostile, 2) * 10 * NSEC_PER_MSEC;
	task.deadline_ns = hostile_below(&a->hostile, 2) * 5 * NSEC_PER_MSEC;
	task.task_class = (Sbeet__TaskClass)hostile_below(&a->hostile, 2);
	hello.version = PROTO_VERSION;
	hello.program = name;
	hello.shim_version = (char[]){"0"};
	hello.enforcement_mask = MASK_ALL;
	hello.features = (char **)all;
	hello.n_features = hostile_below(&a->hostile, sizeof(all) / sizeof(*all) + 1);
	hello.task = &task;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	packet_send(fd, &m.base, -1);
}

/* Return: whether the connection is still there. */
static bool send_packet(struct attacker *a, int fd, bool with_descriptors) {
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = {.bytes = {0}};
	struct iovec part = {.iov_base = a->hostile.packet, .iov_len = a->hostile.n};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	size_t n = 1 + hostile_below(&a->hostile, FDS_MAX);

	if (with_descriptors) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int) * n);
		for (size_t i = 0; i < n; i++) {
			memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &a->fds[i],
			       sizeof(int));
		}
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
}

/* What sbeetd sends is read now and then, and never where it is not. */
static void read_some(struct attacker *a, int fd) {
	uint8_t buffer[PROTO_PACKET_MAX];
	int passed = -1;

	if (hostile_below(&a->hostile, 3) > 0 &&
	    packet_try_receive(fd, buffer, &passed) >= -EMSGSIZE && passed >= 0) {
		close(passed);
	}
}

static void leave(struct attacker *a, int fd) {
	struct linger reset = {.l_onoff = 1};
	size_t at = hostile_below(&a->hostile, OPEN_MAX);

	if (hostile_below(&a->hostile, 2)) {
		close(a->open[at]);
		a->open[at] = fd;
		return;
	}
	if (hostile_below(&a->hostile, 3) == 0) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	close(fd);
}

static void attack_once(struct attacker *a) {
	bool control = hostile_below(&a->hostile, 3) == 0;
	int fd = attack_connect(control ? "control.sock" : "shim.sock");
	bool there = fd >= 0;

	if (!control && there && hostile_below(&a->hostile, 10) > 0) {
		say_hello(a, fd);
	}
	a->hostile.careful = hostile_below(&a->hostile, 3) > 0;
	for (uint64_t k = 1 + hostile_below(&a->hostile, 40); there && k > 0; k--) {
		hostile_make(&a->hostile, control ? &sbeet__control__request__descriptor
						  : &sbeet__to_daemon__descriptor);
		if (hostile_below(&a->hostile, a->hostile.careful ? 40 : 4) == 0) {
			hostile_break(&a->hostile);
		}
		there = send_packet(a, fd,
				    hostile_below(&a->hostile, a->hostile.careful ? 80 : 8) == 0);
		read_some(a, fd);
	}
	if (fd >= 0) {
		leave(a, fd);
	}
}

/* Return: never. */
static void attack(unsigned number) {
	static struct attacker a;

	/* The kernel forgets what is to be sent at the parent's death when ids change. */
	if (setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
		_exit(1);
	}
	a.hostile.random = seed + number;
	memset(a.open, 0xff, sizeof(a.open));
	open_descriptors(&a);
	for (;;) {
		attack_once(&a);
	}
}

/* ---- the test ---- */

static void allow_everybody(const char *name, mode_t mode) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	assert_int_equal(chmod(path, mode), 0);
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Another user has a job, and looks at the state. */
static void use_daemon(void) {
	struct shim s = shim_open("victim", MASK_ALL);
	Sbeet__Control__Status *status;

	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_granted(s.fd, 1);
	shim_done(s.fd, 1);
	shim_close(&s);
	status = status_get();
	assert_non_null(status);
	status_free(status);
}

static void others_are_served_under_attack(const char *policy) {
	const char *const args[] = {"--gpus", "8,8",	    "--policy", policy, "--log-level",
				    "error",  "--max-hold", "200ms",	NULL};
	nsec_t until;
	pid_t attackers[ATTACKERS];

	if (geteuid() != 0) {
		skip();
	}
	harness_start(&harness, args);
	allow_everybody("", 0755);
	allow_everybody("shim.sock", 0666);
	allow_everybody("control.sock", 0666);
	for (unsigned i = 0; i < ATTACKERS; i++) {
		attackers[i] = fork();
		assert_true(attackers[i] >= 0);
		if (attackers[i] == 0) {
			attack(i);
		}
	}
	until = nsec_now() + number_of("ATTACK_S", 6) * NSEC_PER_SEC;
	do {
		use_daemon();
	} while (nsec_now() < until);
	for (unsigned i = 0; i < ATTACKERS; i++) {
		int status;

		assert_int_equal(kill(attackers[i], SIGKILL), 0);
		assert_int_equal(waitpid(attackers[i], &status, 0), attackers[i]);
		assert_true(WIFSIGNALED(status)); /* it had not given up */
	}
	harness_finish(&harness);
}

static void others_are_served_under_attack_by_even(void **state) {
	(void)state;
	others_are_served_under_attack("even");
}

static void others_are_served_under_attack_by_steer(void **state) {
	(void)state;
	others_are_served_under_attack("steer");
}

static int setup(void **state) {
	(void)state;
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	harness_clean(&harness);
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	static const struct CMUnitTest tests[] = {
		CASE(others_are_served_under_attack_by_even),
		CASE(others_are_served_under_attack_by_steer),
	};

	assert_int_equal(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	seed = number_of("ATTACK_SEED", seed);
	print_message("ATTACK_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
