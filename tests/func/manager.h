/*
 * manager.h: a service manager that a test plays: it hears what sbeetd tells it, keeps the
 * descriptors that it is given, and passes them to the next sbeetd.
 */
#pragma once

#include "harness.h"

/* A socket of this type at @name in the harness's directory, not listening yet. */
int manager_bind(struct harness *h, const char *name, int type);

/* Sets $NOTIFY_SOCKET; after harness_prepare(). */
void manager_begin(struct harness *h);
/* Closes all, before harness_clean(). */
void manager_end(struct harness *h);

/* Waits for a notification that holds this text. */
void manager_expect(const char *text);

/* Whether one is there. Then it is thrown away. */
bool manager_is_told(void);
/* Whether one comes within so many ms. It stays. */
bool manager_is_told_within(int ms);

/* As `systemctl stop`: SIGTERM, and all that comes until sbeetd has ended. What it gives is passed
 * to the next one by harness_start(). Returns the exit code. */
int manager_stop(struct harness *h);

/* Lets go of what the sbeetd that has started took. */
void manager_forget(struct harness *h);
