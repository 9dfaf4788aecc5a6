/*
 * pre-calls.c: a preload that gets between a program and the C library, for what sbeet uses, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include "plug.h"

#define REAL(name)                              \
	static __typeof__(name) *real;          \
                                                \
	if (!real) {                            \
		real = dlsym(RTLD_NEXT, #name); \
	}

EXPORT int pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict attributes,
			  void *(*run)(void *), void *restrict data) {
	REAL(pthread_create)
	return real(t, attributes, run, data);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t n) {
	REAL(connect)
	return real(fd, address, n);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
	REAL(recvmsg)
	return real(fd, message, flags);
}

EXPORT int close(int fd);
EXPORT int close(int fd) {
	REAL(close)
	return real(fd);
}

EXPORT void *dlopen(const char *name, int flags) {
	REAL(dlopen)
	return real(name, flags);
}

EXPORT int ioctl(int fd, unsigned long request, ...);
EXPORT int ioctl(int fd, unsigned long request, ...) {
	va_list list;
	void *data;

	REAL(ioctl)
	va_start(list, request);
	data = va_arg(list, void *);
	va_end(list);
	return real(fd, request, data);
}
