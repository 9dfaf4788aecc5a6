/*
 * timetable.h: a schedule of one hyperperiod that is followed by the clock, as 2.4.2 (3) and 3.5.6
 * have it: each job starts at its time, on its GPU and SMs, and no sooner, however early the job
 * before it is over. Policy `table` follows it. Pure.
 *
 * Times are those of the caller's clock, modulo the hyperperiod: the schedule begins anew at each
 * multiple of it.
 */
#pragma once

#include "daemon/core/state.h"

#define TIMETABLE_ENTRIES_MAX 4096

struct timetable_entry {
	unsigned task; /* see struct sched_task: table_task */
	unsigned gpu;
	struct smset sms;
	nsec_t start;  /* below the hyperperiod */
	nsec_t length; /* at most the hyperperiod: the SMs are its own for so long */

	/* set by timetable_check() */
	nsec_t latest; /* how long after its start it may still begin: see there */

	uint64_t used; /* which repetition had a job last, from 1; 0: none yet */
};

struct timetable {
	nsec_t hyperperiod;
	size_t n;
	struct timetable_entry *list;	     /* owned */
	struct smset others[SCHED_GPUS_MAX]; /* SMs within the limit that it leaves alone */
};

/* For callers that have made the list with malloc(). Takes NULL. */
struct timetable *timetable_free(struct timetable *t);

/*
 * Whether these GPUs can follow it: they are there, sets are within their limits and made of whole
 * groups, and no two jobs have an SM at the same time. Sets what is to be set: a job may begin late
 * by as much as its SMs are idle after it, but by an eighth of its length at least, as neither
 * programs nor timers are exact. Return: 0; -EINVAL with one line in @why.
 */
int timetable_check(struct timetable *t, const struct sched *s, char *why, size_t size);

/* The repetition, from 1, in which @e may begin at @now: from its start to its latest; 0: none. */
uint64_t timetable_due(const struct timetable *t, const struct timetable_entry *e, nsec_t now);

/* When the next of the entries starts, after @now. */
nsec_t timetable_next(const struct timetable *t, nsec_t now);
