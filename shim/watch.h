/*
 * watch.h: how often the tracker looks at the open job of one lane, and when it asks the driver
 * whether that is complete. Each look costs a wake-up, and takes cache lines away from those who
 * launch. So a program that waits for its jobs, which ends them, is looked at seldom, until the
 * tracker has to end one again: that one is noticed late.
 *
 * Pure: no clock, no driver. By the tracker alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

/* The longest that a job is left alone which holds SMs, or is recorded: rings fill in 2.7 ms at the
 * fastest. */
#define WATCH_MAX_NS (1 * NSEC_PER_MSEC)

/* And any other one once the program has ended so many in a row. */
#define WATCH_SELDOM_NS (4 * NSEC_PER_MSEC)
#define WATCH_OWN_JOBS	16

/* Zeroed: no job was seen yet. */
struct watch {
	uint64_t job, ops; /* as seen last; job 0: none, or the tracker has ended it */
	nsec_t active;	   /* when @ops was seen to change */
	nsec_t pause;	   /* between the last look and the one before; 0: the driver was asked */
	unsigned own;	   /* jobs in a row that the program has ended, WATCH_OWN_JOBS at most */
};

/* What the tracker sees of the lane. */
struct watch_view {
	nsec_t now;
	nsec_t linger; /* so long a job must have been quiet before the driver is asked */
	uint64_t job;
	uint64_t ops;  /* that the driver was handed */
	bool inside;   /* a thread is just handing it one */
	bool held;     /* by marks: it does not end yet */
	bool draining; /* it may be asked for at once */
	bool prompt;   /* it holds SMs, or is recorded */
	bool waiting;  /* a thread of the program waits for the driver */
};

/* Return: 0 if the driver is to be asked now, then watch_again() says when to do so once more; else
 * when to look again. */
nsec_t watch_look(struct watch *w, const struct watch_view *v);

/* The job is not complete. Return: when to look again. */
nsec_t watch_again(const struct watch *w, const struct watch_view *v);

/* The tracker has ended the job that it looked at last. */
void watch_ended(struct watch *w);

/* Whether the program can be expected to end the next job. */
bool watch_is_seldom(const struct watch *w);
