/*
 * ways.h: the ways in which the tasks of a GPU may be served: what was predicted of each and what
 * was counted, which one costs least, and which one should be tried next.
 *
 * A way costs its late jobs a second, and those of tasks that are late more often than MPS alone
 * would have them count as model_worse() says. What MPS alone does is what it did if it was
 * counted, else as the last plan predicts it; what was counted before is judged by that, too.
 *
 * A trial costs late jobs. So a way that is predicted to be worse than the best one is, by more
 * than predictions are off, is not tried at all. Trials are short: one that may be the best, with
 * some luck, is tried again.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include "daemon/core/steer/plan.h"
#include "daemon/core/steer/seen.h"

/* Ways that are remembered. */
#define WAYS_MAX 8

/* No way. */
#define WAYS_NONE WAYS_MAX

struct way {
	struct plan_way plan;
	double slow[MODEL_TASKS_MAX]; /* so slow kernels were taken to be: as in struct tune */
	/* Of each task while it was counted; with those of which nothing is known. */
	double jobs[MODEL_TASKS_MAX], missed[MODEL_TASKS_MAX];
	nsec_t time; /* it was counted; 0: not yet */
};

struct ways {
	unsigned n; /* tasks */
	struct way way[WAYS_MAX];
	unsigned n_ways;
	unsigned now;			/* the way that holds; the owner sets it */
	unsigned planned;		/* the way of the last plan; WAYS_NONE: there was none */
	double alone[MODEL_TASKS_MAX];	/* the part of its jobs that MPS alone has late, by it */
	double recent[MODEL_TASKS_MAX]; /* jobs in the last whole window of any way */
	nsec_t recent_time;
};

/* No way yet, for @n tasks. */
void ways_start(struct ways *w, unsigned n);

/* A way of which nothing is predicted. Return: its number. */
unsigned ways_add(struct ways *w, const struct terms *terms);

/* The ways of @plan, whose own one is `planned` from now on; the others as far as there is room. Of
 * ways that are known, what was counted stays. @slow: as in struct way. */
void ways_plan(struct ways *w, const struct plan *plan, const double *slow);

/* The tasks are others now, as plan_way_move() takes them. Ways that were not counted are dropped,
 * for the next plan brings others; those that are the same now that some tasks are gone are one. */
void ways_move(struct ways *w, const struct plan_gpu *gpu, const struct plan_task *tasks,
	       const int *from, unsigned n);

/* The way that holds has the number 0, is not counted yet, and is the only one. */
void ways_keep_now(struct ways *w);

/* No way is counted yet. */
void ways_forget_counts(struct ways *w);

/* The way that holds was counted for @time: its tasks did @part. */
void ways_count(struct ways *w, const struct seen *part, nsec_t time);

/* Predictions are for as many jobs as in @part, which came in @time. */
void ways_expect(struct ways *w, const struct seen *part, nsec_t time);

/* What the way @i, which was counted, costs: late jobs a nanosecond. */
double ways_rate(const struct ways *w, unsigned i);

/* The way that costs least; WAYS_NONE: none was counted. */
unsigned ways_best(const struct ways *w);

/* Whether a trial of the way @i would cost late jobs, and not be worth it. */
bool ways_is_predicted_worse(const struct ways *w, unsigned i);

/* Another way that may be the best: the one that is predicted to cost least of those that were not
 * counted, else the one that may cost least, by chance, of those that were counted for less than
 * @sure. WAYS_NONE: there is none. */
unsigned ways_next(const struct ways *w, nsec_t sure);

/* Whether the way that holds would cost more than the best one, even with luck, as its tasks did
 * @part in @time. */
bool ways_is_clearly_worse(const struct ways *w, const struct seen *part, nsec_t time);
