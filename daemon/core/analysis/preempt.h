/*
 * preempt.h: bounds for a GPU that tasks of higher priority preempt, as printed in section 4.6.
 *
 * They stand as the text has them, and are not safe: a simulation finds longer responses. The
 * bounds of safe.h and safe-kthread.h are those to rely on.
 */
#pragma once

#include "daemon/core/analysis/rta.h"

enum rta_approach {
	RTA_KTHREAD_BUSY, /* Alg. 6: Lemma 12 (Eq. 4.1), Lemma 13 (Eq. 4.2) */
	RTA_IOCTL_BUSY,	  /* Alg. 7: Lemma 14 (Eq. 4.3), Lemma 16 (Eq. 4.5); tight: 21 (Eq. 4.12) */
	RTA_IOCTL_SUSPEND, /* Alg. 7: Lemma 14 (Eq. 4.3), Lemma 15 (Eq. 4.4); tight: 20 (Eq. 4.11)
			    */
};

struct rta_preempt {
	const struct rta_set *set;
	enum rta_approach approach; /* all tasks are taken to be busy or to suspend, as it says */
	bool tight;		    /* less the overlaps of 4.6.2; not with the kernel thread */
	const struct rta_readings *readings;

	/* R_h of the tasks that are above @i; NULL: their deadlines stand for them, as their order
	 * is not known (4.5.3). */
	const struct rta_bound *bounds;

	/* By task: a lower number goes first on the GPU. NULL: the order of the tasks. */
	const unsigned *levels;
};

/* The bound of task @i, which is not of best effort. */
struct rta_bound rta_preempt_bound(const struct rta_preempt *p, size_t i);

/* The bounds of all tasks in turn, by the order of the tasks on CPU and GPU alike; fills in
 * @ret[i] of the n_real_time first ones. @p: its bounds and levels are not used. */
void rta_preempt_all(const struct rta_preempt *p, struct rta_bound *ret);
