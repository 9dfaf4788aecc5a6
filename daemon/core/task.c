/* task.c: see task.h. */
#include "daemon/core/task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_IN_HEAP UINT32_MAX

void task_table_deinit(struct task_table *t) {
	free(t->list);
	free(t->heap);
	free(t->ranks);
	*t = (struct task_table){0};
}

struct sched_task *task_table_get(const struct task_table *t, sched_task_id id) {
	return id < t->n && t->list[id].used ? &t->list[id] : NULL;
}

/* Heap order: by next release, then by number, so that equal times come in one order always. */
static bool heap_before(const struct task_table *t, sched_task_id a, sched_task_id b) {
	nsec_t x = t->list[a].next_release, y = t->list[b].next_release;

	return x != y ? x < y : a < b;
}

static void heap_put(struct task_table *t, size_t i, sched_task_id id) {
	t->heap[i] = id;
	t->list[id].heap_index = (uint32_t)i;
}

static void heap_up(struct task_table *t, size_t i, sched_task_id id) {
	while (i > 0 && heap_before(t, id, t->heap[(i - 1) / 2])) {
		heap_put(t, i, t->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(t, i, id);
}

static void heap_down(struct task_table *t, size_t i, sched_task_id id) {
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < t->n_heap && heap_before(t, t->heap[child + 1], t->heap[child])) {
			child++;
		}
		if (child >= t->n_heap || !heap_before(t, t->heap[child], id)) {
			break;
		}
		heap_put(t, i, t->heap[child]);
		i = child;
	}
	heap_put(t, i, id);
}

/* After the task's next_release has changed either way. */
static void heap_fix(struct task_table *t, sched_task_id id) {
	size_t i = t->list[id].heap_index;

	heap_up(t, i, id);
	heap_down(t, t->list[id].heap_index, id);
}

static void heap_remove(struct task_table *t, sched_task_id id) {
	size_t i = t->list[id].heap_index;
	sched_task_id last;

	if (i == NOT_IN_HEAP) {
		return;
	}
	t->list[id].heap_index = NOT_IN_HEAP;
	last = t->heap[--t->n_heap];
	if (last != id) {
		heap_put(t, i, last);
		heap_fix(t, last);
	}
}

static int grow(struct task_table *t) {
	size_t capacity = t->capacity ? 2 * t->capacity : 16;
	struct sched_task *list;
	struct task_rank *ranks;
	sched_task_id *heap;

	list = reallocarray(t->list, capacity, sizeof(*list));
	if (!list) {
		return -ENOMEM;
	}
	t->list = list;
	heap = reallocarray(t->heap, capacity, sizeof(*heap));
	if (!heap) {
		return -ENOMEM;
	}
	t->heap = heap;
	ranks = reallocarray(t->ranks, capacity, sizeof(*ranks));
	if (!ranks) {
		return -ENOMEM;
	}
	t->ranks = ranks;
	t->capacity = capacity;
	return 0;
}

static sched_task_id find_unused(const struct task_table *t) {
	for (size_t i = 0; t->n_used < t->n && i < t->n; i++) {
		if (!t->list[i].used) {
			return (sched_task_id)i;
		}
	}
	return (sched_task_id)t->n;
}

static int check(const struct sched_task *task, const struct sched_gpu *gpus, size_t n_gpus) {
	if (task->period && task->deadline > task->period) {
		return -EINVAL;
	}
	if (task->fixed_gpu >= (int)n_gpus) {
		return -EINVAL;
	}
	if (task->fixed_gpu >= 0) {
		struct smset all = smset_range(0, gpus[task->fixed_gpu].n_sms);

		if (smset_empty(&task->fixed_sms) || !smset_within(&task->fixed_sms, &all)) {
			return -EINVAL;
		}
	}
	for (size_t k = 0; k < n_gpus; k++) {
		if (task->profiles[k] && task->profiles[k]->n_sms < gpus[k].model.limit) {
			return -EINVAL;
		}
	}
	return 0;
}

/* @m, or the nearest number that the task's jobs may have. */
static unsigned within_bounds(const struct sched_task *task, const struct sched_gpu_model *model,
			      size_t gpu, unsigned m) {
	unsigned least = task_least_sms(task, model, gpu);
	unsigned most = sched_most_sms(model, task->spec.max_sms);

	return m < least ? least : m > most ? most : m;
}

static nsec_t fastest(const struct sched_task *task, const struct sched_gpu_model *model,
		      size_t gpu) {
	const struct profile_table *p = task->profiles[gpu];
	nsec_t least = profile_total(p, within_bounds(task, model, gpu, model->limit));

	for (unsigned m = model->step; m < model->limit; m += model->step) {
		nsec_t total = profile_total(p, within_bounds(task, model, gpu, m));

		least = total < least ? total : least;
	}
	return least;
}

/* m_opt on each GPU, and the GPUs by the energy a job needs there: insertion keeps equal ones in
 * the GPUs' own order. */
