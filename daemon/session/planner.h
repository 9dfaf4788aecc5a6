/*
 * planner.h: makes plans (daemon/core/steer/plan.h) in threads of its own, because one takes up to
 * seconds, and nobody waits for it: until it is done the terms before hold.
 *
 * A question has several answers. Each thread makes a quick search and then a medium one, so there
 * is a plan soon; while jobs are predicted to be late, whole searches follow. All have random
 * numbers of their own, and each plan that is better than those before is an answer. Searches know
 * nothing of each other, so threads don't wait for each other.
 *
 * For each GPU what was asked last counts: plans that are being made for an older question are
 * given up. The threads have the lowest priority. All functions are for the loop's thread.
 */
#pragma once

#include "daemon/core/state.h"
#include "daemon/core/steer/plan.h"

/* Whole searches for a question, at most. */
#define PLANNER_WHOLE 8

#define PLANNER_THREADS_MAX 4

struct event_base;
struct planner;

/* Called by the loop: @plan, which it may change, answers what was asked last for @gpu. Valid
 * during the call. */
typedef void (*planner_fn)(void *userdata, size_t gpu, struct plan *plan);

/* @base outlives it. @threads: 1 to PLANNER_THREADS_MAX, started at the first question. Return: 0
 * or negative errno. */
int planner_new(struct planner **ret, struct event_base *base, unsigned threads, planner_fn planned,
		void *userdata);

/* As many as this machine should have: one for each four CPUs that this process may use. */
unsigned planner_threads(void);

/* Takes NULL. Waits for a prediction that is being made (milliseconds). */
struct planner *planner_free(struct planner *p);

/* For what plan_make() takes; copies everything, kernel times too. Return: 0 or negative errno, of
 * threads that could not be started as well: then nothing comes. */
int planner_ask(struct planner *p, size_t gpu, const struct plan_gpu *plan_gpu,
		const struct plan_task *tasks, unsigned n);

/* What was asked for @gpu is of no use any more. Takes NULL. */
void planner_cancel(struct planner *p, size_t gpu);
