/*
 * bench-analysis.c: response-time analysis of random sets of tasks as Table 4.2 of the dissertation
 * makes them: how long it takes, and how far the bounds are above simulated schedules.
 *
 * One JSON line for all methods on 1,000 sets of 20 tasks: CPU time. Then one for each method that
 * a schedule can be compared with: the bound divided by the longest response that was simulated, of
 * tasks that have a bound: mean and percentiles, and the same without and for the tasks of the
 * lower half by priority; and how many tasks have a bound.
 *
 * Usage: bench-analysis [SETS-TO-SIMULATE [UTILISATION]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/sim/random-tasks.h"
#include "daemon/core/analysis/method.h"
#include "daemon/sim/schedule.h"

#define SETS  1000
#define TASKS 20

static const struct rta_readings as_default;
static struct random_set set;

static double cpu_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put(struct random_tasks *g, const char *name, unsigned low, unsigned high) {
	if (random_tasks_put(g, random_param_find(name, strlen(name)),
			     (struct range){low, high, 0}) < 0) {
		abort();
	}
}

static void measure_speed(void) {
	double passed[32] = {0}, all = 0;
	struct random_tasks g;

	random_tasks_default(&g, false);
	put(&g, "tasks", TASKS * 1000, TASKS * 1000);
	for (unsigned s = 0; s < SETS; s++) {
		struct rta_bound bounds[RTA_TASKS_MAX];

		random_tasks_make(&g, s, &set);
		set.set.epsilon = NSEC_PER_MSEC;
		for (size_t k = 0; k < rta_n_methods; k++) {
			double start = cpu_s();

			rta_method_run(&rta_methods[k], &set.set, &as_default, bounds);
			passed[k] += cpu_s() - start;
		}
	}
	for (size_t k = 0; k < rta_n_methods; k++) {
		all += passed[k];
	}
	printf("{\"bench\": \"analysis-speed\", \"sets\": %d, \"tasks\": %d, \"methods\": %zu, "
	       "\"cpu_s\": %.3f, \"by_method_s\": {",
	       SETS, TASKS, rta_n_methods, all);
	for (size_t k = 0; k < rta_n_methods; k++) {
		printf("%s\"%s\": %.3f", k ? ", " : "", rta_methods[k].name, passed[k]);
	}
	printf("}}\n");
}

/* Of one method, over all sets. */
struct ratios {
	double *list; /* owned */
	size_t n, n_tasks, below, late, sets;
	double sum;
};

static void add(struct ratios *r, nsec_t bound, nsec_t longest, nsec_t period) {
	r->n_tasks++;
	r->late += longest > period;
	if (bound != RTA_FOREVER && longest > 0) {
		double *list = reallocarray(r->list, r->n + 1, sizeof(*list));

		if (!list) {
			abort();
		}
		r->list = list;
		r->list[r->n++] = (double)bound / (double)longest;
		r->sum += (double)bound / (double)longest;
		r->below += bound < longest;
	}
}

static int compare(const void *a, const void *b) {
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void show(const char *method, const struct rta_method *m, struct ratios *r) {
	if (r->n > 0) {
		qsort(r->list, r->n, sizeof(*r->list), compare);
		printf("{\"bench\": \"analysis-pessimism\", \"simulated\": \"%s\", \"method\": "
		       "\"%s\", \"tasks\": %zu, \"bounds\": %zu, \"late\": %zu, \"sets\": %zu, "
		       "\"below\": %zu, \"mean\": %.3f, "
		       "\"p50\": %.3f, \"p90\": %.3f, \"max\": %.3f}\n",
		       method, m->name, r->n_tasks, r->n, r->late, r->sets, r->below,
		       r->sum / (double)r->n, r->list[r->n / 2], r->list[r->n * 9 / 10],
		       r->list[r->n - 1]);
	}
	free(r->list);
}

/* All methods that bound what @safe does, beside its schedules. */
static void measure_pessimism(const struct rta_method *safe, enum schedule_approach approach,
			      unsigned n_sets, unsigned utilisation) {
	struct ratios ratios[32] = {0};
	struct random_tasks g;

	random_tasks_default(&g, false);
	if (utilisation > 0) {
		put(&g, "utilisation", utilisation, utilisation);
	}
	for (unsigned s = 0; s < n_sets; s++) {
		struct schedule_search search = {
			.setup = {.set = &set.set,
				  .approach = approach,
				  .mode = safe->mode,
				  .duration = 3 * NSEC_PER_SEC,
				  .seed = s},
			.n_random = 10,
			.n_adversarial = 60,
		};
		struct schedule_worst worst;

		random_tasks_make(&g, s, &set);
		set.set.epsilon = NSEC_PER_MSEC;
		schedule_search(&search, &worst);
		for (size_t k = 0; k < rta_n_methods; k++) {
			struct rta_bound bounds[RTA_TASKS_MAX];

			if (rta_method_safe(&rta_methods[k]) != safe) {
				continue;
			}
			rta_method_run(&rta_methods[k], &set.set, &as_default, bounds);
			ratios[k].sets += rta_in_time(&set.set, bounds);
			for (size_t i = 0; i < set.set.n_real_time; i++) {
				add(&ratios[k], bounds[i].response, schedule_longest(&worst, i),
				    set.set.tasks[i].period);
			}
		}
	}
	for (size_t k = 0; k < rta_n_methods; k++) {
		show(safe->name, &rta_methods[k], &ratios[k]);
	}
}

int main(int argc, char **argv) {
	const unsigned n_sets = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
	const unsigned utilisation = argc > 2 ? (unsigned)(strtod(argv[2], NULL) * 1000 + 0.5) : 0;

	measure_speed();
	for (size_t k = 0; k < rta_n_methods; k++) {
		const struct rta_method *m = &rta_methods[k];

		if (rta_method_safe(m) == m && m->mode != RTA_MODE_OWN) {
			enum schedule_approach approach = m->family == RTA_SAFE ? SCHEDULE_IOCTL
							  : m->family == RTA_SAFE_KTHREAD
								  ? SCHEDULE_KTHREAD
							  : m->protocol == RTA_MPCP ? SCHEDULE_MPCP
										    : SCHEDULE_FMLP;

			measure_pessimism(m, approach, n_sets, utilisation);
		}
	}
	return 0;
}
