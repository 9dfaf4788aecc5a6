/*
 * test-client-socket.c: nothing that comes over a client's socket holds its reader up. Where it
 * did, these tests would not end.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/client-socket.h"
#include "proto/limits.h"

static uint8_t buffer[PROTO_PACKET_MAX];

static int n_open(void) {
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir)) {
		n++;
	}
	closedir(dir);
	return n;
}

/* A thread may be closing something just now. */
static void wait_for_open(int n) {
	while (n_open() != n) {
		usleep(1000);
	}
}

static void open_pair(int pair[2]) {
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
}

/* A packet of @n bytes, with @passed, which it closes, so that what is under way is the last. */
static void send_along(int fd, size_t n, int passed) {
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = buffer, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &passed, sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), n);
	close(passed);
}

/* A TCP connection whose peer, *@ret_peer, reads nothing, and whose end waits an hour for that. */
static int open_lingering(int *ret_peer) {
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, n), 0);
	*ret_peer = accept(listener, NULL, NULL);
	assert_true(*ret_peer >= 0);
	close(listener);
	while (send(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {
	}
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	return fd;
}

/* The same, in the queue of a UNIX socket that nobody else has. */
static int open_nested(int *ret_peer) {
	int pair[2];

	open_pair(pair);
	send_along(pair[0], 1, open_lingering(ret_peer));
	close(pair[0]);
	return pair[1];
}

static int (*const openers[])(int *ret_peer) = {open_lingering, open_nested};

static void receive(int fd) {
	assert_int_equal(client_socket_receive(fd, 1000, buffer, NULL), 10);
	client_socket_close(fd);
}

static void receive_and_close(int fd) {
	int passed = -1;

	assert_int_equal(client_socket_receive(fd, 1000, buffer, &passed), 10);
	assert_true(passed >= 0);
	client_socket_close(passed);
	client_socket_close(fd);
}

static void read_it(int fd) {
	assert_int_equal(client_socket_read(fd, buffer, sizeof(buffer)), 10);
	client_socket_close(fd);
}

static void (*const takers[])(int fd) = {receive, receive_and_close, read_it, client_socket_hang_up,
					 client_socket_close};

static void sockets_that_come_along_hold_nobody_up(void **state) {
	int before = n_open();

	for (size_t opener = 0; opener < sizeof(openers) / sizeof(openers[0]); opener++) {
		for (size_t taker = 0; taker < sizeof(takers) / sizeof(takers[0]); taker++) {
			int pair[2], peer;

			open_pair(pair);
			send_along(pair[0], 10, openers[opener](&peer));
			close(pair[0]);
			takers[taker](pair[1]);
			close(peer);
			wait_for_open(before);
		}
	}
}

/* It looks like the end, and what is behind it is thrown away by close(). */
static void empty_packets_hold_nobody_up(void **state) {
	int before = n_open(), pair[2], peer;

	open_pair(pair);
	assert_int_equal(send(pair[0], NULL, 0, 0), 0);
	send_along(pair[0], 10, open_lingering(&peer));
	assert_int_equal(client_socket_receive(pair[1], 1000, buffer, NULL), 0);
	client_socket_hang_up(pair[1]);
	close(pair[0]);
	close(peer);
	wait_for_open(before);
}

/* Those whom nobody has accepted have sent packets, too. */
static void socket_that_listens_holds_nobody_up(void **state) {
	int before = n_open(), listener = socket(AF_UNIX, SOCK_SEQPACKET, 0),
	    fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), peer;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t n = sizeof(address);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, n), 0);
	send_along(fd, 10, open_lingering(&peer));
	client_socket_close(listener);
	close(fd);
	close(peer);
	wait_for_open(before);
}

/* Each closes when its peer has read all. */
static void user_has_few_closed_at_a_time(void **state) {
	int before = n_open(), peers[4];

	for (size_t i = 0; i < 4; i++) {
		uid_t uid = 1000 + i / 2;

		assert_true(client_socket_may_pass(uid));
		client_socket_close_passed(open_lingering(&peers[i]), uid);
	}
	assert_false(client_socket_may_pass(1000));
	assert_false(client_socket_may_pass(1001));
	assert_true(client_socket_may_pass(1002));
	/* More than that is closed at once. */
	client_socket_close_passed(dup(STDIN_FILENO), 1000);
	for (size_t i = 0; i < 4; i++) {
		close(peers[i]);
	}
	while (!client_socket_may_pass(1000) || !client_socket_may_pass(1001)) {
		usleep(1000);
	}
	wait_for_open(before);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_that_come_along_hold_nobody_up),
		cmocka_unit_test(empty_packets_hold_nobody_up),
		cmocka_unit_test(socket_that_listens_holds_nobody_up),
		cmocka_unit_test(user_has_few_closed_at_a_time),
	};

	if (client_socket_init() < 0) {
		return 1;
	}
	return cmocka_run_group_tests_name("client-socket", tests, NULL, NULL);
}
