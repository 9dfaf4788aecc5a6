/*
 * test-live.c: what the policies promise to real programs, which are never given up (see
 * engine_new()), run one job at a time, take longer than their profiles say, and get SMs in groups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/groups.h"
#include "daemon/sim/grants.h"

#define MS    NSEC_PER_MSEC
#define US    NSEC_PER_USEC
#define SMS   132
#define TASKS 6
#define SEEDS 8

static struct sched_gpu_model h200(void) {
	struct sched_gpu_model model = {
		.power = {.n_sms = SMS, .static_mw = 123500}, .limit = SMS, .step = 16};

	sched_divide(&model, 8);
	return model;
}

/* Half of what copies and opening take does not shrink with more SMs, and an idle SM costs nothing:
 * then few SMs are cheapest, and far too slow. */
static struct profile_table make_profile(nsec_t work, nsec_t copy) {
	struct profile_table p;

	assert_int_equal(profile_table_init(&p, SMS, copy, copy / 2), 0);
	for (unsigned m = 1; m <= SMS; m++) {
		assert_int_equal(profile_table_set(&p, m, work / m + work / 500,
						   work / m + work / 400, 5000 + m * 900),
				 0);
	}
	assert_int_equal(profile_table_finish(&p), 0);
	return p;
}

static bool in_a_row(const struct smset *sms) {
	unsigned first = (unsigned)smset_next(sms, 0);
	struct smset row = smset_range(first, smset_count(sms));

	return smset_equal(sms, &row);
}

static void check_segment(void *userdata, const struct sim_segment *segment) {
	(void)userdata;
	assert_true(in_a_row(&segment->sms));
}

/* The load of all tasks together on the whole GPU, one after the other, in percent. */
static struct sim_count run(const char *policy, unsigned load, uint64_t seed) {
	static struct profile_table profiles[TASKS];
	struct sched_task tasks[TASKS] = {0};
	struct sched_gpu_model model = h200();
	struct sim_setup setup = {
		.arbiter = &sim_grants,
		.gpus = &model,
		.n_gpus = 1,
		.tasks = tasks,
		.n_tasks = TASKS,
		.policy = sched_policy_find(policy),
		.duration = 2000 * MS,
		.exec = SIM_EXEC_DRAWN,
		.overhead = 60 * US,
		.sequential = true,
		.seed = seed,
		.on_segment = check_segment,
	};
	struct sim_result result;
	struct sim_count count;
	uint64_t random = seed;

	sched_params_default(&setup.params);
	setup.params.skip_hopeless = false;
	for (size_t i = 0; i < TASKS; i++) {
		nsec_t work = (8 + sim_random(&random) % 200) * MS, copy;

		copy = (50 + sim_random(&random) % 300) * US;
		profiles[i] = make_profile(work, copy);
		tasks[i].profiles[0] = &profiles[i];
		tasks[i].fixed_gpu = -1;
		tasks[i].period = profile_total(&profiles[i], SMS) * TASKS * 100 / load;
		tasks[i].deadline = tasks[i].period / 2;
		tasks[i].first_release = sim_random(&random) % tasks[i].period;
	}
	assert_int_equal(sim_run(&setup, &result), 0);
	count = result.count;
	sim_result_deinit(&result);
	return count;
}

static struct sim_count run_all(const char *policy, unsigned load) {
	struct sim_count sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_count count = run(policy, load, seed);

		sum.released += count.released;
		sum.completed += count.completed;
		sum.missed += count.missed;
	}
	return sum;
}

/* Jobs that are late once make those after them late; who leaves them waiting falls behind for
 * ever, as sbeet and lookahead did on an H200. */
static void planners_keep_up_with_overload(void **state) {
	struct sim_count rm = run_all("rm", 120);

	assert_in_range(run_all("sbeet", 120).completed, rm.completed, UINT64_MAX);
	assert_in_range(run_all("sbeet-mg", 120).completed, rm.completed, UINT64_MAX);
	assert_in_range(run_all("lookahead", 120).completed, rm.completed, UINT64_MAX);
	assert_in_range(run_all("lookahead", 120).missed, 0, rm.missed);
}

