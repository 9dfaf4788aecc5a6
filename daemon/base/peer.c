/*
 * peer.c: see peer.h.
 */
#include "daemon/base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cgroup.h"
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
