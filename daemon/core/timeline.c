/* timeline.c: see timeline.h. */
#include "daemon/core/timeline.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/task.h"

static nsec_t later(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

static nsec_t sooner(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* The length of what two intervals have in common. */
static nsec_t overlap(nsec_t a_start, nsec_t a_end, nsec_t b_start, nsec_t b_end) {
	nsec_t start = later(a_start, b_start), end = sooner(a_end, b_end);

	return end > start ? end - start : 0;
}

/* Dynamic power less the idle power that the same SMs would draw. */
static int64_t own_power(const struct profile_table *p, const struct power_gpu *power,
			 unsigned n_sms) {
	unsigned m = n_sms < p->n_sms ? n_sms : p->n_sms;

	return (int64_t)p->power_mw[m] - (int64_t)power->idle_mw_per_sm * n_sms;
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

	slot->until = slot->draws_until = until;
	slot->draws_from = now;
	slot->n_sms = smset_count(&job->sms);
	slot->owner = job->owner;
	slot->apart = job->apart >> job->gpu & 1;
	if (!p) {
		return;
	}
	slot->own_mw = own_power(p, &sched_gpu(s, (size_t)job->gpu)->model.power, slot->n_sms);
	if (sched_get_params(s)->power == SCHED_POWER_HELD) {
		return;
	}
	if (job->sms_end == job->finish && until > now + p->copy_out) {
		slot->draws_until = until - p->copy_out;
	}
	exec = profile_exec(p, slot->n_sms);
	slot->draws_from = slot->draws_until > now + exec ? slot->draws_until - exec : now;
}

void timeline_copy(struct timeline *ret, const struct timeline *t) {
	memcpy(ret, t, offsetof(struct timeline, gpus) + t->n_gpus * sizeof(t->gpus[0]));
}

static unsigned find_like(const struct sched *s, unsigned gpu) {
	const struct sched_gpu *a = sched_gpu(s, gpu);

	for (unsigned k = 0; k < gpu; k++) {
		const struct sched_gpu *b = sched_gpu(s, k);

		if (a->sharing == b->sharing && a->model.power.n_sms == b->model.power.n_sms &&
		    a->model.power.static_mw == b->model.power.static_mw &&
		    a->model.power.idle_mw_per_sm == b->model.power.idle_mw_per_sm &&
		    a->model.limit == b->model.limit && a->model.step == b->model.step) {
			return k;
		}
	}
	return gpu;
}

/* What a GPU has left at one moment. */
struct gap {
	unsigned taken; /* SMs */
	int slot;	/* free, or -1 */
	nsec_t next;	/* when more comes free; 0: all is */
};

static struct gap look(const struct timeline_gpu *g, uint64_t owner, bool apart, nsec_t at) {
	bool shared = g->gpu->sharing == SCHED_SHARING_MPS && !apart;
	struct gap gap = {.slot = -1};
	unsigned busy = 0;

	for (int i = (int)g->n_used - 1; i >= 0; i--) {
		nsec_t until = g->slots[i].until;

		if (until <= at) {
			gap.slot = i;
			continue;
		}
		busy++;
		gap.taken += g->slots[i].n_sms;
		gap.next = gap.next == 0 || until < gap.next ? until : gap.next;
		/* only jobs of one process share a GPU without MPS */
		if ((!shared || g->slots[i].apart) && g->slots[i].owner != owner) {
			busy = g->n_slots;
		}
	}
	if (busy >= g->n_slots) {
		gap.slot = -1;
	}
	return gap;
}

static nsec_t find_opening(const struct timeline_gpu *g) {
	nsec_t at = g->floor;

	for (;;) {
		struct gap gap = look(g, 0, false, at);

		if ((gap.slot >= 0 && gap.taken < g->gpu->model.limit) || gap.next == 0) {
			return at;
		}
		at = gap.next;
	}
}

void timeline_init(struct timeline *t, const struct sched *s, nsec_t now) {
	const struct sched_params *params = sched_get_params(s);

	*t = (struct timeline){
		.now = now, .n_gpus = sched_n_gpus(s), .horizon = UINT64_MAX, .latest = now};
	for (size_t k = 0; k < t->n_gpus; k++) {
		struct timeline_gpu *g = &t->gpus[k];

		g->gpu = sched_gpu(s, k);
		g->floor = now;
		g->like = find_like(s, (unsigned)k);
		g->n_slots = sched_slots(params, &g->gpu->model);
		g->n_used = g->n_slots;
		for (unsigned i = 0; i < SCHED_SLOTS_MAX; i++) {
			const struct sched_job *job = sched_job(s, g->gpu->slots[i]);

			if (job) {
				g->n_used = i < g->n_used ? g->n_used : i + 1;
				init_slot(&g->slots[i], s, job, now);
			}
		}
		g->opens = find_opening(g);
	}
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
	unsigned most = 0;

	if (g->gpu->drained || !job->task->profiles[gpu] ||
	    !sched_may_run(job->gpu_wanted, job->gpus, gpu)) {
		return false;
	}
	if (job->divisible && least > model->limit) {
		return false;
	}
	if (job->divisible) {
		unsigned wanted = task_least_sms(job->task, model, gpu);

		most = sched_most_sms(model, job->task->spec.max_sms);
		least = least > most ? most : least > wanted ? least : wanted;
	}
	/* Now, or when a slot ends: one more moment than there are slots. */
	for (;;) {
		struct gap gap = look(g, job->owner, job->apart >> gpu & 1, at);
		unsigned n = left(g->gpu, job, gap.taken);

		/* What will lie beside what is not known; what lies so now is. */
		if (at == t->now && job->divisible && g->gpu->row < n) {
			n = sched_whole_steps(model, g->gpu->row);
		}
		if (gap.slot >= 0 && n >= (job->divisible ? least : 1)) {
			ret->gpu = gpu;
			ret->slot = (unsigned)gap.slot;
			ret->start = at;
			ret->n_sms = job->divisible && n > most ? most : n;
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
	const struct sched_gpu_model *model = &t->gpus[gpu].gpu->model;
	unsigned step = model->step, first = task_least_sms(job->task, model, gpu);

	for (unsigned m = first > step ? first : step; job->deadline && m < most; m += step) {
		if (task_times(job->task, params, gpu, m, t->now).finish <= job->deadline) {
			return m;
		}
	}
	return most;
}

/*
 * The time in [start, end) in which any slot of the GPU but @but draws power (SCHED_SLOTS_MAX: any
 * at all). As placements come in the order of their starts, earlier ones of a slot overlap with
 * nothing that comes now.
 */
static nsec_t active(const struct timeline_gpu *g, unsigned but, nsec_t start, nsec_t end) {
	nsec_t sum = 0, at = start;

	/* What is covered, piece by piece: each time from where the next kernel begins. */
	while (at < end) {
		nsec_t next = end, until = at;

		for (unsigned i = 0; i < g->n_used; i++) {
			const struct timeline_slot *slot = &g->slots[i];

			if (i == but || slot->draws_until <= at) {
				continue;
			}
			if (slot->draws_from <= at) {
				until = later(until, sooner(slot->draws_until, end));
			} else {
				next = sooner(next, slot->draws_from);
			}
		}
		sum += until - at;
		at = until > at ? until : next;
	}
	return sum;
}

void timeline_predict(const struct timeline *t, const struct sched_params *params,
		      const struct timeline_job *job, struct timeline_place *place) {
	const struct timeline_gpu *g = &t->gpus[place->gpu];
	const struct power_gpu *power = &g->gpu->model.power;
	struct task_times times =
		task_times(job->task, params, place->gpu, place->n_sms, place->start);
	bool held = params->power == SCHED_POWER_HELD;
	nsec_t from = held ? place->start : times.kernel_start;
	nsec_t until = held ? times.sms_end : times.kernel_end;
	nsec_t end = sooner(until, t->horizon);
	nsec_t drawn = end > from ? end - from : 0;
	nsec_t shared = active(g, place->slot, from, end);

	place->draws_from = from;
	place->draws_until = until;
	place->sms_end = times.sms_end;
	place->finish = times.finish;
	place->own_mw = own_power(job->task->profiles[place->gpu], power, place->n_sms);
	/* Its own power while it draws any, less the idle power that its SMs no longer draw, and
	 * the idle power of all SMs for as long as it alone keeps the GPU active. */
	place->energy_pj =
		place->own_mw * (int64_t)drawn +
		(int64_t)power->idle_mw_per_sm * power->n_sms * (int64_t)(drawn - shared);
}

int64_t timeline_running_pj(const struct timeline *t, nsec_t until) {
	int64_t pj = 0;

	for (size_t k = 0; k < t->n_gpus; k++) {
		const struct timeline_gpu *g = &t->gpus[k];
		const struct power_gpu *power = &g->gpu->model.power;

		for (unsigned i = 0; i < g->n_used; i++) {
			const struct timeline_slot *slot = &g->slots[i];

			pj += slot->own_mw *
			      (int64_t)overlap(slot->draws_from, slot->draws_until, t->now, until);
		}
		pj += (int64_t)power->idle_mw_per_sm * power->n_sms *
		      (int64_t)active(g, SCHED_SLOTS_MAX, t->now, until);
		pj += (int64_t)power->static_mw * (int64_t)(until - t->now);
	}
	return pj;
}

void timeline_take(struct timeline *t, const struct timeline_job *job,
		   const struct timeline_place *place) {
	struct timeline_gpu *g = &t->gpus[place->gpu];

	assert(place->start >= g->floor && g->slots[place->slot].until <= place->start);
	g->floor = place->start;
	g->slots[place->slot] = (struct timeline_slot){
		.until = place->sms_end,
		.draws_from = place->draws_from,
		.draws_until = place->draws_until,
		.n_sms = place->n_sms,
		.own_mw = place->own_mw,
		.owner = job->owner,
		.apart = job->apart >> place->gpu & 1,
	};
	g->opens = find_opening(g);
	t->energy_pj += place->energy_pj;
	t->misses += job->deadline && place->finish > job->deadline;
	t->latest = later(t->latest, place->finish);
}

nsec_t timeline_next_end(const struct timeline *t) {
	nsec_t next = 0;

	for (size_t k = 0; k < t->n_gpus; k++) {
		for (size_t i = 0; i < t->gpus[k].n_used; i++) {
			nsec_t until = t->gpus[k].slots[i].until;

			if (until > t->now && (next == 0 || until < next)) {
				next = until;
			}
		}
	}
	return next;
}

static bool is_empty_at(const struct timeline_gpu *g, nsec_t at) {
	for (size_t i = 0; i < g->n_used; i++) {
		if (g->slots[i].until > at || g->slots[i].draws_until > at) {
			return false;
		}
	}
	return g->floor <= at;
}

bool timeline_repeats(const struct timeline *t, const struct sched_params *params,
		      const struct timeline_job *job, unsigned gpu) {
	const struct timeline_gpu *g = &t->gpus[gpu];
	int last = job->task->last_gpu;

	if (g->like == gpu || job->gpu_wanted >= 0 || !is_empty_at(g, job->release) ||
	    (params->migration_cost && last == (int)gpu)) {
		return false;
	}
	for (unsigned k = g->like; k < gpu; k++) {
		if (t->gpus[k].like == g->like && sched_may_run(job->gpu_wanted, job->gpus, k) &&
		    job->task->profiles[k] == job->task->profiles[gpu] &&
		    (!params->migration_cost || last != (int)k) &&
		    is_empty_at(&t->gpus[k], job->release)) {
			return true;
		}
	}
	return false;
}
