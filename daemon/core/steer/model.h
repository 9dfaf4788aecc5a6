/*
 * model.h: what a GPU does with periodic tasks that share it without asking: a small simulation of
 * the arbiters that the hardware has (tests/gpu/RESULTS.md, "What the hardware does").
 *
 * A job is a wake-up of the host, a copy to the GPU, launches one after the other, a copy back.
 *  - SMs: the GPU is two regions. A kernel may use the SMs of the regions of its set. Of kernels of
 *    one level the one that came first takes every SM that comes free; the next one has the rest. A
 *    kernel of a higher level takes the SMs of lower ones when their blocks end, and does not begin
 *    before it has them.
 *  - A kernel on m SMs takes what it takes on m SMs alone: interference in caches and memory is not
 *    modelled.
 *  - Copies: one engine for each direction. Whole copies go first come, first served. Held ones go
 *    in pieces, the soonest deadline first.
 *
 * Pure: no clock, no I/O, no allocation; the same input gives the same answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"

/* Tasks that one model takes. */
#define MODEL_TASKS_MAX 32

#define MODEL_REGIONS 2

/* What is known of the jobs of one task. */
struct model_task {
	nsec_t period;		  /* between releases; 0: the next job begins when one ends */
	nsec_t deadline;	  /* after the release; 0: none */
	nsec_t copy_in, copy_out; /* alone; 0: none */
	unsigned launches;	  /* kernels in a job, at least 1 */
	nsec_t block;		  /* how long a block of its kernels runs */
	nsec_t gap;		  /* between two kernels of a job */
	const nsec_t *kernels;	  /* [m]: all kernels of a job, gaps included, alone on m SMs;
				     m from 1 to the GPU's SMs */
};

/* Where a task's work runs. */
struct model_place {
	bool regions[MODEL_REGIONS]; /* at least one */
	unsigned level;		     /* higher goes first */
	bool held;		     /* its copies */
};

struct model_gpu {
	unsigned sms[MODEL_REGIONS]; /* together the GPU's */
	nsec_t wake_min, wake_max;   /* from a release to the first call */
	nsec_t piece;		     /* of a held copy */
};

/* What became of a task's jobs. */
struct model_result {
	unsigned released; /* with their deadline inside the time looked at */
	unsigned missed;   /* of these */
	unsigned done;	   /* all jobs that ended */
	nsec_t response;   /* sum over the done */
	nsec_t longest;
	nsec_t tardiness; /* sum over the missed, each at most a deadline */
};

/* Runs @n tasks (1 to MODEL_TASKS_MAX) on @gpu for @time. The first releases are spread by @seed.
 */
void model_run(const struct model_gpu *gpu, const struct model_task *tasks,
	       const struct model_place *places, unsigned n, nsec_t time, uint64_t seed,
	       struct model_result *ret);

/* Adds what became of the jobs in another run to @sum. */
void model_result_add(struct model_result *sum, const struct model_result *one);
