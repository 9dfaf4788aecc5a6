/* timeline.c: see timeline.h. */
#include "daemon/core/timeline.h"

#include <assert.h>

#include "daemon/core/task.h"

static nsec_t later(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

/* When the SMs of a running job are expected back. */
static nsec_t running_until(const struct sched_job *job, nsec_t now) {
	nsec_t ran = now - job->granted;

	if (job->sms_end > now) {
		return job->sms_end;
	}
	return now + 1 + (job->sms_end ? ran / 8 : ran);
}

static void init_slot(struct timeline_slot *slot, const struct sched *s,
		      const struct sched_job *job, nsec_t now) {
	const struct sched_task *task = sched_task(s, job->task);
	const struct profile_table *p = task ? task->profiles[job->gpu] : NULL;
	nsec_t until = running_until(job, now);
	nsec_t exec;

	slot->until = slot->kernel_end = until;
	slot->kernel_start = now;
	slot->n_sms = smset_count(&job->sms);
	slot->owner = job->owner;
	if (p && job->sms_end == job->finish && until > now + p->copy_out) {
		slot->kernel_end = until - p->copy_out;
	}
	exec = p ? profile_exec(p, slot->n_sms) : 0;
	if (exec && slot->kernel_end > now + exec) {
		slot->kernel_start = slot->kernel_end - exec;
	}
}

void timeline_init(struct timeline *t, const struct sched *s, nsec_t now) {
	const struct sched_params *params = sched_get_params(s);

	*t = (struct timeline){.now = now, .n_gpus = sched_n_gpus(s), .latest = now};
	for (size_t k = 0; k < t->n_gpus; k++) {
		struct timeline_gpu *g = &t->gpus[k];

		g->gpu = sched_gpu(s, k);
		g->floor = now;
		g->n_slots = params->jobs_per_gpu;
		for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
			const struct sched_job *job = sched_job(s, g->gpu->slots[i]);

			if (job) {
				init_slot(&g->slots[i], s, job, now);
			}
		}
	}
}

/* What a GPU has left at one moment. */
struct gap {
	unsigned taken; /* SMs */
	int slot;	/* free, or -1 */
	nsec_t next;	/* when more comes free; 0: all is */
};

static struct gap look(const struct timeline_gpu *g, uint64_t owner, nsec_t at) {
	struct gap gap = {.slot = -1};
	unsigned busy = 0;

	for (int i = SCHED_SLOTS_MAX - 1; i >= 0; i--) {
		nsec_t until = g->slots[i].until;

		if (until <= at) {
			gap.slot = i;
			continue;
		}
		busy++;
		gap.taken += g->slots[i].n_sms;
		gap.next = gap.next == 0 || until < gap.next ? until : gap.next;
		/* only jobs of one process share a GPU without MPS */
		if (g->gpu->sharing == SCHED_SHARING_EXCLUSIVE && g->slots[i].owner != owner) {
			busy = g->n_slots;
		}
	}
	if (busy >= g->n_slots) {
		gap.slot = -1;
	}
	return gap;
}

/* As policy_offer(), with @taken SMs in use. */
static unsigned left(const struct sched_gpu *gpu, const struct timeline_job *job, unsigned taken) {
	if (!job->divisible) {
		return taken == 0 ? gpu->n_sms : 0;
	}
	return taken < gpu->model.limit ? sched_whole_steps(&gpu->model, gpu->model.limit - taken)
					: 0;
}

