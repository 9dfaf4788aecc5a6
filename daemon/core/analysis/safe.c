/* safe.c: see safe.h. */
#include "daemon/core/analysis/safe.h"

/* How a task of higher priority can delay the task under analysis. */
struct role {
	bool cpu;  /* it has the CPU of one that is waited for */
	bool gpu;  /* it has the GPU */
	bool lock; /* it has the lock */
};

/* When a window begins. */
enum start {
	AT_RELEASE,  /* of i */
	CPU_IDLE,    /* when no steady task above i on its CPU is ready */
	STEADY_IDLE, /* when no steady task of S that has the CPU of one that is waited for is ready
		      */
	ALL_IDLE, /* when none of S is; what delays those of S at any time is in S too, in full */
	_START_N,
};

struct window {
	const struct rta_set *set;
	enum rta_mode mode;
	enum start start;
	size_t i;
	struct role roles[RTA_TASKS_MAX];   /* of tasks above i */
	bool calls, calls_on[RTA_CPUS_MAX]; /* made by tasks outside S, but i: any, on each CPU */
	nsec_t work[RTA_TASKS_MAX];	    /* W_h without the updates */
	nsec_t updates[RTA_TASKS_MAX];	    /* 2 epsilon eta_h */
	nsec_t events[RTA_TASKS_MAX];	    /* epsilon v_h */
	nsec_t own_updates, own_events;
	const struct rta_bound *bounds; /* of tasks above i */
	const struct rta_bound *below;	/* of those below */
};

static bool is_busy(const struct window *w, size_t h) {
	return w->mode == RTA_MODE_OWN ? w->set->tasks[h].busy : w->mode == RTA_MODE_BUSY;
}

/* It is ready from its release to its completion: it never suspends. */
static bool is_steady(const struct window *w, size_t h) {
	return w->set->tasks[h].n_gpu == 0 || is_busy(w, h);
}

static bool in_s(const struct window *w, size_t h) {
	return h < w->i && (w->roles[h].cpu || w->roles[h].gpu || w->roles[h].lock);
}

