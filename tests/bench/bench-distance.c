/*
 * bench-distance.c [FIRST [CASES]]: how far each policy is from the best schedule, over CASES small
 * random cases from seed FIRST on: a JSON line each. What "best" means, and the space that was
 * searched: tests/unit/optimum.h.
 *
 * missed: share of all jobs. excess_misses: share of all jobs that the policy misses and the best
 * schedule does not. as_few: share of cases without any such job. energy_percent: energy above
 * static power that the policy takes more than the best schedule, over the cases in which neither
 * misses anything, so that both do the same work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/optimum.h"

#define POLICIES_MAX 32

struct distance {
	unsigned long long missed, excess, as_few, compared;
	double energy, best_energy;
};

/* Not `fixed`, for jobs have no fixed place; nor those that do what the best schedule may not: stop
 * jobs, let them share SMs, follow a table. */
static bool is_compared(const struct sched_policy *policy) {
	return strcmp(policy->name, "fixed") != 0 && !policy->stops && !policy->steers &&
	       !policy->by_table;
}

static void add(struct distance *d, const struct optimum_value *best,
		const struct optimum_value *v) {
	d->missed += v->misses;
	d->excess += v->misses - best->misses;
	d->as_few += v->misses == best->misses;
	if (best->misses == 0 && v->misses == 0) {
		d->compared++;
		d->energy += (double)v->energy_pj;
		d->best_energy += (double)best->energy_pj;
	}
}

static void print(const char *name, const struct distance *d, unsigned long long cases,
		  unsigned long long jobs) {
	printf("{\"bench\": \"distance\", \"policy\": \"%s\", \"cases\": %llu, \"jobs\": %llu, "
	       "\"missed_percent\": %.2f, \"excess_misses_percent\": %.2f, "
	       "\"as_few_percent\": %.1f, \"compared\": %llu, \"energy_percent\": %.2f}\n",
	       name, cases, jobs, 100.0 * (double)d->missed / (double)jobs,
	       100.0 * (double)d->excess / (double)jobs, 100.0 * (double)d->as_few / (double)cases,
	       d->compared, d->compared ? 100 * (d->energy / d->best_energy - 1) : 0);
}

int main(int argc, char **argv) {
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t cases = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
	const struct sched_policy *const *policies = sched_policies();
	struct distance distances[POLICIES_MAX] = {0}, best = {0};
	static struct optimum_case c;
	unsigned long long jobs = 0;

	for (uint64_t seed = first; seed < first + cases; seed++) {
		struct optimum_value least, v;

		optimum_case_make(&c, seed);
		least = optimum_search(&c);
		jobs += c.n_jobs;
		add(&best, &least, &least);
		for (size_t i = 0; policies[i] && i < POLICIES_MAX; i++) {
			if (!is_compared(policies[i])) {
				continue;
			}
			if (optimum_policy(&c, policies[i], &v) < 0) {
				fprintf(stderr, "bench-distance: cannot simulate case %llu\n",
					(unsigned long long)seed);
				return EXIT_FAILURE;
			}
			add(&distances[i], &least, &v);
		}
	}
	print("best", &best, cases, jobs);
	for (size_t i = 0; policies[i] && i < POLICIES_MAX; i++) {
		if (is_compared(policies[i])) {
			print(policies[i]->name, &distances[i], cases, jobs);
		}
	}
	return EXIT_SUCCESS;
}
