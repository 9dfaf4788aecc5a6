/*
 * gpu-lock.h: one sbeetd a GPU, wherever the others have their sockets: a lock by the GPU's UUID.
 *
 * Locks of a user's daemons are in one folder, which is that user's alone (mode 0700): nobody else
 * can create or lock a file there. So daemons of different users do not notice each other.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/*
 * The folder for locks: $SBEET_LOCK_DIR, else "locks" in systemd's $RUNTIME_DIRECTORY, in
 * /run/sbeet for root, or in $XDG_RUNTIME_DIR/sbeet. Return: 0; or, with an empty @directory,
 * -ENAMETOOLONG, or -ENOENT: none is known.
 */
int gpu_lock_directory(char *directory, size_t size);

/*
 * Creates @directory, and the one it is in, where they are missing. Return: a descriptor, owned by
 * the caller, that holds the lock; -EBUSY: another daemon has it, @why says who; or another
 * negative errno with @why: there can be no lock, also because others can reach @directory.
 */
int gpu_lock(const char *directory, const uint8_t uuid[static PROTO_UUID_BYTES], char *why,
	     size_t why_size);
