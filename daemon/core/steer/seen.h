/*
 * seen.h: what the jobs of a task did for a while, as it was measured.
 *
 * A release that passes without a job is a late job, of the time in which it passed: its job, if it
 * still comes, is late whatever holds by then.
 *
 * Jobs of which no account came are a hole in what is measured: they count as late as often as the
 * task's others.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

/* Fewer jobs say nothing. */
#define SEEN_JOBS_MIN 16

struct seen {
	uint64_t jobs, missed;
	nsec_t response;     /* sum over the jobs */
	uint64_t unreported; /* jobs more, of which nothing is known */
	int64_t behind;	  /* releases more that passed without a job; < 0: jobs made up for some */
	uint64_t waiting; /* releases that have passed and whose jobs come next; now */
};

/* What @seen has beyond @before, which was seen earlier of the same task. */
struct seen seen_since(const struct seen *seen, const struct seen *before);

/* The same of each of @n tasks, in @ret, where releases that passed without a job are late jobs.
 * Return: of all together, the jobs that are known, and how many were late, with a part of those of
 * which nothing is known. */
struct seen seen_count(const struct seen *seen, const struct seen *before, unsigned n,
		       struct seen *ret);

/* All jobs, with those of which nothing is known. */
double seen_jobs(const struct seen *seen);

/* The part of the jobs that was late, 0 to 1; 0: there were none. */
double seen_late(const struct seen *seen);

/* Whether any of @n tasks has more than one job to make up for. */
bool seen_behind(const struct seen *seen, unsigned n);

/* Whether a task that did @a in @a_time and @b in @b_time did something else the second time: by
 * more than chance another part of its jobs was late, or it made another number of them. */
bool seen_differs(const struct seen *a, nsec_t a_time, const struct seen *b, nsec_t b_time);
