/*
 * core-sim.h: periodic tasks in virtual time against the scheduling core, for its unit tests:
 * plain, checks every rule at every step, and stops the test at the first one broken.
 *
 * The simulator that users get is daemon/sim/sim.h; this one is deliberately another program.
 */
#pragma once

#include "daemon/core/sched.h"

#define CORE_SIM_TASKS_MAX 64
#define CORE_SIM_JOBS_MAX  256

struct core_sim_task {
	sched_task_id id;
	nsec_t period, deadline;
	nsec_t next; /* release */
	unsigned released, missed;
	unsigned n_sms; /* that its last job got */
	nsec_t worst_response;
	nsec_t last_start;  /* of a job; 0: none yet */
	nsec_t passed_over; /* the longest that a job waited and none was granted */
	bool whole;	    /* its jobs can't be divided */
};

struct core_sim_job {
	bool used, running, kernel_over;
	unsigned task;
	nsec_t release, deadline;
	nsec_t kernel_start, kernel_end, finish; /* actual, once running */
	nsec_t left[3]; /* of its copy in, kernel and copy out, once it was stopped */
};

struct core_sim {
	struct sched *s; /* borrowed */
	nsec_t now;
	size_t n_tasks;
	struct core_sim_task tasks[CORE_SIM_TASKS_MAX];
	struct core_sim_job jobs[CORE_SIM_JOBS_MAX]; /* by the core's number */
	unsigned best_permille; /* actual times are drawn from [this, 1000] of the worst */
	bool one_waits; /* a task with a job that waits skips its releases, as a program does */
	bool choosy;	/* each job may run on some GPUs only, drawn anew */
	bool drop_late; /* a job that still waits at its deadline is given up */
	uint64_t random;
	unsigned released, missed, completed, decisions, stopped;
	uint64_t energy_pj;
	uint64_t fingerprint; /* of all grants */
};

void core_sim_init(struct core_sim *sim, struct sched *s, uint64_t seed);
uint64_t core_sim_random(struct core_sim *sim, uint64_t below);

/* Declares the task to the core and releases its jobs from now on. */
void core_sim_add(struct core_sim *sim, const struct sched_task *task);

/* Up to @until: jobs with a later deadline don't count as released. */
void core_sim_run(struct core_sim *sim, nsec_t until);
