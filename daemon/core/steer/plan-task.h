/*
 * plan-task.h: what a plan is made for (plan.h): tasks and a GPU.
 */
#pragma once

#include <stdbool.h>

#include "daemon/core/steer/model.h"

struct plan_task {
	struct model_task model; /* period and deadline; the rest counts only if it is known */
	bool known;		 /* copies, launches, block and kernels were measured */
	bool copies_nothing;	 /* as far as was seen; if it is not known */
};

/*
 * A task without a deadline that is not known is taken for one that always has work, in blocks of a
 * millisecond: it keeps to the upper part.
 */

struct plan_gpu {
	unsigned sms;	/* 1 to PROTO_SMS_MAX */
	unsigned group; /* SMs that a set can take together, >= 1 */
	bool gates;	/* tasks may yield to others: see struct terms */
	bool guards;	/* with guard bands, too */
};

/* How long is searched: the best so far is taken then, if there is more to try. */
enum plan_effort {
	PLAN_QUICK,  /* below a second */
	PLAN_MEDIUM, /* a second or two */
	PLAN_WHOLE,  /* some seconds */
};

/* What it takes from a job's release until its program, which slept, makes its first call, as
 * measured on a host of an H200 (61 to 107 us with the timer slack that the shim takes away, see
 * shim/worker.c): predictions count from the release. */
#define PLAN_WAKE_MIN (15 * NSEC_PER_USEC)
#define PLAN_WAKE_MAX (60 * NSEC_PER_USEC)
#define PLAN_WAKE     ((PLAN_WAKE_MIN + PLAN_WAKE_MAX) / 2)
