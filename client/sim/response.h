/*
 * response.h: the parts of `sbeetctl response-time`: bounds of one set of tasks
 * (verb-response-time.c), simulated schedules of it (response-simulate.c), and sweeps over random
 * sets (response-sweep.c). All read ctl->options as struct response_options.
 */
#pragma once

#include "client/base/ctl.h"
#include "client/sim/select.h"
#include "daemon/core/analysis/method.h"

struct response_options {
	struct select_words methods, readings;
	nsec_t epsilon;
	bool has_epsilon, epsilon_measured, compare, slack, gpu_priorities, swap;

	/* A sweep's. */
	const char *sweep, *generator, *csv, *plot;
	struct select_words params, notes;
	uint64_t seed;
	unsigned n_sets, n_workers; /* 0: not given */

	/* A simulation's, with the seed. */
	bool simulate;
	nsec_t duration; /* 0: not given */
	unsigned n_runs;
};

/* What simulated schedules had: the longest response of each task. */
struct response_seen {
	nsec_t longest[RTA_TASKS_MAX];
	nsec_t critical[RTA_TASKS_MAX], random[RTA_TASKS_MAX], adversarial[RTA_TASKS_MAX];
	nsec_t duration;	  /* of a schedule with random offsets */
	uint64_t schedules, jobs; /* jobs: done */
};

/* The method of this name; NULL: the default one. Return: NULL after an error on stderr. */
const struct rta_method *response_find_method(const char *name);

/* Return: an enum ctl_exit, after an error on stderr. */
int response_read_readings(const struct select_words *words, struct rta_readings *ret);

/* Runs a sweep and shows what came out. Return likewise. */
int response_sweep(const struct ctl *ctl);

/* Simulates what @m bounds (see schedule.h). Return likewise. */
int response_simulate(const struct response_options *o, const struct rta_method *m,
		      const struct rta_set *set, struct response_seen *ret);
