/* random-tasks.c: see random-tasks.h. */
#include "client/sim/random-tasks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/sim/draw.h"
#include "daemon/sim/sim.h"

#define K 1000u

/* clang-format off */
const struct random_param_info random_params[_RANDOM_PARAM_N] = {
	[RANDOM_CPUS] = {"cpus", "number of CPUs", true,
		1 * K, 64 * K, {4 * K, 4 * K}, {1 * K, 8 * K, 1 * K}},
	[RANDOM_TASKS_PER_CPU] = {"tasks-per-cpu", "number of tasks on each CPU", true,
		1 * K, 64 * K, {3 * K, 6 * K}, {1 * K, 8 * K, 1 * K}},
	[RANDOM_TASKS] = {"tasks", "number of tasks", true,
		0, RTA_TASKS_MAX * K, {0, 0}, {4 * K, 32 * K, 4 * K}},
	[RANDOM_UTILISATION] = {"utilisation", "utilisation of each CPU", false,
		1, 10 * K, {400, 600}, {100, 1000, 100}},
	[RANDOM_TASK_UTILISATION] = {"task-utilisation", "utilisation of each task", false,
		0, 10 * K, {0, 0}, {0, 0, 0}},
	[RANDOM_GPU_TASKS] = {"gpu-tasks", "share of tasks that use the GPU", false,
		0, 1 * K, {400, 600}, {100, 1000, 100}},
	[RANDOM_PERIOD] = {"period", "period in ms", false,
		1, 1000 * K, {30 * K, 500 * K}, {0, 0, 0}},
	[RANDOM_SEGMENTS] = {"segments", "number of GPU segments of each task that uses the GPU", true,
		1 * K, RANDOM_SEGMENTS_MAX * K, {1 * K, 3 * K}, {1 * K, 6 * K, 1 * K}},
	[RANDOM_GPU_TO_CPU] = {"gpu-to-cpu", "G / C", false,
		0, 1000 * K, {200, 500}, {100, 1000, 100}},
	[RANDOM_MISC] = {"misc", "G^m / G", false,
		0, 999, {100, 300}, {0, 900, 100}},
	[RANDOM_BEST] = {"best", "least times as a share of the longest", false,
		0, 1 * K, {500, 1000}, {0, 1000, 100}},
	[RANDOM_BEST_EFFORT] = {"best-effort", "share of best-effort tasks", false,
		0, 1 * K, {0, 0}, {0, 800, 100}},
	[RANDOM_SHORT_TASKS] = {"short-tasks", "number of short tasks", true,
		0, 64 * K, {0, 0}, {0, 0, 0}},
	[RANDOM_SHORT_UTILISATION] = {"short-utilisation", "utilisation of each short task", false,
		1, 10 * K, {300, 500}, {0, 0, 0}},
	[RANDOM_SHORT_PERIOD] = {"short-period", "period of short tasks in ms", false,
		1, 1000 * K, {10 * K, 20 * K}, {0, 0, 0}},
	[RANDOM_LONG_TASKS] = {"long-tasks", "number of long tasks", true,
		0, 64 * K, {0, 0}, {0, 0, 0}},
	[RANDOM_LONG_UTILISATION] = {"long-utilisation", "utilisation of each long task", false,
		1, 10 * K, {300, 500}, {0, 0, 0}},
	[RANDOM_LONG_PERIOD] = {"long-period", "period of long tasks in ms", false,
		1, 1000 * K, {300 * K, 500 * K}, {0, 0, 0}},
	[RANDOM_LONG_GPU_TO_CPU] = {"long-gpu-to-cpu", "G / C of long tasks", false,
		0, 1000 * K, {4 * K, 8 * K}, {0, 0, 0}},
};
/* clang-format on */

void random_tasks_default(struct random_tasks *ret, bool overlap) {
	for (size_t p = 0; p < _RANDOM_PARAM_N; p++) {
		ret->params[p] = random_params[p].table;
	}
	if (overlap) {
		ret->params[RANDOM_CPUS] = (struct range){2 * K, 2 * K, 0};
		ret->params[RANDOM_TASKS_PER_CPU] = (struct range){2 * K, 4 * K, 0};
		ret->params[RANDOM_TASK_UTILISATION] = (struct range){50, 300, 0};
		ret->params[RANDOM_SHORT_TASKS] = (struct range){2 * K, 2 * K, 0};
		ret->params[RANDOM_LONG_TASKS] = (struct range){1 * K, 1 * K, 0};
	}
}

enum random_param random_param_find(const char *name, size_t length) {
	enum random_param p = 0;

	while (p < _RANDOM_PARAM_N && (strlen(random_params[p].name) != length ||
				       strncmp(random_params[p].name, name, length) != 0)) {
		p++;
	}
	return p;
}

int random_tasks_put(struct random_tasks *g, enum random_param p, struct range range) {
	const struct random_param_info *info = &random_params[p];

	if (range.low < info->min || range.high > info->max || range.low > range.high ||
	    (info->whole && (range.low % K != 0 || range.high % K != 0))) {
		return -EINVAL;
	}
	g->params[p] = range;
	return 0;
}

