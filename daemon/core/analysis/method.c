/* method.c: see method.h. */
#include "daemon/core/analysis/method.h"

#include <string.h>

#define BUSY	RTA_MODE_BUSY
#define SUSPEND RTA_MODE_SUSPEND

const struct rta_method rta_methods[] = {
	{"safe", "corrected", RTA_SAFE, RTA_MODE_OWN},
	{"safe-busy", "corrected", RTA_SAFE, BUSY},
	{"safe-suspend", "corrected", RTA_SAFE, SUSPEND},
	{"safe-kthread", "corrected", RTA_SAFE_KTHREAD, BUSY, RTA_KTHREAD_BUSY},
	{"safe-mpcp-busy", "corrected", RTA_SAFE_LOCKING, BUSY, .protocol = RTA_MPCP},
	{"safe-mpcp-suspend", "corrected", RTA_SAFE_LOCKING, SUSPEND, .protocol = RTA_MPCP},
	{"safe-fmlp-busy", "corrected", RTA_SAFE_LOCKING, BUSY, .protocol = RTA_FMLP},
	{"safe-fmlp-suspend", "corrected", RTA_SAFE_LOCKING, SUSPEND, .protocol = RTA_FMLP},
	{"kthread-busy", "Lemma 13", RTA_PREEMPT, BUSY, RTA_KTHREAD_BUSY},
	{"ioctl-busy", "Lemma 16", RTA_PREEMPT, BUSY, RTA_IOCTL_BUSY},
	{"ioctl-suspend", "Lemma 15", RTA_PREEMPT, SUSPEND, RTA_IOCTL_SUSPEND},
	{"ioctl-busy-tight", "Lemma 21", RTA_PREEMPT, BUSY, RTA_IOCTL_BUSY, .tight = true},
	{"ioctl-suspend-tight", "Lemma 20", RTA_PREEMPT, SUSPEND, RTA_IOCTL_SUSPEND, .tight = true},
	{"mpcp-busy", "MPCP", RTA_LOCKING, BUSY, .protocol = RTA_MPCP},
	{"mpcp-suspend", "MPCP", RTA_LOCKING, SUSPEND, .protocol = RTA_MPCP},
	{"fmlp-busy", "FMLP+", RTA_LOCKING, BUSY, .protocol = RTA_FMLP},
	{"fmlp-suspend", "FMLP+", RTA_LOCKING, SUSPEND, .protocol = RTA_FMLP},
};
const size_t rta_n_methods = sizeof(rta_methods) / sizeof(rta_methods[0]);

const struct rta_method *rta_method_find(const char *name) {
	for (size_t k = 0; k < rta_n_methods; k++) {
		if (strcmp(rta_methods[k].name, name) == 0) {
			return &rta_methods[k];
		}
	}
	return NULL;
}

static enum rta_family safe_family(const struct rta_method *m) {
	switch (m->family) {
	case RTA_PREEMPT:
		return m->approach == RTA_KTHREAD_BUSY ? RTA_SAFE_KTHREAD : RTA_SAFE;
	case RTA_LOCKING:
		return RTA_SAFE_LOCKING;
	default:
		return m->family;
	}
}

const struct rta_method *rta_method_safe(const struct rta_method *m) {
	const enum rta_family family = safe_family(m);
	size_t k = 0;

	while (rta_methods[k].family != family || rta_methods[k].mode != m->mode ||
	       rta_methods[k].protocol != m->protocol) {
		k++; /* there is one for each */
	}
	return &rta_methods[k];
}

static struct rta_preempt preempt_of(const struct rta_method *m, const struct rta_set *set,
				     const struct rta_readings *readings) {
	return (struct rta_preempt){
		.set = set, .approach = m->approach, .tight = m->tight, .readings = readings};
}

void rta_method_run(const struct rta_method *m, const struct rta_set *set,
		    const struct rta_readings *readings, struct rta_bound *ret) {
	struct rta_preempt preempt = preempt_of(m, set, readings);
	struct rta_locking locking = {.set = set,
				      .protocol = m->protocol,
				      .busy = m->mode == BUSY,
				      .corrected = m->family == RTA_SAFE_LOCKING,
				      .readings = readings};

	switch (m->family) {
	case RTA_SAFE:
		rta_safe_all(set, m->mode, ret);
		return;
	case RTA_SAFE_KTHREAD:
		rta_safe_kthread_all(set, ret);
		return;
	case RTA_PREEMPT:
		rta_preempt_all(&preempt, ret);
		return;
	case RTA_LOCKING:
	case RTA_SAFE_LOCKING:
		rta_locking_all(&locking, ret);
		return;
	}
}

bool rta_method_assign(const struct rta_method *m, const struct rta_set *set,
		       const struct rta_readings *readings, bool swap, struct rta_bound *ret,
		       unsigned *ret_levels) {
	struct rta_preempt preempt = preempt_of(m, set, readings);

	return m->family == RTA_PREEMPT && rta_audsley(&preempt, swap, ret, ret_levels);
}

bool rta_in_time(const struct rta_set *set, const struct rta_bound *bounds) {
	for (size_t i = 0; i < set->n_real_time; i++) {
		if (bounds[i].response > set->tasks[i].deadline) {
			return false;
		}
	}
	return true;
}

/* Marks the tasks that are in time. */
static void find_in_time(const struct rta_method *m, const struct rta_set *set,
			 const struct rta_readings *readings, bool *ret) {
	struct rta_bound bounds[RTA_TASKS_MAX];

	rta_method_run(m, set, readings, bounds);
	for (size_t i = 0; i < set->n_real_time; i++) {
		ret[i] = bounds[i].response <= set->tasks[i].deadline;
	}
}

/* Whether all of @wanted are in time with @extra more in @segment. */
static bool in_time_with(const struct rta_method *m, struct rta_set *set,
			 const struct rta_readings *readings, const bool *wanted,
			 struct rta_segment *segment, nsec_t extra) {
	const struct rta_segment before = *segment;
	bool in_time[RTA_TASKS_MAX], all = true;

	segment->exec = rta_add(segment->exec, extra);
	segment->total = rta_add(segment->total, extra);
	rta_sum(set);
	find_in_time(m, set, readings, in_time);
	*segment = before;
	rta_sum(set);
	for (size_t i = 0; i < set->n_real_time; i++) {
		all = all && (in_time[i] || !wanted[i]);
	}
	return all;
}

nsec_t rta_method_slack(const struct rta_method *m, struct rta_set *set,
			const struct rta_readings *readings, size_t i) {
	struct rta_segment *longest = NULL;
	nsec_t low = 0, high = set->tasks[i].period;
	bool wanted[RTA_TASKS_MAX];

	for (size_t j = 0; j < set->tasks[i].n_segments; j++) {
		struct rta_segment *s = &set->tasks[i].segments[j];

		if (s->gpu && (!longest || s->exec > longest->exec)) {
			longest = s;
		}
	}
	find_in_time(m, set, readings, wanted);
	if (!longest || !wanted[i]) {
		return 0;
	}
	/* All are in time with low; not with high, which alone is beyond the period. */
	while (high - low > NSEC_PER_USEC) {
		nsec_t middle = low + (high - low) / 2;

		if (in_time_with(m, set, readings, wanted, longest, middle)) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return low;
}
