/*
 * test-planner.c: which questions get which answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include <dirent.h>
#include <event2/event.h>
#include <math.h>
#include <string.h>

#include "daemon/session/planner.h"

#define SMS   132
#define TASKS 6

/* Launches of a job for a search that takes long: none shorter than is looked at alone. */
#define LONG 50
#define MS   NSEC_PER_MSEC

static const struct plan_gpu h200 = {.sms = SMS, .group = 8};

static nsec_t kernels[SMS + 1];

struct answers {
	struct event_base *base;
	struct planner *planner;
	unsigned n[2]; /* by GPU */
	struct plan last[2];
	unsigned threads;
	unsigned no_better; /* plans than the one before */
	bool cancel;	    /* at the first answer for GPU 0 */
};

static void on_plan(void *userdata, size_t gpu, struct plan *plan) {
	struct answers *a = userdata;

	a->no_better += a->n[gpu] > 0 && plan->badness >= a->last[gpu].badness;
	a->n[gpu]++;
	a->last[gpu] = *plan;
	if (gpu == 0 && a->cancel) {
		planner_cancel(a->planner, 0);
	}
}

static int setup_with(void **state, unsigned threads) {
	static struct answers a;

	a = (struct answers){.base = event_base_new(), .threads = threads};
	assert_non_null(a.base);
	assert_int_equal(planner_new(&a.planner, a.base, threads, on_plan, &a), 0);
	for (unsigned m = 1; m <= SMS; m++) {
		kernels[m] = MS * SMS / m;
	}
	*state = &a;
	return 0;
}

static int setup(void **state) {
	return setup_with(state, 1);
}

static int setup_threads(void **state) {
	return setup_with(state, PLANNER_THREADS_MAX);
}

static int teardown(void **state) {
	struct answers *a = *state;

	planner_free(a->planner);
	event_base_free(a->base);
	return 0;
}

/* @launches of a job: with LONG the search takes long. */
static void ask(struct answers *a, size_t gpu, unsigned n, unsigned launches) {
	struct plan_task tasks[TASKS];

	for (unsigned i = 0; i < n; i++) {
		tasks[i] = (struct plan_task){
			.known = true,
			.model = {.period = (4 + i) * MS,
				  .deadline = (3 + i) * MS,
				  .copy_in = MS / 5,
				  .copy_out = MS / 10,
				  .launches = launches,
				  .block = MS / 1000,
				  .kernels = kernels},
		};
	}
	assert_int_equal(planner_ask(a->planner, gpu, &h200, tasks, n), 0);
}

/* Until there is an answer for @gpu; @whole: of a search that left nothing to try. */
static void wait_for(struct answers *a, unsigned gpu, bool whole) {
	while (a->n[gpu] == 0 || a->last[gpu].is_whole < whole) {
		assert_int_equal(event_base_loop(a->base, EVLOOP_ONCE), 0);
	}
}

static unsigned misses(const struct plan *plan) {
	unsigned n = 0;

	for (unsigned i = 0; i < TASKS; i++) {
		n += plan->predicted[i].missed;
	}
	return n;
}

static void a_long_search_answers_after_each_effort(void **state) {
	struct answers *a = *state;
	unsigned quick;

	ask(a, 0, TASKS, LONG);
	wait_for(a, 0, false);
	assert_int_equal(a->n[0], 1);
	assert_false(a->last[0].is_whole);
	quick = misses(&a->last[0]);
	wait_for(a, 0, true);
	assert_int_equal(a->n[0], 3);
	assert_true(misses(&a->last[0]) <= quick);
}

/* Of this process. */
static unsigned n_threads(void) {
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		n += e->d_name[0] != '.';
	}
	closedir(dir);
	return n;
}

static void threads_start_at_the_first_question(void **state) {
	struct answers *a = *state;
	unsigned before = n_threads();

	ask(a, 0, 2, 1);
	assert_int_equal(n_threads(), before + PLANNER_THREADS_MAX);
	ask(a, 1, 2, 1);
	assert_int_equal(n_threads(), before + PLANNER_THREADS_MAX);
	wait_for(a, 1, true);
}

static void a_short_search_answers_once(void **state) {
	struct answers *a = *state;

	ask(a, 0, 2, 1);
	wait_for(a, 0, true);
	ask(a, 1, 2, 1);
	wait_for(a, 1, true);
	assert_int_equal(a->n[0], 1);
}

static void nobody_waits_for_a_second_answer(void **state) {
	struct answers *a = *state;

	ask(a, 0, TASKS, LONG);
	ask(a, 1, TASKS, LONG);
	wait_for(a, 0, false);
	wait_for(a, 1, false);
	assert_false(a->last[0].is_whole || a->last[1].is_whole);
}

static void who_cancels_gets_no_second_answer(void **state) {
	struct answers *a = *state;

	a->cancel = true;
	ask(a, 0, TASKS, LONG);
	wait_for(a, 0, false);
	ask(a, 1, 2, 1);
	wait_for(a, 1, true);
	assert_int_equal(a->n[0], 1);
	assert_false(a->last[0].is_whole);
}

/* Three tasks that can't all meet their deadlines: which random numbers a search has decides how
 * many jobs are late. */
static void tasks_that_are_late(struct plan_task *ret) {
	static nsec_t long_kernels[SMS + 1], short_kernels[SMS + 1];
	const struct model_task models[] = {
		{.period = 12 * MS, .copy_in = 4 * MS / 5, .launches = 2, .kernels = short_kernels},
		{.period = 12 * MS, .copy_in = 2 * MS / 5, .launches = 1, .kernels = long_kernels},
		{.period = 8 * MS, .copy_in = 2 * MS / 5, .launches = 2, .kernels = long_kernels},
	};

	for (unsigned m = 1; m <= SMS; m++) {
		long_kernels[m] = 4 * kernels[m];
		short_kernels[m] = 3 * long_kernels[m] / 10;
	}
	for (unsigned i = 0; i < 3; i++) {
		ret[i] = (struct plan_task){.known = true, .model = models[i]};
		ret[i].model.deadline = models[i].period / 2;
		ret[i].model.copy_out = models[i].copy_in / 2;
		ret[i].model.block = models[i].kernels[SMS] / 4;
	}
}

static void the_best_of_all_searches_is_the_last_answer(void **state) {
	const struct plan_gpu gated = {.sms = SMS, .group = 8, .gates = true, .guards = true};
	struct answers *a = *state;
	double best = INFINITY, worst = 0;
	struct plan_task tasks[3];

	tasks_that_are_late(tasks);
	for (unsigned i = a->threads; i < 2 * a->threads + PLANNER_WHOLE; i++) {
		struct plan plan;

		plan_make(&gated, tasks, 3, i < 2 * a->threads ? PLAN_MEDIUM : PLAN_WHOLE, i, NULL,
			  &plan);
		best = fmin(best, plan.badness);
		worst = fmax(worst, plan.badness);
	}
	assert_true(worst > best);
	assert_int_equal(planner_ask(a->planner, 0, &gated, tasks, 3), 0);
	while (a->last[0].badness != best) {
		assert_int_equal(event_base_loop(a->base, EVLOOP_ONCE), 0);
	}
	/* The first that looked at more than a quick search. */
	assert_true(a->no_better <= 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_long_search_answers_after_each_effort, setup,
						teardown),
		cmocka_unit_test_setup_teardown(threads_start_at_the_first_question, setup_threads,
						teardown),
		cmocka_unit_test_setup_teardown(a_short_search_answers_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_second_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(who_cancels_gets_no_second_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(the_best_of_all_searches_is_the_last_answer,
						setup_threads, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
