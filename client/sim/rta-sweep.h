/*
 * rta-sweep.h: which share of random sets of tasks is schedulable by several methods of
 * response-time analysis, over a range of one parameter, on several threads.
 *
 * All methods get the very same sets. The result does not depend on the number of threads.
 */
#pragma once

#include "client/sim/random-tasks.h"
#include "client/sim/select.h"
#include "client/sim/workers.h"
#include "daemon/core/analysis/method.h"

#define RTA_SWEEP_POINTS_MAX 200
#define RTA_SWEEP_SETS_MAX   100000

/* One curve. */
struct rta_curve {
	const char *name; /* borrowed */
	const struct rta_method *method;
	bool assign; /* where the order of the tasks fails, look for GPU priorities (4.5.3) */
};

struct rta_sweep {
	struct random_tasks tasks;
	enum random_param x;		       /* both ends of its range are one of the points */
	unsigned points[RTA_SWEEP_POINTS_MAX]; /* in thousandths */
	size_t n_points;
	struct rta_curve curves[SELECT_MAX];
	size_t n_curves;
	struct rta_readings readings;
	bool swap; /* see rta_audsley() */
	nsec_t epsilon;
	uint64_t seed;
	unsigned n_sets; /* at each point */
	unsigned n_workers;

	/* See workers.h. */
	void (*on_progress)(void *progress, size_t done, size_t all);
	void *progress;
};

struct rta_sweep_result {
	unsigned *schedulable; /* owned; [point * n_curves + curve], of n_sets */
};

/* The sets at all points must pass random_tasks_check(). Return: 0; -ENOMEM; -EAGAIN: no threads.
 */
int rta_sweep_run(const struct rta_sweep *s, struct rta_sweep_result *ret);
void rta_sweep_result_deinit(struct rta_sweep_result *r);

/* The parameters of the sets at point @i. */
struct random_tasks rta_sweep_at(const struct rta_sweep *s, size_t i);

/* In percent. */
double rta_sweep_percent(const struct rta_sweep *s, const struct rta_sweep_result *r, size_t point,
			 size_t curve);
