/*
 * notify.h: what the service manager wants to know and gives: readiness, watchdog, sockets.
 *
 * notify-systemd.c talks to systemd; notify-none.c stands in where the build has no libsystemd.
 */
#pragma once

#include <stdbool.h>

#include <sys/uio.h>

#include "proto/units.h"

/* A listening socket of @type (SOCK_SEQPACKET, of AF_UNIX alone, or SOCK_STREAM) that the service
 * manager passed under this FileDescriptorName=, CLOEXEC and non-blocking, owned by the caller.
 * Return: -ENOENT if there is none; -EINVAL: it is of another kind; or another negative errno: what
 * was passed can't be told. */
int notify_take_socket(const char *name, int type);

/* Whether there is a service manager that wants to be told anything. */
bool notify_is_heard(void);

/* The service manager's store of descriptors, which outlives us: whether there may be one. */
bool notify_can_store(void);

/* Leaves a copy of @fd there under @name. Return: 0 or negative errno. */
int notify_store(int fd, const char *name);

/* What was stored under @name by the process before us, owned by the caller, CLOEXEC and
 * non-blocking; it is in the store no more. Return: -ENOENT if there is nothing. */
int notify_take_stored(const char *name);

/* Empties the store of what is not taken. */
void notify_drop_stored(void);

/* Returns when the service manager has dealt with all that it was told, or after some seconds. */
void notify_barrier(void);

void notify_ready(const char *status);
void notify_status(const char *status);
void notify_stopping(void);

/* Around the reading of a new configuration. */
void notify_reloading(void);
void notify_reloaded(void);

/* A line with fields for the journal. Return: 0, or a negative errno: it did not get there. */
int notify_journal(const struct iovec *fields, int n);

/* How often WATCHDOG=1 is expected, half of the unit's WatchdogSec=; 0: never. */
nsec_t notify_watchdog_interval(void);
void notify_watchdog(void);

/* For --version. */
extern const char notify_feature[];
