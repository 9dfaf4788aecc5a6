/*
 * mps-find.h: where a control daemon of MPS may be, and whether it may be trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/mps/mps-ask.h"

struct mps_found {
	struct mps_directories directories;
	uid_t owner;
	int pidfd;     /* the caller's; of the daemon, if its pid file can be believed, else -1 */
	bool one_user; /* at a time; false: not known either */
};

/* Where the unit sbeet-mps.service keeps it. */
#define MPS_UNIT_DIRECTORY "/run/sbeet-mps"

/*
 * Looks in $CUDA_MPS_PIPE_DIRECTORY, or if that is not set in @own, MPS_UNIT_DIRECTORY/pipe and
 * /tmp/nvidia-mps. Its `control` must be a socket or FIFO of root or of our own user, in a
 * directory of one of them that nobody else can write.
 * Return: 0; -ENOENT: there is none; -EPERM: one is there and can't be trusted: @why says so.
 */
int mps_find(struct mps_found *ret, const struct mps_directories *own, char *why, size_t why_size);

/* Its control socket or FIFO is there. */
bool mps_stands(const struct mps_directories *directories);
