/*
 * seen.c: see seen.h.
 */
#include "daemon/core/steer/seen.h"

#include <math.h>

/* So many releases have passed whose jobs come next, and the task is behind. */
#define WAITING_MIN 2

/* What a task does differs if another part of its jobs is late, by this and so many standard
 * deviations of chance, or if it makes so many times as many. */
#define MISSES_DIFFER  0.02
#define CHANCE_DIFFERS 3.0
#define RATE_DIFFERS   1.5

struct seen seen_since(const struct seen *seen, const struct seen *before) {
	return (struct seen){
		.jobs = seen->jobs - before->jobs,
		.missed = seen->missed - before->missed,
		.response = seen->response - before->response,
		.unreported = seen->unreported - before->unreported,
		.behind = seen->behind - before->behind,
		.waiting = seen->waiting,
	};
}

/* Releases that passed without a job are late jobs, and those that were made up for are not. */
static void take_behind(struct seen *seen) {
	if (seen->behind < -(int64_t)seen->missed) {
		seen->behind = -(int64_t)seen->missed;
	}
	seen->jobs += (uint64_t)seen->behind;
	seen->missed += (uint64_t)seen->behind;
}

struct seen seen_count(const struct seen *seen, const struct seen *before, unsigned n,
		       struct seen *ret) {
	struct seen all = {0};

	for (unsigned i = 0; i < n; i++) {
		ret[i] = seen_since(&seen[i], &before[i]);
		take_behind(&ret[i]);
		all.jobs += ret[i].jobs;
		all.missed += ret[i].missed;
		all.missed += (uint64_t)(seen_late(&ret[i]) * (double)ret[i].unreported);
	}
	return all;
}

double seen_jobs(const struct seen *seen) {
	return (double)(seen->jobs + seen->unreported);
}

double seen_late(const struct seen *seen) {
	return seen->jobs ? (double)seen->missed / (double)seen->jobs : 0;
}

bool seen_behind(const struct seen *seen, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		if (seen[i].waiting >= WAITING_MIN) {
			return true;
		}
	}
	return false;
}

/* Whether the parts of late jobs differ by more than chance. */
static bool misses_differ(const struct seen *a, const struct seen *b) {
	double n = (double)a->jobs, m = (double)b->jobs;
	double both = (double)(a->missed + b->missed) / (n + m);
	double chance = sqrt(both * (1 - both) * (1 / n + 1 / m));

	return fabs(seen_late(a) - seen_late(b)) > MISSES_DIFFER + CHANCE_DIFFERS * chance;
}

static bool rates_differ(const struct seen *a, nsec_t a_time, const struct seen *b, nsec_t b_time) {
	double x = seen_jobs(a) / (double)a_time;
	double y = seen_jobs(b) / (double)b_time;

	return (a->jobs >= SEEN_JOBS_MIN && x > y * RATE_DIFFERS) ||
	       (b->jobs >= SEEN_JOBS_MIN && y > x * RATE_DIFFERS);
}

bool seen_differs(const struct seen *a, nsec_t a_time, const struct seen *b, nsec_t b_time) {
	return rates_differ(a, a_time, b, b_time) ||
	       (a->jobs >= SEEN_JOBS_MIN && b->jobs >= SEEN_JOBS_MIN && misses_differ(a, b));
}
