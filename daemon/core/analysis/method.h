/*
 * method.h: all methods of analysis by name, and what is asked of any of them.
 */
#pragma once

#include "daemon/core/analysis/audsley.h"
#include "daemon/core/analysis/locking.h"
#include "daemon/core/analysis/preempt.h"
#include "daemon/core/analysis/safe-kthread.h"
#include "daemon/core/analysis/safe.h"

enum rta_family {
	RTA_SAFE,	  /* corrected: the GPU is preempted segment by segment (Alg. 7) */
	RTA_SAFE_KTHREAD, /* corrected: job by job (Alg. 6) */
	RTA_SAFE_LOCKING, /* corrected: MPCP, FMLP+ */
	RTA_PREEMPT,
	RTA_LOCKING,
};

struct rta_method {
	const char *name;
	const char *source; /* where the bound stands */
	enum rta_family family;
	enum rta_mode mode; /* what it takes all tasks for */
	enum rta_approach approach;
	bool tight;
	enum rta_protocol protocol;
};

/* The first one is the default. */
extern const struct rta_method rta_methods[];
extern const size_t rta_n_methods;

/* NULL: there is none of this name. */
const struct rta_method *rta_method_find(const char *name);

/* The corrected method for what @m bounds: @m itself if it is one. */
const struct rta_method *rta_method_safe(const struct rta_method *m);

/* Fills in @ret[i] of the n_real_time first tasks. */
void rta_method_run(const struct rta_method *m, const struct rta_set *set,
		    const struct rta_readings *readings, struct rta_bound *ret);

/* 4.5.3: see rta_audsley(). Return: false also with methods of another family. */
bool rta_method_assign(const struct rta_method *m, const struct rta_set *set,
		       const struct rta_readings *readings, bool swap, struct rta_bound *ret,
		       unsigned *ret_levels);

/* Whether all tasks that are not of best effort meet their deadlines. */
bool rta_in_time(const struct rta_set *set, const struct rta_bound *bounds);

/*
 * How much longer G^e of the longest GPU segment of task @i may get (and G with it) before it, or
 * another task that is in time by @m now, no longer is; to a microsecond. @set is changed and put
 * back. Return: 0 if the task is not in time as it is, or has no GPU segments.
 */
nsec_t rta_method_slack(const struct rta_method *m, struct rta_set *set,
			const struct rta_readings *readings, size_t i);
