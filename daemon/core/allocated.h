/*
 * allocated.h: jobs whose programs may use certain SMs only (sched_set_allocation()). No policy
 * decides about them: a job gets the SMs of its allocation, as soon as all of them are free.
 *
 * Allocations seldom share SMs, so their jobs seldom wait for each other. Among all jobs the order
 * of arrival holds: SMs that an earlier job waits for are not given to a later one, so nobody waits
 * for ever. A job that can't be divided needs the whole GPU, whatever its allocation.
 */
#pragma once

#include "daemon/core/state.h"

/* Starts what can start. Return: mask of the GPUs on which the policy may start nothing now,
 * because a job of an allocation waits for SMs there. */
uint32_t allocated_start(struct sched *s, nsec_t now, struct sched_actions *actions);

/* Whole groups of @from: as many as are at most @n_sms SMs, beside each other if no fewer are so.
 * If a single one is more than that, the smallest one. */
struct smset allocated_pick(const struct sched_gpu_model *model, const struct smset *from,
			    unsigned n_sms);
