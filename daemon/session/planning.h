/*
 * planning.h: the plan for the programs on one GPU: it is asked for (planner.h), written when it
 * has come, and judged by what the programs then do (core/steer/tune.h). In between, what the rule
 * says, or the plan before, holds.
 *
 *	nothing is planned --follow--> a plan is asked for --answer--> a plan holds
 *	        ^                             |                         |   ^  |
 *	        +----------forget-------------+------------forget-------+   +--+ judge, answer,
 *	                                                                         follow
 *
 * If programs with a deadline end, or others come, the plan is put aside, and holds again as soon
 * as those are there whom it was for: one that was started again goes on from the one before
 * (remembered.h).
 *
 * It never looks for itself: the owner shows it scenes (scene.h), for planning_judge() one with the
 * programs of the last planning_follow().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/timer.h"
#include "daemon/core/state.h"
#include "daemon/core/steer/tune.h"
#include "daemon/session/scene.h"

struct event_base;
struct planner;
struct session;
struct sessions;

/* A plan that held for programs of which some have ended, or others have come. */
struct planning_kept {
	struct scene_past past; /* whom it was for */
	struct tune tune;
	unsigned plans;
	bool hopeless[MODEL_TASKS_MAX];
};

struct planning {
	const struct sessions *all; /* borrowed, outlive us */
	struct planner *planner;    /* borrowed, outlives us; NULL: nothing can be planned */
	size_t gpu;

	/* The question for a plan. */
	struct scene_past question; /* whom it is for; n == 0: there is none */
	nsec_t asked;		    /* when */
	bool awaits;		    /* no answer has come yet */
	bool outdated;		    /* it is asked anew then */
	bool failed;		    /* to ask, and that was told */

	/* Since the programs with a deadline and their tasks are the same. */
	struct scene_past past; /* whom it is for: now */
	struct tune tune;
	unsigned plans;		 /* that were written; 0: the rule holds */
	bool judged;		 /* `action` is what came of that */
	enum tune_action action; /* the last one; waiting counts only before any other */

	/* Of the plan that holds. */
	struct timer judge; /* set: it will be judged */
	nsec_t since;
	bool hopeless[MODEL_TASKS_MAX];	     /* as the last plan says */
	struct seen before[MODEL_TASKS_MAX]; /* the sessions' counters then */

	struct planning_kept *kept; /* owned; the last one of other programs; NULL: there is none */
};

/* @judge is called with @userdata when planning_judge() should be. */
void planning_init(struct planning *p, const struct sessions *all, struct planner *planner,
		   size_t gpu, event_callback_fn judge, void *userdata);

void planning_deinit(struct planning *p);

/* @change came of scene_compare(), with @from; it is not SCENE_SAME. The plan that holds stays
 * until the next one if the programs with a deadline and their tasks are the same, and who has come
 * is put beside it; else it is put aside. @window: tune_start()'s. Return: whether a plan
 * will come; if not, none holds either. */
bool planning_follow(struct planning *p, const struct scene *scene, enum scene_change change,
		     const int *from, nsec_t window);

/* Until the first plan comes @terms hold, which the rule gave the programs of @scene. */
void planning_begin(struct planning *p, const struct scene *scene, const struct terms *terms);

/* The planner has found @plan, which may be changed, for some of the programs of @scene, or for
 * others, and then it is dropped. */
void planning_answer(struct planning *p, const struct scene *scene, struct plan *plan);

/* At the timer. */
void planning_judge(struct planning *p, const struct scene *scene);

/* Whether a plan holds. */
bool planning_holds(const struct planning *p);

/* What the jobs of @s, the member @i, did since the terms hold. */
struct seen planning_seen(const struct planning *p, const struct session *s, unsigned i);
