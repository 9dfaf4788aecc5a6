/*
 * mps-find.c: see mps-find.h.
 */
#include "daemon/mps/mps-find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/base/util.h"

/* What its process is called, as far as the kernel keeps names. */
#define PROCESS_NAME "nvidia-cuda-mps"

static bool is_control(const struct stat *st) {
	return S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode);
}

static bool is_trusted(uid_t uid) {
	return uid == 0 || uid == geteuid();
}

bool mps_stands(const struct mps_directories *directories) {
	char path[PROTO_PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%s/control", directories->pipe);
	return lstat(path, &st) == 0 && is_control(&st);
}

/* Clients of every user must write to `control` itself, so its mode tells nothing; who could put
 * another one in its place does. */
static int check(const char *pipe, uid_t *ret_owner, char *why, size_t why_size) {
	char path[PROTO_PATH_MAX + 16];
	struct stat directory, control;

	snprintf(path, sizeof(path), "%s/control", pipe);
	if (stat(pipe, &directory) < 0 || lstat(path, &control) < 0) {
		return -ENOENT;
	}
	if (!is_control(&control)) {
		snprintf(why, why_size, "'%.100s' is neither a socket nor a FIFO", path);
	} else if (!is_trusted(control.st_uid)) {
		snprintf(why, why_size,
			 "'%.100s' is of user %u, neither root nor the user that sbeetd runs as",
			 path, control.st_uid);
	} else if (!is_trusted(directory.st_uid)) {
		snprintf(why, why_size, "the directory '%.100s' is of user %u", pipe,
			 directory.st_uid);
	} else if ((directory.st_mode & S_IWOTH) && !(directory.st_mode & S_ISVTX)) {
		snprintf(why, why_size, "everybody can write in the directory '%.100s'", pipe);
	} else {
		*ret_owner = control.st_uid;
		return 0;
	}
	return -EPERM;
}

/* Return: bytes, or -1. */
static ssize_t read_small(const char *path, char *text, size_t size) {
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n >= 0) {
		text[n] = '\0';
	}
	return n;
}

/* With -M all users share a server. */
static bool serves_one_user(long pid) {
	char path[32], line[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
	n = read_small(path, line, sizeof(line));
	for (const char *p = line; n > 0 && p < line + n; p += strlen(p) + 1) {
		if (strcmp(p, "-M") == 0) {
			return false;
		}
	}
	return n > 0;
}

/* The process that its pid file names, if that is such a one: it may be stale, or of another pid
 * namespace. */
static int find_process(const char *pipe, bool *ret_one_user) {
	char path[PROTO_PATH_MAX + 32], text[32];
	_cleanup_close_ int pidfd = -1;
	long pid;

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", pipe);
	if (read_small(path, text, sizeof(text)) <= 0) {
		return -1;
	}
	pid = strtol(text, NULL, 10);
	if (pid <= 0 || pid > 1 << 22) {
		return -1;
	}
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	if (pidfd < 0 || read_small(path, text, sizeof(text)) <= 0 ||
	    strncmp(text, PROCESS_NAME, strlen(PROCESS_NAME)) != 0) {
		return -1;
	}
	*ret_one_user = serves_one_user(pid);
	return TAKE_FD(pidfd);
}

static int try(struct mps_found *ret, const char *pipe, const char *log, char *why,
	       size_t why_size) {
	struct mps_found found;
	int r;

	if (strlen(pipe) >= PROTO_PATH_MAX || strlen(log) >= PROTO_PATH_MAX) {
		return -ENOENT;
	}
	r = check(pipe, &found.owner, why, why_size);
	if (r < 0) {
		return r;
	}
	snprintf(found.directories.pipe, PROTO_PATH_MAX, "%s", pipe);
	snprintf(found.directories.log, PROTO_PATH_MAX, "%s", log);
	found.one_user = false;
	found.pidfd = find_process(pipe, &found.one_user);
	*ret = found;
	return 0;
}

int mps_find(struct mps_found *ret, const struct mps_directories *own, char *why, size_t why_size) {
	const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	const char *log = getenv("CUDA_MPS_LOG_DIRECTORY");
	const char *const places[][2] = {
		{own->pipe, own->log},
		{MPS_UNIT_DIRECTORY "/pipe", MPS_UNIT_DIRECTORY "/log"},
		{"/tmp/nvidia-mps", "/var/log/nvidia-mps"},
	};
	int r = -ENOENT;

	*why = '\0';
	if (pipe && *pipe) {
		return try(ret, pipe, log && *log ? log : places[2][1], why, why_size);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int one = try(ret, places[i][0], places[i][1], why, why_size);

		if (one == 0) {
			return 0;
		}
		r = one == -EPERM ? one : r;
	}
	return r;
}
