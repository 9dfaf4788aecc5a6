/*
 * own-socket.c: see own-socket.h.
 */
#include "shim/own-socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/packet.h"

int own_socket_init(struct own_socket *s, int fd) {
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	*s = (struct own_socket){.fd = fd, .device = st.st_dev, .inode = st.st_ino};
	return 0;
}

bool own_socket_is_ours(const struct own_socket *s) {
	struct stat st;

	return s->fd >= 0 && fstat(s->fd, &st) == 0 && st.st_dev == s->device &&
	       st.st_ino == s->inode;
}

void own_socket_shut_down(const struct own_socket *s) {
	if (own_socket_is_ours(s)) {
		shutdown(s->fd, SHUT_RDWR);
	}
}

void own_socket_close(struct own_socket *s) {
	if (own_socket_is_ours(s)) {
		close(s->fd);
	}
	s->fd = -1;
}

bool own_socket_has_packet(const struct own_socket *s) {
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

nsec_t own_socket_sleep(const struct own_socket *s, short events, nsec_t pause) {
	struct pollfd p = {.fd = s->fd, .events = events};
	nsec_t began = nsec_now(), t;

	if (poll(&p, 1, (int)(pause / NSEC_PER_MSEC)) > 0) {
		return 0;
	}
	t = nsec_now() - began;
	return t > pause ? pause : t;
}

static int receive_now(const struct own_socket *s, uint8_t *buffer, int *ret_fd) {
	int n = own_socket_is_ours(s) ? packet_try_receive(s->fd, buffer, ret_fd) : -EBADF;

	return n == -ENOTSOCK ? -EBADF : n; /* it was closed in between */
}

int own_socket_receive(const struct own_socket *s, uint8_t *buffer, int *ret_fd, nsec_t spin,
		       nsec_t pause, nsec_t *ret_slept) {
	nsec_t end = spin > 0 ? nsec_now() + spin : 0;
	int n = -EAGAIN;

	*ret_slept = 0;
	*ret_fd = -1;
	while (n == -EAGAIN && nsec_now() < end) {
		n = receive_now(s, buffer, ret_fd);
	}
	if (n == -EAGAIN) {
		*ret_slept = own_socket_sleep(s, POLLIN, pause);
		n = receive_now(s, buffer, ret_fd);
	}
	return n;
}

int own_socket_send(const struct own_socket *s, const ProtobufCMessage *message, int passed_fd) {
	int r = own_socket_is_ours(s) ? packet_send(s->fd, message, passed_fd) : -EBADF;

	return r == -ENOTSOCK ? -EBADF : r;
}
