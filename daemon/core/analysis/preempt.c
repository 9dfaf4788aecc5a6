/* preempt.c: see preempt.h. */
#include "daemon/core/analysis/preempt.h"

#include "daemon/core/analysis/overlap.h"

/* What holds for one task at any length of its window. */
struct window {
	const struct rta_preempt *p;
	nsec_t cg[RTA_TASKS_MAX], gc[RTA_TASKS_MAX]; /* O^cg, O^gc with each other task */
};

/* J_h: the response of @h less @work. */
static nsec_t jitter(const struct rta_preempt *p, size_t h, nsec_t work) {
	return rta_jitter(p->bounds ? p->bounds[h].response : p->set->tasks[h].deadline, work);
}

/* What jobs of @h charge to a window @r, each @each. */
static nsec_t interference(const struct rta_preempt *p, size_t h, nsec_t r, nsec_t j, nsec_t each) {
	return rta_mul(rta_jobs(r, j, p->set->tasks[h].period), each);
}

/* In hpp(tau_i): of higher priority on the same CPU. */
static bool above_on_cpu(const struct rta_preempt *p, size_t h, size_t i) {
	return h < i && p->set->tasks[h].cpu == p->set->tasks[i].cpu;
}

/* In hp(tau_i), where the kernel thread's updates are counted. */
static bool above(const struct rta_preempt *p, size_t h, size_t i) {
	return p->set->tasks[h].n_gpu > 0 && p->set->tasks[i].n_gpu > 0
		       ? rta_above_on_gpu(p->levels, h, i)
		       : h < i;
}

/* Both use the GPU, and @h goes first there. */
static bool both_on_gpu(const struct rta_preempt *p, size_t h, size_t i) {
	return p->set->tasks[i].n_gpu > 0 && p->set->tasks[h].n_gpu > 0 &&
	       rta_above_on_gpu(p->levels, h, i);
}

/* x_i of Eq. 4.1; see the reading x_by_formula. */
static bool updates_delay(const struct rta_preempt *p, size_t i) {
	const struct rta_task *t = &p->set->tasks[i];
	bool same_cpu = t->cpu == p->set->kthread_cpu;

	return p->readings->x_by_formula ? t->n_gpu > 0 && same_cpu : t->n_gpu > 0 || same_cpu;
}

/* Lemma 13, Eq. 4.2, with K_i of Lemma 12, Eq. 4.1. */
static void kthread(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct rta_preempt *p = ((const struct window *)userdata)->p;
	const struct rta_set *set = p->set;
	nsec_t updates = rta_mul(2, set->epsilon);
	bool x = updates_delay(p, i);

	rta_charge(ret, RTA_OWN, rta_add(set->tasks[i].c, set->tasks[i].g));
	if (x) {
		rta_charge(ret, RTA_UPDATE, updates);
	}
	for (size_t h = 0; h < set->n_real_time; h++) {
		nsec_t work = rta_add(set->tasks[h].c, set->tasks[h].g);

		if (h == i) {
			continue;
		}
		if (x && above(p, h, i)) {
			nsec_t j = jitter(p, h, work);

			rta_charge(ret, RTA_UPDATE, interference(p, h, r, j, updates));
		}
		if (above_on_cpu(p, h, i)) {
			rta_charge(ret, RTA_CPU, interference(p, h, r, 0, work));
		} else if (both_on_gpu(p, h, i)) {
			nsec_t j = jitter(p, h, work);

			rta_charge(ret, RTA_GPU, interference(p, h, r, j, work));
		}
	}
}

/* B_i in the reading updates_as_gcaps. */
static void charge_updates_as_gcaps(const struct rta_preempt *p, size_t i, nsec_t r,
				    struct rta_bound *ret) {
	const struct rta_set *set = p->set;
	const bool suspend = p->approach == RTA_IOCTL_SUSPEND;

	rta_charge(ret, RTA_UPDATE, rta_mul(1 + 3 * (nsec_t)set->tasks[i].n_gpu, set->epsilon));
	for (size_t h = 0; h < set->n_real_time; h++) {
		const struct rta_task *t = &set->tasks[h];
		nsec_t each = rta_mul(2 * (nsec_t)t->n_gpu, set->epsilon);
		nsec_t j = 0;

		if (h == i || each == 0) {
			continue;
		}
		if (above_on_cpu(p, h, i)) {
			j = suspend ? jitter(p, h, rta_add(t->c, t->gm)) : 0;
		} else if (both_on_gpu(p, h, i)) {
			j = jitter(p, h, t->ge);
		} else {
			continue;
		}
		rta_charge(ret, RTA_UPDATE, interference(p, h, r, j, each));
	}
}

