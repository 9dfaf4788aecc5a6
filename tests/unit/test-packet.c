/*
 * test-packet.c: packets over a real socket pair, and what hostile ones do.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "sbeet.pb-c.h"

static uint8_t buffer[PROTO_PACKET_MAX];

struct pair {
	int a, b;
};

static int open_pair(void **state) {
	static struct pair pair;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pair = (struct pair){fds[0], fds[1]};
	*state = &pair;
	return 0;
}

static int close_pair(void **state) {
	struct pair *pair = *state;

	if (pair->a >= 0) {
		close(pair->a);
	}
	if (pair->b >= 0) {
		close(pair->b);
	}
	return 0;
}

/* How many descriptors this process has open. */
static int n_open(void) {
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* A goodbye with a reason of @n letters. */
static void send_goodbye(int fd, size_t n, int passed_fd, int expected) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char *reason = malloc(n + 1);

	assert_non_null(reason);
	memset(reason, 'x', n);
	reason[n] = '\0';
	goodbye.reason = reason;
	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	assert_int_equal(packet_send(fd, &m.base, passed_fd), expected);
	free(reason);
}

static void packet_crosses_whole(void **state) {
	static const size_t sizes[] = {0, 1, 1000, 1023, 1024, 1025, 10000, PROTO_PACKET_MAX - 8};
	struct pair *pair = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		Sbeet__ToDaemon *m;
		int n;

		send_goodbye(pair->a, sizes[i], -1, 0);
		n = packet_receive(pair->b, buffer, NULL);
		assert_true(n > 0);
		assert_int_equal(packet_unpack(&sbeet__to_daemon__descriptor, buffer, (size_t)n,
					       (ProtobufCMessage **)&m),
				 0);
		assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_GOODBYE);
		assert_int_equal(strlen(m->goodbye->reason), sizes[i]);
		packet_free(&m->base);
	}
}

static void packet_send_refuses_what_is_too_long(void **state) {
	struct pair *pair = *state;

	send_goodbye(pair->a, PROTO_PACKET_MAX, -1, -EMSGSIZE);
	send_goodbye(pair->a, 1, -1, 0);
	assert_true(packet_receive(pair->b, buffer, NULL) > 0);
}

static void packet_send_says_when_peer_is_full_or_gone(void **state) {
	struct pair *pair = *state;
	int r = 0;

	assert_int_equal(fcntl(pair->a, F_SETFL, O_NONBLOCK), 0);
	while (r == 0) {
		Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
		Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;

		m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
		m.goodbye = &goodbye;
		r = packet_send(pair->a, &m.base, -1);
	}
	assert_int_equal(r, -EAGAIN);
	packet_close(pair->b);
	pair->b = -1;
	send_goodbye(pair->a, 1, -1, -EPIPE); /* and no SIGPIPE, or this test would be dead */
}

static void packet_receive_consumes_oversized(void **state) {
	struct pair *pair = *state;
	char *large = calloc(1, PROTO_PACKET_MAX + 1);
	int fd = -5;

	assert_non_null(large);
	for (int with_fd = 0; with_fd < 2; with_fd++) {
		assert_int_equal(send(pair->a, large, PROTO_PACKET_MAX + 1, 0),
				 PROTO_PACKET_MAX + 1);
		assert_int_equal(send(pair->a, "x", 1, 0), 1);
		assert_int_equal(packet_receive(pair->b, buffer, with_fd ? &fd : NULL), -EMSGSIZE);
		assert_int_equal(fd, with_fd ? -1 : -5);
		assert_int_equal(packet_receive(pair->b, buffer, NULL), 1);
	}
	free(large);
}

static void packet_receive_tells_the_end(void **state) {
	struct pair *pair = *state;
	int fd;

	assert_int_equal(fcntl(pair->b, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(packet_receive(pair->b, buffer, NULL), -EAGAIN);
	assert_int_equal(packet_receive(pair->b, buffer, &fd), -EAGAIN);
	assert_int_equal(send(pair->a, "", 0, 0), 0); /* an empty packet is no message */
	assert_int_equal(packet_receive(pair->b, buffer, NULL), 0);
	close(pair->a);
	pair->a = -1;
	assert_int_equal(packet_receive(pair->b, buffer, NULL), 0);
	assert_int_equal(packet_receive(pair->b, buffer, &fd), 0);
}

static void send_fds(int fd, int n) {
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(200 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (char[]){"x"}, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control};
	struct cmsghdr *c;

	msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++) {
		int zero = STDIN_FILENO;

		memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &zero, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, 0), 1);
}

