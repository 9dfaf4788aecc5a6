/*
 * mps-find.h: where a control daemon of MPS may be, and whether it may be trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/mps/mps-ask.h"

struct mps_found {
	struct mps_directories directories;
	uid_t owner;
	int pidfd;     /* the caller's; of the daemon, if its pid file can be believed, else -1 */
	bool one_user; /* at a time; false: not known either */
	uint64_t mark; /* of its control socket: one that is made anew has another */
};

/* Where the unit sbeet-mps.service keeps it. */
#define MPS_UNIT_DIRECTORY "/run/sbeet-mps"

/* Directories that mps_find() looks in. */
#define MPS_PLACES_MAX 3

/* Those of @own and of $CUDA_MPS_PIPE_DIRECTORY, or if that is not set of @own, MPS_UNIT_DIRECTORY
 * and /tmp/nvidia-mps. A name that is too long is left out. Return: their number. */
size_t mps_places(struct mps_directories ret[static MPS_PLACES_MAX],
		  const struct mps_directories *own);

/*
 * Looks in mps_places(). The `control` of a daemon must be a socket or FIFO of root or of our own
 * user, in a directory of one of them that no other user can write; a process must listen there.
 * Return: 0; -ENOENT: there is none, and @why is empty, or says what a dead one has left;
 * -EPERM: one is there and can't be trusted: @why says so.
 */
int mps_find(struct mps_found *ret, const struct mps_directories *own, char *why, size_t why_size);

/* Its control socket or FIFO is there, and a process listens, as far as that can be seen. The
 * control daemon notices nothing of this. */
bool mps_stands(const struct mps_directories *directories);

/* The process that the pid file in @pipe names, if that is a control daemon. Return: a pidfd, the
 * caller's; -1: there is none, or it is not known. @ret_one_user: as in struct mps_found. */
int mps_find_process(const char *pipe, bool *ret_one_user);
