/*
 * tune.h: closes the loop between what a plan (plan.h) predicts and what its tasks then do.
 *
 * A plan holds for a window, the first one for a fifth of it. If no job is late it stays, until one
 * comes that is predicted to have fewer late jobs: tasks that seldom have a job may have had none
 * yet.
 *
 * If some are, a task that is late more often than predicted, and whose mean response is longer by
 * a tenth, has its kernels taken to be slower by as much, but not by more than 1.3 at once, for the
 * rest is waiting. It stands for what the model does not know (caches, memory, a slow host). If a
 * task is late less often and its response is shorter, its kernels are faster. Then a new plan is
 * asked for. While any job is late, the other ways that came with the plan are meanwhile tried for
 * a fifth of the window each, as far as that may be worth it (ways.h), those first that are
 * predicted best; one that is clearly worse than the best is given up at once. The new plan is
 * tried likewise. What held before there was a plan, the rule, was counted then, so no plan stays
 * that does worse. The way that costs least then holds for another window, half as long again.
 * After some rounds the best one stays.
 *
 * What stays is watched. If the tasks then do something else, for two windows one after the other,
 * than when it settled (another part of a task's jobs is late, more or fewer, or the task makes
 * another number of jobs), all ways are looked at again. After each such review the windows are
 * twice as long, so noise, and tasks that can't be served better, are soon left alone.
 *
 * A way that leaves jobs behind whose releases have passed (seen.h) makes those that come next
 * late, too. So the best way holds until they are done, or for a while, before another one is
 * tried, and its own count begins then. A task with many jobs of which nothing is known corrects
 * nothing.
 *
 * Tasks without a deadline may come and go meanwhile: what was counted beside others counts, too.
 *
 * What is counted begins a little after the terms changed: jobs that were late before make others
 * late.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include "daemon/core/steer/plan.h"
#include "daemon/core/steer/seen.h"
#include "daemon/core/steer/ways.h"

/* Windows until the best way stays, for as long as the tasks are the same. */
#define TUNE_ROUNDS_MAX 6

struct tune {
	nsec_t window; /* the first; each one after it is half as long again */
	unsigned round;
	double slow[MODEL_TASKS_MAX]; /* kernels take so many times as long as in their profile */
	struct ways ways;
	bool trying;   /* the way that holds, for a short window */
	bool clearing; /* of what the last one left behind, before another one is tried */
	bool settled;  /* the way that holds stays, and is watched */
	bool quiet;    /* because no job was late */
	bool ask;      /* for a new plan */
	bool counts;   /* from `from`, when `before` had been seen, on */
	nsec_t from;
	struct seen before[MODEL_TASKS_MAX];
	bool lost[MODEL_TASKS_MAX]; /* most of the task's jobs were late, when there were enough */

	/* Of a settled way. */
	bool has_reference;
	struct seen reference[MODEL_TASKS_MAX]; /* what the tasks did when it settled */
	nsec_t reference_time;
	bool odd;	  /* in the last window they did something else */
	unsigned reviews; /* so far, while the tasks are the same */
};

enum tune_action {
	TUNE_WAIT, /* the terms stay; look again */
	TUNE_TRY, /* set the terms to those of tune_way(), one that was not tried yet; look again */
	TUNE_BACK, /* set the terms to those of tune_way(), the best; look again */
	TUNE_PLAN, /* the terms stay, while a new plan is made; look again */
	TUNE_KEEP, /* the terms stay, and are watched; look again */
};

/* "wait", "try", "back", "plan", "keep". */
const char *tune_action_name(enum tune_action action);

/* Begins anew, for @n tasks, without a plan. @window: the first one. */
void tune_start(struct tune *t, unsigned n, nsec_t window);

/* @terms hold until there is a plan, and are a way like others: what they do in that time is known
 * when the plan comes, whatever is predicted of them. Right after tune_start(). */
void tune_rule(struct tune *t, const struct terms *terms);

/* More, or something else, is known of the same tasks: only the way that holds is remembered, and
 * nothing of what it did. A plan with what is known now should follow. */
void tune_again(struct tune *t);

/* Other tasks are there, as plan_way_move() takes them. What was counted stays, and goes on: tasks
 * that come and go all the time must not keep a plan from being judged. Of those that have come
 * what is seen begins now; for the others @seen and @time of the next calls go on. A plan for the
 * tasks should follow. There was a plan. */
void tune_move(struct tune *t, const struct plan_gpu *gpu, const struct plan_task *tasks,
	       const int *from, unsigned n);

/* The tasks did something else for a while, or were not there: what was counted stays, and of the
 * way that holds it begins anew. A way that was tried is given up. */
void tune_resume(struct tune *t);

/* @plan was made for the tasks. @seen of each task, since the way that holds does, for @time.
 * Return: whether the terms have to be set to those of tune_way(). If so, or if it is the first
 * plan, tune_judge() looks at it. */
bool tune_plan(struct tune *t, const struct plan *plan, const struct seen *seen, nsec_t time);

/* The way that holds. There was a plan, or tune_rule(). */
const struct plan_way *tune_way(const struct tune *t);

/* How long until tune_judge() should look again. */
nsec_t tune_step(const struct tune *t);

/* The tasks with their kernels as slow as they seem. @times: room for them, for the result points
 * into it. */
void tune_apply(const struct tune *t, struct plan_task *tasks, unsigned sms,
		nsec_t times[][PROTO_SMS_MAX + 1]);

/* What tune_way() did: @seen of each task, since it holds, for @time. @ret_ask: a new plan has to
 * be made, with tune_apply(), whatever is returned. */
enum tune_action tune_judge(struct tune *t, const struct seen *seen, nsec_t time, bool *ret_ask);
