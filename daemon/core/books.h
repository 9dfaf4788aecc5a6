/*
 * books.h: the state that sched.c and policy.h's functions share. Nobody else looks inside.
 */
#pragma once

#include "daemon/core/state.h"
#include "daemon/core/task.h"
#include "daemon/core/waiting.h"

/* Jobs found waiting that one decision explains at most: explanations cost time too, and thousands
 * of them would push out all others. */
#define EXPLAIN_WAITING_MAX 32

struct sched {
	const struct sched_policy *policy;
	struct sched_params params; /* with the policy's own defaults */
	struct sched_params given;
	struct task_table tasks; /* owned */
	struct sched_gpu gpus[SCHED_GPUS_MAX];
	size_t n_gpus;

	struct sched_job *jobs; /* owned, max_jobs of them */
	size_t max_jobs;
	size_t n_touched; /* entries from here on were never used: their memory is untouched */

	sched_job_id unused; /* list of entries given back, by next */
	struct waiting waiting;
	struct smset allocated[SCHED_GPUS_MAX][SCHED_ALLOCATIONS_MAX + 1]; /* empty: any SM */
	uint64_t next_order;
	struct timetable *timetable; /* borrowed; NULL: none */

	struct explain *explain; /* owned; NULL: nobody asked */
	uint64_t n_decisions;	 /* counted while there is one */
	unsigned n_explained;	 /* waiting jobs, in this decision */
	nsec_t look_at;		 /* the last decision is to be reconsidered then; 0: never */
};

/* @free: the SMs that no running job holds, from now on. */
void books_set_free(struct sched_gpu *gpu, struct smset free);

/* From waiting to running: the books only. */
void books_place(struct sched *s, sched_job_id id, size_t gpu, unsigned slot,
		 const struct smset *sms, nsec_t now);

/* Explains a job that has just been granted; only with s->explain. In explain-job.c. */
void books_explain_grant(struct sched *s, sched_job_id id, nsec_t now);
