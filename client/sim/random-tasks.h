/*
 * random-tasks.h: random sets of tasks with CPU and GPU segments, as section 4.7.1 of the
 * dissertation makes them (Table 4.2), and those of its Figure 4.13. Pure: the same seed gives the
 * same set.
 *
 * How a set is made:
 * - The number of tasks is drawn for each CPU, then the CPU's utilisation, which UUniFast divides
 *   among them. With `tasks` there are so many in all, dealt to the CPUs in turn.
 * - The share of tasks that use the GPU is drawn once for the set; which ones is random.
 * - For each task a period T is drawn. Its work is U * T, of which C and G are such that G / C is
 *   the ratio drawn. n GPU segments and the n + 1 CPU segments around them divide G and C by
 *   UUniFast. G^m / G is drawn for each segment; G^e is the rest of it, and G their sum.
 * - The deadline is the period; priorities are rate-monotonic. Then tasks chosen at random become
 *   best effort.
 *
 * What the text leaves open, and what is chosen here:
 * - The least times, which the tighter bounds of 4.6.2 need, are not in the text. `best` is their
 *   share of the longest ones, drawn once a task: 0.5 to 1, as in the authors' later scripts.
 * - "Number of tasks" (Figure 4.6): `tasks`, the utilisation of each CPU as ever. The later scripts
 *   draw the utilisation of each task instead and put it on the CPU that has least: a
 *   `task-utilisation` above 0 does that.
 * - Figure 4.13's sets have "two CPU tasks with high utilization and small periods and one GPU task
 *   with long GPU execution", without numbers: `short-tasks`, one a CPU, and `long-tasks`, on CPU
 *   0, with parameters of their own. The utilisation of a CPU can't be a parameter then; the other
 *   tasks draw a `task-utilisation`.
 */
#pragma once

#include <stdbool.h>

#include "client/sim/range.h"
#include "daemon/core/analysis/rta.h"

enum random_param {
	RANDOM_CPUS,
	RANDOM_TASKS_PER_CPU,
	RANDOM_TASKS,
	RANDOM_UTILISATION,
	RANDOM_TASK_UTILISATION,
	RANDOM_GPU_TASKS,
	RANDOM_PERIOD,
	RANDOM_SEGMENTS,
	RANDOM_GPU_TO_CPU,
	RANDOM_MISC,
	RANDOM_BEST,
	RANDOM_BEST_EFFORT,
	RANDOM_SHORT_TASKS,
	RANDOM_SHORT_UTILISATION,
	RANDOM_SHORT_PERIOD,
	RANDOM_LONG_TASKS,
	RANDOM_LONG_UTILISATION,
	RANDOM_LONG_PERIOD,
	RANDOM_LONG_GPU_TO_CPU,
	_RANDOM_PARAM_N,
};

/* All in thousandths. */
struct random_param_info {
	const char *name;
	const char *axis; /* what it is, as an axis is called */
	bool whole;
	unsigned min, max;
	struct range table; /* Table 4.2, or what stands for it */
	struct range sweep; /* the x axis of its figure; step 0: there is none */
};

extern const struct random_param_info random_params[_RANDOM_PARAM_N];

/* A value for each set is drawn from each range; step is not used. */
struct random_tasks {
	struct range params[_RANDOM_PARAM_N];
};

/* Table 4.2; @overlap: Figure 4.13's sets. */
void random_tasks_default(struct random_tasks *ret, bool overlap);

/* _RANDOM_PARAM_N: there is none of this name. */
enum random_param random_param_find(const char *name, size_t length);

/* Return: 0; -EINVAL: @range is out of the parameter's bounds, or not whole where it has to be. */
int random_tasks_put(struct random_tasks *g, enum random_param p, struct range range);

/* Whether the parameters go together. Return: 0; -EINVAL with one line in @error. */
int random_tasks_check(const struct random_tasks *g, char *error, size_t error_size);

/* Room for the largest set. */
#define RANDOM_SEGMENTS_MAX 10
struct random_set {
	struct rta_set set; /* its tasks are those below; epsilon and kthread_cpu are 0 */
	struct rta_task tasks[RTA_TASKS_MAX];
	struct rta_segment segments[RTA_TASKS_MAX * (2 * RANDOM_SEGMENTS_MAX + 1)];
};

/* @g has passed random_tasks_check(). @ret stays where it is, as it
 * points into itself. */
void random_tasks_make(const struct random_tasks *g, uint64_t seed, struct random_set *ret);
