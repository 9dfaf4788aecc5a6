/*
 * model-run.h: the model of a GPU (model.h) with periodic tasks: how many of their jobs are late.
 *
 * Pure: no clock, no I/O, no allocation; the same input gives the same answer.
 */
#pragma once

#include "daemon/core/steer/model.h"

/* What became of a task's jobs. */
struct model_result {
	unsigned released; /* with their deadline inside the time looked at */
	unsigned missed;   /* of these */
	unsigned done;	   /* all jobs that ended */
	nsec_t response;   /* sum over the done */
	nsec_t longest;
	nsec_t tardiness; /* sum over the missed, each at most a deadline */
};

/* From a release to the first call. */
struct model_wake {
	nsec_t min, max;
};

/* The next of a row of random numbers below @below; 0 if that is 0. @state: any number at first. */
uint64_t model_random(uint64_t *state, uint64_t below);

/* When a run ends early. */
struct model_limit {
	unsigned events; /* counted down by what happens, for tasks may have jobs that are next to
			    nothing; 0: it ends */
	unsigned missed; /* so many jobs are late: what becomes of the others is not looked at */
};

/* Runs @n tasks (1 to MODEL_TASKS_MAX) on @gpu for @time. The first releases are spread by @seed.
 * @limit: NULL: none. Return: the time looked at. */
nsec_t model_run(const struct model_gpu *gpu, const struct model_wake *wake,
		 const struct model_task *tasks, const struct model_place *places, unsigned n,
		 nsec_t time, uint64_t seed, struct model_limit *limit, struct model_result *ret);

/* Adds what became of the jobs in another run to @sum. */
void model_result_add(struct model_result *sum, const struct model_result *one);

/* The part of the released jobs that was missed; 0: none was released. */
double model_result_late(const struct model_result *result);

/* Of @n tasks together. */
struct model_result model_result_sum(const struct model_result *results, unsigned n);

/* The level of @task among @n: the shortest deadline has the highest, the next one the next, as far
 * as there are levels; 0 without a deadline. */
unsigned model_level(const struct model_task *tasks, unsigned n, unsigned task);

/* What tasks cost that are late more often than under MPS alone, in late jobs: as much as if so
 * many jobs more of an average task were late. Else a task of few jobs would be given up for one of
 * many.
 * @part, @alone: of each of @n tasks' jobs so much is late, and would be under MPS alone; 0 to 1.
 * @jobs: of all tasks together. */
double model_worse(const double *part, const double *alone, unsigned n, double jobs);
