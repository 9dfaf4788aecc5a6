/*
 * test-client-random-tasks.c: random sets keep to their parameters, and a sweep counts those that
 * are schedulable.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/sim/rta-sweep.h"

#define SETS 300

static struct random_set set_a, set_b;

static struct random_tasks table_4_2(void) {
	struct random_tasks g;

	random_tasks_default(&g, false);
	return g;
}

static void put(struct random_tasks *g, const char *name, unsigned low, unsigned high) {
	enum random_param p = random_param_find(name, strlen(name));

	assert_true(p < _RANDOM_PARAM_N);
	assert_int_equal(random_tasks_put(g, p, (struct range){low, high, 0}), 0);
}

static void between(double value, double low, double high) {
	if (!(value >= low - 1e-4 && value <= high + 1e-4)) {
		fail_msg("%g is not between %g and %g", value, low, high);
	}
}

static void check_task(const struct rta_task *t) {
	unsigned n_gpu = 0;

	between((double)t->period / 1e6, 30, 500);
	assert_int_equal(t->deadline, t->period);
	assert_int_equal(t->n_segments, t->n_gpu ? 2 * t->n_gpu + 1 : 1);
	for (size_t j = 0; j < t->n_segments; j++) {
		const struct rta_segment *s = &t->segments[j];

		assert_int_equal(s->gpu, j % 2 == 1);
		if (s->gpu) {
			n_gpu++;
			assert_int_equal(s->total, s->misc + s->exec);
			if (s->total > 10 * NSEC_PER_USEC) {
				between((double)s->misc / (double)s->total, 0.1, 0.3);
				between((double)s->best_exec / (double)s->exec, 0.5, 1);
			}
		} else if (s->cpu > 10 * NSEC_PER_USEC) {
			between((double)s->best / (double)s->cpu, 0.5, 1);
		}
	}
	assert_int_equal(n_gpu, t->n_gpu);
	if (t->n_gpu > 0 && t->c > NSEC_PER_MSEC) {
		assert_in_range(t->n_gpu, 1, 3);
		between((double)t->g / (double)t->c, 0.2, 0.5);
	}
}

static void sets_are_as_table_4_2_says(void **state) {
	struct random_tasks g = table_4_2();
	double least = 1, most = 0;

	for (uint64_t seed = 0; seed < SETS; seed++) {
		double u[4] = {0};
		unsigned n[4] = {0}, n_gpu = 0;

		random_tasks_make(&g, seed, &set_a);
		assert_int_equal(set_a.set.n_real_time, set_a.set.n_tasks);
		for (size_t i = 0; i < set_a.set.n_tasks; i++) {
			const struct rta_task *t = &set_a.tasks[i];

			check_task(t);
			assert_in_range(t->cpu, 0, 3);
			u[t->cpu] += (double)(t->c + t->g) / (double)t->period;
			n[t->cpu]++;
			n_gpu += t->n_gpu > 0;
			if (i > 0) {
				assert_true(t->period >= t[-1].period);
				assert_true(t->priority < t[-1].priority);
			}
		}
		for (unsigned k = 0; k < 4; k++) {
			between(u[k], 0.4, 0.6);
			assert_in_range(n[k], 3, 6);
			least = fmin(least, u[k]);
			most = fmax(most, u[k]);
		}
		/* the share itself, to the next whole task */
		between(n_gpu, floor(0.4 * (double)set_a.set.n_tasks),
			ceil(0.6 * (double)set_a.set.n_tasks));
	}
	assert_true(least < 0.41 && most > 0.59); /* all of the range is used */
}

static void a_seed_gives_one_set(void **state) {
	struct random_tasks g = table_4_2();

	random_tasks_make(&g, 7, &set_a);
	random_tasks_make(&g, 7, &set_b);
	assert_int_equal(set_a.set.n_tasks, set_b.set.n_tasks);
	for (size_t i = 0; i < set_a.set.n_tasks; i++) {
		assert_int_equal(set_a.tasks[i].period, set_b.tasks[i].period);
		assert_int_equal(set_a.tasks[i].c, set_b.tasks[i].c);
		assert_int_equal(set_a.tasks[i].ge, set_b.tasks[i].ge);
	}
	random_tasks_make(&g, 8, &set_b);
	assert_true(set_a.tasks[0].period != set_b.tasks[0].period);
}

static void best_effort_tasks_come_last(void **state) {
	struct random_tasks g = table_4_2();

	put(&g, "tasks", 20000, 20000);
	put(&g, "best-effort", 300, 300);
	for (uint64_t seed = 0; seed < SETS; seed++) {
		random_tasks_make(&g, seed, &set_a);
		assert_int_equal(set_a.set.n_tasks, 20);
		assert_int_equal(set_a.set.n_real_time, 14);
		for (size_t i = 0; i < 20; i++) {
			assert_int_equal(set_a.tasks[i].priority == 0, i >= 14);
		}
	}
}