int random_tasks_check(const struct random_tasks *g, char *error, size_t error_size) {
	const struct range *p = g->params;
	unsigned fixed = (p[RANDOM_SHORT_TASKS].high + p[RANDOM_LONG_TASKS].high) / K;
	unsigned dealt = p[RANDOM_CPUS].high / K * (p[RANDOM_TASKS_PER_CPU].high / K);
	unsigned n = p[RANDOM_TASKS].high ? p[RANDOM_TASKS].high / K : dealt;

	if ((n > fixed ? n : fixed) > RTA_TASKS_MAX) {
		snprintf(error, error_size, "sets of up to %u tasks: at most %u are possible",
			 n > fixed ? n : fixed, RTA_TASKS_MAX);
		return -EINVAL;
	}
	if (fixed > 0 && p[RANDOM_TASK_UTILISATION].high == 0) {
		snprintf(error, error_size, "'%s' and '%s' need a '%s' for the other tasks",
			 random_params[RANDOM_SHORT_TASKS].name,
			 random_params[RANDOM_LONG_TASKS].name,
			 random_params[RANDOM_TASK_UTILISATION].name);
		return -EINVAL;
	}
	return 0;
}

/* A set while it is made. */
struct maker {
	const struct random_tasks *g;
	uint64_t random;
	struct random_set *set;
	struct rta_segment *next; /* one that nobody has taken yet */
	unsigned n_cpus, n_short, n_long;
	double share[RTA_TASKS_MAX]; /* utilisation of each task */
};

static double draw_param(struct maker *m, enum random_param p) {
	const struct range *r = &m->g->params[p];

	return draw_between(&m->random, r->low, r->high) / K;
}

static unsigned draw_whole(struct maker *m, enum random_param p) {
	const struct range *r = &m->g->params[p];

	return r->low / K + (unsigned)(sim_random(&m->random) % ((r->high - r->low) / K + 1));
}

/* @ms: none is too short to be a time. */
static nsec_t time_of(double ms) {
	return ms * 1e6 < 1 ? 1 : (nsec_t)llround(ms * 1e6);
}

static struct rta_segment *add_segment(struct maker *m, struct rta_task *t) {
	t->segments = t->segments ? t->segments : m->next;
	t->n_segments++;
	*m->next = (struct rta_segment){0};
	return m->next++;
}

static void add_cpu(struct maker *m, struct rta_task *t, double ms, double best) {
	struct rta_segment *s = add_segment(m, t);

	s->cpu = time_of(ms);
	s->best = (nsec_t)((double)s->cpu * best);
}

static void add_gpu(struct maker *m, struct rta_task *t, double ms, double best) {
	struct rta_segment *s = add_segment(m, t);
	double misc = ms * draw_param(m, RANDOM_MISC);

	s->gpu = true;
	s->misc = (nsec_t)llround(misc * 1e6);
	s->exec = time_of(ms - misc);
	s->total = s->misc + s->exec;
	s->best_exec = (nsec_t)((double)s->exec * best);
}

/* @n_gpu: 0: a task without GPU segments. @ms: all of its work. */
static void add_segments(struct maker *m, struct rta_task *t, unsigned n_gpu, double ms,
			 double gpu_to_cpu) {
	double best = draw_param(m, RANDOM_BEST);
	double cpu[RANDOM_SEGMENTS_MAX + 1], gpu[RANDOM_SEGMENTS_MAX];

	if (n_gpu == 0) {
		add_cpu(m, t, ms, best);
		return;
	}
	draw_uunifast(ms / (1 + gpu_to_cpu), n_gpu + 1, &m->random, cpu);
	draw_uunifast(ms * gpu_to_cpu / (1 + gpu_to_cpu), n_gpu, &m->random, gpu);
	for (unsigned i = 0; i < n_gpu; i++) {
		add_cpu(m, t, cpu[i], best);
		add_gpu(m, t, gpu[i], best);
	}
	add_cpu(m, t, cpu[n_gpu], best);
}

/* Marks @n of the tasks from @first on, all equally likely. */
static void choose(struct maker *m, size_t first, size_t n, bool *ret) {
	for (size_t i = first; i < m->set->set.n_tasks; i++) {
		size_t left = m->set->set.n_tasks - i;

		ret[i] = sim_random(&m->random) % left < n;
		n -= ret[i];
	}
}

/* The CPU whose tasks before @n have least to do. */
static unsigned least_used(const struct maker *m, size_t n) {
	double used[RTA_CPUS_MAX] = {0};
	unsigned least = 0;

	for (size_t i = 0; i < n; i++) {
		used[m->set->tasks[i].cpu] += m->share[i];
	}
	for (unsigned k = 1; k < m->n_cpus; k++) {
		least = used[k] < used[least] ? k : least;
	}
	return least;
}

