/*
 * guard.h: notices that a socket's name was removed, and puts it back.
 *
 * Who is connected does not depend on the name; who comes next does. A socket that the daemon made
 * is made again, with the lock of its directory; of one that a service manager passed, and of a
 * directory that is gone, a line in the log says what to do. Costs nothing while nothing happens.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

struct guard;
struct runtime;

/* @fd listens in place of the socket @name from now on; it is the callee's. */
typedef void (*guard_replaced_fn)(void *userdata, const char *name, int fd);

/* @runtime outlives it. Return: 0 or negative errno. */
int guard_new(struct guard **ret, struct event_base *base, struct runtime *runtime,
	      guard_replaced_fn replaced, void *userdata);

/* Takes NULL. */
struct guard *guard_free(struct guard *guard);

/* The listening socket @fd ("shim", "control"), @ours: made by the daemon. Failing is no matter:
 * then nobody looks after this one. */
void guard_add(struct guard *guard, const char *name, int fd, bool ours);
