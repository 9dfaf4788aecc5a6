/* safe.c: see safe.h. */
#include "daemon/core/analysis/safe.h"

/* How a task of higher priority can delay the task under analysis. */
struct role {
	bool cpu;  /* it has the CPU of one that is waited for */
	bool gpu;  /* it has the GPU */
	bool lock; /* it has the lock */
};

struct window {
	const struct rta_set *set;
	enum rta_mode mode;
	size_t i;
	struct role roles[RTA_TASKS_MAX]; /* of tasks above i */
	nsec_t work[RTA_TASKS_MAX];	  /* W_h without the updates */
	nsec_t updates[RTA_TASKS_MAX];	  /* 2 epsilon eta_h */
	nsec_t events[RTA_TASKS_MAX];	  /* epsilon v_h */
	nsec_t own_updates;
	const struct rta_bound *bounds; /* NULL: the window starts when all are idle */
};

static bool is_busy(const struct window *w, size_t h) {
	return w->mode == RTA_MODE_OWN ? w->set->tasks[h].busy : w->mode == RTA_MODE_BUSY;
}

/* Tasks that use the GPU keep i waiting by one resource: marks all above @below of them. */
static bool mark(struct window *w, size_t below, bool gpu) {
	bool changed = false;

	for (size_t k = 0; k < below; k++) {
		bool *role = gpu ? &w->roles[k].gpu : &w->roles[k].lock;

		if (w->set->tasks[k].n_gpu > 0 && !*role) {
			*role = changed = true;
		}
	}
	return changed;
}

static bool mark_cpu(struct window *w, size_t below) {
	bool changed = false;

	for (size_t h = 0; h < below; h++) {
		if (w->set->tasks[h].cpu == w->set->tasks[below].cpu && !w->roles[h].cpu) {
			w->roles[h].cpu = changed = true;
		}
	}
	return changed;
}

/* The set S. @whole: with all that delays any task of S at any time. */
static void find_roles(struct window *w, bool whole) {
	bool changed = mark_cpu(w, w->i);

	if (w->set->tasks[w->i].n_gpu > 0) {
		mark(w, w->i, true);
		mark(w, w->i, false);
		changed = true;
	}
	while (changed) {
		changed = false;
		for (size_t h = 0; h < w->i; h++) {
			const struct role *r = &w->roles[h];

			if (w->set->tasks[h].n_gpu == 0 || !(r->cpu || r->gpu)) {
				continue;
			}
			changed |= mark(w, h, false);
			if (whole || is_busy(w, h) || r->gpu) {
				changed |= mark(w, h, true);
			}
			if (r->gpu) {
				changed |= mark_cpu(w, h);
			}
		}
	}
}

/* Whether S and i are all that uses the GPU, or, with @on_cpu, all that does on the CPU of @h:
 * calls of others can delay those of S. */
static bool calls_below(const struct window *w, size_t h, bool on_cpu) {
	for (size_t l = 0; l < w->set->n_tasks; l++) {
		const struct role *r = &w->roles[l];
		bool member = l < w->i && (r->cpu || r->gpu || r->lock);

		if (l != w->i && !member && w->set->tasks[l].n_gpu > 0 &&
		    (!on_cpu || w->set->tasks[l].cpu == w->set->tasks[h].cpu)) {
			return true;
		}
	}
	return false;
}

/* Whether a task of S, or i, that asks for the lock is below @h on its CPU. */
static bool leaves_to(const struct window *w, size_t h) {
	for (size_t x = h + 1; x <= w->i; x++) {
		const struct rta_task *t = &w->set->tasks[x];

		if (t->n_gpu > 0 && t->cpu == w->set->tasks[h].cpu &&
		    (x == w->i || w->roles[x].cpu || w->roles[x].gpu)) {
			return true;
		}
	}
	return false;
}

/* epsilon v_h, with v_i for i itself. */
static nsec_t events_of(const struct window *w, size_t h) {
	const struct rta_task *t = &w->set->tasks[h];
	const nsec_t runs = 1 + (is_busy(w, h) ? 0 : t->n_gpu);
	nsec_t v = 0;

	if (!calls_below(w, h, false)) {
		return 0;
	}
	v += calls_below(w, h, true) ? runs : 0;
	v += 2 * (nsec_t)t->n_gpu;
	v += h != w->i && leaves_to(w, h) ? runs : 0;
	return rta_mul(v, w->set->epsilon);
}

static void weigh(struct window *w, bool whole) {
	for (size_t h = 0; h < w->i; h++) {
		const struct rta_task *t = &w->set->tasks[h];
		const struct role *r = &w->roles[h];

		if (!r->cpu && !r->gpu && !r->lock) {
			continue;
		}
		w->updates[h] = rta_mul(2 * (nsec_t)t->n_gpu, w->set->epsilon);
		if (!r->cpu && !r->gpu) {
			continue;
		}
		if (whole || r->cpu) {
			bool all = whole || r->gpu || is_busy(w, h);

			w->work[h] = rta_add(t->c, all ? t->g : t->gm);
		} else {
			w->work[h] = t->g;
		}
		w->events[h] = events_of(w, h);
	}
	w->own_updates = rta_add(rta_mul(2 * (nsec_t)w->set->tasks[w->i].n_gpu, w->set->epsilon),
				 events_of(w, w->i));
}

static void response(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;

	rta_charge(ret, RTA_OWN, rta_add(w->set->tasks[i].c, w->set->tasks[i].g));
	rta_charge(ret, RTA_UPDATE, w->own_updates);
	for (size_t h = 0; h < i; h++) {
		const nsec_t period = w->set->tasks[h].period;
		nsec_t all = rta_add(w->work[h], w->updates[h]);
		nsec_t jitter = w->bounds ? rta_jitter(w->bounds[h].response, all) : 0;
		nsec_t late = w->bounds ? w->bounds[h].response : 0;
		nsec_t jobs = rta_jobs(r, jitter, period);

		rta_charge(ret, w->roles[h].cpu ? RTA_CPU : RTA_GPU, rta_mul(jobs, w->work[h]));
		rta_charge(ret, RTA_UPDATE, rta_mul(jobs, w->updates[h]));
		rta_charge(ret, RTA_UPDATE, rta_mul(rta_jobs(r, late, period), w->events[h]));
	}
}

static struct rta_bound solve(const struct rta_set *set, enum rta_mode mode, size_t i,
			      const struct rta_bound *bounds) {
	struct window w = {.set = set, .mode = mode, .i = i, .bounds = bounds};

	find_roles(&w, !bounds);
	weigh(&w, !bounds);
	return rta_solve(response, &w, i, &set->tasks[i], set->tasks[i].period);
}

void rta_safe_all(const struct rta_set *set, enum rta_mode mode, struct rta_bound *ret) {
	for (size_t i = 0; i < set->n_real_time; i++) {
		struct rta_bound idle = solve(set, mode, i, NULL);
		struct rta_bound jitter = solve(set, mode, i, ret);

		ret[i] = idle.response <= jitter.response ? idle : jitter;
	}
}
