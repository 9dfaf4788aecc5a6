/* rta.c: see rta.h. */
#include "daemon/core/analysis/rta.h"

void rta_sum(struct rta_set *set) {
	set->n_real_time = 0;
	for (size_t i = 0; i < set->n_tasks; i++) {
		struct rta_task *t = &set->tasks[i];

		t->c = t->gm = t->ge = t->g = t->best_c = t->best_ge = 0;
		t->n_gpu = 0;
		set->n_real_time = t->priority != 0 ? i + 1 : set->n_real_time;
		for (size_t j = 0; j < t->n_segments; j++) {
			const struct rta_segment *s = &t->segments[j];

			if (s->gpu) {
				t->gm = rta_add(t->gm, s->misc);
				t->ge = rta_add(t->ge, s->exec);
				t->g = rta_add(t->g, s->total);
				t->best_ge = rta_add(t->best_ge, s->best_exec);
				t->n_gpu++;
			} else {
				t->c = rta_add(t->c, s->cpu);
				t->best_c = rta_add(t->best_c, s->best);
			}
		}
	}
}

bool rta_above_on_gpu(const unsigned *levels, size_t h, size_t i) {
	return levels ? levels[h] < levels[i] : h < i;
}

nsec_t rta_add(nsec_t a, nsec_t b) {
	nsec_t sum;

	return __builtin_add_overflow(a, b, &sum) ? RTA_FOREVER : sum;
}

nsec_t rta_mul(nsec_t a, nsec_t b) {
	nsec_t product;

	return __builtin_mul_overflow(a, b, &product) ? RTA_FOREVER : product;
}

nsec_t rta_less(nsec_t a, nsec_t b) {
	return a > b ? a - b : 0;
}

nsec_t rta_jobs(nsec_t window, nsec_t jitter, nsec_t period) {
	nsec_t span = rta_add(window, jitter);

	if (span == RTA_FOREVER) {
		return RTA_FOREVER;
	}
	return span / period + (span % period != 0);
}

nsec_t rta_jitter(nsec_t response, nsec_t work) {
	return response == RTA_FOREVER ? RTA_FOREVER : rta_less(response, work);
}

void rta_charge(struct rta_bound *b, enum rta_term term, nsec_t t) {
	b->terms[term] = rta_add(b->terms[term], t);
	b->response = rta_add(b->response, t);
}

struct rta_bound rta_solve(rta_recurrence f, const void *userdata, size_t i,
			   const struct rta_task *task, nsec_t limit) {
	nsec_t r = rta_add(task->c, task->g);

	for (unsigned step = 0; r <= limit && step < RTA_STEPS_MAX; step++) {
		struct rta_bound b = {0};

		f(userdata, i, r, &b);
		if (b.response <= r) {
			return b;
		}
		r = b.response;
	}
	return (struct rta_bound){.response = RTA_FOREVER};
}

void rta_assume_deadlines(rta_pass pass, const void *userdata, const struct rta_set *set,
			  struct rta_bound *ret) {
	struct rta_bound below[RTA_TASKS_MAX];
	bool holds = false;

	for (size_t i = 0; i < set->n_real_time; i++) {
		below[i] = (struct rta_bound){.response = set->tasks[i].deadline};
	}
	while (!holds) {
		holds = true;
		pass(userdata, below, ret);
		for (size_t i = 0; i < set->n_real_time; i++) {
			if (below[i].response != RTA_FOREVER &&
			    ret[i].response > below[i].response) {
				below[i].response = RTA_FOREVER;
				holds = false;
			}
		}
	}
	/* Each task reads the bounds of those below before they are written. */
	pass(userdata, ret, ret);
}