static void planners_miss_less_than_whole_gpus_do(void **state) {
	static const char *const planners[] = {"sbeet", "sbeet-mg", "lookahead"};

	for (unsigned load = 60; load <= 90; load += 30) {
		struct sim_count fcfs = run_all("fcfs", load), rm = run_all("rm", load);

		for (size_t i = 0; i < 3; i++) {
			struct sim_count count = run_all(planners[i], load);

			assert_in_range(count.completed, fcfs.completed * 99 / 100, UINT64_MAX);
			assert_in_range(count.missed, 0, fcfs.missed);
			assert_in_range(count.missed, 0, rm.missed);
		}
	}
}

static void lookahead_misses_least(void **state) {
	for (unsigned load = 60; load <= 90; load += 30) {
		struct sim_count best = run_all("lookahead", load);

		for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
			if (strcmp((*p)->name, "fixed") != 0 &&
			    strcmp((*p)->name, "lookahead") != 0) {
				assert_in_range(best.missed, 0, run_all((*p)->name, load).missed);
			}
		}
	}
}

/* The small GPU is cheaper, but full for longer than one task can wait; the big one is idle. A job
 * is never kept waiting until it is late where a GPU is free on which it is in time. */
static void sbeet_mg_leaves_a_home_where_it_would_be_late(void **state) {
	struct sched_gpu_model gpus[2] = {{.power = {8, 10000, 500}, .limit = 8, .step = 1},
					  {.power = {4, 5000, 100}, .limit = 4, .step = 1}};
	struct sched_task tasks[2] = {
		{.period = 100 * MS, .deadline = 100 * MS, .fixed_gpu = -1},
		{.period = 100 * MS, .deadline = 30 * MS, .first_release = 5 * MS, .fixed_gpu = -1},
	};
	static const nsec_t work[2] = {200 * MS, 80 * MS};
	struct profile_table tables[2][2];
	struct sim_setup setup = {.arbiter = &sim_grants,
				  .gpus = gpus,
				  .n_gpus = 2,
				  .tasks = tasks,
				  .n_tasks = 2,
				  .policy = sched_policy_find("sbeet-mg"),
				  .duration = 1000 * MS};

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(profile_table_linear(&tables[i][0], 8, 0, 0, work[i], 5000), 0);
		assert_int_equal(profile_table_linear(&tables[i][1], 4, 0, 0, work[i], 500), 0);
		tasks[i].profiles[0] = &tables[i][0];
		tasks[i].profiles[1] = &tables[i][1];
	}
	for (unsigned i = 0; i < 4; i++) {
		struct sim_result result;

		sched_params_default(&setup.params);
		setup.params.skip_hopeless = i % 2;
		setup.sequential = i / 2;
		assert_int_equal(sim_run(&setup, &result), 0);
		assert_int_equal(result.count.completed, 20);
		assert_int_equal(result.count.missed, 0);
		assert_int_equal(result.tasks[1].home, 1);
		sim_result_deinit(&result);
	}
}

/* One of two short jobs has to be late: they come one after the other while a long one holds half
 * of the SMs, and both want the other half. Both are late if each is left waiting for the other's
 * sake. */
static void sbeet_lets_no_two_jobs_wait_for_each_other(void **state) {
	static const char *const policies[] = {"sbeet", "sbeet-mg", "sbeet-mg-offline",
					       "bfd-sbeet"};
	struct sched_gpu_model gpu = {.power = {8, 10000, 500}, .limit = 8, .step = 1};
	struct profile_table long_job, short_job;
	struct sched_task tasks[3] = {
		{.period = 100 * MS, .deadline = 95 * MS, .fixed_gpu = -1, .profiles = {&long_job}},
		{.period = 100 * MS,
		 .deadline = 15 * MS,
		 .fixed_gpu = -1,
		 .profiles = {&short_job}},
		{.period = 100 * MS,
		 .deadline = 12 * MS,
		 .fixed_gpu = -1,
		 .profiles = {&short_job}},
	};
	struct sim_setup setup = {.arbiter = &sim_grants,
				  .gpus = &gpu,
				  .n_gpus = 1,
				  .tasks = tasks,
				  .n_tasks = 3,
				  .duration = 100 * MS};

	for (unsigned i = 0; i < 2; i++) {
		struct profile_table *p = i ? &short_job : &long_job;
		nsec_t t = i ? 10 * MS : 40 * MS;

		assert_int_equal(profile_table_init(p, 8, 0, 0), 0);
		assert_int_equal(profile_table_set(p, 4, t, t, 4000), 0);
		assert_int_equal(profile_table_set(p, 8, t, t, 8000), 0);
		assert_int_equal(profile_table_finish(p), 0);
	}
	for (unsigned i = 0; i < 4 * 2 * 9; i++) {
		struct sim_result result;

		setup.policy = sched_policy_find(policies[i % 4]);
		sched_params_default(&setup.params);
		setup.params.skip_hopeless = i / 4 % 2;
		tasks[1].first_release = (1 + i / 8 % 3) * MS;
		tasks[2].first_release = (1 + i / 24) * MS;
		assert_int_equal(sim_run(&setup, &result), 0);
		assert_int_equal(result.count.completed, 3);
		assert_in_range(result.count.missed, 0, 1);
		sim_result_deinit(&result);
	}
}

