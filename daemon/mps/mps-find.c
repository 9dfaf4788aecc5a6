/*
 * mps-find.c: see mps-find.h.
 */
#include "daemon/mps/mps-find.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "daemon/base/util.h"
#include "proto/hash.h"

/* What its process is called, as far as the kernel keeps names. */
#define PROCESS_NAME "nvidia-cuda-mps"

static bool is_control(const struct stat *st) {
	return S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode);
}

static bool is_trusted(uid_t uid) {
	return uid == 0 || uid == geteuid();
}

/*
 * Whether a process has this socket: a dead one's is still in its directory. The control daemon's
 * is no datagram socket, so the kernel refuses this connection as one of the wrong type, and the
 * control daemon hears nothing of it.
 */
static bool is_dead_socket(const char *path) {
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
		return false; /* not known */
	}
	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	       errno == ECONNREFUSED;
}

bool mps_stands(const struct mps_directories *directories) {
	char path[PROTO_PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s/control", PROTO_PATH_MAX - 1, directories->pipe);
	return lstat(path, &st) == 0 && is_control(&st) &&
	       !(S_ISSOCK(st.st_mode) && is_dead_socket(path));
}

static uint64_t mark_of(const struct stat *st) {
	const uint64_t parts[] = {st->st_dev, st->st_ino, (uint64_t)st->st_ctim.tv_sec,
				  (uint64_t)st->st_ctim.tv_nsec};

	return hash_bytes(HASH_EMPTY, parts, sizeof(parts));
}

/* Clients of every user must write to `control` itself, so its mode tells nothing; who could put
 * another one in its place does. */
static int check(const char *pipe, struct mps_found *ret, char *why, size_t why_size) {
	char path[PROTO_PATH_MAX + 16];
	struct stat directory, control;

	snprintf(path, sizeof(path), "%.*s/control", PROTO_PATH_MAX - 1, pipe);
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
	} else if (S_ISSOCK(control.st_mode) && is_dead_socket(path)) {
		snprintf(why, why_size,
			 "'%.100s' was left behind by a control daemon that has ended", path);
		return -ENOENT;
	} else {
		ret->owner = control.st_uid;
		ret->mark = mark_of(&control);
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

static bool has_ended(int pidfd) {
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* The pid file may be stale, or of another pid namespace. */
int mps_find_process(const char *pipe, bool *ret_one_user) {
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
	if (pidfd < 0 || has_ended(pidfd) || read_small(path, text, sizeof(text)) <= 0 ||
	    strncmp(text, PROCESS_NAME, strlen(PROCESS_NAME)) != 0) {
		return -1;
	}
	*ret_one_user = serves_one_user(pid);
	return TAKE_FD(pidfd);
}

static int try(struct mps_found *ret, const struct mps_directories *place, char *why,
	       size_t why_size) {
	struct mps_found found = {.directories = *place};
	int r = check(place->pipe, &found, why, why_size);

	if (r < 0) {
		return r;
	}
	found.pidfd = mps_find_process(place->pipe, &found.one_user);
	*ret = found;
	return 0;
}

static size_t add_place(struct mps_directories *ret, const char *pipe, const char *log) {
	if (strlen(pipe) >= PROTO_PATH_MAX || strlen(log) >= PROTO_PATH_MAX) {
		return 0;
	}
	strcpy(ret->pipe, pipe);
	strcpy(ret->log, log);
	return 1;
}

size_t mps_places(struct mps_directories ret[static MPS_PLACES_MAX],
		  const struct mps_directories *own) {
	static const char default_log[] = "/var/log/nvidia-mps";
	const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	const char *log = getenv("CUDA_MPS_LOG_DIRECTORY");
	size_t n = 0;

	if (pipe && *pipe) {
		n += add_place(&ret[n], pipe, log && *log ? log : default_log);
	}
	n += add_place(&ret[n], own->pipe, own->log);
	if (!pipe || !*pipe) {
		n += add_place(&ret[n], MPS_UNIT_DIRECTORY "/pipe", MPS_UNIT_DIRECTORY "/log");
		n += add_place(&ret[n], "/tmp/nvidia-mps", default_log);
	}
	return n;
}

int mps_find(struct mps_found *ret, const struct mps_directories *own, char *why, size_t why_size) {
	struct mps_directories places[MPS_PLACES_MAX];
	size_t n = mps_places(places, own);
	int r = -ENOENT;

	*why = '\0';
	for (size_t i = 0; i < n; i++) {
		char text[256] = "";
		int one = try(ret, &places[i], text, sizeof(text));

		if (one == 0) {
			*why = '\0';
			return 0;
		}
		if (!*why || (one == -EPERM && r != -EPERM)) {
			snprintf(why, why_size, "%s", text);
		}
		r = one == -EPERM ? one : r;
	}
	return r;
}
