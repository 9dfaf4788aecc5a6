/*
 * plan.h: where each task's work had better run on one GPU, so that fewest jobs with a deadline are
 * late, and then so that tasks without one lose little: the terms of all tasks, chosen by what
 * model.h predicts.
 *
 * The rule needs no profile: if all tasks have a deadline, everybody uses all SMs, the shorter the
 * deadline the higher the level, and copies are whole; else work without a deadline, and work whose
 * blocks are long beside the deadlines of others, keeps to the upper half, and the rest may use all
 * SMs. A search begins as if some had no deadline.
 *
 * The GPU is cut in two at a boundary of groups, and each task gets the lower part, the upper part
 * or all of it, the shorter the deadline the higher the level. From there one task at a time moves,
 * at several cuts, as long as the prediction gets better. Whoever has the higher level goes first,
 * but waits for a block at each launch that wants more SMs than are free (HARDWARE.md), so a task
 * may also move to the lowest. Another search starts with everybody everywhere. Copies are held
 * where several tasks make any; those of a task may go first instead, whole, which costs it less:
 * beside copies of a shorter deadline only if jobs are late otherwise. If tasks may yield, those of
 * a deadline up to some length yield to nobody, and the others to all whose jobs are due earlier:
 * each length is tried, with guard bands before the jobs and without, and nobody yields if that
 * saves no job. What is best then is changed further in single things, also the gates of one task
 * (search.h). A task whose deadline can't be kept even alone holds nobody up.
 *
 * Pure: no clock, no I/O, no allocation. The same input gives the same plan.
 */
#pragma once

#include <stdatomic.h>

#include "daemon/core/steer/model-run.h"
#include "daemon/core/steer/plan-task.h"
#include "proto/terms.h"

/* What else could be done: where the prediction is wrong one of these may do better. */
struct plan_way {
	struct terms terms[MODEL_TASKS_MAX]; /* as in struct plan, and so on */
	struct model_result predicted[MODEL_TASKS_MAX];
	nsec_t tail[MODEL_TASKS_MAX];
};

/* The same without guard bands, and where nobody yields, the best at two other cuts, the rule, and
 * everybody everywhere. */
#define PLAN_OTHERS_MAX 6

struct plan {
	struct terms terms[MODEL_TASKS_MAX]; /* of each task; epoch 0 */
	struct model_result predicted[MODEL_TASKS_MAX];
	/* The part of its jobs that MPS alone is predicted to have late; if there are others. */
	double alone[MODEL_TASKS_MAX];
	/* Most of its jobs would be late alone on the GPU: nobody should wait for its copies. */
	bool hopeless[MODEL_TASKS_MAX];
	/* What a job needs besides its copy in, alone on the SMs of its terms; 0: not known. */
	nsec_t tail[MODEL_TASKS_MAX];
	struct plan_way
		others[PLAN_OTHERS_MAX]; /* no two with the same terms; none of the plan's */
	unsigned n_others;		 /* 0 unless it is predicted */
	bool is_predicted; /* all tasks with a deadline are known; else the rule was followed */
	bool is_whole;	   /* more effort would try no more */
	double badness;	  /* what the search made least of: late jobs in the time that it looked at,
			     and less than 1 for the mean responses. To compare plans for the same
			     question, but not quick ones with others; 0: nothing was searched for
			     */
	unsigned n_tried; /* predictions that were made */
};

/* The terms by the rule alone: takes microseconds. @ret: of @n tasks (1 to MODEL_TASKS_MAX). */
void plan_rule(const struct plan_gpu *gpu, const struct plan_task *tasks, unsigned n,
	       struct terms *ret);

/* Whether enough is known for predictions: of every task that has a deadline. */
bool plan_can_predict(const struct plan_task *tasks, unsigned n);

/*
 * Plans for @n tasks (1 to MODEL_TASKS_MAX) on @gpu. Takes up to some hundred predictions of
 * milliseconds each: not for an event loop. @seed: of the changes that are tried at random; another
 * one may find a better plan. @stop: if it becomes true the best so far is the result; NULL: nobody
 * stops it. A quick search looks at half the time, so what it finds may fit that by chance.
 */
void plan_make(const struct plan_gpu *gpu, const struct plan_task *tasks, unsigned n,
	       enum plan_effort effort, unsigned seed, const _Atomic bool *stop, struct plan *ret);

/* The @n tasks of @way are others now: @tasks, of which the task @i was number @from[i] before, or
 * none of them if that is negative. Only tasks without a deadline have come or gone. Who has come
 * gets a part beside those that had a plan, in which they are disturbed least: it has the lowest
 * level, and yields if anybody is awaited. Nothing is predicted of it. */
void plan_way_move(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
		   unsigned n, struct plan_way *way);

/* The same for all ways of @plan. */
void plan_move(const struct plan_gpu *gpu, const struct plan_task *tasks, const int *from,
	       unsigned n, struct plan *plan);

/* Whether a plan of @effort and @badness is better than another one for the same question, of
 * @other_effort and @other_badness. What a quick search looked at is not what the others did; and
 * where no job is late, more effort leaves more room. */
bool plan_is_better(enum plan_effort effort, double badness, enum plan_effort other_effort,
		    double other_badness);

/* What @terms (as plan_make() makes them, all with the same cut) are to the model. Return: false if
 * they are of another form. */
bool plan_places(const struct plan_gpu *gpu, const struct terms *terms, unsigned n,
		 struct model_gpu *ret_gpu, struct model_place *ret_places);

/* What is predicted of @terms (as plan_make() makes them, all with the same cut). Return: false if
 * too little is known, or the terms are of another form. */
bool plan_predict(const struct plan_gpu *gpu, const struct plan_task *tasks,
		  const struct terms *terms, unsigned n, struct model_result *ret);
