/*
 * schedule.h: schedules of tasks with CPU and GPU segments in virtual time, to be compared with
 * their bounds (daemon/core/analysis). It shares the set of tasks with the analysis, but none of
 * its formulas.
 *
 * Partitioned fixed priorities: each CPU runs the ready task of highest priority. A GPU segment
 * runs part of G^m on the CPU, then G^e on the GPU, then the rest of G^m; where G is less than
 * G^m + G^e, the difference of G^m may run during G^e. During G^e a busy task keeps wanting its
 * CPU. A task runs one job at a time; a job that is released meanwhile waits.
 *
 * SCHEDULE_IOCTL (Alg. 7): both ends of a GPU segment call the driver, which takes epsilon on the
 *   CPU, under one lock, and is not preempted. Who waits for the lock spins and can be preempted.
 *   The lock goes to the task of highest priority that asks for it on its CPU at that moment. The
 *   GPU belongs to the segment of highest priority from the end of its first call to the end of its
 *   last; it does nothing during the first call of a segment that will preempt it.
 * SCHEDULE_KTHREAD (Alg. 6): all are busy. A GPU-using task that is not of best effort gets the GPU
 *   when its job is the ready one of highest priority, from release to completion. Each time that
 *   another task is that one, the kernel thread runs for epsilon on its CPU, above all, while the
 *   GPU does nothing. A polling interval is not simulated: epsilon must contain it. The GPU
 *   continues kernels of a task that has lost its CPU.
 * SCHEDULE_MPCP, SCHEDULE_FMLP: a GPU segment holds the lock of the GPU; who waits for it suspends.
 *   The lock goes to the request of highest priority, or to the oldest. Its holder runs above all
 *   others on its CPU. Nothing costs epsilon.
 *
 * Tasks of best effort come last everywhere, among them in their order in the set.
 *
 * Pure: no I/O, no clock; the same setup gives the same result.
 */
#pragma once

#include "daemon/core/analysis/safe.h"

enum schedule_approach {
	SCHEDULE_IOCTL,
	SCHEDULE_KTHREAD,
	SCHEDULE_MPCP,
	SCHEDULE_FMLP,
};

struct schedule_setup {
	const struct rta_set *set; /* sums filled in; borrowed */
	enum schedule_approach approach;
	enum rta_mode mode; /* not with SCHEDULE_KTHREAD */

	/* With SCHEDULE_IOCTL: the lock goes to the waiting task of highest priority even if that
	 * has lost its CPU, as a usual lock with a queue by priority does. */
	bool hand_over;

	/* Jobs of best-effort tasks come, as often as not, a nanosecond before anything else does,
	 * whatever their periods: a call of theirs is then under way. */
	bool hostile;

	const nsec_t *offsets; /* first release of each task; borrowed */
	nsec_t duration;

	/* Segments take from their best to their worst case, half of them the worst, and some jobs
	 * come later than they may. false: all take their worst case, and come each period. */
	bool drawn;

	/* Of all that is drawn. 0: half of each G^m comes before G^e; otherwise that is drawn too.
	 */
	uint64_t seed;
};

struct schedule_result {
	/* The longest response of a job of each task; of one that is not done at the end, its time
	 * so far. */
	nsec_t longest[RTA_TASKS_MAX];
	nsec_t first[RTA_TASKS_MAX]; /* of the first job, if it is done, else RTA_FOREVER */
	uint64_t jobs;		     /* done */
};

void schedule_simulate(const struct schedule_setup *setup, struct schedule_result *ret);

/* How releases are placed. */
enum schedule_offsets {
	SCHEDULE_CRITICAL,    /* all at once, then each period */
	SCHEDULE_RANDOM,      /* drawn, with drawn times in every second run */
	SCHEDULE_ADVERSARIAL, /* moved around one release of each task so that it takes longer */
	_SCHEDULE_OFFSETS_N,
};

struct schedule_search {
	struct schedule_setup setup; /* its offsets and drawn are not used; duration: of a run */
	unsigned n_random;	     /* runs */
	unsigned n_adversarial;	     /* runs for each task that is not of best effort */

	/* NULL, or called after each run. Return: whether to go on. */
	bool (*on_progress)(void *userdata, uint64_t done, uint64_t all);
	void *userdata;
};

struct schedule_worst {
	nsec_t longest[_SCHEDULE_OFFSETS_N][RTA_TASKS_MAX];
	uint64_t jobs, runs;
};

/* Return: false if on_progress() ended it; @ret then has what was found so far. */
bool schedule_search(const struct schedule_search *s, struct schedule_worst *ret);

/* The longest of task @i, however its releases were placed. */
nsec_t schedule_longest(const struct schedule_worst *w, size_t i);
