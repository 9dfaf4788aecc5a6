/*
 * drawn-tasks.h: small random sets of tasks with CPU and GPU segments. Times are a few nanoseconds,
 * so that what happens at nearly the same moment in one schedule of many is met often.
 */
#pragma once

#include "daemon/core/analysis/safe.h"

#define DRAWN_TASKS_MAX 7
#define DRAWN_CPUS	3
#define DRAWN_SEGMENTS	4

struct drawn {
	struct rta_segment segments[DRAWN_TASKS_MAX][DRAWN_SEGMENTS];
	struct rta_task tasks[DRAWN_TASKS_MAX];
	struct rta_set set;
};

/* @mode: RTA_MODE_OWN: busy and suspending tasks mixed. The last task may be of best effort. @d
 * must not move. */
void drawn_tasks(struct drawn *d, enum rta_mode mode, uint64_t *random);

void drawn_print(const struct drawn *d);
