/*
 * search.h: the search for the candidate with which fewest jobs are late, for plan.c.
 *
 * search-judge.c says what is predicted of a candidate, and how bad that is. search.c finds one:
 *  1. From several starts: the rule, with the GPU cut at several boundaries, and all tasks
 *     everywhere by deadline. One task at a time moves, and all gates together, as long as that is
 *     better.
 *  2. From the best of these one small change at random after the other, each kept if it is
 *     better: where the cut is, and of one task its part, level, copies, who makes its copies back,
 *     and each of its gates.
 *     When there is none left, several at once, and single ones from there. What is found depends
 *     on what was drawn, so several searches may each find another plan.
 *  3. If no job is late by then: likewise to that with which fewest would be if kernels took much
 *     longer.
 *  4. All that was best for a time, and what needs no search, is compared once more, with many more
 *     first releases, and each short launch by itself: what was changed hundreds of times to suit a
 *     few drawings may suit only them.
 * Half of what is predicted is with kernels that take longer than measured, for beside others they
 * do: else the second step would find plans that keep every deadline by a hair.
 *
 * Pure: no clock, no I/O, no allocation; the same input gives the same answer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/steer/model-run.h"
#include "daemon/core/steer/plan-task.h"

/* How long a copy of 6 MiB takes, the largest piece of one that is held, as measured on hosts of an
 * H200 and an H100. */
#define SEARCH_PIECE (115 * NSEC_PER_USEC)

/* Copies back that take longer are left to the engine: TERMS_BACK_MAX at the same speed. */
#define SEARCH_BACK_MAX SEARCH_PIECE

/* By such a part of themselves kernels take longer in half of what is predicted; and in the last
 * step of the search. */
#define SEARCH_SLOW   0.08
#define SEARCH_MARGIN 0.3

/* What a search starts from. */
#define SEARCH_STARTS 6

/* Drawings of first releases that a prediction looks at, and the comparison at the end. */
#define SEARCH_DRAWINGS	     2
#define SEARCH_DRAWINGS_LAST 16

struct candidate {
	unsigned lower; /* groups of the lower part */
	struct model_place places[MODEL_TASKS_MAX];
};

/* The best from one start. */
struct optimum {
	struct candidate candidate;
	double badness;
};

struct search {
	const struct plan_gpu *gpu;
	const struct plan_task *given; /* what `tasks` are made of */
	struct model_task tasks[MODEL_TASKS_MAX];
	bool known[MODEL_TASKS_MAX];
	nsec_t unknown[PROTO_SMS_MAX + 1];	   /* times of an unknown task's kernels */
	struct model_task slowed[MODEL_TASKS_MAX]; /* the same beside others */
	nsec_t slow_kernels[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1]; /* of these */
	unsigned n, n_groups, n_tried, n_drawings;
	uint64_t events, events_max; /* of what was tried: see search_stopped() */
	uint64_t random;
	const _Atomic bool *stop;	      /* NULL: nobody stops it */
	nsec_t time;			      /* a prediction looks at */
	struct optimum optima[SEARCH_STARTS]; /* the best first */
	unsigned n_optima;
	bool cut_short;		       /* there was more to try */
	bool margin;		       /* it is in its last step */
	struct optimum gateless;       /* the best where nobody yields: no start has gates */
	nsec_t longest;		       /* period */
	double alone[MODEL_TASKS_MAX]; /* how much of its jobs is late under MPS alone */
};

/* ---- what is predicted (search-judge.c) ---- */

/* @tasks: @n of them, 1 to MODEL_TASKS_MAX, which must last as long as the search, as @gpu must. */
void search_init(struct search *s, const struct plan_gpu *gpu, const struct plan_task *tasks,
		 unsigned n);

/* In half of what is predicted from now on kernels take longer by @part of themselves. */
void search_slow(struct search *s, double part);

/* How many drawings of first releases are looked at from now on. With more than SEARCH_DRAWINGS
 * short launches are not taken together either. */
void search_look(struct search *s, unsigned n_drawings);

/* @s->stop says so. */
bool search_given_up(const struct search *s);

/* That, or @s->events_max is reached. */
bool search_stopped(const struct search *s);

/* @gpu to the model, where it is cut above @lower groups. */
struct model_gpu search_gpu(const struct plan_gpu *gpu, unsigned lower);

/* What becomes of each task's jobs. */
void search_predict(struct search *s, const struct candidate *c, struct model_result *ret);

/* Less is better: about the late jobs; what tasks that always have work lose, and how near jobs
 * come to their deadlines, count less than one of these. What is not below @best may be said to be
 * @best.
 */
double search_badness(struct search *s, const struct candidate *c, double best);

/* As MPS alone does it. @c: whichever. */
struct candidate search_free_for_all(const struct search *s, const struct candidate *c);

/* The part of each task's jobs that is late under MPS alone. @c: whichever. */
void search_alone(struct search *s, const struct candidate *c, double *ret);

/* More than half of the jobs of @task would be late if nobody else were there. */
bool search_hopeless(const struct search *s, unsigned task);

/* ---- the search (search.c) ---- */

/* Everybody everywhere, the shortest deadline at the highest level; the rest as in @c. */
struct candidate search_by_deadline(const struct search *s, const struct candidate *c);

/* Somebody yields, and to somebody. */
bool search_has_gates(const struct search *s, const struct candidate *c);

/* From @c, which becomes the best that was found. */
void search_run(struct search *s, struct candidate *c, enum plan_effort effort);
