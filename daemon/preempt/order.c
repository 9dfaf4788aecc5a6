/*
 * order.c: see order.h.
 */
#include "daemon/preempt/order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(ORDER_FDS_MAX * sizeof(int))];
};

int order_send(int socket, const void *data, uint32_t size, const int *fds, unsigned n) {
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control = {0};
	ssize_t r;

	if (n > 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do {
		r = sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static unsigned take_fds(struct msghdr *msg, int *fds) {
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(fds, CMSG_DATA(c), n * sizeof(int)); /* at most ORDER_FDS_MAX fit */
		}
	}
	return n;
}

int order_receive(int socket, void *data, uint32_t size, int fds[static ORDER_FDS_MAX],
		  unsigned *ret_n) {
	struct iovec iov = {.iov_base = data, .iov_len = size};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	unsigned n;
	ssize_t r;

	do {
		r = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return -errno;
	}
	n = take_fds(&msg, fds);
	if (r != (ssize_t)size || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		while (n > 0) {
			close(fds[--n]);
		}
		return r == 0 ? -ECONNRESET : -EBADMSG;
	}
	*ret_n = n;
	return 0;
}
