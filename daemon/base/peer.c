/*
 * peer.c: see peer.h.
 */
#include "daemon/base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "daemon/base/util.h"
#include "proto/validate.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446 /* Linux 6.9 */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

int peer_credentials(int fd, struct ucred *ret) {
	socklen_t size = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0 ? -errno : 0;
}

int peer_read(int fd, struct peer *ret) {
	struct peer peer = {0};
	socklen_t size = sizeof(peer.groups);
	int r = peer_credentials(fd, &peer.cred);

	if (r < 0) {
		return r;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups, &size) == 0) {
		peer.n_groups = size / sizeof(gid_t);
	}
	*ret = peer;
	return 0;
}

int peer_open_process(int fd, pid_t pid) {
	socklen_t size = sizeof(int);
	int pidfd = -1;

	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
		return pidfd;
	}
	if (fd < 0 || errno == ENOPROTOOPT || errno == EOPNOTSUPP) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd >= 0) {
			return pidfd;
		}
	}
	if (fd >= 0 && errno == EINVAL) {
		return -ESRCH; /* as Linux 6.5 to 6.14 say it */
	}
	return errno == ESRCH || errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno
										       : -1;
}

/* When it was started, in clock ticks since boot: the 22nd field; the 2nd may hold anything but a
 * line's end. */
static uint64_t start_time(pid_t pid) {
	_cleanup_close_ int fd = -1;
	char path[64], text[1024];
	const char *p;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p + 1, ' ');
	}
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

uint64_t peer_identity(int pidfd, pid_t pid) {
	struct statfs fs;
	struct stat st;

	if (pidfd < 0 || fstatfs(pidfd, &fs) < 0) {
		return 0;
	}
	/* Since Linux 6.9 each process has an inode of its own there. */
	if (fs.f_type == PID_FS_MAGIC) {
		return fstat(pidfd, &st) == 0 ? st.st_ino : 0;
	}
	return start_time(pid);
}

bool peer_in_group(const struct peer *peer, gid_t gid) {
	for (size_t i = 0; i < peer->n_groups; i++) {
		if (peer->groups[i] == gid) {
			return true;
		}
	}
	return peer->cred.gid == gid;
}

/* Such texts are compared and logged: only printable ones are good for that. */
static void keep_printable(char *text) {
	if (validate_text(text, PROTO_PATH_MAX) < 0) {
		*text = '\0';
	}
}

void peer_executable(const struct peer *peer, char ret[static PROTO_PATH_MAX]) {
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", peer->cred.pid);
	n = readlink(link, ret, PROTO_PATH_MAX - 1);
	ret[n > 0 ? n : 0] = '\0';
	keep_printable(ret);
}

void peer_cgroup(const struct peer *peer, char ret[static PROTO_PATH_MAX]) {
	char path[64], line[PROTO_PATH_MAX + 64];
	FILE *f;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", peer->cred.pid);
	f = fopen(path, "re");
	/* "0::/path" is the unified hierarchy, which comes last. Where that is not used, units are
	 * in systemd's own of the old ones. */
	while (f && fgets(line, sizeof(line), f)) {
		bool unified = strncmp(line, "0::", 3) == 0;
		const char *at = unified ? line + 3 : strstr(line, ":name=systemd:");

		if (!strchr(line, '\n')) {
			ret[0] = '\0'; /* longer than any we know: its rest is no line of its own */
			break;
		}
		at = at ? strchr(at, '/') : NULL;
		if (at && !(unified && *ret && strcmp(at, "/\n") == 0)) {
			snprintf(ret, PROTO_PATH_MAX, "%.*s", (int)strcspn(at, "\n"), at);
		}
	}
	if (f) {
		fclose(f);
	}
	keep_printable(ret);
}
