/*
 * ioctl.c: stands for the kernel's part of the driver. A test preloads it (libsimgpu-ioctl.so) into
 * programs on simulated GPUs, and into whoever is to act on their channel groups: it gives the
 * simulated driver a descriptor that looks like /dev/nvidiactl, and answers ioctl(), fstat() and
 * statx() on it and on its duplicates, in whatever process they are.
 *
 * The descriptor is a connection to simgpud (rm.h). Without this library the simulated driver has
 * no such descriptor, as in a container that hides it.
 *
 * An ioctl takes fstat, sendmsg, poll, recvmsg and, with several threads, futex: whoever shuts
 * itself into a sandbox that leaves it these can still use a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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

/* ---- where answers come ---- */

/* Out of the way of shells and of programs that close what they have inherited. */
#define ANSWERS_FROM 700

/* A pair of sockets of this process: simgpud gets the second one with each ioctl. One ioctl at a
 * time, as in the real driver. */
static struct {
	pthread_mutex_t lock;
	int fds[2]; /* -1: none */
	ino_t inodes[2];
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER, .fds = {-1, -1}};

static void answers_open(void) {
	struct stat st;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		return;
	}
	for (int i = 0; i < 2; i++) {
		int high = fcntl(pair[i], F_DUPFD_CLOEXEC, ANSWERS_FROM);

		answers.fds[i] = high < 0 ? pair[i] : high;
		if (high >= 0) {
			close(pair[i]);
		}
		answers.inodes[i] =
			fstatat(answers.fds[i], "", &st, AT_EMPTY_PATH) == 0 ? st.st_ino : 0;
	}
}

/* Whether they are still ours: the program may have closed them, and others have their numbers. */
static bool answers_are_open(void) {
	struct stat st;

	for (int i = 0; i < 2; i++) {
		if (answers.fds[i] < 0 || fstatat(answers.fds[i], "", &st, AT_EMPTY_PATH) < 0 ||
		    st.st_ino != answers.inodes[i]) {
			return false;
		}
	}
	return true;
}

/* A child must not read its parent's answers. */
static void answers_forked(void) {
	pthread_mutex_init(&answers.lock, NULL);
	if (answers_are_open()) {
		close(answers.fds[0]);
		close(answers.fds[1]);
	}
	answers.fds[0] = answers.fds[1] = -1;
}

__attribute__((constructor)) static void answers_begin(void) {
	answers_open();
	pthread_atfork(NULL, NULL, answers_forked);
}

/* ---- ioctl ---- */

static ssize_t control_send(int fd, struct rm_packet *p, int answer_fd) {
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &answer_fd, sizeof(answer_fd));
	do {
		n = sendmsg(fd, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Return: the length of the answer, or -1 when simgpud is gone. */
static ssize_t control_receive(int fd, struct rm_packet *p, int answer_fd) {
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd wait[] = {{.fd = answer_fd, .events = POLLIN}, {.fd = fd}};
	ssize_t n;

	for (;;) {
		bool ends = poll(wait, 2, -1) > 0 && wait[1].revents;

		n = recvmsg(answer_fd, &m, MSG_DONTWAIT);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR) || ends) {
			return n;
		}
	}
}

/* Return: 0 or errno. */
static int control_exchange(int fd, struct rm_packet *p) {
	ssize_t n = -1;

	pthread_mutex_lock(&answers.lock);
	if (!answers_are_open()) {
		answers_open();
	}
	if (answers.fds[0] >= 0 && control_send(fd, p, answers.fds[1]) >= 0) {
		n = control_receive(fd, p, answers.fds[0]);
	}
	pthread_mutex_unlock(&answers.lock);
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

static bool is_socket(int fd) {
	int saved_errno = errno;
	struct stat st;
	bool yes = fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && S_ISSOCK(st.st_mode);

	errno = saved_errno;
	return yes;
}

EXPORT int ioctl(int fd, unsigned long request, ...) {
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) == RM_TYPE && _IOC_NR(request) >= RM_FREE_NR && is_socket(fd)) {
		return control_ioctl(fd, request, arg);
	}
	/* dlsym() may be another preloaded library's, which does not know who the next one is. */
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* ---- fstat, statx ---- */

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

EXPORT int statx(int at, const char *restrict path, int flags, unsigned mask,
		 struct statx *restrict st) {
	int r = (int)syscall(SYS_statx, at, path, flags, mask, st);

	if (r == 0 && !*path && S_ISSOCK(st->stx_mode) && is_control(at)) {
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = RM_MAJOR;
		st->stx_rdev_minor = RM_MINOR;
	}
	return r;
}
