/*
 * steer.h: computes the terms of all sessions and writes them into their pages, once a turn of the
 * loop, and only if something changed that they depend on: sessions, their tasks, the GPUs that
 * they use, the policy, drained GPUs. Never for a job.
 *
 * A program has terms on a GPU if it reads them (feature "terms"), the policy steers, the GPU is
 * shared through MPS and not drained, and its task may use it. Otherwise it asks for each job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sched_policy;
struct sessions;

struct steer {
	struct sessions *sessions;	   /* borrowed, outlive us */
	const struct sched_policy *policy; /* when it last looked */
	uint32_t drained;		   /* GPUs that were, likewise */
	bool changed;			   /* something else has changed since */
};

void steer_init(struct steer *steer, struct sessions *sessions);

/* Sessions or tasks have changed. */
void steer_changed(struct steer *steer);

/* At the end of a turn of the loop. */
void steer_look(struct steer *steer);