/* B_i of Lemma 14, Eq. 4.3. */
static void charge_updates(const struct rta_preempt *p, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct rta_set *set = p->set;
	nsec_t pair = rta_mul(2, set->epsilon);

	if (p->readings->updates_as_gcaps) {
		charge_updates_as_gcaps(p, i, r, ret);
		return;
	}
	rta_charge(ret, RTA_UPDATE, rta_mul(pair, set->tasks[i].n_gpu));
	for (size_t h = 0; h < set->n_real_time; h++) {
		const struct rta_task *t = &set->tasks[h];

		if (h != i && both_on_gpu(p, h, i)) {
			nsec_t j = jitter(p, h, rta_add(t->c, t->g));
			nsec_t each =
				p->readings->updates_by_segment ? rta_mul(pair, t->n_gpu) : pair;

			rta_charge(ret, RTA_UPDATE, interference(p, h, r, j, each));
		}
	}
}

/* Lemma 15, Eq. 4.4; tight: Lemma 20, Eq. 4.11. */
static void ioctl_suspend(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;
	const struct rta_set *set = w->p->set;

	rta_charge(ret, RTA_OWN, rta_add(set->tasks[i].c, set->tasks[i].g));
	charge_updates(w->p, i, r, ret);
	for (size_t h = 0; h < set->n_real_time; h++) {
		const struct rta_task *t = &set->tasks[h];
		nsec_t on_cpu = rta_add(t->c, t->gm);

		if (h == i) {
			continue;
		}
		if (above_on_cpu(w->p, h, i)) {
			nsec_t j = jitter(w->p, h, on_cpu);

			rta_charge(ret, RTA_CPU,
				   rta_less(interference(w->p, h, r, j, on_cpu), w->cg[h]));
		}
		if (both_on_gpu(w->p, h, i)) {
			nsec_t j = jitter(w->p, h, t->ge);

			rta_charge(ret, RTA_GPU,
				   rta_less(interference(w->p, h, r, j, t->ge), w->gc[h]));
		}
	}
}

/* Lemma 16, Eq. 4.5; tight: Lemma 21, Eq. 4.12. */
static void ioctl_busy(const void *userdata, size_t i, nsec_t r, struct rta_bound *ret) {
	const struct window *w = userdata;
	const struct rta_set *set = w->p->set;

	rta_charge(ret, RTA_OWN, rta_add(set->tasks[i].c, set->tasks[i].g));
	charge_updates(w->p, i, r, ret);
	for (size_t h = 0; h < set->n_real_time; h++) {
		const struct rta_task *t = &set->tasks[h];

		if (h == i) {
			continue;
		}
		if (above_on_cpu(w->p, h, i)) {
			nsec_t all = interference(w->p, h, r, 0, rta_add(t->c, t->g));

			rta_charge(ret, RTA_CPU, rta_less(all, rta_add(w->cg[h], w->gc[h])));
		} else if (both_on_gpu(w->p, h, i)) {
			nsec_t j = jitter(w->p, h, t->ge);

			rta_charge(ret, RTA_GPU,
				   rta_less(interference(w->p, h, r, j, t->ge), w->gc[h]));
		}
	}
}

struct rta_bound rta_preempt_bound(const struct rta_preempt *p, size_t i) {
	static const rta_recurrence lemmas[] = {
		[RTA_KTHREAD_BUSY] = kthread,
		[RTA_IOCTL_BUSY] = ioctl_busy,
		[RTA_IOCTL_SUSPEND] = ioctl_suspend,
	};
	const struct rta_task *task = &p->set->tasks[i];
	struct window w = {.p = p};

	for (size_t h = 0; p->tight && h < p->set->n_real_time; h++) {
		if (h != i) {
			w.cg[h] = rta_overlap_cg(p->set, p->levels, i, h);
			w.gc[h] = rta_overlap_gc(p->set, p->readings, i, h);
		}
	}
	return rta_solve(lemmas[p->approach], &w, i, task, task->period);
}

void rta_preempt_all(const struct rta_preempt *p, struct rta_bound *ret) {
	struct rta_preempt each = *p;

	each.bounds = ret;
	each.levels = NULL;
	for (size_t i = 0; i < p->set->n_real_time; i++) {
		ret[i] = rta_preempt_bound(&each, i);
	}
}
