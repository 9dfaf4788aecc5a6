/*
 * high-fd.h: descriptors of our own, out of the way of programs that close or reuse "all" of them,
 * counting from 3.
 */
#pragma once

#include <fcntl.h>

#define HIGH_FD_MIN 256

/* A duplicate of @fd, owned by the caller; where so many descriptors are not allowed, a low one.
 * Return: -1 with errno. */
static inline int high_fd_dup(int fd) {
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD_MIN);

	return high >= 0 ? high : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}
