/*
 * peer.c: see peer.h.
 */
#include "daemon/base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cgroup.h"
#include "daemon/base/identity.h"
#include "daemon/base/util.h"
#include "proto/validate.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
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

/* A file of /proc, as a text. Return: 0 or negative errno. */
static int read_proc(const char *process, const char *name, char *text, size_t size) {
	_cleanup_close_ int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n < 0) {
		return -errno;
	}
	text[n] = '\0';
	return 0;
}

/* @set: "CapEff", the capabilities that it has, or "CapBnd", those that it could have. */
static bool holds_sys_admin(const char *process, const char *set) {
	char text[4096], key[16];
	const char *line;

	snprintf(key, sizeof(key), "\n%s:", set);
	line = read_proc(process, "status", text, sizeof(text)) == 0 ? strstr(text, key) : NULL;
	return line && strtoull(line + strlen(key), NULL, 16) >> CAP_SYS_ADMIN & 1;
}

static bool is_in_our_user_namespace(const char *process) {
	char ours[1024], theirs[1024];

	return read_proc("self", "uid_map", ours, sizeof(ours)) == 0 &&
	       read_proc(process, "uid_map", theirs, sizeof(theirs)) == 0 &&
	       strcmp(ours, theirs) == 0;
}

bool peer_has_power(int fd, const struct ucred *cred) {
	_cleanup_close_ int pidfd = identity_open_process(fd, cred->pid);
	struct pollfd process = {.fd = pidfd, .events = POLLIN};
	char text[64], name[16];
	bool has;

	if (read_proc("1", "status", text, sizeof(text)) == 0 && !holds_sys_admin("1", "CapBnd")) {
		return true;
	}
	snprintf(name, sizeof(name), "%d", cred->pid);
	has = cred->pid > 0 && holds_sys_admin(name, "CapEff") && is_in_our_user_namespace(name);
	/* What was read is of that process only if it has not ended: its id is not another one's.
	 */
	return has && pidfd >= 0 && poll(&process, 1, 0) == 0;
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
	char text[CGROUP_TEXT_MAX];

	cgroup_read(peer->cred.pid, text, sizeof(text));
	cgroup_unit(text, ret, PROTO_PATH_MAX);
	keep_printable(ret);
}
