/*
 * packet.c: one protobuf message a packet, with bounds. See packet.h.
 */
#include "proto/packet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/wire.h"

/* Almost every message is smaller; the others are worth an allocation. Small, because this also
 * runs on the stacks of threads that are not ours. */
#define SMALL_PACKET 1024

static int send_bytes(int fd, void *bytes, size_t n, int passed_fd) {
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = bytes, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (passed_fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &passed_fd, sizeof(int));
	}
	do {
		r = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int packet_send(int fd, const ProtobufCMessage *message, int passed_fd) {
	uint8_t small[SMALL_PACKET], *large;
	size_t n = wire_pack(message, small, sizeof(small));
	int r;

	if (n > PROTO_PACKET_MAX) {
		return -EMSGSIZE;
	}
	if (n <= sizeof(small)) {
		return send_bytes(fd, small + sizeof(small) - n, n, passed_fd);
	}
	large = malloc(n);
	if (!large) {
		return -ENOMEM;
	}
	wire_pack(message, large, n);
	r = send_bytes(fd, large, n, passed_fd);
	free(large);
	return r;
}

/* Those that came along with @msg. Return: how many. */
static size_t take_fds(struct msghdr *msg, int *ret_fds) {
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t n = 0;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(c), n * sizeof(int));
	}
	return n;
}

/* Takes at most @max descriptors: the kernel closes the others. */
static int receive(int fd, void *buffer, size_t size, int *ret_fds, size_t max, size_t *ret_n,
		   int flags) {
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = buffer, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	*ret_n = 0;
	if (max > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_LEN(max * sizeof(int));
	}
	do {
		r = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return -errno;
	}
	if (max > 0) {
		*ret_n = take_fds(&msg, ret_fds);
	}
	if (msg.msg_flags & MSG_TRUNC) {
		return -EMSGSIZE;
	}
	return max > 0 && msg.msg_flags & MSG_CTRUNC ? -EPROTO : (int)r;
}

static int receive_one(int fd, void *buffer, size_t size, int *ret_fd, int flags) {
	size_t n;
	int r = receive(fd, buffer, size, ret_fd, ret_fd ? 1 : 0, &n, flags);

	if (ret_fd && n == 0) {
		*ret_fd = -1;
	}
	return r;
}

int packet_receive(int fd, void *buffer, int *ret_fd) {
	return receive_one(fd, buffer, PROTO_PACKET_MAX, ret_fd, 0);
}

int packet_try_receive(int fd, void *buffer, int *ret_fd) {
	return receive_one(fd, buffer, PROTO_PACKET_MAX, ret_fd, MSG_DONTWAIT);
}

int packet_receive_all(int fd, void *buffer, int ret_fds[static PACKET_FDS_MAX], size_t *ret_n) {
	return receive(fd, buffer, PROTO_PACKET_MAX, ret_fds, PACKET_FDS_MAX, ret_n, 0);
}

/* Counts what it hands out and never takes back, so that a packet which makes the parser allocate
 * and free in turns ends as well. */
struct bounded {
	size_t left;
	int error;
};

static void *bounded_alloc(void *data, size_t size) {
	struct bounded *b = data;

	void *p = NULL;

	if (size > b->left) {
		b->error = -ENOBUFS;
		return NULL;
	}
	b->left -= size;
	p = malloc(size);
	if (!p) {
		b->error = -ENOMEM;
	}
	return p;
}

static void bounded_free(void *data, void *p) {
	free(p);
}

int packet_unpack(const ProtobufCMessageDescriptor *type, const void *packet, size_t n,
		  ProtobufCMessage **ret_message) {
	struct bounded bounded = {.left = PROTO_UNPACK_MAX};
	ProtobufCAllocator allocator = {bounded_alloc, bounded_free, &bounded};
	ProtobufCMessage *m;

	m = protobuf_c_message_unpack(type, &allocator, n, packet);
	if (!m) {
		return bounded.error ? bounded.error : -EBADMSG;
	}
	*ret_message = m;
	return 0;
}

void packet_free(ProtobufCMessage *message) {
	if (message) {
		protobuf_c_message_free_unpacked(message, NULL); /* plain free(), as above */
	}
}

int packet_connect(const char *path, nsec_t timeout) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval tv = nsec_timeval(timeout);
	size_t n = strlen(path);
	int fd, r;

	if (n >= sizeof(address.sun_path)) {
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, n + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -errno;
	}
	r = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (r == 0) {
		do {
			r = connect(fd, (struct sockaddr *)&address, sizeof(address));
		} while (r < 0 && errno == EINTR);
	}
	if (r < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

void packet_close(int fd) {
	char byte;
	int r;

	shutdown(fd, SHUT_RD);
	do {
		r = receive_one(fd, &byte, sizeof(byte), NULL, MSG_DONTWAIT);
	} while (r > 0 || r == -EMSGSIZE);
	close(fd);
}

static int join_path(const char *directory, const char *middle, const char *name, char *path,
		     size_t size) {
	int n = snprintf(path, size, "%s%s/%s", directory, middle, name);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int packet_socket_path(const char *socket_name, char *path, size_t size) {
	const char *directory = getenv("SBEET_RUNTIME_DIR");

	if (directory && *directory) {
		return join_path(directory, "", socket_name, path, size);
	}
	directory = getenv("XDG_RUNTIME_DIR");
	if (directory && *directory &&
	    join_path(directory, "/sbeet", socket_name, path, size) == 0 &&
	    access(path, F_OK) == 0) {
		return 0;
	}
	return join_path("/run", "/sbeet", socket_name, path, size);
}

bool packet_has_feature(char *const *features, size_t n, const char *name) {
	for (size_t i = 0; i < n; i++) {
		if (strcmp(features[i], name) == 0) {
			return true;
		}
	}
	return false;
}
