/* partition.c: see partition.h. */
#include "daemon/core/partition.h"

#include <limits.h>
#include <stdlib.h>

#include "daemon/core/task.h"

uint64_t partition_utilisation_at(const struct sched_task *task, size_t gpu, unsigned m) {
	return task->period ? profile_total(task->profiles[gpu], m) * PARTITION_WHOLE / task->period
			    : 0;
}

/* On 1 to @most SMs. */
static uint64_t mean(const struct sched_task *task, size_t gpu, unsigned most) {
	uint64_t sum = 0;

	for (unsigned m = 1; m <= most; m++) {
		sum += partition_utilisation_at(task, gpu, m);
	}
	return sum / most;
}

uint64_t partition_utilisation_mean(const struct sched *s, const struct sched_task *task,
				    size_t gpu) {
	return mean(task, gpu, sched_gpu(s, gpu)->model.limit);
}

/* By the reference GPU, of which a part may be reserved for others: U_i(pi_k) = U_i(pi_0) whatever
 * the limit (3.6.1). By the task's cheapest GPU if it can't run there. */
static uint64_t utilisation_of(const struct sched *s, const struct sched_task *task,
			       size_t reference) {
	unsigned most = sched_get_params(s)->reference_sms;
	const struct profile_table *p = task->profiles[reference];

	if (!p) {
		return partition_utilisation_mean(s, task, task->order[0]);
	}
	return most == 0 ? partition_utilisation_mean(s, task, reference)
			 : mean(task, reference, most < p->n_sms ? most : p->n_sms);
}

/* The GPU that @rule offers before another. Where it does not say, the bigger one: the order in
 * which GPUs are listed matters to first fit alone. */
static bool offered_before(const struct sched *s, enum partition_rule rule, const uint64_t *used,
			   size_t a, size_t b) {
	unsigned x = sched_gpu(s, a)->model.limit, y = sched_gpu(s, b)->model.limit;

	switch (rule) {
	case PARTITION_BIGGEST:
		return x > y;
	case PARTITION_LITTLEST:
		return x < y;
	case PARTITION_BEST_FIT:
		return used[a] != used[b] ? used[a] > used[b] : x > y;
	case PARTITION_WORST_FIT:
		return used[a] != used[b] ? used[a] < used[b] : x > y;
	default:
		return false;
	}
}

static void place_by_size(struct sched *s, enum partition_rule rule, struct sched_task *task,
			  uint64_t size, uint64_t *used) {
	int fits = -1, least = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (!task->profiles[k] || !sched_may_run(-1, task->gpus, k)) {
			continue;
		}
		if (least < 0 || offered_before(s, PARTITION_WORST_FIT, used, k, (size_t)least)) {
			least = (int)k;
		}
		if (used[k] + size <= PARTITION_WHOLE &&
		    (fits < 0 || offered_before(s, rule, used, k, (size_t)fits))) {
			fits = (int)k;
		}
	}
	task->home = fits >= 0 ? fits : least;
	used[task->home] += size;
}

/* The tasks whose GPU is given. */
static void place_given(struct sched *s, uint64_t *used) {
	struct task_table *tasks = policy_tasks(s);

	for (sched_task_id id = 0; id < tasks->n; id++) {
		struct sched_task *task = task_table_get(tasks, id);
		int k = task ? task->gpu_wanted : -1;

		if (k >= 0 && task->profiles[k]) {
			task->home = k;
			used[k] += partition_utilisation_at(task, (size_t)k, task->m_opt[k]);
		}
	}
}

static int rank_compare(const void *a, const void *b) {
	const struct task_rank *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? 1 : -1) : x->task < y->task ? -1 : 1;
}

/* Sorts the tasks that are left to be placed by @key, greatest first, those of equal keys by their
 * numbers. Returns how many; they are in tasks->ranks. */
