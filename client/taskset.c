/* taskset.c: see taskset.h. */
#include "client/taskset.h"

#include <errno.h>
#include <math.h>

#include "daemon/core/sim.h"

/* UUniFast keeps within [0.01, 0.5] often enough for anything but the very ends of what is
 * possible; these are refused after so many tries. */
#define TRIES_MAX 1000000

void taskset_rules_default(struct taskset_rules *ret, const struct scenario *scenario) {
	*ret = (struct taskset_rules){
		.n_tasks = 6,
		.u_min = 0.01,
		.u_max = 0.5,
		.deadline_permille = 500,
		.reference_sms = scenario->gpus[0].model.limit,
	};
}

/* Even in [0, 1). */
static double draw(uint64_t *random) {
	return (double)(sim_random(random) >> 11) * 0x1p-53;
}

/* Bini and Buttazzo's UUniFast: even among all utilisations that add up to @u. */
static void uunifast(double u, unsigned n, uint64_t *random, double *ret) {
	for (unsigned i = 0; i + 1 < n; i++) {
		double rest = u * pow(draw(random), 1.0 / (n - i - 1));

		ret[i] = u - rest;
		u = rest;
	}
	ret[n - 1] = u;
}

static bool within(const struct taskset_rules *rules, const double *u) {
	for (unsigned i = 0; i < rules->n_tasks; i++) {
		if (u[i] < rules->u_min || u[i] > rules->u_max) {
			return false;
		}
	}
	return true;
}

static size_t candidates(const struct scenario *scenario, const struct taskset_rules *rules,
			 size_t nth, size_t *ret) {
	size_t n = 0;

	for (size_t i = 0; i < scenario->n_profiles; i++) {
		if ((rules->excluded && rules->excluded[i]) ||
		    !scenario->profiles[i].tables[rules->reference]) {
			continue;
		}
		if (n++ == nth) {
			*ret = i;
		}
	}
	return n;
}

/* The mean of G_i(m) over m = 1 to @n_sms, in nanoseconds. */
static double mean_time(const struct profile_table *p, unsigned n_sms) {
	double sum = 0;

	for (unsigned m = 1; m <= n_sms; m++) {
		sum += (double)profile_total(p, m);
	}
	return sum / n_sms;
}

/* Shorter periods are more urgent; of equal ones the first. */
static void rate_monotonic(struct sched_task *tasks, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		int longer = 0;

		for (unsigned j = 0; j < n; j++) {
			longer += tasks[j].period > tasks[i].period ||
				  (tasks[j].period == tasks[i].period && j > i);
		}
		tasks[i].priority = longer;
	}
}

int taskset_make(const struct scenario *scenario, const struct taskset_rules *rules, double u,
		 uint64_t seed, struct sched_task *ret_tasks, size_t *ret_profiles) {
	uint64_t random = seed;
	double shares[TASKSET_MAX];
	size_t index = 0, n = candidates(scenario, rules, SIZE_MAX, &index);
	unsigned tries = 0;

	if (n == 0) {
		return -ENOENT;
	}
	do {
		if (u < rules->n_tasks * rules->u_min || u > rules->n_tasks * rules->u_max ||
		    tries++ == TRIES_MAX) {
			return -ERANGE;
		}
		uunifast(u, rules->n_tasks, &random, shares);
	} while (!within(rules, shares));

	for (unsigned i = 0; i < rules->n_tasks; i++) {
		struct sched_task *task = &ret_tasks[i];
		double period;

		candidates(scenario, rules, sim_random(&random) % n, &index);
		period = mean_time(scenario->profiles[index].tables[rules->reference],
				   rules->reference_sms) /
			 shares[i];
		if (period > (double)PROTO_PERIOD_MAX_NS) {
			return -ERANGE;
		}
		*task = (struct sched_task){.period = (nsec_t)period, .fixed_gpu = -1};
		task->deadline = task->period / 1000 * rules->deadline_permille;
		task->first_release = (nsec_t)(draw(&random) * period / 2);
		for (size_t k = 0; k < scenario->n_gpus; k++) {
			task->profiles[k] = scenario->profiles[index].tables[k];
		}
		ret_profiles[i] = index;
	}
	rate_monotonic(ret_tasks, rules->n_tasks);
	return 0;
}
