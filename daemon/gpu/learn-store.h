/*
 * learn-store.h: keeps what is learnt (learn.h) in a file, so that it survives a restart.
 *
 * A thread writes the file some seconds after there is something new, and the end of the store
 * waits for the last time: writing waits for a disk, which the event loop must not. The file is
 * replaced as a whole (a new one under another name, synced, then renamed), so whoever reads it, or
 * starts after a power cut, sees the old or the new one.
 */
#pragma once

#include <stddef.h>

struct event_base;
struct learn;
struct learn_store;

/*
 * Reads @directory/learned-times, which may be missing; a file that makes no sense is left aside as
 * learned-times.bad, with a line about it in the log. Return: 0; -ENOMEM; or why @directory can't
 * be used, a negative errno.
 */
int learn_store_new(struct learn_store **ret, struct event_base *base, const char *directory);

/* Takes NULL. Writes what is new. */
struct learn_store *learn_store_free(struct learn_store *store);

/* Borrowed, lives as long as the store. */
struct learn *learn_store_get(struct learn_store *store);