static size_t rank_tasks(struct sched *s, uint64_t (*key)(const void *, const struct sched_task *),
			 const void *userdata) {
	struct task_table *tasks = policy_tasks(s);
	size_t n = 0;

	for (sched_task_id id = 0; id < tasks->n; id++) {
		const struct sched_task *task = task_table_get(tasks, id);

		if (task && task->n_gpus > 0 && task->home < 0) {
			tasks->ranks[n++] = (struct task_rank){key(userdata, task), id};
		}
	}
	if (n > 0) { /* without tasks there is no list */
		qsort(tasks->ranks, n, sizeof(tasks->ranks[0]), rank_compare);
	}
	return n;
}

/* The GPU that utilisations are measured on. */
struct measure {
	const struct sched *s;
	size_t reference;
};

static uint64_t size_key(const void *userdata, const struct sched_task *task) {
	const struct measure *m = userdata;

	return utilisation_of(m->s, task, m->reference);
}

void partition_by_size(struct sched *s, enum partition_rule rule) {
	struct task_table *tasks = policy_tasks(s);
	uint64_t used[SCHED_GPUS_MAX] = {0};
	struct measure m = {.s = s};
	size_t n;

	for (size_t k = 1; k < sched_n_gpus(s); k++) {
		if (sched_gpu(s, k)->n_sms > sched_gpu(s, m.reference)->n_sms) {
			m.reference = k;
		}
	}
	place_given(s, used);
	n = rank_tasks(s, size_key, &m);
	for (size_t i = 0; i < n; i++) {
		place_by_size(s, rule, task_table_get(tasks, tasks->ranks[i].task),
			      tasks->ranks[i].key, used);
	}
}

static bool in_time_at(const struct sched_task *task, size_t gpu) {
	return profile_total(task->profiles[gpu], task->m_opt[gpu]) <= task->deadline;
}

/* Alg. 4, lines 4 to 10, for one task. */
static void place_by_energy(const struct sched *s, struct sched_task *task, uint64_t *used) {
	enum sched_reading reading = sched_get_params(s)->reading;
	bool only_fitting = false;
	int least = -1;
	uint64_t least_used = 0;

	for (size_t i = 0; reading == SCHED_READING_FIT && i < task->n_gpus; i++) {
		only_fitting |= sched_may_run(-1, task->gpus, task->order[i]) &&
				in_time_at(task, task->order[i]);
	}
	for (size_t i = 0; i < task->n_gpus; i++) {
		size_t k = task->order[i];
		uint64_t u = reading == SCHED_READING_AUTHORS
				     ? partition_utilisation_mean(s, task, k)
				     : partition_utilisation_at(task, k, task->m_opt[k]);

		if (!sched_may_run(-1, task->gpus, k) || (only_fitting && !in_time_at(task, k))) {
			continue;
		}
		if (used[k] + u <= PARTITION_WHOLE) { /* line 6 */
			task->home = (int)k;
			used[k] += u;
			return;
		}
		if (least < 0 || used[k] + u < least_used) {
			least = (int)k;
			least_used = used[k] + u;
		}
	}
	task->home = least; /* line 10 */
	used[least] = least_used;
}

void partition_one(struct sched *s, struct sched_task *task) {
	uint64_t used[SCHED_GPUS_MAX] = {0};

	place_given(s, used);
	place_by_energy(s, task, used);
}

static uint64_t priority_key(const void *userdata, const struct sched_task *task) {
	(void)userdata;
	return (uint64_t)((int64_t)task->spec.priority - INT_MIN);
}

void partition_by_energy(struct sched *s) {
	struct task_table *tasks = policy_tasks(s);
	uint64_t used[SCHED_GPUS_MAX] = {0};
	size_t n;

	place_given(s, used);
	n = rank_tasks(s, priority_key, NULL);
	for (size_t i = 0; i < n; i++) {
		place_by_energy(s, task_table_get(tasks, tasks->ranks[i].task), used);
	}
}
