/*
 * steer.h: computes the terms of all sessions and writes them into their pages, once a turn of the
 * loop, and only if something changed that they depend on: sessions, their tasks, what is known of
 * their jobs, the GPUs that they use, the policy, drained GPUs. Never for a job.
 *
 * At once by a rule; better ones follow when the planner has found them (core/steer/plan.h), and
 * others again when the tasks do worse than predicted (core/steer/tune.h).
 *
 * A program has terms on a GPU if it reads them (feature "terms"), the policy steers, the GPU is
 * shared through MPS and not drained, and its task may use it. Otherwise it asks for each job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "daemon/core/state.h"
#include "daemon/core/steer/tune.h"

struct event_base;
struct planner;
struct sched_policy;
struct sessions;

/* What one GPU's programs are planned with. */
struct steer_gpu {
	struct steer *steer; /* borrowed: whose part it is */
	size_t gpu;

	uint64_t ids[MODEL_TASKS_MAX]; /* of the sessions that the planner was asked about */
	unsigned n;		       /* 0: it was not */
	struct tune tune;	       /* since they are the same */

	/* Of the plan that holds; pending: it will be judged. */
	struct event judge;
	nsec_t since;
	struct model_result predicted[MODEL_TASKS_MAX];
	struct tune_seen before[MODEL_TASKS_MAX]; /* the sessions' counters then */
};

struct steer {
	struct sessions *sessions;	   /* borrowed, outlive us */
	const struct sched_policy *policy; /* when it last looked */
	uint32_t drained;		   /* GPUs that were, likewise */
	bool changed;			   /* something else has changed since */
	struct planner *planner;	   /* owned; NULL: by the rule alone */
	struct steer_gpu gpus[SCHED_GPUS_MAX];
};

/* Without a thread for the planner, or memory, programs are steered by the rule alone. */
void steer_init(struct steer *steer, struct sessions *sessions, struct event_base *base);

void steer_deinit(struct steer *steer);

/* Sessions or tasks have changed. */
void steer_changed(struct steer *steer);

/* At the end of a turn of the loop. */
void steer_look(struct steer *steer);
