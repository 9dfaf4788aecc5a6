/* safe-kthread.c: see safe-kthread.h. */
#include "daemon/core/analysis/safe-kthread.h"

struct window {
	const struct rta_set *set;
	bool in[RTA_TASKS_MAX];		/* S */
	bool own_on_cpu;		/* i is on the CPU of the kernel thread */
	bool on_cpu;			/* i or one of S is */
	bool outside;			/* GPU-using tasks are, not of best effort */
	const struct rta_bound *bounds; /* NULL: the window starts when S is idle */
};

static bool uses_gpu(const struct rta_set *set, size_t h) {
	return set->tasks[h].n_gpu > 0;
}

/* Adds what keeps task @x waiting. */
static void add_above(struct window *w, size_t x) {
	const struct rta_task *tasks = w->set->tasks;

	for (size_t h = 0; h < x; h++) {
		w->in[h] |= tasks[h].cpu == tasks[x].cpu ||
			    (uses_gpu(w->set, h) && uses_gpu(w->set, x));
	}
}

static void find(struct window *w, size_t i) {
	const unsigned cpu = w->set->kthread_cpu;

	add_above(w, i);
	for (size_t h = i; h-- > 0;) { /* each adds only tasks above itself */
		if (w->in[h]) {
			add_above(w, h);
		}
	}
	w->own_on_cpu = w->on_cpu = w->set->tasks[i].cpu == cpu;
	for (size_t h = 0; h < w->set->n_real_time; h++) {
		w->on_cpu |= w->in[h] && w->set->tasks[h].cpu == cpu;
		w->outside |= h != i && !w->in[h] && uses_gpu(w->set, h);
	}
}

/* Updates because GPU-using task @h gets ready, or done, in a window @r; done at most once more
 * often than ready, and only jobs that are released at most R_h before it. */
static nsec_t changes(const struct window *w, size_t h, nsec_t r, nsec_t response) {
	nsec_t ready = rta_jobs(r, 0, w->set->tasks[h].period);
	nsec_t done = rta_jobs(r, response, w->set->tasks[h].period);

	return rta_add(ready, done <= ready ? done : rta_add(ready, 1));
}

/* U', in the window from the release of i on. */
static nsec_t updates_from_release(const struct window *w, size_t i, nsec_t r) {
	const bool gpu = uses_gpu(w->set, i);
	nsec_t sum = gpu || w->own_on_cpu ? 2 : 0;

	for (size_t h = 0; h < w->set->n_real_time; h++) {
		const nsec_t period = w->set->tasks[h].period;
		nsec_t late = h < i ? w->bounds[h].response : RTA_FOREVER;

		if (h == i || !uses_gpu(w->set, h)) {
			continue;
		}
		if (w->in[h] && !gpu && !w->own_on_cpu) {
			sum = rta_add(sum, rta_mul(3, rta_jobs(r, late, period)));
		} else if (w->in[h] || (w->own_on_cpu && !gpu)) {
			sum = rta_add(sum, changes(w, h, r, late));
		}
	}
	return sum;
}

/* U, in the window that starts when S is idle: i's job before may get done in it. */
static nsec_t updates_from_idle(const struct window *w, size_t i, nsec_t r) {
	const bool gpu = uses_gpu(w->set, i);
	const nsec_t job = !w->on_cpu && (w->outside || gpu) ? 3 : 2;
	nsec_t sum = gpu ? 2 : 0;
	bool any = gpu || w->on_cpu;

	for (size_t h = 0; h < w->set->n_real_time; h++) {
		if (h == i || !uses_gpu(w->set, h)) {
			continue;
		}
		if (w->in[h]) {
			nsec_t jobs = rta_jobs(r, 0, w->set->tasks[h].period);

			sum = rta_add(sum, rta_mul(job, jobs));
			any = true;
		} else if (w->on_cpu) {
			sum = rta_add(sum, changes(w, h, r, RTA_FOREVER));
		}
	}
	return any ? rta_add(sum, 2) : 0;
}

static void response(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;
	const struct rta_task *own = &w->set->tasks[i];
	nsec_t updates = w->bounds ? updates_from_release(w, i, r) : updates_from_idle(w, i, r);

	rta_charge(ret, RTA_OWN, rta_add(own->c, own->g));
	rta_charge(ret, RTA_UPDATE, rta_mul(updates, w->set->epsilon));
	for (size_t h = 0; h < i; h++) {
		const struct rta_task *t = &w->set->tasks[h];
		nsec_t work = rta_add(t->c, t->g);
		nsec_t jitter = w->bounds ? rta_jitter(w->bounds[h].response, work) : 0;

		if (w->in[h]) {
			rta_charge(ret, t->cpu == own->cpu ? RTA_CPU : RTA_GPU,
				   rta_mul(rta_jobs(r, jitter, t->period), work));
		}
	}
}

void rta_safe_kthread_all(const struct rta_set *set, struct rta_bound *ret) {
	for (size_t i = 0; i < set->n_real_time; i++) {
		const struct rta_task *t = &set->tasks[i];
		struct rta_bound idle, release;
		struct window w = {.set = set};

		find(&w, i);
		idle = rta_solve(response, &w, i, t, t->period);
		w.bounds = ret;
		release = rta_solve(response, &w, i, t, t->period);
		ret[i] = idle.response <= release.response ? idle : release;
	}
}
