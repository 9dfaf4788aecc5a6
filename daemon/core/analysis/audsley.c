/* audsley.c: see audsley.h. */
#include "daemon/core/analysis/audsley.h"

#include <string.h>

/* Whether a task below @i on its CPU has no level yet, and would go above it on the GPU. */
static bool swaps(const struct rta_set *set, const unsigned *levels, size_t i) {
	for (size_t l = i + 1; l < set->n_real_time; l++) {
		if (set->tasks[l].cpu == set->tasks[i].cpu && set->tasks[l].n_gpu > 0 &&
		    levels[l] == 0) {
			return true;
		}
	}
	return false;
}

/* Level 0 stands for "not known, above all others". */
static bool take_level(const struct rta_preempt *p, bool swap, unsigned *levels, unsigned level,
		       struct rta_bound *bounds) {
	for (size_t i = p->set->n_real_time; i-- > 0;) {
		const struct rta_task *t = &p->set->tasks[i];

		if (t->n_gpu == 0 || levels[i] != 0 || (!swap && swaps(p->set, levels, i))) {
			continue;
		}
		levels[i] = level;
		bounds[i] = rta_preempt_bound(p, i);
		if (bounds[i].response <= t->deadline) {
			return true;
		}
		levels[i] = 0;
	}
	return false;
}

bool rta_audsley(const struct rta_preempt *p, bool swap, struct rta_bound *ret,
		 unsigned *ret_levels) {
	struct rta_bound bounds[RTA_TASKS_MAX];
	unsigned levels[RTA_TASKS_MAX] = {0}, n_gpu = 0;
	struct rta_preempt each = *p;
	const size_t n = p->set->n_real_time;

	each.bounds = NULL;
	each.levels = levels;
	for (size_t i = 0; i < n; i++) {
		n_gpu += p->set->tasks[i].n_gpu > 0;
	}
	for (unsigned level = n_gpu; level > 0; level--) {
		if (!take_level(&each, swap, levels, level, bounds)) {
			return false;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (p->set->tasks[i].n_gpu == 0) {
			bounds[i] = rta_preempt_bound(&each, i);
			if (bounds[i].response > p->set->tasks[i].deadline) {
				return false;
			}
		}
	}
	memcpy(ret, bounds, n * sizeof(*ret));
	memcpy(ret_levels, levels, n * sizeof(*ret_levels));
	return true;
}
