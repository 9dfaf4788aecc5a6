/* rta-sweep.c: see rta-sweep.h. */
#include "client/sim/rta-sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/sim/sim.h"

struct work {
	const struct rta_sweep *s;
	uint32_t *outcomes; /* owned; by unit: a bit for each curve */
};

struct random_tasks rta_sweep_at(const struct rta_sweep *s, size_t i) {
	struct random_tasks tasks = s->tasks;

	tasks.params[s->x] = (struct range){s->points[i], s->points[i], 0};
	return tasks;
}

/* Depends on the seed, the point and the number of the set there, and on nothing else: another
 * range or number of sets leaves those that both have as they are. */
static uint64_t unit_seed(const struct rta_sweep *s, size_t unit) {
	uint64_t state = s->seed;

	state = sim_random(&state) + s->points[unit / s->n_sets];
	state = sim_random(&state) + unit % s->n_sets;
	return sim_random(&state);
}

static bool is_schedulable(const struct rta_sweep *s, const struct rta_curve *c,
			   const struct rta_set *set) {
	struct rta_bound bounds[RTA_TASKS_MAX];
	unsigned levels[RTA_TASKS_MAX];

	rta_method_run(c->method, set, &s->readings, bounds);
	return rta_in_time(set, bounds) ||
	       (c->assign &&
		rta_method_assign(c->method, set, &s->readings, s->swap, bounds, levels));
}

static int run_unit(void *userdata, size_t unit) {
	const struct work *w = userdata;
	const struct rta_sweep *s = w->s;
	struct random_tasks tasks = rta_sweep_at(s, unit / s->n_sets);
	struct random_set *random = malloc(sizeof(*random));

	if (!random) {
		return -ENOMEM;
	}
	random_tasks_make(&tasks, unit_seed(s, unit), random);
	random->set.epsilon = s->epsilon;
	for (size_t k = 0; k < s->n_curves; k++) {
		w->outcomes[unit] |= (uint32_t)is_schedulable(s, &s->curves[k], &random->set) << k;
	}
	free(random);
	return 0;
}

static int sum_up(const struct work *w, struct rta_sweep_result *ret) {
	const struct rta_sweep *s = w->s;
	unsigned *sums = calloc(s->n_points * s->n_curves, sizeof(*sums));

	if (!sums) {
		return -ENOMEM;
	}
	for (size_t unit = 0; unit < s->n_points * s->n_sets; unit++) {
		for (size_t k = 0; k < s->n_curves; k++) {
			sums[unit / s->n_sets * s->n_curves + k] += w->outcomes[unit] >> k & 1;
		}
	}
	ret->schedulable = sums;
	return 0;
}

int rta_sweep_run(const struct rta_sweep *s, struct rta_sweep_result *ret) {
	const struct workers workers = {
		.n_units = s->n_points * s->n_sets,
		.n_threads = s->n_workers,
		.run = run_unit,
		.on_progress = s->on_progress,
		.progress = s->progress,
	};
	struct work w = {.s = s, .outcomes = calloc(workers.n_units, sizeof(uint32_t))};
	int r;

	if (!w.outcomes) {
		return -ENOMEM;
	}
	r = workers_run(&workers, &w);
	if (r == 0) {
		r = sum_up(&w, ret);
	}
	free(w.outcomes);
	return r;
}

void rta_sweep_result_deinit(struct rta_sweep_result *r) {
	free(r->schedulable);
	*r = (struct rta_sweep_result){0};
}

double rta_sweep_percent(const struct rta_sweep *s, const struct rta_sweep_result *r, size_t point,
			 size_t curve) {
	return 100.0 * r->schedulable[point * s->n_curves + curve] / s->n_sets;
}
