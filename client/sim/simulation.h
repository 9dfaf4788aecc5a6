/*
 * simulation.h: one run of a scenario under one policy, with the schedule that came out.
 */
#pragma once

#include <jansson.h>

#include "client/sim/decision.h"
#include "client/sim/params.h"
#include "client/sim/scenario.h"

struct simulation {
	const struct sched_policy *policy;
	struct params params;
	bool stays; /* programs stay on their GPUs, but for those that move: as they do live */
	nsec_t duration;
	uint64_t seed;
	struct sim_result result;     /* owned */
	struct sim_segment *segments; /* owned; in the order of their ends */
	size_t n_segments;
	/* See struct sim_setup; hyperperiod 0: no boundaries. */
	nsec_t boundary, hyperperiod;
	bool (*on_boundary)(void *userdata, const struct sim_boundary *boundary);
	void *userdata;
	size_t n_explain;		 /* keep the last so many decisions */
	struct explain_entry *explained; /* owned; oldest first */
	size_t n_explained;
};

/* Policy, params, stays, duration, seed, boundaries and n_explain of @s are set; runs. Return: as
 * sim_run(). */
int simulation_run(struct simulation *s, const struct scenario *scenario);
void simulation_deinit(struct simulation *s);

/* The @i-th decision that was kept; @job: room for the job's name. */
struct decision simulation_decision(const struct simulation *s, const struct scenario *scenario,
				    const char *const *gpu_names, size_t i, char job[static 96]);

/* What `sbeetctl simulate --json` shows of it; NULL: no memory. */
json_t *simulation_json(const struct simulation *s, const struct scenario *scenario);
