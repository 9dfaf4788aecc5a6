/*
 * faulty.c: preloaded into sbeetd: see faulty.h.
 *
 * Only calls of sbeetd and its libraries are seen, not those that the C library makes itself, but
 * for malloc() and its kin.
 */
#include "faulty.h"

#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static struct faulty_page *page;

/* That of the C library ends its process when it has no memory, which is not what is tested here.
 */
static bool in_name_service;

__attribute__((constructor)) static void attach(void) {
	const char *path = getenv(FAULTY_PAGE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd >= 0) {
		p = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		page = p == MAP_FAILED ? NULL : p;
	}
}

static bool is_the_one(_Atomic unsigned long *countdown) {
	unsigned long n = atomic_load(countdown);

	while (n > 0 && !atomic_compare_exchange_weak(countdown, &n, n - 1)) {
	}
	return n == 1;
}

static bool has_no_memory(void) {
	if (!page || in_name_service || !is_the_one(&page->memory)) {
		return false;
	}
	errno = ENOMEM;
	return true;
}

static bool has_no_descriptor(void) {
	if (!page || !is_the_one(&page->descriptors)) {
		return false;
	}
	errno = EMFILE;
	return true;
}

/* The function that would be called without us. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

EXPORT void *malloc(size_t size) {
	return has_no_memory() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size) {
	return has_no_memory() ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size) {
	return has_no_memory() ? NULL : __libc_realloc(p, size);
}

EXPORT void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset) {
	return has_no_memory() ? MAP_FAILED : NEXT(mmap)(address, n, protection, flags, fd, offset);
}

EXPORT int pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*f)(void *),
			  void *data) {
	return has_no_memory() ? EAGAIN : NEXT(pthread_create)(ret, attributes, f, data);
}

/* @mode is there whether or not it was passed: an argument more does no harm. */
#define OPEN_MODE(flags)                       \
	({                                     \
		va_list args_;                 \
		mode_t mode_;                  \
		va_start(args_, flags);        \
		mode_ = va_arg(args_, mode_t); \
		va_end(args_);                 \
		mode_;                         \
	})

EXPORT int open(const char *path, int flags, ...) {
	return has_no_descriptor() ? -1 : NEXT(open)(path, flags, OPEN_MODE(flags));
}

EXPORT int openat(int at, const char *path, int flags, ...) {
	return has_no_descriptor() ? -1 : NEXT(openat)(at, path, flags, OPEN_MODE(flags));
}

EXPORT FILE *fopen(const char *path, const char *mode) {
	return has_no_descriptor() ? NULL : NEXT(fopen)(path, mode);
}

EXPORT int socket(int domain, int type, int protocol) {
	return has_no_descriptor() ? -1 : NEXT(socket)(domain, type, protocol);
}

EXPORT int memfd_create(const char *name, unsigned flags) {
	return has_no_descriptor() ? -1 : NEXT(memfd_create)(name, flags);
}

EXPORT int epoll_create1(int flags) {
	return has_no_descriptor() ? -1 : NEXT(epoll_create1)(flags);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags) {
	if (page) {
		atomic_fetch_add(&page->accepts, 1);
	}
	if (page && atomic_load(&page->accepts_fail)) {
		errno = EMFILE;
		return -1;
	}
	return has_no_descriptor() ? -1 : NEXT(accept4)(fd, address, n, flags);
}

EXPORT int close(int fd) {
	struct stat st;

	if (page && atomic_load(&page->null_hangs) && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	    st.st_rdev == makedev(1, 3)) {
		while (atomic_load(&page->null_hangs)) {
			usleep(1000);
		}
	}
	return NEXT(close)(fd);
}

/* As if more timers were pending than ever before. */
EXPORT int event_add(struct event *event, const struct timeval *timeout) {
	if (page && atomic_load(&page->timers_fail) && timeout && event->ev_fd < 0 &&
	    !(event->ev_evcallback.evcb_flags & EVLIST_TIMEOUT)) {
		errno = ENOMEM;
		return -1;
	}
	return NEXT(event_add)(event, timeout);
}

EXPORT int getsockopt(int fd, int level, int option, void *value, socklen_t *n) {
	bool makes = level == SOL_SOCKET && option == SO_PEERPIDFD;

	return makes && has_no_descriptor() ? -1 : NEXT(getsockopt)(fd, level, option, value, n);
}

EXPORT struct group *getgrnam(const char *name) {
	struct group *group;

	in_name_service = true;
	group = NEXT(getgrnam)(name);
	in_name_service = false;
	return group;
}

EXPORT struct passwd *getpwnam(const char *name) {
	struct passwd *user;

	in_name_service = true;
	user = NEXT(getpwnam)(name);
	in_name_service = false;
	return user;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret) {
	int64_t more = 0;

	/* The kernel's, for this is called early. */
	if (syscall(SYS_clock_gettime, clock, ret) < 0) {
		return -1;
	}
	if (page && clock == CLOCK_REALTIME) {
		more = atomic_load(&page->realtime_ns);
	} else if (page && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) {
		int64_t stopped = atomic_load(&page->stopped_ns);

		more = atomic_load(&page->monotonic_ns);
		if (stopped) {
			*ret = (struct timespec){0};
			more += stopped;
		}
	}
	more += ret->tv_nsec;
	ret->tv_sec += more / 1000000000 - (more % 1000000000 < 0);
	ret->tv_nsec = (more % 1000000000 + 1000000000) % 1000000000;
	return 0;
}
