/*
 * admission.h: what a program that connects is taken for: its own words, the administrator's file
 * over them, and what its user may.
 */
#pragma once

#include "daemon/base/gate.h"
#include "daemon/base/peer.h"
#include "daemon/config.h"
#include "daemon/task.h"

/* What the user's rights did not allow. */
#define ADMISSION_REALTIME (1u << 0) /* it is best effort now */
#define ADMISSION_PRIORITY (1u << 1) /* its priority is the highest allowed */

/* @executable: the program's path as it says, for where that can't be seen; @task: as it describes
 * it; @now: the session's start. Return: mask of the above. */
unsigned admission_task(const struct config *config, const struct peer *peer,
			const char *executable, struct task *task, nsec_t now);

/* Sets the limits of @user to those of this peer. */
void admission_user(const struct config *config, const struct peer *peer, struct quota_user *user);

/* Cuts @task down to what the user may. Return: mask of the above. */
unsigned admission_limit(const struct config *config, const struct peer *peer, struct task *task);

/*
 * Who is at the other end of @fd, a connection that came at @now. @ret_wait: how long nothing is
 * to be read of it; gate_waited() has to be told at its end unless that is 0. Return: 0;
 * ADMISSION_E_FULL if too many of that process wait already; -errno.
 */
#define ADMISSION_E_FULL 1
int admission_receive(struct gate *gate, int fd, nsec_t now, struct peer *ret_peer,
		      nsec_t *ret_wait);
