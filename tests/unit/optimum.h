/*
 * optimum.h: small random cases, and the best that any schedule of one could do, by trying all.
 *
 * The space: each of up to five jobs, released once, runs at most once, without preemption, on one
 * GPU, on any number of SMs that is left there within the limit, beside at most one other job; it
 * may also never run. A job starts at an event: the release of a job or the end of one, of any job
 * on any GPU.
 *
 * As policies are asked only at events, all that any of them can do lies in this space, and none
 * can be better than the best in it. For the fewest misses nothing is lost by it: take the jobs of
 * any schedule in the order of their starts and move each one to the left until it meets its
 * release or the end of a job whose SMs or slot it needs; nobody ends later than before. For energy
 * something is: to start between events, so that two jobs on a GPU end together, may save idle
 * power. SMs are counted, not named: they are all alike, and the core gives any free ones.
 */
#pragma once

#include "daemon/sim/sim.h"

#define OPTIMUM_GPUS 2
#define OPTIMUM_SMS  4
#define OPTIMUM_JOBS 5

struct optimum_case {
	size_t n_gpus, n_jobs;
	nsec_t duration; /* all jobs can be over by then, one after the other */
	struct sched_gpu_model gpus[OPTIMUM_GPUS];
	struct profile_table profiles[OPTIMUM_JOBS][OPTIMUM_GPUS];
	struct sched_task tasks[OPTIMUM_JOBS]; /* their profiles are those above: not to be moved */
};

struct optimum_value {
	unsigned misses;
	uint64_t energy_pj; /* above static power */
};

/* Jobs that come close together and have little time, so that some cases have misses. */
void optimum_case_make(struct optimum_case *ret, uint64_t seed);

/* Fewest misses, and the least energy among the schedules that have no more. */
struct optimum_value optimum_search(const struct optimum_case *c);

/* What a policy makes of it, with default parameters. Return: 0 or the error of sim_run(). */
int optimum_policy(const struct optimum_case *c, const struct sched_policy *policy,
		   struct optimum_value *ret);
