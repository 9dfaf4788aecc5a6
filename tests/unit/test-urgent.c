/*
 * test-urgent.c: what planning policies do with jobs whose deadlines are near: nothing long starts
 * just before them, and one that is late anyhow is late by as little as can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/sim/grants.h"

#define MS   NSEC_PER_MSEC
#define MANY 4

struct world {
	struct sched_gpu_model gpus[2];
	struct profile_table profiles[MANY][2];
	struct sched_task tasks[MANY];
	struct sim_setup setup;
};

static void make(struct world *w, const char *policy, bool skip_hopeless) {
	memset(w, 0, sizeof(*w));
	for (unsigned k = 0; k < 2; k++) {
		unsigned n_sms = k == 0 ? 32 : 16;

		w->gpus[k] =
			(struct sched_gpu_model){.power = {.n_sms = n_sms,
							   .static_mw = k == 0 ? 15000 : 7000,
							   .idle_mw_per_sm = k == 0 ? 500 : 250},
						 .limit = n_sms,
						 .step = 1};
	}
	w->setup = (struct sim_setup){.arbiter = &sim_grants,
				      .gpus = w->gpus,
				      .n_gpus = 1,
				      .tasks = w->tasks,
				      .policy = sched_policy_find(policy),
				      .duration = 1000 * MS};
	assert_non_null(w->setup.policy);
	sched_params_default(&w->setup.params);
	w->setup.params.skip_hopeless = skip_hopeless;
}

/* On @n_sms SMs of GPU @gpu; on half of them it takes twice as long if it can be split. */
static void give_profile(struct world *w, size_t task, unsigned gpu, nsec_t takes, bool splits) {
	struct profile_table *p = &w->profiles[task][gpu];
	unsigned n_sms = w->gpus[gpu].power.n_sms;

	assert_int_equal(profile_table_init(p, n_sms, 0, 0), 0);
	if (splits) {
		assert_int_equal(profile_table_set(p, n_sms / 2, 2 * takes, 2 * takes, n_sms * 600),
				 0);
	}
	assert_int_equal(profile_table_set(p, n_sms, takes, takes, n_sms * 1500), 0);
	assert_int_equal(profile_table_finish(p), 0);
	w->tasks[task].profiles[gpu] = p;
}

static void add_task(struct world *w, nsec_t takes, nsec_t period, nsec_t deadline, nsec_t offset) {
	size_t i = w->setup.n_tasks++;

	w->tasks[i].period = period;
	w->tasks[i].deadline = deadline;
	w->tasks[i].first_release = offset;
	w->tasks[i].fixed_gpu = -1;
	give_profile(w, i, 0, takes, false);
}

static struct sim_result run(struct world *w) {
	struct sim_result result;

	assert_int_equal(sim_run(&w->setup, &result), 0);
	return result;
}

/* "long" could start when "first" is over, and would still run when "urgent" comes; if it waits for
 * that, both are in time. */
static void lookahead_starts_no_long_job_before_an_urgent_one(void **state) {
	for (nsec_t first = 2; first <= 5; first++) {
		for (nsec_t length = 4; length <= 10; length++) {
			struct world w;
			struct sim_result result;

			make(&w, "lookahead", first % 2);
			add_task(&w, 2 * MS, 20 * MS, 3 * MS, (first + 2) * MS);
			add_task(&w, first * MS, 20 * MS, 20 * MS, 0);
			add_task(&w, length * MS, 40 * MS, 40 * MS, 1 * MS);
			result = run(&w);
			assert_int_equal(result.count.missed, 0);
			assert_int_equal(result.count.open + result.count.completed,
					 result.count.released);
			sim_result_deinit(&result);
		}
	}
}

/* The big GPU is busy for long when a job comes for which the small one is too slow: it is late by
 * what that takes, not until the big one is free; and that only where the small one is no help. */
static void late_jobs_take_the_gpu_where_they_end_first(void **state) {
	for (unsigned i = 0; i < 24; i++) {
		nsec_t deadline = (55 + 5 * (i % 12)) * MS, busy = i < 12 ? 1000 * MS : 90 * MS;
		nsec_t at_home = busy - 1 * MS + 50 * MS, away = 130 * MS;
		nsec_t best = at_home < away ? at_home : away;
		struct sim_result result;
		struct world w;

		make(&w, "sbeet-mg", i % 2);
		w.setup.n_gpus = 2;
		w.setup.duration = 3000 * MS;
		add_task(&w, busy, 3000 * MS, 3000 * MS, 0);
		add_task(&w, 50 * MS, 3000 * MS, deadline, 1 * MS);
		give_profile(&w, 1, 1, 130 * MS, true);
		result = run(&w);
		assert_int_equal(result.tasks[1].count.completed, 1);
		assert_int_equal(result.tasks[1].response.max, best);
		sim_result_deinit(&result);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookahead_starts_no_long_job_before_an_urgent_one),
		cmocka_unit_test(late_jobs_take_the_gpu_where_they_end_first),
	};

	return cmocka_run_group_tests_name("urgent", tests, NULL, NULL);
}