static void packet_passes_one_descriptor(void **state) {
	struct pair *pair = *state;
	int before = n_open(), fd = -1;

	send_goodbye(pair->a, 10, STDIN_FILENO, 0);
	assert_true(packet_receive(pair->b, buffer, &fd) > 0);
	assert_true(fd > STDERR_FILENO);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	send_goodbye(pair->a, 10, -1, 0);
	fd = -7;
	assert_true(packet_receive(pair->b, buffer, &fd) > 0);
	assert_int_equal(fd, -1);
	assert_int_equal(n_open(), before);
}

static void packet_receive_keeps_no_flood_of_descriptors(void **state) {
	static const int floods[] = {1, 2, 3, 200};
	struct pair *pair = *state;
	int before = n_open(), fd;

	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
		send_fds(pair->a, floods[i]);
		assert_int_equal(packet_receive(pair->b, buffer, NULL), 1);
		assert_int_equal(n_open(), before);
	}
	for (size_t i = 1; i < sizeof(floods) / sizeof(floods[0]); i++) {
		send_fds(pair->a, floods[i]);
		fd = -5;
		assert_int_equal(packet_receive(pair->b, buffer, &fd), -EPROTO);
		assert_int_equal(n_open(), before + 1);
		assert_true(fd > STDERR_FILENO);
		close(fd);
	}
}

static void packet_close_leaves_last_words_readable(void **state) {
	struct pair *pair = *state;

	send_goodbye(pair->a, 10, -1, 0); /* never read by b */
	send_goodbye(pair->b, 20, -1, 0);
	packet_close(pair->b);
	pair->b = -1;
	assert_true(packet_receive(pair->a, buffer, NULL) > 20);
	assert_int_equal(packet_receive(pair->a, buffer, NULL), 0);
}

static void assert_unpack(const uint8_t *bytes, size_t n, int expected) {
	ProtobufCMessage *m = NULL;
	int r = packet_unpack(&sbeet__to_daemon__descriptor, bytes, n, &m);

	assert_int_equal(r, expected);
	if (r < 0) {
		assert_null(m);
	}
	packet_free(m);
}

/* A batch with as many empty operations as fit: one byte of wire for some fifty of memory. */
static void packet_unpack_gives_up_on_repeated_fields(void **state) {
	size_t n = 0, inner = PROTO_PACKET_MAX - 4;

	buffer[n++] = 4 << 3 | 2; /* ToDaemon.ops */
	buffer[n++] = (uint8_t)(inner & 0x7f) | 0x80;
	buffer[n++] = (uint8_t)(inner >> 7 & 0x7f) | 0x80;
	buffer[n++] = (uint8_t)(inner >> 14);
	while (n + 2 <= PROTO_PACKET_MAX) {
		buffer[n++] = 2 << 3 | 2; /* OpBatch.ops, empty */
		buffer[n++] = 0;
	}
	assert_unpack(buffer, n, -ENOBUFS);
}

/* They are skipped and take no memory. */
static void packet_unpack_takes_any_number_of_unknown_fields(void **state) {
	size_t n = 0;

	while (n + 3 <= PROTO_PACKET_MAX) {
		buffer[n++] = 0x80 | (100 << 3 & 0x7f);
		buffer[n++] = 100 << 3 >> 7;
		buffer[n++] = 1;
	}
	assert_unpack(buffer, n, 0);
}

static void packet_unpack_takes_a_full_batch(void **state) {
	Sbeet__Op op = SBEET__OP__INIT, *ops[PROTO_OPS_MAX];
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.time_ns = PROTO_TIME_MAX_NS;
	op.kernel = PROTO_KERNELS_MAX;
	op.blocks = UINT64_MAX;
	op.block_threads = UINT32_MAX;
	op.bytes = UINT64_MAX;
	op.stream = UINT64_MAX;
	op.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
	for (size_t i = 0; i < PROTO_OPS_MAX; i++) {
		ops[i] = &op;
	}
	batch.job = UINT64_MAX;
	batch.ops = ops;
	batch.n_ops = PROTO_OPS_MAX;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	assert_true(protobuf_c_message_get_packed_size(&m.base) <= PROTO_PACKET_MAX);
	assert_unpack(buffer, protobuf_c_message_pack(&m.base, buffer), 0);
}

