/*
 * planner.h: makes plans (daemon/core/steer/plan.h) in a thread of its own, because one takes up to
 * seconds, and nobody waits for it: until it is done the terms before hold. A question has two
 * answers: soon the plan of a quick search, then that of a whole one, unless the quick one left
 * nothing to try.
 *
 * For each GPU what was asked last counts: a plan that is being made for an older question is
 * given up. The thread has the lowest priority. All functions are for the loop's thread.
 */
#pragma once

#include "daemon/core/state.h"
#include "daemon/core/steer/plan.h"

struct event_base;
struct planner;

/* Called by the loop: @plan, valid during the call, answers what was asked last for @gpu. */
typedef void (*planner_fn)(void *userdata, size_t gpu, const struct plan *plan);

/* @base outlives it. Return: 0 or negative errno. */
int planner_new(struct planner **ret, struct event_base *base, planner_fn planned, void *userdata);

/* Takes NULL. Waits for a prediction that is being made (milliseconds). */
struct planner *planner_free(struct planner *p);

/* As plan_make(); copies everything, kernel times too. Return: 0 or -ENOMEM, then nothing comes. */
int planner_ask(struct planner *p, size_t gpu, const struct plan_gpu *plan_gpu,
		const struct plan_task *tasks, unsigned n);

/* What was asked for @gpu is of no use any more. Takes NULL. */
void planner_cancel(struct planner *p, size_t gpu);
