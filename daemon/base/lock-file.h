/*
 * lock-file.h: a file that one process holds: flock() on it, for its owner alone.
 *
 * The lock goes with the process that holds it, so what a dead one left behind keeps nobody out.
 * Files are never removed: two could hold "the" lock then. Whoever can open the file can lock it,
 * so it stands in a folder in which nobody else can create files, and has mode 0600.
 */
#pragma once

#include <sys/types.h>

/*
 * Creates the file @name in @directory (a descriptor, or AT_FDCWD with a path) where it is missing,
 * locks it, and writes our process id into it. Return: a descriptor, owned by the caller, which
 * holds the lock; -EBUSY: another process does, and @ret_pid is its id as the file says, 0: not
 * known; -EINVAL: it is no regular file; or another negative errno.
 */
int lock_file_take(int directory, const char *name, pid_t *ret_pid);
