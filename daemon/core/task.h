/*
 * task.h: the table of declared tasks and the queue of their coming releases; included by sched.c,
 * policies and their tests only.
 *
 * Owns the tasks; knows neither jobs nor GPUs' state.
 */
#pragma once

#include "daemon/core/state.h"

/* Most tasks: 20,000 are asked for; the bound keeps a mistake from taking all memory. */
#define TASK_MAX 65536

/* Most releases one look ahead can ask for. */
#define TASK_COMING_MAX 32

/* A task's place in an order. */
struct task_rank {
	uint64_t key;
	sched_task_id task;
};

struct task_table {
	struct sched_task *list; /* owned, n of them, also those no longer used */
	size_t n, n_used, capacity;
	sched_task_id *heap; /* owned: tasks with a known next release, soonest first */
	size_t n_heap;
	struct task_rank *ranks; /* owned: room for every task, for whoever sorts them */
};

void task_table_deinit(struct task_table *t);

/* What is known of all tasks is derived anew: a GPU's model or the parameters have changed. */
void task_table_derive(struct task_table *t, const struct sched_params *params,
		       const struct sched_gpu *gpus, size_t n_gpus);

/* Copies @task (what a caller sets, see sched.h) and derives m_opt, energies and their order from
 * @gpus and @params. Return: 0, -EINVAL, -ENOSPC, -ENOMEM. */
int task_table_add(struct task_table *t, const struct sched_task *task,
		   const struct sched_params *params, const struct sched_gpu *gpus, size_t n_gpus,
		   sched_task_id *ret_id);
void task_table_remove(struct task_table *t, sched_task_id id);

/* NULL for a number that is not in use. */
struct sched_task *task_table_get(const struct task_table *t, sched_task_id id);

/* A job of the task was released at @release: the next one comes a period later. */
void task_table_released(struct task_table *t, sched_task_id id, nsec_t release);

/* The soonest release that is expected, which may be overdue; 0: none. */
nsec_t task_table_next_release(const struct task_table *t);

/* A release that nobody has seen yet. */
struct task_coming {
	sched_task_id task;
	nsec_t release;
	nsec_t deadline; /* absolute; 0: none */
};

/*
 * The next releases before @until, soonest first, at most @max of them and of TASK_COMING_MAX. A
 * release that is overdue at @now is expected at @now, the task's following ones a period apart
 * from there. O(k log k) for k results, however many tasks there are.
 */
size_t task_table_coming(const struct task_table *t, nsec_t now, nsec_t until,
			 struct task_coming *ret, size_t max);

/* The GPU that a task's jobs belong to: the one they ask for, else of those that they may run on
 * (see sched_may_run()) its home, or its cheapest one. The task must have a profile on one of them.
 */
static inline unsigned task_home(const struct sched_task *task, int gpu_wanted, uint32_t gpus) {
	if (gpu_wanted >= 0) {
		return (unsigned)gpu_wanted;
	}
	if (task->home >= 0 && sched_may_run(-1, gpus, (size_t)task->home)) {
		return (unsigned)task->home;
	}
	for (size_t i = 0; i < task->n_gpus; i++) {
		if (sched_may_run(-1, gpus, task->order[i])) {
			return task->order[i];
		}
	}
	return task->order[0];
}

/* The fewest SMs of GPU @gpu that a divisible job of the task may be given: at least min_sms, and
 * no fewer than were measured, because its time on fewer is not known. */
static inline unsigned task_least_sms(const struct sched_task *task,
				      const struct sched_gpu_model *model, size_t gpu) {
	const struct profile_table *p = task->profiles[gpu];
	unsigned least = p && p->least > task->spec.min_sms ? p->least : task->spec.min_sms;

	return sched_least_sms(model, least, task->spec.max_sms);
}

/* What a grant of @n_sms SMs of GPU @gpu at @start leads to by the task's profile there. */
struct task_times {
	nsec_t kernel_start, kernel_end;
	nsec_t sms_end; /* the SMs come free */
	nsec_t finish;	/* the last copy is done */
};

static inline struct task_times task_times(const struct sched_task *task,
					   const struct sched_params *params, unsigned gpu,
					   unsigned n_sms, nsec_t start) {
	const struct profile_table *p = task->profiles[gpu];
	bool moves = task->last_gpu >= 0 && task->last_gpu != (int)gpu;
	struct task_times t;

	t.kernel_start = start + (moves ? params->migration_cost : 0) + task->overhead + p->copy_in;
	t.kernel_end = t.kernel_start + profile_exec(p, n_sms);
	t.finish = t.kernel_end + p->copy_out;
	t.sms_end = params->free_at_kernel_end ? t.kernel_end : t.finish;
	return t;
}
