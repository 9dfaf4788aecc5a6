/* sweep.c: see sweep.h. */
#include "client/sim/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "client/sim/simulated.h"

/* One policy on one task set. */
struct outcome {
	struct sim_count count;
	uint64_t decisions;
	uint64_t energy_pj;
};

struct work {
	const struct sweep *sweep;
	struct outcome *outcomes; /* owned; [unit * n_policies + policy] */
};

/* Depends on the seed, the utilisation and the number of the task set there, and on nothing else:
 * another range or number of task sets leaves those that both have as they are. */
static uint64_t unit_seed(const struct sweep *s, size_t unit) {
	uint64_t state = s->seed;

	state = sim_random(&state) + (uint64_t)llround(s->u[unit / s->n_tasksets] * 1e6);
	state = sim_random(&state) + unit % s->n_tasksets;
	return sim_random(&state);
}

/* Of light tasks only where there are heavy ones. */
static struct sim_count count_jobs(const struct sweep *s, const struct sim_result *result,
				   const size_t *profiles) {
	struct sim_count count = {0};

	for (size_t i = 0; i < result->n_tasks; i++) {
		const struct sim_count *c = &result->tasks[i].count;

		if (!s->rules.heavy || !s->rules.heavy[profiles[i]]) {
			count.released += c->released;
			count.completed += c->completed;
			count.missed += c->missed;
			count.open += c->open;
		}
	}
	return count;
}

static int run_unit(void *userdata, size_t unit) {
	const struct work *w = userdata;
	const struct sweep *s = w->sweep;
	struct sched_gpu_model models[SCHED_GPUS_MAX];
	struct sched_task tasks[TASKSET_MAX];
	size_t profiles[TASKSET_MAX];
	uint64_t seed = unit_seed(s, unit);
	unsigned n_tasks = 0;
	int r;

	r = taskset_make(s->scenario, &s->rules, s->u[unit / s->n_tasksets], seed, tasks, profiles,
			 &n_tasks);
	for (size_t k = 0; k < s->scenario->n_gpus; k++) {
		models[k] = s->scenario->gpus[k].model;
	}
	for (size_t p = 0; r == 0 && p < s->n_policies; p++) {
		struct sim_setup setup = {
			.gpus = models,
			.n_gpus = s->scenario->n_gpus,
			.tasks = tasks,
			.n_tasks = n_tasks,
			.duration = s->duration,
			.seed = seed,
		};
		struct sim_result result;

		simulated_setup(s->policies[p], &s->params, &setup);
		r = sim_run(&setup, &result);
		if (r == 0) {
			w->outcomes[unit * s->n_policies + p] = (struct outcome){
				.count = count_jobs(s, &result, profiles),
				.decisions = result.decisions,
				.energy_pj = result.energy_total_pj,
			};
			sim_result_deinit(&result);
		}
	}
	return r;
}

static double mean_and_sd(const double *values, size_t n, double *ret_sd) {
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++) {
		sum += values[i];
	}
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		squares += (values[i] - mean) * (values[i] - mean);
	}
	*ret_sd = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	return mean;
}

/* Sums up in the order of the units, whoever ran them. */
static void sum_cell(const struct work *w, size_t point, size_t policy, double *values,
		     struct sweep_cell *cell) {
	const struct sweep *s = w->sweep;
	double *energies = values + s->n_tasksets;
	uint64_t judged;

	for (unsigned i = 0; i < s->n_tasksets; i++) {
		const struct outcome *o =
			&w->outcomes[(point * s->n_tasksets + i) * s->n_policies + policy];

		judged = o->count.released - o->count.open;
		cell->count.released += o->count.released;
		cell->count.completed += o->count.completed;
		cell->count.missed += o->count.missed;
		cell->count.open += o->count.open;
		cell->decisions += o->decisions;
		values[i] = judged ? (double)o->count.missed / (double)judged : 0;
		energies[i] = (double)o->energy_pj / POWER_PJ_PER_J;
	}
	judged = cell->count.released - cell->count.open;
	cell->miss_ratio_pooled = judged ? (double)cell->count.missed / (double)judged : 0;
	cell->miss_ratio = mean_and_sd(values, s->n_tasksets, &cell->miss_ratio_sd);
	cell->energy_j = mean_and_sd(energies, s->n_tasksets, &cell->energy_j_sd);
}

static int sum_up(const struct work *w, struct sweep_result *ret) {
	const struct sweep *s = w->sweep;
	struct sweep_cell *cells = calloc(s->n_points * s->n_policies, sizeof(*cells));
	double *values = calloc(s->n_tasksets, 2 * sizeof(*values));

	if (!cells || !values) {
		free(cells);
		free(values);
		return -ENOMEM;
	}
	for (size_t point = 0; point < s->n_points; point++) {
		for (size_t p = 0; p < s->n_policies; p++) {
			sum_cell(w, point, p, values, &cells[point * s->n_policies + p]);
		}
	}
	free(values);
	ret->cells = cells;
	return 0;
}

int sweep_run(const struct sweep *s, struct sweep_result *ret) {
	const struct workers workers = {
		.n_units = s->n_points * s->n_tasksets,
		.n_threads = s->n_workers,
		.run = run_unit,
		.on_progress = s->on_progress,
		.progress = s->userdata,
	};
	struct work w = {.sweep = s};
	int r;

	w.outcomes = calloc(workers.n_units * s->n_policies, sizeof(*w.outcomes));
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

void sweep_result_deinit(struct sweep_result *r) {
	free(r->cells);
	*r = (struct sweep_result){0};
}
