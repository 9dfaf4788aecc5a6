/*
 * peer.h: who is at the other end of a socket: the one place where credentials are read.
 *
 * All of it is the kernel's word, as of when the peer connected; nothing is asked of the peer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/limits.h"

#define PEER_GROUPS_MAX 256

struct peer {
	struct ucred cred;
	gid_t groups[PEER_GROUPS_MAX]; /* beside cred.gid; those beyond the room don't count */
	size_t n_groups;
};

/* Return: 0 or negative errno. */
int peer_credentials(int fd, struct ucred *ret);

/* The same, and its groups. Return: 0 or negative errno. */
int peer_read(int fd, struct peer *ret);

/*
 * Whether the peer at the other end of @fd has root's power: its process lives, is in our user
 * namespace and holds CAP_SYS_ADMIN, unless process 1 could not have it either. Root of a container
 * has the uid alone. Reads /proc.
 */
bool peer_has_power(int fd, const struct ucred *cred);

bool peer_in_group(const struct peer *peer, gid_t gid);

/* Its program's path, "" if it can't be known (it is another user's, and we are not root). */
void peer_executable(const struct peer *peer, char ret[static PROTO_PATH_MAX]);

/* Its cgroup's path from the hierarchy's root, "" if it can't be known. */
void peer_cgroup(const struct peer *peer, char ret[static PROTO_PATH_MAX]);
