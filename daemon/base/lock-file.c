/*
 * lock-file.c: see lock-file.h.
 */
#include "daemon/base/lock-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/util.h"

/* Only a number is believed, for anything else may stand there. */
static pid_t read_pid(int fd) {
	char text[24], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	long pid;

	text[n > 0 ? n : 0] = '\0';
	pid = strtol(text, &end, 10);
	return end > text && (*end == '\n' || *end == '\0') && pid > 0 && pid <= INT32_MAX
		       ? (pid_t)pid
		       : 0;
}

/* For the message of others only. Where the disk is full the file stays empty: a dead process's id
 * must not stay. */
static void write_pid(int fd) {
	char text[24];
	int n = snprintf(text, sizeof(text), "%d\n", getpid());

	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) != n) {
		(void)!ftruncate(fd, 0);
	}
}

int lock_file_take(int directory, const char *name, pid_t *ret_pid) {
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	_cleanup_close_ int fd = openat(directory, name, O_RDWR | O_CREAT | flags, 0600);
	struct stat st;

	if (fd < 0 && errno == EROFS) {
		fd = openat(directory, name, O_RDONLY | flags); /* it can be locked as well */
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EINVAL;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK) {
			return -errno;
		}
		*ret_pid = read_pid(fd);
		return -EBUSY;
	}
	if ((st.st_mode & 077) != 0) {
		fchmod(fd, 0600); /* of an older sbeetd, which let everybody read it */
	}
	write_pid(fd);
	return TAKE_FD(fd);
}
