/*
 * late.h: tells those who watch that a job is late, when it becomes so: the moment its deadline
 * passes while it waits or runs, or it runs on beyond its predicted end (which the engine marks).
 *
 * A deadline that has passed here is no miss yet: the work may have been complete in time and its
 * report be on its way. What counts as a miss is decided at the job's end, by the time in its
 * report (report_job_done()). While nobody watches no timer is set.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/timer.h"
#include "proto/units.h"

struct job;
struct report;
struct watched;

struct late {
	const struct watched *watched; /* borrowed, outlives us */
	struct report *report;	       /* borrowed, outlives us */
	struct timer timer;
	nsec_t due;  /* when the timer is; 0: it is not set */
	nsec_t rest; /* no look before */
};

void late_init(struct late *late, const struct watched *watched, struct report *report);
void late_deinit(struct late *late);

/* After each turn of the loop: sets the timer for the jobs that have been reported since. */
void late_watch(struct late *late);

/* Looks at all jobs: tells of those that have become late, and sets the timer for the next one. A
 * job is told of once; without anybody who watches it counts as told. */
void late_look(struct late *late);

/* Whether the deadline of @job, which waits or runs, has passed. */
bool late_is_late(const struct job *job, nsec_t now);
