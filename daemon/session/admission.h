/*
 * admission.h: what a program that connects is taken for: its own words, the administrator's file
 * over them, and what its user may.
 */
#pragma once

#include "daemon/base/peer.h"
#include "daemon/config/config.h"
#include "proto/task-spec.h"

struct event;
struct quota_user;
struct sessions;

/* What the user's rights did not allow. */
#define ADMISSION_REALTIME (1u << 0) /* it is best effort now */
#define ADMISSION_PRIORITY (1u << 1) /* its priority is the highest allowed */

/* @executable: the program's path as it says, for where that can't be seen; @task: as it describes
 * it. Return: mask of the above. */
unsigned admission_task(const struct config *config, const struct peer *peer,
			const char *executable, struct task_spec *task);

/* Cuts @task down to what the user may. Return: mask of the above. */
unsigned admission_limit(const struct config *config, const struct peer *peer,
			 struct task_spec *task);

/* The highest priority that @peer's process may have for what it is on the CPU, from 0. */
int admission_priority_max(const struct config *config, const struct peer *peer);

/* A connection that has come. */
struct admission {
	struct peer peer;
	struct quota_user *user; /* reference, with the session charged */
	nsec_t wait;		 /* nothing is to be read for so long */
	bool at_gate;		 /* gate_waited() has to be told when that is over */
	char why[128];		 /* refused: for its program; "": it is not worth an answer */
};

/* Too many connections or packets of its user, or its process connects faster than it is heard. */
#define ADMISSION_E_REFUSED 1

enum admission_kind {
	ADMISSION_PROGRAM,  /* a new connection of libsbeet.so: its packets count for the rate */
	ADMISSION_CONTROL,  /* a new connection of sbeetctl */
	ADMISSION_REPLAYED, /* handed over by the daemon before this one: it waits for nothing */
};

/* Finds out who has connected to @fd and charges its user. Return: 0; ADMISSION_E_REFUSED (logged);
 * -errno. */
int admission_enter(struct admission *ret, struct sessions *all, int fd, enum admission_kind kind);

/* The same for a session without a connection: @ret->peer is set. */
int admission_enter_absent(struct admission *ret, struct sessions *all);

/* What comes is heard at once, or after the time that it has to wait: then @resumed is called, and
 * adds @readable, for which the kernel alone needs memory then. Both are assigned. Return: 0, or
 * -ENOMEM, with neither added. */
int admission_listen(const struct admission *a, struct event *readable, struct event *resumed);

/* The session is over, or was never made. */
void admission_release(struct quota_user *user);
