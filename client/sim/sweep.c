/* sweep.c: see sweep.h. */
#include "client/sim/sweep.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "client/sim/simulated.h"

/* How often the caller hears of progress. */
#define PROGRESS_INTERVAL (100 * NSEC_PER_MSEC)

/* One policy on one task set. */
struct outcome {
	struct sim_count count;
	uint64_t decisions;
	uint64_t energy_pj;
};

struct work {
	const struct sweep *sweep;
	struct outcome *outcomes; /* owned; [unit * n_policies + policy] */
	size_t n_units;		  /* task sets in all */
	atomic_size_t next;	  /* unit that nobody has taken yet */
	atomic_int error;	  /* first one; ends all workers */
	pthread_mutex_t lock;	  /* of what follows */
	pthread_cond_t ended;	  /* running became 0 */
	size_t done;		  /* units */
	size_t running;		  /* workers */
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

static int run_unit(const struct work *w, size_t unit) {
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

static void report(struct work *w, size_t done, size_t running) {
	pthread_mutex_lock(&w->lock);
	w->done += done;
	w->running -= running;
	if (w->running == 0) {
		pthread_cond_signal(&w->ended);
	}
	pthread_mutex_unlock(&w->lock);
}

static void *worker(void *arg) {
	struct work *w = arg;

	for (;;) {
		size_t unit = atomic_fetch_add(&w->next, 1);
		int expected = 0, r;

		if (unit >= w->n_units || atomic_load(&w->error)) {
			break;
		}
		r = run_unit(w, unit);
		if (r < 0) {
			atomic_compare_exchange_strong(&w->error, &expected, r);
		}
		report(w, 1, 0);
	}
	report(w, 0, 1);
	return NULL;
}

/* Until all workers have ended. */
static void watch(struct work *w) {
	const struct sweep *s = w->sweep;

	pthread_mutex_lock(&w->lock);
	while (w->running > 0) {
		nsec_t until = nsec_now() + PROGRESS_INTERVAL;
		struct timespec t = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
				     .tv_nsec = (long)(until % NSEC_PER_SEC)};
		size_t done;

		pthread_cond_clockwait(&w->ended, &w->lock, CLOCK_MONOTONIC, &t);
		done = w->done;
		if (s->on_progress) {
			pthread_mutex_unlock(&w->lock);
			s->on_progress(s->userdata, done, w->n_units);
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
}

static int run_workers(struct work *w) {
	pthread_t threads[SWEEP_WORKERS_MAX];
	unsigned started = 0;

	while (started < w->sweep->n_workers) {
		report(w, 0, (size_t)-1); /* one more runs */
		if (pthread_create(&threads[started], NULL, worker, w) != 0) {
			report(w, 0, 1);
			break;
		}
		started++;
	}
	if (started == 0) {
		return -EAGAIN;
	}
	watch(w);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
	}
	return atomic_load(&w->error);
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

	for (unsigned i = 0; i < s->n_tasksets; i++) {
		const struct outcome *o =
			&w->outcomes[(point * s->n_tasksets + i) * s->n_policies + policy];
		uint64_t judged = o->count.released - o->count.open;

		cell->count.released += o->count.released;
		cell->count.completed += o->count.completed;
		cell->count.missed += o->count.missed;
		cell->count.open += o->count.open;
		cell->decisions += o->decisions;
		values[i] = judged ? (double)o->count.missed / (double)judged : 0;
		energies[i] = (double)o->energy_pj / POWER_PJ_PER_J;
	}
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
	struct work w = {
		.sweep = s,
		.n_units = s->n_points * s->n_tasksets,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	int r;

	w.outcomes = calloc(w.n_units * s->n_policies, sizeof(*w.outcomes));
	if (!w.outcomes) {
		return -ENOMEM;
	}
	r = run_workers(&w);
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
