/*
 * task.h: what a session's program is: its name, urgency and timing; and from that the release and
 * the deadline of each of its jobs. Pure.
 */
#pragma once

#include <stdbool.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

struct task {
	char name[PROTO_NAME_MAX + 1];
	Sbeet__TaskClass task_class;
	nsec_t period;	 /* 0: aperiodic */
	nsec_t deadline; /* relative; 0: none */
	nsec_t offset;
	int priority;
	char profile[PROTO_NAME_MAX + 1]; /* to plan with; "": that of its name */
	int gpu;			  /* the only one that it may use; -1: any */
	unsigned max_sms;		  /* the most that a job gets; 0: all */

	nsec_t first_release; /* of the grid first_release + k * period */
	bool grid_known;
	bool grid_fixed; /* declared by an offset: never moved */
};

/*
 * @spec: validated, or NULL; @program: the executable's name, which names a task that has none;
 * @now: the session's start, from which an offset counts.
 */
void task_init(struct task *task, const Sbeet__TaskSpec *spec, const char *program, nsec_t now);

/* Begins the grid of releases anew, as the offset says; for a task that has changed. */
void task_start(struct task *task, nsec_t now);

/*
 * The release of a job that was opened at @opened.
 *
 * Aperiodic: @opened. Periodic: the last point of the grid start + offset + k * period before it.
 * Without an offset the first job's opening starts the grid; a later job that opens in the last
 * eighth before a point starts it anew, because the first one is the one most often late.
 */
nsec_t task_release(struct task *task, nsec_t opened);

/* Absolute, or 0 if the task has no deadline. */
nsec_t task_deadline(const struct task *task, nsec_t release);