/* The authors' later scripts: each on the CPU that has least so far. */
static void tasks_with_their_own_utilisation_are_spread(void **state) {
	struct random_tasks g = table_4_2();

	put(&g, "tasks", 8000, 8000);
	put(&g, "task-utilisation", 200, 200);
	for (uint64_t seed = 0; seed < SETS; seed++) {
		unsigned n[4] = {0};

		random_tasks_make(&g, seed, &set_a);
		for (size_t i = 0; i < 8; i++) {
			const struct rta_task *t = &set_a.tasks[i];

			between((double)(t->c + t->g) / (double)t->period, 0.2, 0.2);
			n[t->cpu]++;
		}
		for (unsigned k = 0; k < 4; k++) {
			assert_int_equal(n[k], 2);
		}
	}
}

static void figure_4_13_adds_short_and_long_tasks(void **state) {
	struct random_tasks g;

	random_tasks_default(&g, true);
	for (uint64_t seed = 0; seed < SETS; seed++) {
		bool on[2] = {false};
		unsigned n_long = 0;

		random_tasks_make(&g, seed, &set_a);
		assert_in_range(set_a.set.n_tasks, 4, 8);
		for (size_t i = 0; i < set_a.set.n_tasks; i++) {
			const struct rta_task *t = &set_a.tasks[i];
			double u = (double)(t->c + t->g) / (double)t->period;

			assert_in_range(t->cpu, 0, 1);
			if (t->period < 30 * NSEC_PER_MSEC) {
				assert_int_equal(t->n_gpu, 0);
				between(u, 0.3, 0.5);
				on[t->cpu] = true;
			}
			n_long += t->n_gpu == 1 && t->ge > t->c;
		}
		assert_true(on[0] && on[1]);
		assert_int_equal(n_long, 1);
	}
}

static void parameters_out_of_bounds_are_refused(void **state) {
	static const struct {
		const char *name;
		unsigned low, high;
	} cases[] = {
		{"cpus", 0, 4000},     {"cpus", 1500, 2000},	{"segments", 1000, 11000},
		{"misc", 1000, 1000},  {"best-effort", 0, 1001}, {"utilisation", 0, 500},
		{"period", 0, 500000}, {"gpu-tasks", 600, 400},
	};
	struct random_tasks g = table_4_2();
	char error[160] = "";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum random_param p = random_param_find(cases[i].name, strlen(cases[i].name));

		assert_true(p < _RANDOM_PARAM_N);
		assert_int_equal(
			random_tasks_put(&g, p, (struct range){cases[i].low, cases[i].high, 0}),
			-EINVAL);
	}
	assert_int_equal(random_param_find("cpu", 3), _RANDOM_PARAM_N);
	assert_int_equal(random_tasks_check(&g, error, sizeof(error)), 0);
	put(&g, "cpus", 64000, 64000);
	assert_int_equal(random_tasks_check(&g, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "sets of up to 384 tasks: at most 256"));
	put(&g, "tasks", 256000, 256000);
	assert_int_equal(random_tasks_check(&g, error, sizeof(error)), 0);
	random_tasks_make(&g, 1, &set_a); /* the largest set there is */
	assert_int_equal(set_a.set.n_tasks, 256);
	put(&g, "short-tasks", 2000, 2000);
	assert_int_equal(random_tasks_check(&g, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "need a 'task-utilisation'"));
}

/* What the sweep counts is what the methods say of each of its sets. */
static void sweeps_count_schedulable_sets(void **state) {
	struct rta_sweep s = {
		.tasks = table_4_2(),
		.x = RANDOM_UTILISATION,
		.points = {200, 500},
		.n_points = 2,
		.curves = {{"a", rta_method_find("ioctl-busy"), false},
			   {"b", rta_method_find("ioctl-busy"), true},
			   {"c", rta_method_find("mpcp-suspend"), false}},
		.n_curves = 3,
		.epsilon = NSEC_PER_MSEC,
		.n_sets = 100,
		.n_workers = 3,
	};
	struct rta_sweep_result r = {0}, again = {0};
	unsigned n;

	assert_int_equal(rta_sweep_run(&s, &r), 0);
	n = r.schedulable[3];
	assert_in_range(n, 50, 98); /* some are, some are not */
	assert_true(r.schedulable[4] > n);
	assert_true(r.schedulable[0] > n);
	assert_true(rta_sweep_percent(&s, &r, 1, 0) == n);

	/* With less time for a preemption more are. The sets are the same. */
	s.epsilon = 0;
	assert_int_equal(rta_sweep_run(&s, &again), 0);
	assert_true(again.schedulable[3] > n);
	assert_int_equal(again.schedulable[5], r.schedulable[5]);
	rta_sweep_result_deinit(&again);

	/* A point is the same beside others and alone. */
	s.epsilon = NSEC_PER_MSEC;
	s.points[0] = 500;
	s.n_points = 1;
	s.n_workers = 1;
	assert_int_equal(rta_sweep_run(&s, &again), 0);
	assert_memory_equal(again.schedulable, &r.schedulable[3], 3 * sizeof(n));
	rta_sweep_result_deinit(&again);
	rta_sweep_result_deinit(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_are_as_table_4_2_says),
		cmocka_unit_test(a_seed_gives_one_set),
		cmocka_unit_test(best_effort_tasks_come_last),
		cmocka_unit_test(tasks_with_their_own_utilisation_are_spread),
		cmocka_unit_test(figure_4_13_adds_short_and_long_tasks),
		cmocka_unit_test(parameters_out_of_bounds_are_refused),
		cmocka_unit_test(sweeps_count_schedulable_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