bool timeline_earliest(const struct timeline *t, const struct sched_params *params,
		       const struct timeline_job *job, unsigned gpu, unsigned least,
		       struct timeline_place *ret) {
	const struct timeline_gpu *g = &t->gpus[gpu];
	const struct sched_gpu_model *model = &g->gpu->model;
	nsec_t at = later(job->release, g->floor);

	if (!job->task->profiles[gpu] || (job->gpu_wanted >= 0 && job->gpu_wanted != (int)gpu)) {
		return false;
	}
	if (job->divisible && least > model->limit) {
		return false;
	}
	least = least > 1 ? least : 1;
	/* Now, or when a slot ends: one more moment than there are slots. */
	for (;;) {
		struct gap gap = look(g, job->owner, at);
		unsigned n = left(g->gpu, job, gap.taken);

		if (gap.slot >= 0 && n >= (job->divisible ? least : 1)) {
			ret->gpu = gpu;
			ret->slot = (unsigned)gap.slot;
			ret->start = at;
			ret->n_sms = n;
			return true;
		}
		if (gap.next == 0) {
			return false;
		}
		at = gap.next;
	}
}

unsigned timeline_least(const struct timeline *t, const struct sched_params *params,
			const struct timeline_job *job, unsigned gpu, unsigned most) {
	unsigned step = t->gpus[gpu].gpu->model.step;

	for (unsigned m = step; job->deadline && m < most; m += step) {
		if (task_times(job->task, params, gpu, m, t->now).finish <= job->deadline) {
			return m;
		}
	}
	return most;
}

static nsec_t sooner(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* How much of a kernel's time no other kernel shares with it. As placements come in the order of
 * their starts, only the last one of the other slot can overlap. */
static nsec_t alone(const struct timeline_gpu *g, unsigned slot, nsec_t start, nsec_t end) {
	const struct timeline_slot *other = &g->slots[1 - slot];
	nsec_t from = later(start, other->kernel_start), to = sooner(end, other->kernel_end);

	return end - start - (to > from ? to - from : 0);
}

_Static_assert(SCHED_SLOTS_MAX == 2, "alone() looks at one other slot");

void timeline_predict(const struct timeline *t, const struct sched_params *params,
		      const struct timeline_job *job, struct timeline_place *place) {
	const struct timeline_gpu *g = &t->gpus[place->gpu];
	const struct profile_table *p = job->task->profiles[place->gpu];
	const struct power_gpu *power = &g->gpu->model.power;
	struct task_times times =
		task_times(job->task, params, place->gpu, place->n_sms, place->start);
	nsec_t newly_active = alone(g, place->slot, times.kernel_start, times.kernel_end);
	int64_t idle_mw = power->idle_mw_per_sm;
	unsigned m = place->n_sms < p->n_sms ? place->n_sms : p->n_sms;
	int64_t own_mw = (int64_t)p->power_mw[m] - idle_mw * place->n_sms;

	place->kernel_start = times.kernel_start;
	place->kernel_end = times.kernel_end;
	place->sms_end = times.sms_end;
	place->finish = times.finish;
	/* Its own power while it runs, less the idle power that its SMs no longer draw, and the
	 * idle power of all SMs for as long as it alone keeps the GPU active. */
	place->energy_pj =
		own_mw * (int64_t)p->exec[m] + idle_mw * power->n_sms * (int64_t)newly_active;
}

void timeline_take(struct timeline *t, const struct timeline_job *job,
		   const struct timeline_place *place) {
	struct timeline_gpu *g = &t->gpus[place->gpu];

	assert(place->start >= g->floor && g->slots[place->slot].until <= place->start);
	g->floor = place->start;
	g->slots[place->slot] = (struct timeline_slot){
		.until = place->sms_end,
		.kernel_start = place->kernel_start,
		.kernel_end = place->kernel_end,
		.n_sms = place->n_sms,
		.owner = job->owner,
	};
	t->energy_pj += place->energy_pj;
	t->misses += job->deadline && place->finish > job->deadline;
	t->latest = later(t->latest, place->finish);
}

nsec_t timeline_next_end(const struct timeline *t) {
	nsec_t next = 0;

	for (size_t k = 0; k < t->n_gpus; k++) {
		for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
			nsec_t until = t->gpus[k].slots[i].until;

			if (until > t->now && (next == 0 || until < next)) {
				next = until;
			}
		}
	}
	return next;
}
