/*
 * steer.h: computes the terms of all sessions and writes them into their pages, once a turn of the
 * loop, and only where something changed that they depend on: sessions, their tasks, what is known
 * of their jobs, the GPUs that they use, the policy, drained and lost GPUs. Never for a job. For a
 * program on which no other one's terms depend, nobody else is looked at.
 *
 * For each GPU it looks who is there (scene.h). At once the rule says where they run; better terms
 * follow when a plan was made, and others again when the tasks do worse than predicted
 * (planning.h). Where nothing can be predicted, and where only one program has a deadline and not
 * all others are known, the rule stays, and programs without a deadline get more as far as that is
 * seen to do no harm (sharing.h). Both write terms through writer.h.
 *
 * When programs without a deadline come and go, what holds for the others goes on until the next
 * plan, and who comes is put beside it. When others do, or their tasks change, all begins anew.
 *
 * A program has terms on a GPU if it reads them (feature "terms"), the policy steers, the GPU is
 * neither drained nor lost, and its task may use it. Otherwise it asks for each job. On a GPU that
 * is not shared through MPS programs run by time slices, and preempt each other (preempting.h): the
 * terms hold for those that can be preempted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "daemon/core/state.h"
#include "daemon/session/planning.h"
#include "daemon/session/preempting.h"
#include "daemon/session/scene.h"
#include "daemon/session/sharing.h"

struct event_base;
struct planner;
struct sched_policy;
struct session;
struct sessions;

/* One GPU. */
struct steer_gpu {
	struct steer *steer; /* borrowed: whose part it is */
	size_t gpu;
	struct scene_past past; /* when the terms were last computed */
	bool loose;		/* as in struct scene, when it was last looked at */
	uint64_t lowest;	/* likewise */
	struct planning planning;
	struct sharing sharing; /* on while no plan holds, nor is asked for */
};

/* What is known of the plan that holds for one program. */
struct steer_told {
	unsigned plans;	     /* as in struct planning, at least 1 */
	const char *verdict; /* what came of the last judgement: "wait", "try", "plan", "back",
				"keep"; static; NULL: there was none yet */
	double slow;  /* its kernels are taken to need this many times their profile's time */
	nsec_t since; /* the plan holds */
	struct model_result predicted;
	struct seen seen; /* since then */
};

struct steer {
	struct sessions *sessions;	   /* borrowed, outlive us */
	const struct sched_policy *policy; /* when it last looked */
	uint32_t closed;		   /* GPUs that were drained or lost, likewise */
	uint32_t sliced;		   /* GPUs that were not shared through MPS, likewise */
	uint32_t changed;		   /* GPUs where something else has changed since */
	bool any_changed;	 /* any program has, also where others don't depend on it */
	struct planner *planner; /* owned; NULL: by the rule alone */
	struct preempting preempting;
	nsec_t window; /* --steer-window; may change at any time */
	struct steer_gpu gpus[SCHED_GPUS_MAX];
};

/* Without a thread for the planner, or memory, programs are steered by the rule alone. */
void steer_init(struct steer *steer, struct sessions *sessions, struct event_base *base,
		nsec_t window, bool may_preempt, nsec_t turn, const char *state);

void steer_deinit(struct steer *steer);

/* What all terms may depend on has changed. */
void steer_changed(struct steer *steer);

/* @s has come, ended, or has another task, or more is known of its jobs. Where the terms of others
 * don't depend on it its own are written at once. */
void steer_session_changed(struct steer *steer, struct session *s);

/* @s is about to be welcomed, and would ask for its first job if its terms were not there yet: the
 * same, but the others' terms don't wait for steer_look() either. */
void steer_welcome(struct steer *steer, struct session *s);

/* At the end of a turn of the loop. */
void steer_look(struct steer *steer);

/* Return: whether the terms of @s on @gpu are a plan's; else @ret is not written. */
bool steer_explain(const struct steer *steer, const struct session *s, size_t gpu,
		   struct steer_told *ret);
