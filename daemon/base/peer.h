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
 * A descriptor of the very process that connected; asked of the socket where the kernel can,
 * because by number another process could be meant when that one has already died. @fd: -1: there
 * is only the number. Return: -1 where the kernel has none, -ESRCH if the process is dead, or
 * another negative errno (-EMFILE: there may be one later).
 */
int peer_open_process(int fd, pid_t pid);

/*
 * What tells a process from all others of this boot, which its number does not: numbers are used
 * again. @pidfd: of the process, or negative. Return: 0: not known.
 */
uint64_t peer_identity(int pidfd, pid_t pid);

bool peer_in_group(const struct peer *peer, gid_t gid);

/* Its program's path, "" if it can't be known (it is another user's, and we are not root). */
void peer_executable(const struct peer *peer, char ret[static PROTO_PATH_MAX]);

/* Its cgroup's path from the hierarchy's root, "" if it can't be known. */
void peer_cgroup(const struct peer *peer, char ret[static PROTO_PATH_MAX]);
