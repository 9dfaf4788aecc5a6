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
	unsigned min_sms, max_sms;	  /* bounds of what a job gets; 0: none */

	nsec_t first_release; /* of the grid first_release + k * period */
	bool grid_known;
	bool grid_fixed;   /* declared by an offset: never moved */
	nsec_t idle_since; /* its last job ended then; 0: one is there, or none ever was */
	unsigned n_behind; /* jobs in a row that came well after their points, from an idle program
			    */
	nsec_t least_behind; /* the least of that */
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
 *
 * Without an offset the first job's opening starts the grid, which is no more than a guess:
 * programs warm up before they begin to be periodic. So it is started anew
 *
 *  - by a job that opens in the last eighth before a point: the one before was late;
 *  - by a job of a program that had no job for two periods: it begins again;
 *  - by the last of TASK_BEHIND_MAX jobs in a row that opened more than an eighth behind their
 * points though the program had nothing to do when those came. It is moved by the least of them.
 */
#define TASK_BEHIND_MAX 3
nsec_t task_release(struct task *task, nsec_t opened);

/* The program has no job any more since @now. */
void task_idle(struct task *task, nsec_t now);

/* Absolute, or 0 if the task has no deadline. */
nsec_t task_deadline(const struct task *task, nsec_t release);
