/*
 * runtime.h: the runtime directory: its lock, which one daemon holds, and the two sockets.
 */
#pragma once

#include <stddef.h>

struct runtime;

/*
 * Chooses the directory ($SBEET_RUNTIME_DIR, else @directory, else systemd's $RUNTIME_DIRECTORY,
 * else /run/sbeet for root, else $XDG_RUNTIME_DIR/sbeet), creates it where it is missing, and takes
 * its lock.
 * @directory: from the command line, or NULL.
 * Return: 0; -EBUSY: another daemon holds it; or another negative errno. @why: one line about it.
 */
int runtime_new(struct runtime **ret, const char *directory, char *why, size_t why_size);

/* Takes NULL. Removes the sockets that runtime_listen() made and lets go of the lock. */
struct runtime *runtime_free(struct runtime *runtime);

const char *runtime_directory(const struct runtime *runtime);

/* Takes the lock again if its file is not there any more. Return: 0, or as runtime_new(). */
int runtime_lock_again(struct runtime *runtime, char *why, size_t why_size);

/*
 * Listens at NAME.sock in the directory, where a dead daemon's socket is replaced.
 * Return: a CLOEXEC, non-blocking descriptor, or negative errno and @why.
 */
int runtime_listen(struct runtime *runtime, const char *name, char *why, size_t why_size);