/* Whether a job of @h may be there when the window begins. */
static bool is_carried_in(const struct window *w, size_t h) {
	switch (w->start) {
	case CPU_IDLE:
		return !is_steady(w, h) || w->set->tasks[h].cpu != w->set->tasks[w->i].cpu;
	case STEADY_IDLE:
		return !is_steady(w, h) || !w->roles[h].cpu;
	case ALL_IDLE:
		return false;
	default:
		return true;
	}
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

/* The set S. */
static void find_roles(struct window *w) {
	const bool whole = w->start == ALL_IDLE;
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

/* Marks where tasks outside S make calls. */
static void find_callers(struct window *w) {
	for (size_t l = 0; l < w->set->n_tasks; l++) {
		if (l != w->i && w->set->tasks[l].n_gpu > 0 && !in_s(w, l)) {
			w->calls = w->calls_on[w->set->tasks[l].cpu] = true;
		}
	}
}

/* Whether calls of tasks outside S can delay @h; @on_cpu: those made on its CPU. In a window that
 * begins before the release of i, its job before may still make calls. */
static bool calls_below(const struct window *w, size_t h, bool on_cpu) {
	const struct rta_task *own = &w->set->tasks[w->i];
	const unsigned cpu = w->set->tasks[h].cpu;

	if (h != w->i && w->start >= STEADY_IDLE && own->n_gpu > 0 &&
	    (!on_cpu || own->cpu == cpu)) {
		return true;
	}
	return on_cpu ? w->calls_on[cpu] : w->calls;
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
	const nsec_t suspends = is_busy(w, h) ? 0 : t->n_gpu, runs = 1 + suspends;
	nsec_t v = 0;

	/* i, or one above it, is ready on its CPU all the time: no call is made there. */
	const bool covered = h != w->i && t->cpu == w->set->tasks[w->i].cpu &&
			     w->start <= CPU_IDLE && is_steady(w, w->i);
	/* It delays only while it has the GPU: from its first call in a segment to the last. */
	const bool by_gpu = h != w->i && w->start != ALL_IDLE && !w->roles[h].cpu;

	if (!calls_below(w, h, false)) {
		return 0;
	}
	if (!covered && calls_below(w, h, true)) {
		v += by_gpu ? suspends : runs;
	}
	v += by_gpu ? t->n_gpu : 2 * (nsec_t)t->n_gpu;
	v += h != w->i && leaves_to(w, h) ? runs : 0;
	return rta_mul(v, w->set->epsilon);
}

/* All calls of tasks outside S in a window @r, each epsilon. */
static nsec_t calls_in(const struct window *w, nsec_t r) {
	nsec_t n = w->start >= STEADY_IDLE ? 2 * (nsec_t)w->set->tasks[w->i].n_gpu : 0;

	for (size_t l = 0; l < w->set->n_tasks; l++) {
		const struct rta_task *t = &w->set->tasks[l];
		const struct rta_bound *b = l < w->i ? w->bounds : w->below;

		if (t->n_gpu > 0 && l != w->i && !in_s(w, l)) {
			nsec_t jobs = t->priority != 0 ? rta_jobs(r, b[l].response, t->period)
						       : RTA_FOREVER;

			n = rta_add(n, rta_mul(2 * (nsec_t)t->n_gpu, jobs));
		}
	}
	return rta_mul(n, w->set->epsilon);
}

static void weigh(struct window *w) {
	const bool whole = w->start == ALL_IDLE;
	const struct rta_task *own = &w->set->tasks[w->i];

	for (size_t h = 0; h < w->i; h++) {
		const struct rta_task *t = &w->set->tasks[h];
		const struct role *r = &w->roles[h];

		if (!in_s(w, h)) {
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
	w->own_updates = rta_mul(2 * (nsec_t)own->n_gpu, w->set->epsilon);
	w->own_events = events_of(w, w->i);
	if (w->start == CPU_IDLE && own->n_gpu > 0) {
		/* The job before may be in a call when the window begins. */
		w->own_events = rta_add(w->own_events, w->set->epsilon);
	}
}

static void response(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;
	nsec_t events = w->own_events, calls;

	rta_charge(ret, RTA_OWN, rta_add(w->set->tasks[i].c, w->set->tasks[i].g));
	rta_charge(ret, RTA_UPDATE, w->own_updates);
	for (size_t h = 0; h < i; h++) {
		const nsec_t period = w->set->tasks[h].period;
		nsec_t all = rta_add(w->work[h], w->updates[h]);
		nsec_t late = is_carried_in(w, h) ? w->bounds[h].response : 0;
		nsec_t jobs = rta_jobs(r, rta_jitter(late, all), period);

		rta_charge(ret, w->roles[h].cpu ? RTA_CPU : RTA_GPU, rta_mul(jobs, w->work[h]));
		rta_charge(ret, RTA_UPDATE, rta_mul(jobs, w->updates[h]));
		events = rta_add(events, rta_mul(rta_jobs(r, late, period), w->events[h]));
	}
	calls = calls_in(w, r);
	rta_charge(ret, RTA_UPDATE, events < calls ? events : calls);
}

static struct rta_bound solve(const struct rta_set *set, enum rta_mode mode, size_t i,
			      const struct rta_bound *bounds, const struct rta_bound *below) {
	const struct rta_task *t = &set->tasks[i];
	struct rta_bound best = {.response = RTA_FOREVER};

	for (enum start start = 0; start < _START_N; start++) {
		struct window w = {.set = set,
				   .mode = mode,
				   .start = start,
				   .i = i,
				   .bounds = bounds,
				   .below = below};
		struct rta_bound b;

		if (start == CPU_IDLE && !is_steady(&w, i)) {
			continue; /* no better than STEADY_IDLE */
		}
		find_roles(&w);
		find_callers(&w);
		weigh(&w);
		b = rta_solve(response, &w, i, t, t->period);
		best = b.response < best.response ? b : best;
	}
	return best;
}

struct run {
	const struct rta_set *set;
	enum rta_mode mode;
};

static void pass(const void *userdata, const struct rta_bound *below, struct rta_bound *ret) {
	const struct run *run = userdata;

	for (size_t i = 0; i < run->set->n_real_time; i++) {
		ret[i] = solve(run->set, run->mode, i, ret, below);
	}
}

void rta_safe_all(const struct rta_set *set, enum rta_mode mode, struct rta_bound *ret) {
	rta_assume_deadlines(pass, &(struct run){set, mode}, set, ret);
}
