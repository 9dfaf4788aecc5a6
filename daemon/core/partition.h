/*
 * partition.h: which GPU each task lives on, found before anything runs: the policies' offline
 * parts. Sets the tasks' homes; used by policies only.
 */
#pragma once

#include "daemon/core/policy.h"

/* Which GPU a task is offered first, of those with capacity left. */
enum partition_rule {
	PARTITION_BIGGEST,   /* most SMs: BCF */
	PARTITION_LITTLEST,  /* fewest SMs: LCF */
	PARTITION_FIRST_FIT, /* lowest index: FFD */
	PARTITION_BEST_FIT,  /* least capacity left: BFD */
	PARTITION_WORST_FIT, /* most capacity left: WFD */
};

/*
 * A task whose jobs can run on one GPU only (gpu_wanted) has its home there in any case, and counts
 * before all others.
 *
 * Largest task first, by the utilisation U_i on the reference GPU, which stands for the task on all
 * of them (3.6.1: U_i(pi_k) = U_i(pi_0)); each to the first GPU by @rule on which the sum stays
 * within 1, else to the one where the sum becomes least. The reference is the GPU with most SMs.
 */
void partition_by_size(struct sched *s, enum partition_rule rule);

/*
 * Alg. 4: tasks by priority; each to the cheapest GPU (Pi_i) on which the sum of U_i(m_opt) stays
 * within 1, else to the one where the sum becomes least.
 *
 * As printed (literal) it puts tasks on GPUs where they can never be in time. The authors' code
 * uses the mean U_i(k) instead, which is so large on small GPUs that few tasks end there. The fit
 * reading considers a GPU only if G_i(m_opt) <= D_i there, unless that holds on none.
 */
void partition_by_energy(struct sched *s);

/* Alg. 4 for this task alone; all others count where they have been placed. */
void partition_one(struct sched *s, struct sched_task *task);

/* Utilisations are parts of this. */
#define PARTITION_WHOLE 1000000000ull

/* U_i(m, k) = G_i(m, k) / T_i. A task whose releases are unknown counts as using nothing. */
uint64_t partition_utilisation_at(const struct sched_task *task, size_t gpu, unsigned m);

/* U_i(k): the mean over all SM counts that the limit allows (2.2.2, 3.3.2). */
uint64_t partition_utilisation_mean(const struct sched *s, const struct sched_task *task,
				    size_t gpu);
