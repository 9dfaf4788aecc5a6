/*
 * gpu-lock.c: see gpu-lock.h.
 *
 * In a directory that everybody writes, files of others can't be opened with O_CREAT
 * (fs.protected_regular), and whoever came first may have put something else there.
 */
#include "daemon/base/gpu-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "daemon/base/util.h"

static int open_file(const char *path) {
	for (int tries = 0; tries < 3; tries++) {
		int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
		int fd = open(path, O_RDWR | flags);

		if (fd < 0 && errno == EACCES) {
			fd = open(path, O_RDONLY | flags);
		}
		if (fd < 0 && errno == ENOENT) {
			fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0644);
		}
		if (fd >= 0 || errno != EEXIST) {
			return fd >= 0 ? fd : -errno;
		}
	}
	return -EEXIST;
}

static int complain(int error, const char *path, char *why, size_t why_size) {
	snprintf(why, why_size, "can't lock '%s': %s", path, strerror(-error));
	return error;
}

int gpu_lock(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES], char *why,
	     size_t why_size) {
	char path[PROTO_PATH_MAX], name[2 * PROTO_UUID_BYTES + 1], pid[24];
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	for (size_t i = 0; i < PROTO_UUID_BYTES; i++) {
		snprintf(name + 2 * i, 3, "%02x", uuid[i]);
	}
	snprintf(path, sizeof(path), "%s/sbeet-gpu-%s.lock", directory, name);
	fd = open_file(path);
	if (fd < 0) {
		return complain(fd, path, why, why_size);
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		return complain(-EINVAL, path, why, why_size);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK) {
			return complain(-errno, path, why, why_size);
		}
		n = pread(fd, pid, sizeof(pid) - 1, 0);
		pid[n > 0 ? n : 0] = '\0';
		snprintf(why, why_size, "another sbeetd has it (pid %.*s, lock '%s')",
			 n > 0 ? (int)strcspn(pid, "\n") : 7, n > 0 ? pid : "unknown", path);
		return -EBUSY;
	}
	/* For that message alone; a file that we may not write is as good a lock. */
	n = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)n, 0) != n) {
		return complain(-EIO, path, why, why_size);
	}
	return TAKE_FD(fd);
}
