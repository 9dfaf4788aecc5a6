/*
 * ioctl.c: stands for the kernel's part of the driver. A test preloads it (libsimgpu-ioctl.so) into
 * programs on simulated GPUs, and into whoever is to act on their channel groups: it gives the
 * simulated driver a descriptor that looks like /dev/nvidiactl, and answers ioctl() and fstat() on
 * it and on its duplicates, in whatever process they are.
 *
 * The descriptor is a connection to simgpud (rm.h). Without this library the simulated driver has
 * no such descriptor, as in a container that hides it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/simgpu/place.h"
#include "tests/simgpu/rm.h"

#define EXPORT __attribute__((visibility("default")))

/* What driver-group.c looks for. Return: a descriptor, or -1. */
EXPORT int simgpu_control_open(void);

EXPORT int simgpu_control_open(void) {
	struct sockaddr_un addr;
	char dir[256], path[300];
	int fd;

	if (place_dir(dir, sizeof(dir)) < 0 || place_file(path, sizeof(path), dir, RM_SOCKET) < 0) {
		return -1;
	}
	addr = place_address(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool is_control(int fd) {
	struct sockaddr_un addr = {0};
	socklen_t size = sizeof(addr);
	int saved_errno = errno;
	const char *name;
	bool yes = false;

	if (getpeername(fd, (struct sockaddr *)&addr, &size) == 0 && addr.sun_family == AF_UNIX) {
		addr.sun_path[sizeof(addr.sun_path) - 1] = '\0';
		name = strrchr(addr.sun_path, '/');
		yes = name && strcmp(name + 1, RM_SOCKET) == 0;
	}
	errno = saved_errno;
	return yes;
}

/* ---- ioctl ---- */

/* Sends @p with a socket of its own for the answer, so that any number of threads and processes may
 * use one file. Return: 0 or errno. */
static int control_exchange(int fd, struct rm_packet *p) {
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		return errno;
	}
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &pair[1], sizeof(pair[1]));
	do {
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	close(pair[1]);
	while (n == (ssize_t)sizeof(*p)) {
		n = recv(pair[0], p, sizeof(*p), 0);
		if (n >= 0 || errno != EINTR) {
			break;
		}
		n = sizeof(*p);
	}
	close(pair[0]);
	return n == (ssize_t)sizeof(*p) ? p->error : EIO; /* simgpud is gone */
}

/* The parameters that @arg points to and their size; NULL and 0 if there are none. */
static void *find_params(const struct rm_packet *p, const void *arg, uint32_t *ret_size) {
	const struct rm_control *control = arg;
	const struct rm_alloc *alloc = arg;
	const struct rm_alloc_short *brief = arg;
	uint64_t at = 0;

	*ret_size = 0;
	if (p->nr == RM_CONTROL_NR && p->size == sizeof(*control)) {
		at = control->params;
		*ret_size = control->params_size;
	} else if (p->nr == RM_ALLOC_NR &&
		   (p->size == sizeof(*alloc) || p->size == sizeof(*brief))) {
		at = alloc->params;
		*ret_size = p->size == sizeof(*alloc) ? alloc->params_size : brief->params_size;
		*ret_size = *ret_size ? *ret_size : rm_params_size(alloc->class);
	}
	*ret_size = at ? *ret_size : 0;
	return (void *)(uintptr_t)at;
}

static int control_ioctl(int fd, unsigned long request, void *arg) {
	struct rm_packet p = {.nr = _IOC_NR(request), .size = _IOC_SIZE(request)};
	uint32_t params_size;
	void *params;
	int r = EINVAL, saved_errno = errno;

	if (p.size <= sizeof(p.arg)) {
		params = find_params(&p, arg, &params_size);
		if (params_size <= sizeof(p.params)) {
			memcpy(p.arg, arg, p.size);
			if (params_size > 0) {
				memcpy(p.params, params, params_size);
			}
			p.params_size = params_size;
			r = control_exchange(fd, &p);
		}
	}
	if (r != 0) {
		errno = r;
		return -1;
	}
	memcpy(arg, p.arg, _IOC_SIZE(request));
	if (params_size > 0) {
		memcpy(params, p.params, params_size);
	}
	errno = saved_errno;
	return 0;
}

EXPORT int ioctl(int fd, unsigned long request, ...) {
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) == RM_TYPE && is_control(fd)) {
		return control_ioctl(fd, request, arg);
	}
	/* dlsym() may be another preloaded library's, which does not know who the next one is. */
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* ---- fstat ---- */

static int control_fstat(int fd, struct stat *st) {
	int r = fstatat(fd, "", st, AT_EMPTY_PATH);

	if (r == 0 && S_ISSOCK(st->st_mode) && is_control(fd)) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(RM_MAJOR, RM_MINOR);
	}
	return r;
}

/* Both names are one function where files are of 64 bits; sys/stat.h makes fstat the second one. */
EXPORT int plain_fstat(int fd, struct stat *st) __asm__("fstat");

EXPORT int plain_fstat(int fd, struct stat *st) {
	return control_fstat(fd, st);
}

EXPORT int fstat64(int fd, struct stat64 *st) {
	return control_fstat(fd, (struct stat *)st);
}
