/*
 * ready.h: the jobs that a decision is about: those that wait and have a profile, most urgent
 * first, and those whose release is expected. Used by policies only.
 *
 * The deadline of a ready job is what is to be planned with. With params.skip_hopeless off, as
 * live, no job is given up, and one that can't be in time any more has to be over so soon that the
 * next one of its task can be: by its deadline and a period (or more of them), less the shortest
 * time that a job takes. For a program asks for that next one only when this one is done, so a late
 * job that is left waiting makes all those after it late.
 *
 * Both are bounded, so that a decision costs no more with thousands of jobs waiting than with a
 * few; the rest of the queue is looked at when these have gone.
 */
#pragma once

#include "daemon/core/policy.h"
#include "daemon/core/timeline.h"

/* Waiting jobs considered in one decision. */
#define READY_MAX 16

struct ready_job {
	sched_job_id id;
	bool hopeless; /* no GPU can finish it by its own deadline */
	/* That, and params.skip_hopeless; or its deadline has passed, and params.late is to drop such
	 * jobs: it comes last. */
	bool late;
	struct timeline_job job;
};

struct ready {
	size_t n;
	size_t n_timely; /* the first ones can still be in time on an idle GPU; the others come last
			  */
	struct ready_job list[READY_MAX];
};

/* Waiting jobs with a profile that a GPU with room could take now, in the order of params.queue;
 * the first READY_MAX of them. With params.skip_hopeless those that no GPU can finish in time come
 * last, with params.late those whose deadline has passed. One walk over all waiting jobs. */
void ready_collect(struct ready *ret, struct sched *s, nsec_t now);

/* The ready job could start, and is left waiting: decide again when that may have become better. */
void ready_hold_back(struct sched *s, sched_job_id id, nsec_t now);

/* The releases expected before @until, soonest first, at most @max of them; how many. */
size_t ready_coming(struct sched *s, nsec_t now, nsec_t until, struct timeline_job *ret,
		    size_t max);
