/*
 * measure.h: runs a program under the shim, with so many SMs at most, until enough of its jobs have
 * been seen; and reads the GPUs' energy counters before and after.
 *
 * What is measured is what sbeetd tells of jobs (stream.h), so it is what the scheduler will see of
 * them too. Knows nothing of profiles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/live/event.h"

struct measure;

/* What to run, and when it is enough. Strings are borrowed. */
struct measure_plan {
	const char *task;    /* its name; no other program of this name may run */
	char *const *argv;   /* the program, NULL at the end */
	const char *preload; /* the value of LD_PRELOAD */
	nsec_t warm_up;	     /* of each run, from its first job on: does not count */
	size_t n_jobs;	     /* so many are wanted of each series, at least */
	nsec_t least;	     /* a series that is metered takes so long, warm-ups apart, at least */
	nsec_t limit;	     /* for one run of the program */
	nsec_t drain;	     /* for what it runs to end, when it is to end */

	/* Called with what the user should know although nothing failed. */
	void (*warn)(void *userdata, const char *text);
	/* Called now and then with how much of the series is done, from 0 to 1. */
	void (*progress)(void *userdata, double done);
	void *userdata;
};

/* Times of one job. */
struct measure_job {
	unsigned gpu, n_sms;
	nsec_t copy_in;	 /* from the grant to the first launch */
	nsec_t exec;	 /* from there to the end of its last kernel */
	nsec_t copy_out; /* from there to the end; 0: not known, and part of exec */
};

/* Of an event of a job that is done. */
struct measure_job measure_job_of(const struct event *e);

/* What was seen of a series. */
struct measure_series {
	struct measure_job *jobs; /* owned. Of each run without those granted in its warm-up; if it
				   * has none, without its first job, unless it was the only one:
				   * it pays for what is done once */
	size_t n_jobs;
	bool alone; /* no job of another task was granted meanwhile */

	/* By the counter of each GPU, between two readings around the series, or around what each
	 * run did after its warm-up; 0: not known. */
	size_t n_parts;	   /* pairs of readings */
	nsec_t time, busy; /* in all, and with a job of ours running */
	uint64_t energy_mj[EVENT_GPUS_MAX];
	bool overlapping; /* two jobs of ours at once: no power can be told */
};

/* Connects to sbeetd. Return: 0, or an enum ctl_exit with one line in @error, as all below. */
int measure_new(struct measure **ret, const struct measure_plan *plan, char *error, size_t size);
struct measure *measure_free(struct measure *m); /* takes NULL */

/*
 * Runs the program again and again, with SBEET_MAX_SMS=@n_sms. Its standard output is dropped. What
 * fails: a program that can't be run, fails, is not over within the plan's limit without having
 * shown enough jobs, or has no job with a kernel, or none after its warm-up; CTL_EXIT_TIMEOUT for
 * the limit. When there are enough jobs it starts nothing more, and is told to end (subject.h).
 */
int measure_run(struct measure *m, unsigned n_sms, struct measure_series *ret, char *error,
		size_t size);
void measure_series_deinit(struct measure_series *s);

/* Reads the counters twice, @time apart or more, while nothing is asked to run: only `alone`,
 * `n_parts`, `time` and `energy_mj` of @ret mean something. */
int measure_idle(struct measure *m, nsec_t time, struct measure_series *ret, char *error,
		 size_t size);
