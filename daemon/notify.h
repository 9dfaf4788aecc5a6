/*
 * notify.h: what the service manager wants to know and gives: readiness, watchdog, sockets.
 *
 * notify-systemd.c talks to systemd; notify-none.c stands in where the build has no libsystemd.
 */
#pragma once

#include "proto/units.h"

/* A listening SEQPACKET socket that the service manager passed under this FileDescriptorName=,
 * CLOEXEC and non-blocking, owned by the caller. Return: -ENOENT if there is none; -EINVAL: it is
 * of another kind. */
int notify_take_socket(const char *name);

void notify_ready(const char *status);
void notify_status(const char *status);
void notify_stopping(void);

/* Around the reading of a new configuration. */
void notify_reloading(void);
void notify_reloaded(void);

/* How often WATCHDOG=1 is expected, half of the unit's WatchdogSec=; 0: never. */
nsec_t notify_watchdog_interval(void);
void notify_watchdog(void);

/* For --version. */
extern const char notify_feature[];