/* How many tasks each CPU gets, and their utilisations: one CPU after the other. */
static void share_cpus(struct maker *m, unsigned n_all) {
	size_t *n = &m->set->set.n_tasks;

	for (unsigned k = 0; k < m->n_cpus; k++) {
		unsigned here = n_all ? n_all / m->n_cpus + (k < n_all % m->n_cpus)
				      : draw_whole(m, RANDOM_TASKS_PER_CPU);
		double u = draw_param(m, RANDOM_UTILISATION);

		if (here > 0) {
			draw_uunifast(u, here, &m->random, &m->share[*n]);
		}
		for (unsigned i = 0; i < here; i++) {
			m->set->tasks[(*n)++].cpu = k;
		}
	}
}

/* Tasks that are always there come first. */
static bool is_short(const struct maker *m, size_t i) {
	return i < m->n_short;
}

static bool is_long(const struct maker *m, size_t i) {
	return i >= m->n_short && i < m->n_short + m->n_long;
}

/* Tasks that draw their own utilisations. */
static void share_tasks(struct maker *m, unsigned n_all) {
	size_t *n = &m->set->set.n_tasks;

	for (unsigned k = 0, dealt = n_all; dealt == 0 && k < m->n_cpus; k++) {
		n_all += draw_whole(m, RANDOM_TASKS_PER_CPU);
	}
	for (; *n < n_all || *n < m->n_short + m->n_long; (*n)++) {
		m->share[*n] = draw_param(m, is_short(m, *n)  ? RANDOM_SHORT_UTILISATION
					     : is_long(m, *n) ? RANDOM_LONG_UTILISATION
							      : RANDOM_TASK_UTILISATION);
		m->set->tasks[*n].cpu = is_short(m, *n)	 ? (unsigned)*n % m->n_cpus
					: is_long(m, *n) ? 0
							 : least_used(m, *n);
	}
}

/* Rate-monotonic, best effort last. */
static int compare(const void *a, const void *b) {
	const struct rta_task *x = a, *y = b;

	if ((x->priority == 0) != (y->priority == 0)) {
		return x->priority == 0 ? 1 : -1;
	}
	if (x->period != y->period) {
		return x->period < y->period ? -1 : 1;
	}
	return x->segments < y->segments ? -1 : 1;
}

static void give_priorities(struct maker *m) {
	const size_t n = m->set->set.n_tasks;
	bool best_effort[RTA_TASKS_MAX] = {false};

	choose(m, 0, (size_t)llround(draw_param(m, RANDOM_BEST_EFFORT) * (double)n), best_effort);
	for (size_t i = 0; i < n; i++) {
		m->set->tasks[i].priority = !best_effort[i];
	}
	qsort(m->set->tasks, n, sizeof(m->set->tasks[0]), compare);
	for (size_t i = 0; i < n && m->set->tasks[i].priority; i++) {
		m->set->tasks[i].priority = (int)(n - i);
	}
}

static void make_task(struct maker *m, size_t i, bool on_gpu) {
	struct rta_task *t = &m->set->tasks[i];
	double period = draw_param(m, is_short(m, i)  ? RANDOM_SHORT_PERIOD
				      : is_long(m, i) ? RANDOM_LONG_PERIOD
						      : RANDOM_PERIOD);
	double ratio = draw_param(m, is_long(m, i) ? RANDOM_LONG_GPU_TO_CPU : RANDOM_GPU_TO_CPU);
	unsigned n_gpu = draw_whole(m, RANDOM_SEGMENTS);

	t->period = t->deadline = time_of(period);
	add_segments(m, t, is_long(m, i) ? 1 : on_gpu ? n_gpu : 0, m->share[i] * period, ratio);
}

void random_tasks_make(const struct random_tasks *g, uint64_t seed, struct random_set *ret) {
	struct maker m = {.g = g, .random = seed, .set = ret, .next = ret->segments};
	bool on_gpu[RTA_TASKS_MAX] = {false};
	size_t fixed, n_gpu;
	unsigned n_all;

	ret->set = (struct rta_set){.tasks = ret->tasks};
	memset(ret->tasks, 0, sizeof(ret->tasks));
	m.n_cpus = draw_whole(&m, RANDOM_CPUS);
	n_all = draw_whole(&m, RANDOM_TASKS);
	m.n_short = draw_whole(&m, RANDOM_SHORT_TASKS);
	m.n_long = draw_whole(&m, RANDOM_LONG_TASKS);
	if (g->params[RANDOM_TASK_UTILISATION].high > 0) {
		share_tasks(&m, n_all);
	} else {
		share_cpus(&m, n_all);
	}
	fixed = m.n_short + m.n_long;
	n_gpu = (size_t)llround(draw_param(&m, RANDOM_GPU_TASKS) *
				(double)(ret->set.n_tasks - fixed));
	choose(&m, fixed, n_gpu, on_gpu);
	for (size_t i = 0; i < ret->set.n_tasks; i++) {
		make_task(&m, i, on_gpu[i]);
	}
	give_priorities(&m);
	rta_sum(&ret->set);
}
