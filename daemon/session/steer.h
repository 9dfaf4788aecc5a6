/*
 * steer.h: computes the terms of all sessions and writes them into their pages, once a turn of the
 * loop, and only if something changed that they depend on: sessions, their tasks, what is known of
 * their jobs, the GPUs that they use, the policy, drained GPUs. Never for a job.
 *
 * At once by a rule; better ones follow when the planner has found them: see core/steer/plan.h.
 *
 * A program has terms on a GPU if it reads them (feature "terms"), the policy steers, the GPU is
 * shared through MPS and not drained, and its task may use it. Otherwise it asks for each job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/state.h"
#include "daemon/core/steer/model.h"

struct event_base;
struct planner;
struct sched_policy;
struct sessions;

/* Who has terms on one GPU, in the order of the question that the planner has. */
struct steer_scene {
	uint64_t ids[MODEL_TASKS_MAX]; /* of sessions */
	unsigned n;
};

struct steer {
	struct sessions *sessions;		    /* borrowed, outlive us */
	const struct sched_policy *policy;	    /* when it last looked */
	uint32_t drained;			    /* GPUs that were, likewise */
	bool changed;				    /* something else has changed since */
	struct planner *planner;		    /* owned; NULL: by the rule alone */
	struct steer_scene planned[SCHED_GPUS_MAX]; /* what the planner was asked */
};

/* Without a thread for the planner, or memory, programs are steered by the rule alone. */
void steer_init(struct steer *steer, struct sessions *sessions, struct event_base *base);

void steer_deinit(struct steer *steer);

/* Sessions or tasks have changed. */
void steer_changed(struct steer *steer);

/* At the end of a turn of the loop. */
void steer_look(struct steer *steer);
