/* taskset.c: see taskset.h. */
#include "client/sim/taskset.h"

#include <errno.h>
#include <math.h>

#include "client/sim/draw.h"
#include "daemon/sim/sim.h"

/* UUniFast keeps within [0.01, 0.5] often enough for anything but the very ends of what is
 * possible; these are refused after so many tries. */
#define TRIES_MAX 1000000

/* Total utilisation of sets of heavy and light tasks. */
#define MIXED_TOTAL 0.9

void taskset_rules_default(struct taskset_rules *ret, const struct scenario *scenario) {
	*ret = (struct taskset_rules){
		.n_tasks = 6,
		.u_min = 0.01,
		.u_max = 0.5,
		.deadline_permille = 500,
		.reference_sms = scenario->gpus[0].model.limit,
		.reference_step = scenario->gpus[0].model.step,
	};
}

static bool within(const struct taskset_rules *rules, const double *u) {
	for (unsigned i = 0; i < rules->n_tasks; i++) {
		if (u[i] < rules->u_min || u[i] > rules->u_max) {
			return false;
		}
	}
	return true;
}

/* Counts the profiles that a task may have, if it is to be heavy or light where that matters. */
static size_t candidates(const struct scenario *scenario, const struct taskset_rules *rules,
			 bool heavy, size_t nth, size_t *ret) {
	size_t n = 0;

	for (size_t i = 0; i < scenario->n_profiles; i++) {
		if ((rules->excluded && rules->excluded[i]) ||
		    (rules->heavy && rules->heavy[i] != heavy) ||
		    !scenario->profiles[i].tables[rules->reference]) {
			continue;
		}
		if (n++ == nth) {
			*ret = i;
		}
	}
	return n;
}

/* The mean of G_i(m) over the multiples m of @step up to @n_sms, in nanoseconds. */
static double mean_time(const struct profile_table *p, unsigned n_sms, unsigned step) {
	double sum = 0;

	for (unsigned m = step; m <= n_sms; m += step) {
		sum += (double)profile_total(p, m);
	}
	return sum / (n_sms / step);
}

/* Shorter periods are more urgent; of equal ones the first. */
static void rate_monotonic(struct sched_task *tasks, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		int longer = 0;

		for (unsigned j = 0; j < n; j++) {
			longer += tasks[j].period > tasks[i].period ||
				  (tasks[j].period == tasks[i].period && j > i);
		}
		tasks[i].spec.priority = longer;
	}
}

/* Table 3.5. */
static int draw_shares(const struct taskset_rules *rules, double u, uint64_t *random,
		       double *ret_shares) {
	unsigned tries = 0;

	do {
		if (u < rules->n_tasks * rules->u_min || u > rules->n_tasks * rules->u_max ||
		    tries++ == TRIES_MAX) {
			return -ERANGE;
		}
		draw_uunifast(u, rules->n_tasks, random, ret_shares);
	} while (!within(rules, ret_shares));
	return 0;
}

/* 2.5.5, "light tasks". Returns how many. */
static unsigned draw_mixed(double heavy_share, uint64_t *random, double *ret_shares,
			   bool *ret_heavy) {
	unsigned n = 0;

	for (double left = MIXED_TOTAL; left > 1e-9; left -= ret_shares[n++]) {
		ret_heavy[n] = draw(random) < heavy_share;
		ret_shares[n] =
			ret_heavy[n] ? 0.05 + 0.15 * draw(random) : 0.2 + 0.2 * draw(random);
		ret_shares[n] = fmin(ret_shares[n], left);
	}
	return n;
}

static int make_task(const struct scenario *scenario, const struct taskset_rules *rules,
		     size_t index, double share, uint64_t *random, struct sched_task *task) {
	const struct scenario_profile *profile = &scenario->profiles[index];
	double period = mean_time(profile->tables[rules->reference], rules->reference_sms,
				  rules->reference_step) /
			share;

	if (period > (double)PROTO_PERIOD_MAX_NS) {
		return -ERANGE;
	}
	*task = (struct sched_task){.period = (nsec_t)period, .fixed_gpu = -1};
	task->deadline = task->period / 1000 * rules->deadline_permille;
	task->first_release = (nsec_t)(draw(random) * period / 2);
	for (size_t k = 0; k < scenario->n_gpus; k++) {
		task->profiles[k] = profile->tables[k];
	}
	return 0;
}

int taskset_make(const struct scenario *scenario, const struct taskset_rules *rules, double u,
		 uint64_t seed, struct sched_task *ret_tasks, size_t *ret_profiles,
		 unsigned *ret_n) {
	unsigned n = rules->n_tasks;
	bool heavy[TASKSET_MAX] = {false};
	uint64_t random = seed;
	double shares[TASKSET_MAX];
	size_t index = 0;
	int r = 0;

	if (candidates(scenario, rules, false, SIZE_MAX, &index) == 0 ||
	    (rules->heavy && candidates(scenario, rules, true, SIZE_MAX, &index) == 0)) {
		return -ENOENT;
	}
	if (rules->heavy) {
		n = draw_mixed(u, &random, shares, heavy);
	} else {
		r = draw_shares(rules, u, &random, shares);
	}
	for (unsigned i = 0; r == 0 && i < n; i++) {
		size_t of = candidates(scenario, rules, heavy[i], SIZE_MAX, &index);

		candidates(scenario, rules, heavy[i], sim_random(&random) % of, &index);
		r = make_task(scenario, rules, index, shares[i], &random, &ret_tasks[i]);
		ret_profiles[i] = index;
	}
	if (r < 0) {
		return r;
	}
	rate_monotonic(ret_tasks, n);
	*ret_n = n;
	return 0;
}
