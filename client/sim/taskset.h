/*
 * taskset.h: random task sets as the dissertation's evaluations make them (2.5.4, 3.6.1).
 *
 * The profile of each task is drawn from those that run on the reference GPU; the utilisations by
 * UUniFast, drawn again until all lie in a range; the period is the profile's mean time on the
 * reference GPU over all SM counts, G_i, by the utilisation (2.2.2); the offset is drawn from
 * [0, T / 2]; priorities are rate-monotonic.
 *
 * Or, for Figure 2.9, sets of heavy and light tasks (2.5.5): each task is heavy with a given
 * chance; a heavy one's utilisation is drawn from [0.05, 0.2], a light one's from [0.2, 0.4], until
 * they sum up to 0.9; the last one gets what is left.
 */
#pragma once

#include "client/sim/scenario.h"

#define TASKSET_MAX 256

struct taskset_rules {
	unsigned n_tasks;	    /* 1 to TASKSET_MAX */
	double u_min, u_max;	    /* of one task; Table 3.5: 0.01 to 0.5 */
	unsigned deadline_permille; /* D / T: 1 to 1000 */
	unsigned reference;	    /* index of a GPU of the scenario */
	unsigned reference_sms;	    /* the mean is over 1 to this many SMs */
	unsigned reference_step;    /* or over the multiples of this up to there */
	const bool *excluded;	    /* by profile; NULL: none */
	const bool *heavy;	    /* by profile; NULL: sets as in 3.6.1 */
};

/* Table 3.5, with the first GPU and all SMs that its limit allows as the reference. */
void taskset_rules_default(struct taskset_rules *ret, const struct scenario *scenario);

/*
 * Makes a task set of total utilisation @u, or with rules->heavy with this share of heavy tasks, 0
 * to 1. @ret_tasks and @ret_profiles have room for TASKSET_MAX; *ret_n: how many there are.
 * Return: 0; -ERANGE: no such utilisations (n * u_min > u or n * u_max < u, or too seldom), or a
 * period beyond a day; -ENOENT: no profile to draw.
 */
int taskset_make(const struct scenario *scenario, const struct taskset_rules *rules, double u,
		 uint64_t seed, struct sched_task *ret_tasks, size_t *ret_profiles,
		 unsigned *ret_n);