static void derive(struct sched_task *task, const struct sched_params *params,
		   const struct sched_gpu *gpus, size_t n_gpus) {
	task->n_gpus = 0;
	for (size_t k = 0; k < n_gpus; k++) {
		const struct profile_table *p = task->profiles[k];
		const struct sched_gpu_model *model = &gpus[k].model;
		size_t i = task->n_gpus;
		nsec_t copies;

		/* What it could be given there was never measured. */
		if (p && (sched_most_sms(model, task->spec.max_sms) < p->least ||
			  p->n_sms < model->limit)) {
			p = task->profiles[k] = NULL;
		}
		if (!p) {
			continue;
		}
		copies = sched_drawn_copies(params, p);
		task->m_opt[k] = (uint16_t)within_bounds(
			task, model, k,
			profile_m_opt(p, &model->power, copies, model->limit, model->step));
		task->fastest[k] = fastest(task, model, k);
		task->energy_pj[k] =
			profile_energy_alone_pj(p, &model->power, copies, task->m_opt[k]);
		for (; i > 0 && task->energy_pj[task->order[i - 1]] > task->energy_pj[k]; i--) {
			task->order[i] = task->order[i - 1];
		}
		task->order[i] = (uint8_t)k;
		task->n_gpus++;
	}
}

void task_table_derive(struct task_table *t, const struct sched_params *params,
		       const struct sched_gpu *gpus, size_t n_gpus) {
	for (size_t i = 0; i < t->n; i++) {
		if (t->list[i].used) {
			derive(&t->list[i], params, gpus, n_gpus);
		}
	}
}

int task_table_add(struct task_table *t, const struct sched_task *task,
		   const struct sched_params *params, const struct sched_gpu *gpus, size_t n_gpus,
		   sched_task_id *ret_id) {
	sched_task_id id = find_unused(t);
	struct sched_task *new;
	int r;

	r = check(task, gpus, n_gpus);
	if (r < 0) {
		return r;
	}
	if (id >= TASK_MAX) {
		return -ENOSPC;
	}
	if (id == t->capacity) {
		r = grow(t);
		if (r < 0) {
			return r;
		}
	}
	new = &t->list[id];
	*new = (struct sched_task){
		.period = task->period,
		.deadline = task->deadline,
		.first_release = task->first_release,
		.spec = task->spec,
		.table_task = task->table_task,
		.fixed_gpu = task->fixed_gpu < 0 ? -1 : task->fixed_gpu,
		.fixed_sms = task->fixed_sms,
		.gpu_wanted = -1,
		.divisible = true,
		.home = -1,
		.last_gpu = -1,
		.next_release = task->first_release,
		.heap_index = NOT_IN_HEAP,
		.used = true,
	};
	memcpy(new->profiles, task->profiles, sizeof(new->profiles));
	derive(new, params, gpus, n_gpus);
	t->n += id == t->n;
	t->n_used++;
	if (new->period) {
		heap_up(t, t->n_heap++, id);
	}
	*ret_id = id;
	return 0;
}

void task_table_remove(struct task_table *t, sched_task_id id) {
	heap_remove(t, id);
	t->list[id].used = false;
	t->n_used--;
}

void task_table_released(struct task_table *t, sched_task_id id, nsec_t release) {
	struct sched_task *task = &t->list[id];

	if (task->period) {
		task->next_release = release + task->period;
		heap_fix(t, id);
	}
}

nsec_t task_table_next_release(const struct task_table *t) {
	return t->n_heap > 0 ? t->list[t->heap[0]].next_release : 0;
}

/*
 * What may come next while releases are taken off in order: a node of the heap whose parent has
 * been taken, or a later release of a task that has been taken. Kept sorted; never more than two
 * new ones for each one taken beside the one that replaces it.
 */
struct frontier {
	size_t n;
	struct {
		nsec_t release;
		sched_task_id task;
		size_t node; /* in the heap, SIZE_MAX for a later release */
	} list[2 * TASK_COMING_MAX + 2];
};

static void frontier_add(struct frontier *f, nsec_t release, sched_task_id task, size_t node) {
	size_t i = f->n++;

	while (i > 0 && (f->list[i - 1].release < release ||
			 (f->list[i - 1].release == release && f->list[i - 1].task < task))) {
		i--;
	}
	memmove(&f->list[i + 1], &f->list[i], (f->n - 1 - i) * sizeof(f->list[0]));
	f->list[i].release = release;
	f->list[i].task = task;
	f->list[i].node = node;
}

static void frontier_add_node(struct frontier *f, const struct task_table *t, nsec_t now,
			      size_t node) {
	if (node < t->n_heap) {
		nsec_t release = t->list[t->heap[node]].next_release;

		frontier_add(f, release > now ? release : now, t->heap[node], node);
	}
}

size_t task_table_coming(const struct task_table *t, nsec_t now, nsec_t until,
			 struct task_coming *ret, size_t max) {
	struct frontier f = {0};
	size_t n = 0;

	if (max > TASK_COMING_MAX) {
		max = TASK_COMING_MAX;
	}
	frontier_add_node(&f, t, now, 0);
	while (n < max && f.n > 0 && f.list[f.n - 1].release < until) {
		nsec_t release = f.list[f.n - 1].release;
		sched_task_id id = f.list[f.n - 1].task;
		size_t node = f.list[f.n - 1].node;
		const struct sched_task *task = &t->list[id];

		f.n--;
		ret[n++] = (struct task_coming){
			.task = id,
			.release = release,
			.deadline = task->deadline ? release + task->deadline : 0,
		};
		if (node != SIZE_MAX) {
			frontier_add_node(&f, t, now, 2 * node + 1);
			frontier_add_node(&f, t, now, 2 * node + 2);
		}
		frontier_add(&f, release + task->period, id, SIZE_MAX);
	}
	return n;
}
