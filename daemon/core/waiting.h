/*
 * waiting.h: the jobs that wait, in the order in which they are served.
 *
 * They stand in order of arrival, but for best-effort jobs of several owners: they take turns, see
 * sched_arrive(). All are in one list; those that want the same GPU (or any) are in one of their
 * own as well, in the same order, so that a walk passes over what no GPU could start now, however
 * many jobs that are. The lists go through the jobs themselves. The jobs are sched.c's; this knows
 * neither policies nor what runs.
 */
#pragma once

#include "daemon/core/owners.h"
#include "daemon/core/state.h"

struct waiting {
	sched_job_id first, last;
	struct {
		sched_job_id first, last;
		size_t n;
	} of_gpu[SCHED_GPUS_MAX + 1]; /* by the GPU that is wanted; the last: any */
	sched_job_id last_realtime;   /* all behind it are best effort */
	uint64_t turn;		      /* of the best-effort job that was granted last */
	struct owners owners;	      /* of best-effort jobs */
	size_t n_allocated;	      /* that wait and are of an allocation: see allocated.h */
};

/* @w: zeroed. */
void waiting_init(struct waiting *w);

/* jobs[@id] waits from now on, or no more. What it wants and its class stay the same meanwhile. */
void waiting_add(struct waiting *w, struct sched_job *jobs, sched_job_id id);
void waiting_remove(struct waiting *w, struct sched_job *jobs, sched_job_id id);

/* A job that waited has been granted. */
void waiting_granted(struct waiting *w, const struct sched_job *job);

/* Whether one waits that this GPU could serve; @gpu -1: whether any waits. */
bool waiting_any(const struct waiting *w, int gpu);

/* A walk: of each list the next job that was not visited. */
struct waiting_walk {
	const struct sched_job *jobs;
	bool policy; /* passes over jobs of allocations; may be set after waiting_first() */
	unsigned n;
	sched_job_id heads[SCHED_GPUS_MAX + 1];
};

/* Over those that want one of @gpus, or any. Return: the first; SCHED_JOB_NONE: there is none. */
sched_job_id waiting_first(const struct waiting *w, const struct sched_job *jobs,
			   const bool gpus[static SCHED_GPUS_MAX], struct waiting_walk *ret);

/* The one after that which was returned last, which may have been removed in between. */
sched_job_id waiting_next(struct waiting_walk *walk);
