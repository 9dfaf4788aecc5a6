/*
 * task.h: what a session's program is: its name, urgency and timing; and from that the release and
 * the deadline of each of its jobs. Pure.
 */
#pragma once

#include <stdbool.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

/* The job that ended last. */
struct task_last {
	nsec_t release, ended; /* 0: there was none */
	size_t gpu;
	uint32_t tid;
};

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

	nsec_t first_release; /* of the declared grid first_release + k * period; 0: no grid */
	struct task_last last;
	bool paced; /* see task_release() */
};

/*
 * @spec: validated, or NULL; @program: the executable's name, which names a task that has none;
 * @now: the session's start, from which an offset counts.
 */
void task_init(struct task *task, const Sbeet__TaskSpec *spec, const char *program, nsec_t now);

/* Begins the releases anew; for a task whose period or offset has changed. */
void task_start(struct task *task, nsec_t now);

/* What is known of a job when it is requested. */
struct task_request {
	nsec_t at;
	size_t gpu;
	uint32_t tid; /* 0: the whole process */
	bool alone;   /* the program has no other job */
};

/*
 * The release of a job: the time of its request, unless an earlier one is certain. It is certain
 *
 *  - if the task has a period and an offset: the last point of the grid start + offset +
 *    k * period;
 *  - if the task has a period and the program's previous job held the request up: that job was
 *    still there a period after its own release, the program asked again at once when it ended,
 *    and it paces itself: before the first job that ran on, it had paused. Then the release is the
 *    last multiple of the period after the previous release at which that job was still there.
 *
 * A program that sleeps for a fixed time between its jobs asks after the same pause however long
 * the last job took, so it is never held up in this sense, nor is one that never pauses.
 *
 * "At once" and "a pause" are parts of the period. Between the two nothing is concluded.
 */
#define TASK_AT_ONCE 32 /* at most period / 32 after the end of the job before */
#define TASK_PAUSE   8	/* at least period / 8 after it */
nsec_t task_release(struct task *task, const struct task_request *request);

/* @job is over; its `ended` is 0 if it was cancelled or lost. */
void task_ended(struct task *task, const struct task_last *job);

/* Absolute, or 0 if the task has no deadline. */
nsec_t task_deadline(const struct task *task, nsec_t release);