/* A task's overhead becomes part of what is predicted, and is forgotten when it is no more. */
static void overhead_is_learned_and_forgotten(void **state) {
	struct profile_table profile = make_profile(100 * MS, 100 * US);
	struct sched_task task = {.period = 50 * MS, .deadline = 50 * MS, .fixed_gpu = -1};
	struct sched_gpu_model model = h200();
	nsec_t now = 0, total = profile_total(&profile, SMS), wanted = 200 * US, at_most = 0;
	struct sched_actions actions;
	sched_task_id task_id;
	struct sched *s;

	task.profiles[0] = &profile;
	assert_int_equal(sched_new(&s, sched_policy_find("fcfs"), 4), 0);
	assert_int_equal(sched_add_gpu(s, SMS, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	assert_int_equal(sched_add_task(s, &task, &task_id), 0);
	for (unsigned i = 0; i < 400; i++, now += 50 * MS) {
		struct sched_job job = {
			.task = task_id, .owner = 1, .divisible = true, .release = now};
		nsec_t overhead = sched_task(s, task_id)->overhead;
		sched_job_id id;

		assert_int_equal(sched_arrive(s, &job, &id), 0);
		sched_decide(s, now, &actions);
		assert_int_equal(sched_job(s, id)->finish, now + total + overhead);
		if (i == 1) {
			assert_int_equal(overhead, wanted / 4); /* one slow job is no rule */
		} else if (i == 40) {
			assert_in_range(overhead, wanted * 99 / 100, wanted);
			at_most = overhead;
		} else if (i == 41) { /* nor is one fast job */
			assert_int_equal(overhead, at_most - (at_most + 31) / 32);
		}
		sched_finish(s, id, now + total + (i < 40 ? wanted : 0), true);
	}
	assert_in_range(sched_task(s, task_id)->overhead, 0, wanted / 100);
	sched_free(s);
}

/* 20 SMs are free at once, all a little later: a job that is late on either waits, and ends sooner.
 */
static void late_job_waits_for_what_ends_sooner(void **state) {
	struct profile_table profiles[2] = {make_profile(35 * MS, 50 * US),
					    make_profile(40 * MS, 50 * US)};
	struct sched_task tasks[2] = {
		{.period = 90 * MS, .deadline = 90 * MS, .spec.min_sms = 112, .spec.max_sms = 112},
		{.period = 2 * MS, .deadline = 700 * US},
	};
	struct sched_gpu_model model = h200();
	struct sched_actions actions;
	struct sched_params params;
	sched_job_id jobs[2];
	struct sched *s;
	nsec_t end;

	assert_int_equal(sched_new(&s, sched_policy_find("lookahead"), 4), 0);
	sched_params_default(&params);
	params.skip_hopeless = false;
	assert_int_equal(sched_set_params(s, &params), 0);
	assert_int_equal(sched_add_gpu(s, SMS, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	for (size_t i = 0; i < 2; i++) {
		struct sched_job job = {.owner = i + 1, .divisible = true};

		tasks[i].profiles[0] = &profiles[i];
		tasks[i].fixed_gpu = -1;
		assert_int_equal(sched_add_task(s, &tasks[i], &job.task), 0);
		job.spec.min_sms = tasks[i].spec.min_sms;
		job.spec.max_sms = tasks[i].spec.max_sms;
		job.deadline = tasks[i].deadline;
		assert_int_equal(sched_arrive(s, &job, &jobs[i]), 0);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, i == 0);
	}
	end = sched_job(s, jobs[0])->finish;
	assert_in_range(end, 400 * US, 600 * US);
	sched_finish(s, jobs[0], end, true);
	sched_decide(s, end, &actions);
	assert_int_equal(actions.n, 1);
	assert_in_range(sched_job(s, jobs[1])->finish, end, profile_total(&profiles[1], 20) - 1);
	sched_free(s);
}

/* A task is changed while it has jobs: later ones say what the plan does not know yet. */
static void bounds_of_jobs_are_those_planned_with(void **state) {
	static const char *const policies[] = {"lookahead", "sbeet", "sbeet-mg", "stgm", "rm"};
	struct profile_table profile = make_profile(35 * MS, 50 * US);
	struct sched_gpu_model model = h200();
	struct sched_actions actions;
	struct sched *s;

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct sched_task task = {.period = 90 * MS, .deadline = 90 * MS, .fixed_gpu = -1};
		sched_job_id ids[2];

		task.profiles[0] = &profile;
		assert_int_equal(sched_new(&s, sched_policy_find(policies[i]), 4), 0);
		assert_int_equal(sched_add_gpu(s, SMS, SCHED_SHARING_MPS), 0);
		assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
		for (size_t k = 0; k < 2; k++) {
			struct sched_job job = {.owner = k + 1,
						.divisible = true,
						.deadline = 90 * MS,
						.spec.min_sms = 100,
						.spec.max_sms = 120};

			assert_int_equal(sched_add_task(s, &task, &job.task), 0);
			assert_int_equal(sched_arrive(s, &job, &ids[k]), 0);
			assert_int_equal(sched_job(s, ids[k])->spec.min_sms, 0);
			assert_int_equal(sched_job(s, ids[k])->spec.max_sms, 0);
		}
		sched_decide(s, 0, &actions);
		assert_true(actions.n >= 1);
		sched_free(s);
	}
}

/* The sets that are picked from what is free, on a GPU of groups of 16 but for the last of 20. */
static void groups_are_picked_in_rows(void **state) {
	static const struct {
		const char *free, *again, *picked;
		unsigned n, longest;
	} cases[] = {
		{"0-131", NULL, "0-47", 48, 132},
		{"0-131", NULL, "0-131", 132, 132},
		{"48-131", NULL, "112-131", 16, 84},
		{"48-131", NULL, "96-131", 32, 84},
		{"0-31,64-111", NULL, "0-31", 32, 48},
		{"0-31,64-111", NULL, "64-111", 48, 48},
		{"0-31,64-79,96-131", NULL, "64-79", 16, 36},
		{"0-31,64-111", "16-31", "16-31", 16, 48},
		{"0-131", "32-47", "0-15", 16, 132}, /* it would leave shorter rows */
		{"0-31,64-111", "32-47", "0-15", 16, 48},
		{"0-7,16-31", NULL, "16-31", 16, 16},
	};
	struct sched_gpu_model model = {.power = {.n_sms = SMS}, .limit = SMS, .step = 16};

	sched_divide(&model, 4);
	assert_int_equal(model.last_group, 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smset from, again, wanted, picked;

		assert_int_equal(smset_parse(cases[i].free, &from), 0);
		assert_int_equal(smset_parse(cases[i].picked, &wanted), 0);
		assert_int_equal(smset_parse(cases[i].again ? cases[i].again : "0", &again), 0);
		picked = groups_pick(&model, &from, cases[i].n, cases[i].again ? &again : NULL);
		assert_true(smset_equal(&picked, &wanted));
		assert_int_equal(groups_longest_row(&model, &from), cases[i].longest);
	}
}

static void jobs_at_once_follow_the_size_of_the_gpu(void **state) {
	struct sched_gpu_model model = h200();
	struct sched_params params;

	sched_params_default(&params);
	assert_int_equal(sched_slots(&params, &model), 4);
	model.limit = 100;
	assert_int_equal(sched_slots(&params, &model), 3);
	model.limit = 8;
	assert_int_equal(sched_slots(&params, &model), 2);
	params.jobs_per_gpu = 1;
	assert_int_equal(sched_slots(&params, &model), 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planners_keep_up_with_overload),
		cmocka_unit_test(planners_miss_less_than_whole_gpus_do),
		cmocka_unit_test(lookahead_misses_least),
		cmocka_unit_test(sbeet_mg_leaves_a_home_where_it_would_be_late),
		cmocka_unit_test(sbeet_lets_no_two_jobs_wait_for_each_other),
		cmocka_unit_test(overhead_is_learned_and_forgotten),
		cmocka_unit_test(late_job_waits_for_what_ends_sooner),
		cmocka_unit_test(bounds_of_jobs_are_those_planned_with),
		cmocka_unit_test(groups_are_picked_in_rows),
		cmocka_unit_test(jobs_at_once_follow_the_size_of_the_gpu),
	};

	return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
