/*
 * gpu-lock.h: one sbeetd a GPU, wherever the others have their sockets: a lock by the GPU's UUID.
 *
 * The lock is flock()'s: it goes with the process that holds it, so what a dead one left behind
 * keeps nobody out. Files are never removed: two could hold "the" lock then.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

#define GPU_LOCK_DIRECTORY "/run/lock"

/*
 * @directory: where locks are kept. Return: a descriptor that holds the lock; -EBUSY: another one
 * has it, @why says who; or another negative errno with @why: there can be no lock.
 */
int gpu_lock(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES], char *why,
	     size_t why_size);
