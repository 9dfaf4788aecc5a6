/*
 * policy.h: what a policy may see and do; included by sched.c and policy-*.c only.
 *
 * A policy walks the waiting jobs, looks at the GPUs through sched.h, and hands out SMs with
 * policy_grant(), which keeps the state's books. It allocates nothing and keeps nothing between
 * decisions but what stands in the state.
 */
#pragma once

#include "daemon/core/sched.h"

extern const struct sched_policy policy_even;
extern const struct sched_policy policy_fcfs;

/* Waiting jobs in the order of their arrival. SCHED_JOB_NONE at the end. A job's successor must be
 * read before the job is granted. */
sched_job_id policy_first_waiting(const struct sched *s);
sched_job_id policy_next_waiting(const struct sched *s, sched_job_id id);

/* Whether the sharing mode lets @job run beside what runs on this GPU now. */
bool policy_may_share(const struct sched *s, size_t gpu, const struct sched_job *job);

/*
 * Gives @sms of @gpu to the waiting job @id and adds the action.
 * @slot must be free, @sms not empty and free, the sharing mode kept; a job that is not divisible
 * gets the whole GPU. All this is asserted: a policy that errs is our bug, never a client's.
 */
void policy_grant(struct sched *s, sched_job_id id, size_t gpu, unsigned slot,
		  const struct smset *sms, nsec_t now, struct sched_actions *actions);
