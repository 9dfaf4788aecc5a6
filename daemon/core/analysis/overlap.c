/* overlap.c: see overlap.h. */
#include "daemon/core/analysis/overlap.h"

#include "proto/limits.h"

/* X = @own + sum of (ceil(X / T_h) - 1) * best of h over all @h that are @above, from X = @own: the
 * form of Eq. 4.7. */
static nsec_t best_completion(const struct rta_set *set, nsec_t own, const bool *above,
			      const nsec_t *best) {
	nsec_t x = own;

	for (unsigned step = 0; x > 0 && x <= PROTO_PERIOD_MAX_NS && step < RTA_STEPS_MAX; step++) {
		nsec_t next = own;

		for (size_t h = 0; h < set->n_real_time; h++) {
			if (above[h]) {
				nsec_t jobs = rta_jobs(x, 0, set->tasks[h].period) - 1;

				next = rta_add(next, rta_mul(jobs, best[h]));
			}
		}
		if (next == x) {
			return x;
		}
		x = next;
	}
	return x; /* each step is a lower bound of the next */
}

/* Eq. 4.7: BX^g of a segment of @i. */
static nsec_t completion_on_gpu(const struct rta_set *set, const unsigned *levels, size_t i,
				nsec_t own) {
	bool above[RTA_TASKS_MAX];
	nsec_t best[RTA_TASKS_MAX];

	for (size_t h = 0; h < set->n_real_time; h++) {
		above[h] = rta_above_on_gpu(levels, h, i);
		best[h] = set->tasks[h].best_ge;
	}
	return best_completion(set, own, above, best);
}

/* BX^c, likewise on the CPU of @i; see the reading bxc_alone. */
static nsec_t completion_on_cpu(const struct rta_set *set, size_t i, nsec_t own) {
	bool above[RTA_TASKS_MAX];
	nsec_t best[RTA_TASKS_MAX];

	for (size_t h = 0; h < set->n_real_time; h++) {
		above[h] = h < i && set->tasks[h].cpu == set->tasks[i].cpu;
		best[h] = set->tasks[h].best_c;
	}
	return best_completion(set, own, above, best);
}

nsec_t rta_overlap_cg(const struct rta_set *set, const unsigned *levels, size_t i, size_t h) {
	const struct rta_task *task = &set->tasks[i], *other = &set->tasks[h];
	nsec_t sum = 0;

	for (size_t j = 0; other->best_c > 0 && j < task->n_segments; j++) {
		if (task->segments[j].gpu) {
			nsec_t bx = completion_on_gpu(set, levels, i, task->segments[j].best_exec);

			sum = rta_add(sum, rta_mul(rta_less(bx / other->period, 1), other->best_c));
		}
	}
	return sum;
}

nsec_t rta_overlap_gc(const struct rta_set *set, const struct rta_readings *readings, size_t i,
		      size_t h) {
	const struct rta_task *task = &set->tasks[i], *other = &set->tasks[h];
	nsec_t sum = 0;

	for (size_t j = 0; other->best_ge > 0 && j < task->n_segments; j++) {
		const struct rta_segment *s = &task->segments[j];

		if (!s->gpu) {
			nsec_t bx =
				readings->bxc_alone ? s->best : completion_on_cpu(set, i, s->best);
			nsec_t jobs = readings->bxc_floor ? bx / other->period
							  : rta_jobs(bx, 0, other->period);

			sum = rta_add(sum, rta_mul(rta_less(jobs, 1), other->best_ge));
		}
	}
	return sum;
}
