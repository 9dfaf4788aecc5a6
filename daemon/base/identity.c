/*
 * identity.c: see identity.h.
 */
#include "daemon/base/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/base/util.h"
#include "proto/hash.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446 /* Linux 6.9 */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* -1: the kernel can't. */
static int fold_error(int error) {
	return error == ESRCH || error == EMFILE || error == ENFILE || error == ENOMEM ? -error
										       : -1;
}

int identity_open_process(int fd, pid_t pid) {
	socklen_t size = sizeof(int);
	int pidfd = -1;

	if (fd >= 0) {
		if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
			return pidfd;
		}
		if (errno == EINVAL) {
			return -ESRCH; /* as Linux 6.5 to 6.14 say it */
		}
		if (errno != ENOPROTOOPT && errno != EOPNOTSUPP) {
			return fold_error(errno);
		}
	}
	if (pid <= 0) {
		return -1;
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pidfd >= 0 ? pidfd : fold_error(errno);
}

/* Of the namespace that /proc shows, which need not be ours. */
static bool proc_counts_as_we_do(void) {
	char link[24], own[24];
	ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	snprintf(own, sizeof(own), "%d", getpid());
	return strcmp(link, own) == 0;
}

/* /proc/PID/stat from its third field on; the second may hold anything but a line's end. Return:
 * NULL if there is no such process, or it can't be seen. */
static const char *read_stat(pid_t pid, char *text, size_t size) {
	_cleanup_close_ int fd = -1;
	char path[64], *p;
	ssize_t n;

	if (!proc_counts_as_we_do()) {
		return NULL;
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, size - 1) : -1;
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	return p && p[1] == ' ' ? p + 2 : NULL;
}

/* Field number @n, from 3, of what read_stat() has returned. 0: there is none. */
static uint64_t stat_field(const char *p, int n) {
	for (int field = 3; p && field < n; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

static uint64_t read_start(pid_t pid) {
	char text[1024];

	return stat_field(read_stat(pid, text, sizeof(text)), 22);
}

/* ---- whether it has executed another program ---- */

/* A program that has just been executed has few threads. */
#define THREADS_MAX 64

#define PF_EXITING 0x4 /* in the ninth field of stat */

/* Return: 1; 0; -1: that can't be known. */
static int thread_is_called(int tasks, const char *id, const char *name) {
	_cleanup_close_ int fd = -1;
	char path[64], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%.32s/comm", id);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0) {
		return -1;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, name) == 0;
}

/* Whether all threads of the process are known, and none is called @name. */
static bool none_is_called(pid_t pid, const char *name) {
	const struct dirent *entry;
	unsigned n = 0;
	bool none = true;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks) {
		return false;
	}
	while (none && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.') {
			none = n++ < THREADS_MAX &&
			       thread_is_called(dirfd(tasks), entry->d_name, name) == 0;
		}
	}
	closedir(tasks);
	return none && n > 0;
}

bool identity_lost_thread(pid_t pid, const char *name) {
	char text[1024];
	const char *p = pid > 0 ? read_stat(pid, text, sizeof(text)) : NULL;

	return p && *p != 'Z' && *p != 'X' && !(stat_field(p, 9) & PF_EXITING) &&
	       none_is_called(pid, name);
}

static uint64_t read_namespace(void) {
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* 0: pidfds of this kernel share one. */
static uint64_t read_inode(int pidfd) {
	struct statfs fs;
	struct stat st;

	if (pidfd < 0 || fstatfs(pidfd, &fs) < 0 || fs.f_type != PID_FS_MAGIC) {
		return 0;
	}
	return fstat(pidfd, &st) == 0 ? st.st_ino : 0;
}

struct identity identity_of(int pidfd, pid_t pid) {
	struct identity identity = {
		.inode = read_inode(pidfd), .pid_ns = read_namespace(), .pid = (uint32_t)pid};

	if (!identity.inode && pid > 0) {
		identity.start = read_start(pid);
	}
	return identity;
}

struct identity identity_from_ledger_2(uint64_t value, uint32_t pid) {
	_cleanup_close_ int own = identity_open_process(-1, getpid());
	bool inodes = read_inode(own) != 0;

	return (struct identity){
		.inode = inodes ? value : 0, .start = inodes ? 0 : value, .pid = pid};
}

bool identity_pid_counts(const struct identity *saved) {
	uint64_t ours = read_namespace();

	return saved->pid > 0 && (!saved->pid_ns || !ours || saved->pid_ns == ours);
}

static bool may_be(uint64_t found, uint64_t saved) {
	return !found || !saved || found == saved;
}

bool identity_may_be(const struct identity *found, const struct identity *saved) {
	return may_be(found->inode, saved->inode) && may_be(found->start, saved->start);
}

static bool is_known(const struct identity *i) {
	return i->inode != 0 || i->pid != 0;
}

static bool secret_same(const struct identity *a, const struct identity *b) {
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < PROTO_SECRET_BYTES; i++) {
		differ |= a->secret[i] ^ b->secret[i];
	}
	return differ == 0;
}

static bool process_same(const struct identity *a, const struct identity *b) {
	if (a->inode || b->inode) {
		return a->inode == b->inode;
	}
	return a->pid == b->pid && a->start == b->start && a->pid_ns == b->pid_ns;
}

bool identity_same(const struct identity *a, const struct identity *b) {
	bool secret = secret_same(a, b);

	if (!is_known(a) && !is_known(b)) {
		return secret && identity_has_secret(a);
	}
	return secret && process_same(a, b);
}

bool identity_same_process(const struct identity *a, const struct identity *b) {
	return is_known(a) && is_known(b) && process_same(a, b);
}

uint64_t identity_hash(const struct identity *identity) {
	if (identity->inode) {
		return hash_bytes(HASH_EMPTY, &identity->inode, sizeof(identity->inode));
	}
	if (is_known(identity)) {
		return hash_bytes(HASH_EMPTY, &identity->pid, sizeof(identity->pid));
	}
	return hash_bytes(HASH_EMPTY, identity->secret, sizeof(identity->secret));
}

int identity_make_secret(struct identity *identity) {
	ssize_t n = getrandom(identity->secret, sizeof(identity->secret), GRND_NONBLOCK);

	if (n == (ssize_t)sizeof(identity->secret)) {
		return 0;
	}
	memset(identity->secret, 0, sizeof(identity->secret));
	return n < 0 ? -errno : -EIO;
}

bool identity_has_secret(const struct identity *identity) {
	static const struct identity none;

	return !secret_same(identity, &none);
}
