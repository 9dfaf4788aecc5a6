/*
 * tune.h: closes the loop between what a plan (plan.h) predicts and what its tasks then do.
 *
 * A plan holds for a window, and its tasks' responses are compared with the predicted ones. Where a
 * task misses more than predicted, its kernels are taken to be slower by as much as its mean
 * response was longer, which stands for what the model does not know (caches, memory, a slow host),
 * and a new plan is made with that. Plans are remembered by what they did: after the last round, or
 * when a plan does worse than one before, the best one comes back. Windows grow, so that a set of
 * tasks that can't be served better is left alone.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include "daemon/core/steer/plan.h"

/* Rounds until the best plan is kept, for as long as the tasks stay the same. */
#define TUNE_ROUNDS_MAX 6

struct tune {
	unsigned n;    /* tasks; 0: nothing is tuned */
	nsec_t window; /* the first; each one after it is half as long again */
	unsigned round;
	bool settled;
	double slow[MODEL_TASKS_MAX]; /* >= 1: by how much kernels take longer than their profile */
	struct terms best[MODEL_TASKS_MAX]; /* the plan that did best */
	struct model_result best_predicted[MODEL_TASKS_MAX];
	double best_rate; /* its misses a second; below 0: there is none yet */
};

/* What a task's jobs did in the window. */
struct tune_seen {
	uint64_t jobs, missed;
	nsec_t response; /* sum over the jobs */
};

enum tune_action {
	TUNE_WAIT, /* too few jobs so far: the terms stay; look again after tune_window() */
	TUNE_PLAN, /* make a new plan with `slow` */
	TUNE_BACK, /* set the terms to `best`; nothing more is to be done */
	TUNE_KEEP, /* the terms stay; nothing more is to be done */
};

/* Begins anew, for @n tasks. @window: the first one. */
void tune_start(struct tune *t, unsigned n, nsec_t window);

/* How long the plan should hold before it is judged. */
nsec_t tune_window(const struct tune *t);

/* The tasks with their kernels as slow as they seem. @times: room for them, for the result points
 * into it. */
void tune_apply(const struct tune *t, struct plan_task *tasks, unsigned sms,
		nsec_t times[][PROTO_SMS_MAX + 1]);

/* @terms held for @window, with @predicted and @seen of each task. */
enum tune_action tune_judge(struct tune *t, const struct terms *terms,
			    const struct model_result *predicted, const struct tune_seen *seen,
			    nsec_t window);
