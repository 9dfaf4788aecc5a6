/*
 * owners.h: finds the last waiting best-effort job of an owner, however many wait.
 *
 * A hash table of lists, newest first, through the jobs themselves (own_next, own_prev). The jobs
 * are sched.c's; this knows nothing else of them.
 */
#pragma once

#include "daemon/core/state.h"

/* Users have at most some thousand programs; a longer list is slower, not wrong. */
#define OWNERS_BUCKETS 4096

struct owners {
	sched_job_id newest[OWNERS_BUCKETS]; /* plus 1, so that 0 is none */
};

/* SCHED_JOB_NONE if none is there. */
sched_job_id owners_last(const struct owners *owners, const struct sched_job *jobs, uint64_t owner);

/* jobs[@id] waits from now on, or no more. Its owner stays the same meanwhile. */
void owners_add(struct owners *owners, struct sched_job *jobs, sched_job_id id);
void owners_remove(struct owners *owners, struct sched_job *jobs, sched_job_id id);