static void packet_unpack_survives_every_cut_and_flip(void **state) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char a[] = "a", camera[] = "camera", *features[] = {a, camera, a};
	ProtobufCMessage *out;
	uint8_t bytes[256], changed[256];
	size_t n;

	task.name = camera;
	task.period_ns = 33000000;
	task.priority = -5;
	hello.version = 1;
	hello.features = features;
	hello.n_features = 3;
	hello.program = a;
	hello.task = &task;
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	n = protobuf_c_message_pack(&m.base, bytes);
	for (size_t cut = 1; cut < n; cut++) {
		assert_unpack(bytes, cut, -EBADMSG);
	}
	for (size_t bit = 0; bit < n * 8; bit++) {
		memcpy(changed, bytes, n);
		changed[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		out = NULL;
		/* Any answer will do, if it is one; the sanitizers watch. */
		if (packet_unpack(&sbeet__to_daemon__descriptor, changed, n, &out) == 0) {
			assert_non_null(out);
		}
		packet_free(out);
	}
	packet_free(NULL);
}

static void packet_connect_says_why_not(void **state) {
	char directory[] = "/tmp/sbeet-packet-XXXXXX", path[64], too_long[200];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, peer, n;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/s", directory);
	assert_int_equal(packet_connect(path, 0), -ENOENT);
	memset(too_long, 'a', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(packet_connect(too_long, 0), -ENAMETOOLONG);

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(packet_connect(path, 0), -ECONNREFUSED);
	assert_int_equal(listen(fd, 1), 0);
	peer = packet_connect(path, 0);
	assert_true(peer >= 0);
	/* The queue of one that accepts nobody takes a few, and then it is full. */
	for (int i = 0; (n = packet_connect(path, NSEC_PER_MSEC)) >= 0 && i < 100; i++) {
	}
	assert_int_equal(n, -EAGAIN);
	assert_true(fcntl(peer, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(peer, F_GETFL) & O_NONBLOCK);
	close(peer);
	close(fd);
	unlink(path);
	rmdir(directory);
}

static void packet_socket_path_prefers_our_own_variable(void **state) {
	char path[64], small[10];

	setenv("SBEET_RUNTIME_DIR", "/a", 1);
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	assert_int_equal(packet_socket_path("shim.sock", path, sizeof(path)), 0);
	assert_string_equal(path, "/a/shim.sock");
	memset(small, 'k', sizeof(small));
	assert_int_equal(packet_socket_path("shim.sock", small, sizeof(small)), -ENAMETOOLONG);
	unsetenv("SBEET_RUNTIME_DIR");
	assert_int_equal(packet_socket_path("shim.sock", path, sizeof(path)), 0);
	assert_string_equal(path, "/run/sbeet/shim.sock");
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_PAIR(packet_crosses_whole),
		WITH_PAIR(packet_send_refuses_what_is_too_long),
		WITH_PAIR(packet_send_says_when_peer_is_full_or_gone),
		WITH_PAIR(packet_receive_consumes_oversized),
		WITH_PAIR(packet_receive_tells_the_end),
		WITH_PAIR(packet_passes_one_descriptor),
		WITH_PAIR(packet_receive_keeps_no_flood_of_descriptors),
		WITH_PAIR(packet_close_leaves_last_words_readable),
		cmocka_unit_test(packet_unpack_gives_up_on_repeated_fields),
		cmocka_unit_test(packet_unpack_takes_any_number_of_unknown_fields),
		cmocka_unit_test(packet_unpack_takes_a_full_batch),
		cmocka_unit_test(packet_unpack_survives_every_cut_and_flip),
		cmocka_unit_test(packet_connect_says_why_not),
		cmocka_unit_test(packet_socket_path_prefers_our_own_variable),
	};

	return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}
