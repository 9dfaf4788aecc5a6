/*
 * sim.h: a discrete-event simulation of tasks, GPUs and whoever shares them out, in virtual time.
 *
 * Pure: no I/O, no clock of its own, no globals; the same setup gives the same result.
 *
 * A job of task i is released at offset + j * T, for each such time before the end of the window
 * (once, if T is 0). When it runs, where and for how long is up to the arbiter, such as the
 * daemon's own scheduler (grants.h), or a GPU that is shared without asking (shared.h).
 *
 * Jobs of one task may run side by side, unless tasks are to be like programs of one thread
 * (sequential): then each job is asked for when the one before it is over. As the scheduler is not
 * told which release a job is for, it takes the last one that has passed. Misses are counted by the
 * real ones.
 *
 * Power follows Eq. 3.2; when a job draws any, params.power says (enum sched_power).
 */
#pragma once

#include "daemon/core/explain.h"
#include "daemon/core/sched.h"

/* Jobs in one run: some hundred bytes each at most. */
#define SIM_JOBS_MAX 4000000u

/* Longest window: a day, so that energies stay within 64 bits (see power.h). */
#define SIM_DURATION_MAX (86400ull * NSEC_PER_SEC)

/* How long kernels really run. */
enum sim_exec {
	SIM_EXEC_WORST, /* G_e(m), always */
	SIM_EXEC_DRAWN, /* even between the profile's best and worst time */
	SIM_EXEC_SHARE, /* even between exec_share_permille of the worst time and the worst time */
	_SIM_EXEC_N,
};

/* What a job did on a GPU. A job that the end of the window cuts ends there. */
struct sim_segment {
	unsigned gpu;
	struct smset sms;
	size_t task;			 /* index into the setup's tasks */
	uint64_t job;			 /* j, from 0 */
	nsec_t start, end;		 /* it held the SMs */
	nsec_t kernel_start, kernel_end; /* within that; both are `end` if no kernel ran */
	uint32_t dynamic_mw;		 /* drawn while it held the SMs, or while the kernel ran */
};

/* What on_boundary() is told at a boundary of hyperperiods. */
struct sim_boundary {
	nsec_t now;
	uint64_t n;	 /* how many boundaries came before */
	bool repeats;	 /* an earlier boundary had this state, so everything repeats */
	uint64_t missed; /* jobs, as far as is known by now */
};

/* Where work runs on GPUs that are shared without asking (shared.h). */
enum sim_terms {
	SIM_TERMS_SAME,	   /* everybody everywhere */
	SIM_TERMS_LEVELS,  /* the same, and stream priorities by deadline */
	SIM_TERMS_PLANNED, /* as the policy steer plans */
	SIM_TERMS_SHARED,  /* as steer does with programs that nobody has profiled */
	_SIM_TERMS_N,
};

/* What runs when, given what is ready: &sim_grants (grants.h), &sim_shared (shared.h), or another
 * one: see arbiter.h. */
struct sim_arbiter;

struct sim_setup {
	const struct sim_arbiter *arbiter;
	const struct sched_gpu_model *gpus;
	size_t n_gpus; /* 1 to SCHED_GPUS_MAX */
	/* What sched_add_task() reads of them; at least one profile or none that is asked for. */
	const struct sched_task *tasks;
	size_t n_tasks;
	/* NULL: each job may run on any GPU with a profile. Else by task: whether that holds for its
	 * jobs; others stay where the policy places their program (sched_place()), or where CUDA
	 * does: on the first GPU. */
	const bool *moves;
	const struct sched_policy *policy;
	struct sched_params params;
	nsec_t duration;
	enum sim_exec exec;
	unsigned exec_share_permille; /* 1 to 1000 */
	nsec_t overhead;	      /* of each job; at most PROFILE_TIME_MAX */
	enum sim_terms terms;
	unsigned cap_percent; /* of the SMs, that one task's kernels may hold at once, as
				 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; 0: no cap; not if planned or
				 shared */
	bool sequential;
	uint64_t seed; /* of the execution times; the same for every policy */

	/* NULL, or called for each segment in the order of its end. */
	void (*on_segment)(void *userdata, const struct sim_segment *segment);
	/* The last so many decisions are kept; each is told after the run, oldest first. Its owner
	 * is the task's index + 1, its tag the job's number. */
	size_t n_explain;
	void (*on_explained)(void *userdata, const struct explain_entry *entry);
	/*
	 * With @hyperperiod (0: never) the states are compared at boundary, boundary + hyperperiod
	 * and so on, each before what happens at that moment: what waits and runs with all that
	 * its future depends on, and what is kept of tasks. The first boundary must not lie before
	 * a task's first release. Return: whether to go on; if not, the window ends there. Nothing
	 * repeats where execution times are drawn.
	 */
	nsec_t boundary, hyperperiod;
	bool (*on_boundary)(void *userdata, const struct sim_boundary *boundary);
	/* NULL, or any clock in nanoseconds: the cost of decisions is measured with it. */
	nsec_t (*clock)(void *userdata);
	void *userdata;
};

struct sim_times {
	nsec_t min, mean, p99, max; /* 0 when nothing was counted */
};

/*
 * How jobs are counted. released: r < duration. completed: done by the end of the window. missed:
 * done after its deadline, given up, or its deadline has passed by the end of the window and it is
 * not done. open: not done, but its deadline (if any) lies beyond the window, so nobody can tell;
 * the miss ratio is missed / (released - open).
 */
struct sim_count {
	uint64_t released, completed, missed, open;
};

struct sim_task_result {
	struct sim_count count;
	struct sim_times response; /* from release to the end of the last copy; completed jobs */
	int64_t lateness_max; /* largest finish - deadline of a completed job; INT64_MIN: none */
	int home;	      /* GPU of the policy's offline part; -1: none */
};

struct sim_result {
	struct sim_count count;
	nsec_t end;			    /* of the window: the duration, or a boundary */
	uint64_t energy_pj[SCHED_GPUS_MAX]; /* over [0, end) */
	uint64_t energy_total_pj;
	nsec_t active[SCHED_GPUS_MAX]; /* time with at least one job running, in the sense of power
					*/
	struct sim_task_result *tasks; /* owned, n_tasks of them */
	size_t n_tasks;
	uint64_t decisions; /* calls of sched_decide() */
	uint64_t grants;
	struct {
		nsec_t total, p50, p99, max; /* percentiles within 1/16; 0 without a clock */
	} cost;
};

/*
 * Runs the window [0, duration). Return: 0; -EINVAL for a setup out of range or that the arbiter
 * refuses; -E2BIG for more than SIM_JOBS_MAX jobs; -EUSERS for more tasks than the arbiter takes;
 * -ENOMEM.
 */
int sim_run(const struct sim_setup *setup, struct sim_result *ret);
void sim_result_deinit(struct sim_result *r);

/* Missed jobs in parts per million; 0 if none was to be judged. */
unsigned sim_miss_ppm(const struct sim_count *count);

/*
 * The generator of everything random here and in task sets (SplitMix64): the next number of the
 * sequence in *state. Any start value is good; neighbouring ones give unrelated sequences.
 */
uint64_t sim_random(uint64_t *state);
