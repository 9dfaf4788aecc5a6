/*
 * sweep.h: many random task sets at several utilisations under several policies, on all cores.
 *
 * Every policy gets the very same task sets. The result does not depend on the number of workers:
 * each task set has its own seed and its own place in the result.
 */
#pragma once

#include "client/sim/params.h"
#include "client/sim/select.h"
#include "client/sim/taskset.h"
#include "client/sim/workers.h"

#define SWEEP_POINTS_MAX   1000
#define SWEEP_TASKSETS_MAX 100000
#define SWEEP_WORKERS_MAX  WORKERS_MAX

struct sweep {
	const struct scenario *scenario; /* borrowed */
	struct taskset_rules rules;
	const struct sched_policy *policies[SELECT_MAX];
	size_t n_policies;
	struct params params;
	nsec_t duration;
	uint64_t seed;
	/* Utilisations, or with rules.heavy shares of heavy tasks; then jobs of light ones count.
	 */
	double u[SWEEP_POINTS_MAX];
	size_t n_points;
	unsigned n_tasksets; /* at each utilisation */
	unsigned n_workers;

	/* NULL, or called now and then by the caller's own thread. */
	void (*on_progress)(void *userdata, size_t done, size_t all);
	void *userdata;
};

/* One policy at one utilisation. Ratios and energies are means over the task sets. */
struct sweep_cell {
	struct sim_count count; /* of all task sets together */
	uint64_t decisions;
	double miss_ratio, miss_ratio_sd;
	double miss_ratio_pooled; /* of all jobs of all task sets together */
	double energy_j, energy_j_sd;
};

struct sweep_result {
	struct sweep_cell *cells; /* owned; [point * n_policies + policy] */
};

/* Return: 0; errors of taskset_make() and sim_run(); -EAGAIN: no threads. */
int sweep_run(const struct sweep *s, struct sweep_result *ret);
void sweep_result_deinit(struct sweep_result *r);
