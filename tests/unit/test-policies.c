/* test-policies.c: every policy on random task sets in virtual time, each step checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "core-sim.h"
#include "daemon/core/sched.h"
#include "daemon/core/task.h"

#define PROFILES 5
#define GPUS	 3

/* Tables that are neither linear nor monotone, for GPUs of 16, 16 and 5 SMs. */
static struct profile_table profiles[PROFILES][GPUS];
static const unsigned gpu_sms[GPUS] = {16, 16, 5};

static void make_profiles(void) {
	for (unsigned i = 0; i < PROFILES; i++) {
		for (unsigned k = 0; k < GPUS; k++) {
			struct profile_table *p = &profiles[i][k];
			nsec_t work = (40 + 37 * i) * (k == 2 ? 3 : 1) * NSEC_PER_MSEC;

			assert_int_equal(profile_table_init(p, gpu_sms[k], (i + 1) * NSEC_PER_MSEC,
							    NSEC_PER_MSEC),
					 0);
			for (unsigned m = 1; m <= gpu_sms[k]; m++) {
				nsec_t t = work / m + (m * (i + 3)) % 5 * NSEC_PER_MSEC / 2;

				assert_int_equal(
					profile_table_set(p, m, t / 2, t, m * (500 + 300 * i)), 0);
			}
			assert_int_equal(profile_table_finish(p), 0);
		}
	}
}

static struct sched *make(const struct sched_policy *policy, size_t n_gpus, unsigned step,
			  unsigned spare) {
	struct sched *s;

	assert_int_equal(sched_new(&s, policy, CORE_SIM_JOBS_MAX), 0);
	for (size_t k = 0; k < n_gpus; k++) {
		struct sched_gpu_model model = {
			.power = {gpu_sms[k], k == 2 ? 8000 : 40000, k == 2 ? 600 : 400},
			.limit = gpu_sms[k] - (k == 2 ? 0 : spare),
			.step = k == 2 ? 1 : step,
		};

		assert_int_equal(sched_add_gpu(s, gpu_sms[k], SCHED_SHARING_MPS), k);
		assert_int_equal(sched_set_gpu_model(s, k, &model), 0);
	}
	return s;
}

/* The same task set for the same @seed, @load in percent of a GPU. @bounded: most have bounds of
 * SMs. */
static void add_tasks(struct core_sim *sim, size_t n, unsigned load, size_t n_gpus, bool bounded) {
	for (size_t i = 0; i < n; i++) {
		size_t app = core_sim_random(sim, PROFILES);
		nsec_t g = profile_total(&profiles[app][0], 8);
		nsec_t period = g * n * 100 / load + core_sim_random(sim, g);
		struct sched_task task = {
			.period = period,
			.deadline = period / 2 + core_sim_random(sim, period / 2),
			.first_release = core_sim_random(sim, period / 2),
			.spec.priority = (int)(NSEC_PER_SEC * 10 / period),
			.fixed_gpu = 0,
			.fixed_sms = smset_range((unsigned)i % 8, 4),
		};

		if (bounded) {
			task.spec.min_sms = (unsigned)core_sim_random(sim, 18);
			task.spec.max_sms = (unsigned)core_sim_random(sim, 18);
		}
		for (size_t k = 0; k < n_gpus; k++) {
			task.profiles[k] = &profiles[app][k];
		}
		core_sim_add(sim, &task);
	}
	sched_distribute(sim->s);
}

static struct core_sim sim; /* too big for a stack */

/* core-sim.c asserts the rules: see start() there. */
static void run_random(const struct sched_policy *policy, uint64_t seed,
		       const struct sched_params *params, bool bounded, bool choosy) {
	size_t n_gpus = 1 + seed % GPUS;
	struct sched *s = make(policy, n_gpus, 1 + seed % 2, seed % 5 ? 0 : 4);

	assert_int_equal(sched_set_params(s, params), 0);
	core_sim_init(&sim, s, seed);
	sim.best_permille = seed % 3 ? 1000 : 600;
	sim.drop_late = seed % 4 == 0;
	sim.choosy = choosy;
	add_tasks(&sim, 2 + seed % 7, 40 + seed % 5 * 40, n_gpus, bounded);
	core_sim_run(&sim, NSEC_PER_SEC);
	if (choosy) {
		sched_distribute(s);
	}
	core_sim_run(&sim, 2 * NSEC_PER_SEC);
	assert_true(sim.released > 0);
	sched_free(s);
}

static void params_of(uint64_t seed, struct sched_params *ret) {
	sched_params_default(ret);
	ret->reading = seed / 2 % _SCHED_READING_N;
	ret->queue = seed % _SCHED_QUEUE_N;
	ret->window = seed / 3 % _SCHED_WINDOW_N;
	ret->jobs_per_gpu = seed % 7 ? 2 : 1;
	ret->line_16 = seed % 2;
	ret->skip_hopeless = seed / 4 % 2;
	ret->free_at_kernel_end = seed / 8 % 2;
	ret->power = seed / 5 % _SCHED_POWER_N;
	ret->migration_cost = seed % 3 * NSEC_PER_MSEC;
	ret->lookahead_depth = (unsigned)(seed % 9);
}

static void policies_keep_the_rules_and_repeat_themselves(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		unsigned n_stopped = 0;

		for (uint64_t seed = 1; seed <= 60; seed++) {
			struct sched_params params;
			uint64_t fingerprint, energy;

			params_of(seed, &params);
			run_random(*p, seed, &params, false, false);
			fingerprint = sim.fingerprint;
			energy = sim.energy_pj;
			run_random(*p, seed, &params, false, false);
			assert_int_equal(sim.fingerprint, fingerprint);
			assert_int_equal(sim.energy_pj, energy);
			n_stopped += sim.stopped;
		}
		assert_int_equal(n_stopped > 100, (*p)->stops);
	}
}

/* core-sim.c asserts that they are: see check_bounds() there. */
static void policies_keep_the_bounds_of_tasks(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= 30; seed++) {
			struct sched_params params;

			params_of(seed, &params);
			run_random(*p, seed, &params, true, false);
			assert_true(sim.completed > 0 || sim.missed > 0);
		}
	}
}

/* core-sim.c asserts that a job runs on one of its GPUs. Homes are found anew in the middle. */
static void policies_keep_to_the_gpus_of_each_job(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= 30; seed++) {
			struct sched_params params;

			params_of(seed, &params);
			run_random(*p, seed, &params, false, true);
			assert_true(sim.completed > 0 || sim.missed > 0);
		}
	}
}

/* Times of fewer SMs than were measured are not known, so nobody gets so few; core-sim.c asserts
 * it. Tables begin at 7, 6 and 3 SMs, steps are of 1 and 2. */
static void policies_give_no_fewer_sms_than_were_measured(void **state) {
	static const unsigned first[GPUS] = {7, 6, 3};
	struct profile_table kept[PROFILES][GPUS];

	memcpy(kept, profiles, sizeof(kept));
	for (unsigned i = 0; i < PROFILES * GPUS; i++) {
		struct profile_table *p = &profiles[i / GPUS][i % GPUS];

		for (unsigned m = 1; m < first[i % GPUS]; m++) {
			p->measured[m] = false;
		}
		assert_int_equal(profile_table_finish(p), 0);
		assert_int_equal(p->least, first[i % GPUS]);
	}
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= 30; seed++) {
			struct sched_params params;

			params_of(seed, &params);
			run_random(*p, seed, &params, false, false);
			assert_true(sim.completed > 0 || sim.missed > 0);
		}
	}
	memcpy(profiles, kept, sizeof(kept));
}

/*
 * Examples 4 and 5 (Tables 2.1 and 2.2; 1 s is 1 ms here): tasks of linear speed-up on 8 SMs.
 * Without spatial multitasking tau_2 misses; sbeet and lookahead give tau_1 3/4 of the SMs and
 * nobody does.
 */
struct example {
	nsec_t deadline, exec_all, copy_in, copy_out, offset;
};

static void run_example(const char *policy, const struct example *tasks, size_t n) {
	static struct profile_table tables[3];
	struct sched_gpu_model model = {.power = {8, 2000, 200}, .limit = 8, .step = 1};
	struct sched_params params;
	struct sched *s;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), CORE_SIM_JOBS_MAX), 0);
	assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	sched_params_default(&params);
	params.free_at_kernel_end = true; /* Example 5 comes out only so */
	assert_int_equal(sched_set_params(s, &params), 0);
	core_sim_init(&sim, s, 1);
	for (size_t i = 0; i < n; i++) {
		struct sched_task task = {.period = 1000 * NSEC_PER_MSEC,
					  .deadline = tasks[i].deadline * NSEC_PER_MSEC,
					  .first_release = tasks[i].offset * NSEC_PER_MSEC,
					  .fixed_gpu = -1};

		assert_int_equal(profile_table_linear(&tables[i], 8,
						      tasks[i].copy_in * NSEC_PER_MSEC,
						      tasks[i].copy_out * NSEC_PER_MSEC,
						      tasks[i].exec_all * 8 * NSEC_PER_MSEC, 1000),
				 0);
		task.profiles[0] = &tables[i];
		core_sim_add(&sim, &task);
	}
	sched_distribute(s);
	core_sim_run(&sim, 500 * NSEC_PER_MSEC);
	assert_int_equal(sim.completed, n);
	sched_free(s);
}

static void policies_schedule_examples_4_and_5(void **state) {
	static const struct example example_4[] = {{12, 6, 1, 1, 0}, {7, 1, 1, 1, 1}};
	static const struct example example_5[] = {
		{14, 6, 1, 1, 0}, {7, 1, 1, 1, 1}, {10, 1, 1, 1, 2}};
	static const char *const whole[] = {"fcfs", "rm", "load-dist", "bcf"};
	static const char *const spatial[] = {"sbeet", "lookahead"};

	for (size_t n = 2; n <= 3; n++) {
		const struct example *tasks = n == 2 ? example_4 : example_5;

		for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
			run_example(whole[i], tasks, n);
			assert_int_equal(sim.tasks[1].missed, 1);
		}
		for (size_t i = 0; i < sizeof(spatial) / sizeof(spatial[0]); i++) {
			run_example(spatial[i], tasks, n);
			assert_int_equal(sim.missed, 0);
			assert_int_equal(sim.tasks[0].n_sms, 6);
		}
	}
}

/* Where a lone job of 80 ms kernels on an SM starts: on one GPU copies take 10 ms each, on the
 * other one none, and an SM draws a tenth more. */
static int first_gpu(const char *policy, enum sched_power power) {
	static struct profile_table tables[2];
	struct sched_job job = {.gpu_wanted = -1, .divisible = true, .deadline = NSEC_PER_SEC};
	struct sched_task task = {
		.period = NSEC_PER_SEC, .deadline = NSEC_PER_SEC, .fixed_gpu = -1};
	struct sched_actions actions;
	struct sched_params params;
	struct sched *s;
	sched_job_id id;
	int gpu;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), CORE_SIM_JOBS_MAX), 0);
	for (unsigned k = 0; k < 2; k++) {
		nsec_t copy = k == 0 ? 10 * NSEC_PER_MSEC : 0;

		assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), k);
		assert_int_equal(profile_table_linear(&tables[k], 8, copy, copy, 80 * NSEC_PER_MSEC,
						      k == 0 ? 1000 : 1100),
				 0);
		task.profiles[k] = &tables[k];
	}
	assert_int_equal(sched_add_task(s, &task, &job.task), 0);
	sched_params_default(&params);
	params.power = power;
	assert_int_equal(sched_set_params(s, &params), 0);
	sched_distribute(s);
	assert_int_equal(sched_arrive(s, &job, &id), 0);
	sched_decide(s, 0, &actions);
	assert_int_equal(actions.n, 1);
	gpu = sched_job(s, id)->gpu;
	sched_free(s);
	return gpu;
}

static void policies_count_power_as_told(void **state) {
	static const char *const names[] = {"lookahead", "sbeet", "sbeet-mg", "sbeet-mg-offline"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(first_gpu(names[i], SCHED_POWER_KERNEL), 0);
		assert_int_equal(first_gpu(names[i], SCHED_POWER_HELD), 1);
	}
}

/* Eight tasks that need an SM each: STGM runs as many jobs at once as have their SMs (2.5.5),
 * unless it is told not to. */
static void stgm_runs_as_many_jobs_as_have_sms(void **state) {
	static const unsigned limits[] = {0, 2, 8};
	static struct profile_table table;

	assert_int_equal(profile_table_init(&table, 8, 0, 0), 0);
	for (unsigned m = 1; m <= 8; m++) {
		assert_int_equal(
			profile_table_set(&table, m, 20 * NSEC_PER_MSEC, 20 * NSEC_PER_MSEC, 1000),
			0);
	}
	assert_int_equal(profile_table_finish(&table), 0);
	for (size_t i = 0; i < 3; i++) {
		struct sched_params params;
		struct sched *s;

		assert_int_equal(sched_new(&s, sched_policy_find("stgm"), CORE_SIM_JOBS_MAX), 0);
		assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), 0);
		sched_params_default(&params);
		params.jobs_per_gpu = limits[i];
		assert_int_equal(sched_set_params(s, &params), 0);
		core_sim_init(&sim, s, 1);
		for (int k = 0; k < 8; k++) {
			struct sched_task task = {.period = 200 * NSEC_PER_MSEC,
						  .deadline = 50 * NSEC_PER_MSEC,
						  .fixed_gpu = -1,
						  .profiles = {&table}};

			core_sim_add(&sim, &task);
		}
		sched_distribute(s);
		core_sim_run(&sim, 190 * NSEC_PER_MSEC);
		assert_int_equal(sim.completed, 8);
		assert_int_equal(sim.missed, limits[i] == 2 ? 4 : 0);
		sched_free(s);
	}
}

/* Three jobs that are best on 4 SMs, 10 ms each, on GPUs of 8 and 6 SMs. The sum of their response
 * times. */
static nsec_t sum_of_responses(const char *policy, enum sched_packing packing) {
	static struct profile_table tables[2];
	struct sched_params params;
	struct sched *s;
	nsec_t sum = 0;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), CORE_SIM_JOBS_MAX), 0);
	for (unsigned k = 0; k < 2; k++) {
		unsigned n_sms = k == 0 ? 8 : 6;
		struct sched_gpu_model model = {
			.power = {n_sms, 1000, 100}, .limit = n_sms, .step = 1};

		assert_int_equal(sched_add_gpu(s, n_sms, SCHED_SHARING_MPS), k);
		assert_int_equal(sched_set_gpu_model(s, k, &model), 0);
		assert_int_equal(profile_table_init(&tables[k], n_sms, 0, 0), 0);
		for (unsigned m = 1; m <= n_sms; m++) {
			nsec_t t = 40 * NSEC_PER_MSEC / (m < 4 ? m : 4);

			assert_int_equal(profile_table_set(&tables[k], m, t, t, 1000 * m), 0);
		}
		assert_int_equal(profile_table_finish(&tables[k]), 0);
	}
	sched_params_default(&params);
	params.packing = packing;
	assert_int_equal(sched_set_params(s, &params), 0);
	core_sim_init(&sim, s, 1);
	for (int i = 0; i < 3; i++) {
		struct sched_task task = {.period = NSEC_PER_SEC,
					  .deadline = NSEC_PER_SEC,
					  .fixed_gpu = -1,
					  .profiles = {&tables[0], &tables[1]}};

		core_sim_add(&sim, &task);
	}
	sched_distribute(s);
	core_sim_run(&sim, 1500 * NSEC_PER_MSEC);
	assert_int_equal(sim.completed, 3);
	for (int i = 0; i < 3; i++) {
		sum += sim.tasks[i].worst_response;
		assert_true(packing == SCHED_PACKING_WHOLE || sim.tasks[i].n_sms == 4);
	}
	sched_free(s);
	return sum / NSEC_PER_MSEC;
}

/* Concentration: one after the other on the biggest GPU, or two at a time on what remains of it.
 * Distribution: an idle GPU first, then what remains of the one with most unused SMs. */
static void load_policies_pack_jobs_where_told_to(void **state) {
	assert_int_equal(sum_of_responses("bcf", SCHED_PACKING_WHOLE), 10 + 20 + 30);
	assert_int_equal(sum_of_responses("bcf", SCHED_PACKING_REMAINING), 10 + 10 + 20);
	assert_int_equal(sum_of_responses("load-dist", SCHED_PACKING_WHOLE), 10 + 10 + 20);
	assert_int_equal(sum_of_responses("load-dist", SCHED_PACKING_REMAINING), 10 + 10 + 10);
}

/* The first of two jobs in the queue, whose deadline has passed, or -1. */
static int first_to_start(enum sched_late late) {
	static struct profile_table table;
	struct sched_actions actions;
	struct sched_params params;
	sched_job_id jobs[2];
	struct sched *s;
	int first = -1;

	assert_int_equal(profile_table_linear(&table, 8, 0, 0, 80 * NSEC_PER_MSEC, 1000), 0);
	assert_int_equal(sched_new(&s, sched_policy_find("sbeet"), CORE_SIM_JOBS_MAX), 0);
	assert_int_equal(sched_add_gpu(s, 8, SCHED_SHARING_MPS), 0);
	sched_params_live(&params);
	params.queue = SCHED_QUEUE_FCFS;
	params.jobs_per_gpu = 1;
	params.reading = SCHED_READING_LITERAL;
	params.late = late;
	assert_int_equal(sched_set_params(s, &params), 0);
	for (nsec_t i = 0; i < 2; i++) {
		struct sched_task task = {.period = NSEC_PER_SEC,
					  .deadline = NSEC_PER_SEC,
					  .fixed_gpu = -1,
					  .profiles = {&table}};
		struct sched_job job = {.owner = i + 1,
					.gpu_wanted = -1,
					.divisible = true,
					.deadline = (1 + i * 10) * NSEC_PER_SEC};

		assert_int_equal(sched_add_task(s, &task, &job.task), 0);
		assert_int_equal(sched_arrive(s, &job, &jobs[i]), 0);
	}
	sched_distribute(s);
	sched_decide(s, 2 * NSEC_PER_SEC, &actions);
	for (int i = 0; i < 2 && actions.n > 0; i++) {
		first = actions.list[0].job == jobs[i] ? i : first;
	}
	sched_free(s);
	return first;
}

static void late_jobs_give_up_their_turn_where_told_to(void **state) {
	assert_int_equal(first_to_start(SCHED_LATE_RUN), 0);
	assert_int_equal(first_to_start(SCHED_LATE_DROP), 1);
}

/* A task runs where it has a profile: the simulator knows no times elsewhere. */
static void policies_give_no_gpu_without_a_profile(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sched *s;

		if (strcmp((*p)->name, "fixed") == 0) {
			continue; /* the task says where it goes */
		}
		assert_int_equal(sched_new(&s, *p, CORE_SIM_JOBS_MAX), 0);
		assert_int_equal(sched_add_gpu(s, 16, SCHED_SHARING_MPS), 0);
		assert_int_equal(sched_add_gpu(s, 16, SCHED_SHARING_MPS), 1);
		core_sim_init(&sim, s, 1);
		for (int i = 0; i < 3; i++) {
			struct sched_task task = {.period = 500 * NSEC_PER_MSEC,
						  .deadline = 500 * NSEC_PER_MSEC,
						  .fixed_gpu = -1,
						  .profiles = {&profiles[0][0]}};

			core_sim_add(&sim, &task);
		}
		sched_distribute(s);
		core_sim_run(&sim, 600 * NSEC_PER_MSEC);
		assert_int_equal(sim.completed, 3);
		sched_free(s);
	}
}

/* The authors' code tries every fourth number of SMs: of those that can be given. 8 SMs would take
 * least energy here. */
static void authors_keep_to_the_step(void **state) {
	struct sched_gpu_model model = {.power = {12, 0, 0}, .limit = 10, .step = 3};
	struct sched_task task = {
		.period = NSEC_PER_SEC, .deadline = NSEC_PER_SEC, .fixed_gpu = -1};
	static struct profile_table table;
	struct sched_params params;
	struct sched *s;

	assert_int_equal(profile_table_init(&table, 12, 0, 0), 0);
	for (unsigned m = 1; m <= 12; m++) {
		assert_int_equal(profile_table_set(&table, m, 10 * NSEC_PER_MSEC,
						   10 * NSEC_PER_MSEC,
						   m == 8   ? 1
						   : m == 9 ? 50
							    : 100),
				 0);
	}
	assert_int_equal(profile_table_finish(&table), 0);
	task.profiles[0] = &table;
	assert_int_equal(sched_new(&s, sched_policy_find("sbeet"), CORE_SIM_JOBS_MAX), 0);
	assert_int_equal(sched_add_gpu(s, 12, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	sched_params_default(&params);
	params.reading = SCHED_READING_AUTHORS;
	assert_int_equal(sched_set_params(s, &params), 0);
	core_sim_init(&sim, s, 1);
	core_sim_add(&sim, &task);
	sched_distribute(s);
	core_sim_run(&sim, 1500 * NSEC_PER_MSEC);
	assert_int_equal(sim.completed, 1);
	assert_int_equal(sim.tasks[0].n_sms, 9);
	sched_free(s);
}

/*
 * Theorem 1: for jobs of linear speed-up no spatial schedule uses less energy than the sequential
 * one on all SMs. Random tasks without deadlines that matter; both serve the same jobs.
 */
static uint64_t energy_of(const char *policy, uint64_t seed, unsigned *ret_completed) {
	static struct profile_table tables[4];
	struct sched_gpu_model model = {.power = {12, 5000, 300}, .limit = 12, .step = 1};
	struct sched *s;
	uint64_t energy;

	assert_int_equal(sched_new(&s, sched_policy_find(policy), CORE_SIM_JOBS_MAX), 0);
	assert_int_equal(sched_add_gpu(s, 12, SCHED_SHARING_MPS), 0);
	assert_int_equal(sched_set_gpu_model(s, 0, &model), 0);
	core_sim_init(&sim, s, seed);
	for (size_t i = 0; i < 4; i++) {
		struct sched_task task = {.period = 60 * NSEC_PER_SEC,
					  .deadline = 30 * NSEC_PER_SEC,
					  .first_release =
						  core_sim_random(&sim, 100 * NSEC_PER_MSEC),
					  .fixed_gpu = 0,
					  .fixed_sms = smset_range((unsigned)i % 2 * 6, 6)};

		assert_int_equal(
			profile_table_linear(&tables[i], 12, 0, 0,
					     (1 + core_sim_random(&sim, 500)) * 12 * NSEC_PER_MSEC,
					     300 + (uint32_t)core_sim_random(&sim, 2000)),
			0);
		task.profiles[0] = &tables[i];
		core_sim_add(&sim, &task);
	}
	sched_distribute(s);
	core_sim_run(&sim, 40 * NSEC_PER_SEC);
	*ret_completed = sim.completed;
	energy = sim.energy_pj;
	sched_free(s);
	return energy;
}

static void policies_obey_theorem_1(void **state) {
	static const char *const spatial[] = {"fixed", "stgm", "sbeet", "lookahead"};

	for (uint64_t seed = 1; seed <= 40; seed++) {
		unsigned completed, n;
		uint64_t sequential = energy_of("fcfs", seed, &completed);

		assert_int_equal(completed, 4);
		for (size_t i = 0; i < sizeof(spatial) / sizeof(spatial[0]); i++) {
			/* G_e(m) is rounded up to whole nanoseconds: a few uJ at most */
			assert_true(energy_of(spatial[i], seed, &n) + 10000000 >= sequential);
			assert_int_equal(n, 4);
		}
	}
}

/* With one task alone, and time enough, nobody misses, whatever the policy. */
static void policies_serve_a_lone_task(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sched *s = make(*p, 1, 1, 0);
		struct sched_params params;

		sched_params_default(&params);
		assert_int_equal(sched_set_params(s, &params), 0);
		core_sim_init(&sim, s, 1);
		add_tasks(&sim, 1, 15, 1, false);
		core_sim_run(&sim, 10 * NSEC_PER_SEC);
		assert_true(sim.completed > 5);
		assert_int_equal(sim.missed, 0);
		sched_free(s);
	}
}

/* Tasks come one at a time, as programs do, and none moves once it has its place. */
static void policies_place_tasks_that_cannot_move(void **state) {
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sched *s = make(*p, 3, 1, 0);
		sched_task_id ids[6];
		int places[6];

		for (size_t i = 0; i < 6; i++) {
			nsec_t g = profile_total(&profiles[0][0], 16);
			struct sched_task task = {.period = 3 * g,
						  .deadline = 3 * g,
						  .spec.priority = (int)i, /* later, more urgent */
						  .profiles = {&profiles[0][0], &profiles[0][1]},
						  .fixed_gpu = -1};

			assert_int_equal(sched_add_task(s, &task, &ids[i]), 0);
			places[i] = sched_place(s, ids[i]);
			assert_int_equal(places[i] >= 0, (*p)->places);
			assert_int_equal(sched_place(s, ids[i]), -1); /* it has one */
		}
		sched_distribute(s);
		for (size_t i = 0; i < 6 && (*p)->places; i++) {
			assert_true(places[i] < 2); /* where it has a profile */
			assert_int_equal(sched_task(s, ids[i])->gpu_wanted, places[i]);
			if ((*p)->distribute) {
				assert_int_equal(sched_task(s, ids[i])->home, places[i]);
			}
		}
		if (strcmp((*p)->name, "sbeet-mg") == 0) {
			/* Alg. 4: the first three fill GPU 0, the others go to its twin */
			for (size_t i = 0; i < 6; i++) {
				assert_int_equal(places[i], places[0] ^ (i >= 3));
			}
		}
		sched_free(s);
	}
}

/* Tasks that are often due, and some that can't be in time at all or need a whole GPU: these are
 * passed over gladly. Their jobs take at most twice as long on one SM as on all. Returns how long a
 * job may have to wait beyond its patience, for what runs already and for others that are overdue:
 * twice the longest job for each task. */
static nsec_t add_hard_tasks(struct sched *s, uint64_t seed) {
	static struct profile_table tables[8];
	size_t n = 3 + seed % 6;
	nsec_t longest = 0;

	for (size_t i = 0; i < n; i++) {
		bool hard = core_sim_random(&sim, 3) == 0;
		nsec_t g = (2 + core_sim_random(&sim, hard ? 38 : 8)) * NSEC_PER_MSEC;
		nsec_t period = g * n + core_sim_random(&sim, g * n / 4);
		struct sched_task task = {.period = period,
					  .deadline = hard ? g / 2 : g + core_sim_random(&sim, g),
					  .first_release = core_sim_random(&sim, period),
					  .fixed_gpu = -1};

		assert_int_equal(profile_table_init(&tables[i], gpu_sms[0], 0, 0), 0);
		for (unsigned m = 1; m <= gpu_sms[0]; m++) {
			nsec_t t = g + g / m;

			assert_int_equal(profile_table_set(&tables[i], m, t, t, m * 500), 0);
		}
		assert_int_equal(profile_table_finish(&tables[i]), 0);
		for (size_t k = 0; k < sched_n_gpus(s); k++) {
			task.profiles[k] = &tables[i];
		}
		longest = 2 * g > longest ? 2 * g : longest;
		core_sim_add(&sim, &task);
		sim.tasks[i].whole = core_sim_random(&sim, 4) == 0;
	}
	sched_distribute(s);
	return 2 * (n + 1) * longest;
}

/* Returns whether every task was served as often as @max_wait asks for, which with 0 is what 4
 * would ask for. */
static bool serves_all(const struct sched_policy *policy, uint64_t seed, unsigned max_wait) {
	struct sched *s;
	struct sched_params params;
	bool all = true;
	nsec_t slack;

	assert_int_equal(sched_new(&s, policy, CORE_SIM_JOBS_MAX), 0);
	for (size_t k = 0; k < 1 + seed % 2; k++) {
		assert_int_equal(
			sched_add_gpu(s, gpu_sms[k],
				      seed % 3 ? SCHED_SHARING_MPS : SCHED_SHARING_EXCLUSIVE),
			k);
	}
	params_of(seed, &params);
	params.max_wait = max_wait;
	assert_int_equal(sched_set_params(s, &params), 0);
	core_sim_init(&sim, s, seed);
	sim.one_waits = true;
	slack = add_hard_tasks(s, seed);
	core_sim_run(&sim, 6 * NSEC_PER_SEC);
	for (size_t i = 0; i < sim.n_tasks; i++) {
		nsec_t patience = (max_wait ? max_wait : 4) * sim.tasks[i].period;

		all &= sim.tasks[i].passed_over <= patience + slack;
	}
	sched_free(s);
	return all;
}

static void policies_let_no_job_wait_for_ever(void **state) {
	unsigned starved = 0;

	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= 60 && (*p)->overdue != SCHED_OVERDUE_WAITS;
		     seed++) {
			assert_true(serves_all(*p, seed, 4));
			starved += !serves_all(*p, seed, 0);
		}
	}
	assert_true(starved > 0); /* or there would be nothing to prove */
}

/* On the GPU that a policy has planned it for, however long it waits and though another is idle. */
static void policies_keep_overdue_jobs_at_home(void **state) {
	unsigned tested = 0;

	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sched_task task = {.period = NSEC_PER_SEC,
					  .deadline = NSEC_PER_SEC,
					  .fixed_gpu = -1,
					  .profiles = {&profiles[0][0], &profiles[0][1]}};
		struct sched_job blocker = {.task = SCHED_TASK_NONE, .owner = 1};
		struct sched_job job = {
			.owner = 2, .gpu_wanted = -1, .divisible = true, .deadline = NSEC_PER_SEC};
		sched_job_id blocker_id, id;
		struct sched_actions actions;
		struct sched *s;
		unsigned home;

		if ((*p)->overdue != SCHED_OVERDUE_AT_HOME) {
			continue;
		}
		s = make(*p, 2, 1, 0);
		assert_int_equal(sched_add_task(s, &task, &job.task), 0);
		sched_distribute(s);
		home = task_home(sched_task(s, job.task), -1, 0);
		blocker.gpu_wanted = (int)home;
		assert_int_equal(sched_arrive(s, &blocker, &blocker_id), 0);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 1);
		assert_int_equal(sched_arrive(s, &job, &id), 0);
		sched_decide(s, 1000 * NSEC_PER_SEC, &actions);
		assert_int_equal(actions.n, 0);
		sched_finish(s, blocker_id, 0, false);
		sched_decide(s, 1001 * NSEC_PER_SEC, &actions);
		assert_int_equal(actions.n, 1);
		assert_int_equal(sched_job(s, id)->gpu, home);
		sched_free(s);
		tested++;
	}
	assert_true(tested > 0);
}

static sched_job_id ask(struct sched *s, uint64_t owner) {
	struct sched_job job = {
		.task = SCHED_TASK_NONE, .owner = owner, .gpu_wanted = 0, .divisible = true};
	sched_job_id id;

	assert_int_equal(sched_arrive(s, &job, &id), 0);
	return id;
}

static unsigned sms_of(const struct sched *s, sched_job_id id) {
	return smset_count(&sched_job(s, id)->sms);
}

/* One job of @owner that takes @time. Return: on how many SMs it ran. */
static unsigned run_alone_for(struct sched *s, uint64_t owner, nsec_t time) {
	sched_job_id id = ask(s, owner);
	struct sched_actions actions;
	unsigned n;

	sched_decide(s, 0, &actions);
	assert_int_equal(actions.n, 1);
	n = sms_of(s, id);
	sched_finish(s, id, time, true);
	return n;
}

static unsigned run_alone(struct sched *s, uint64_t owner) {
	return run_alone_for(s, owner, 0);
}

/* A program that is alone gets all SMs, and one that comes waits for one job of it at most. */
static void even_gives_a_lone_program_the_gpu(void **state) {
	struct sched *s = make(sched_policy_find("even"), 1, 1, 0);
	struct sched_actions actions;
	sched_job_id a, b;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = round > 0; i < SCHED_ALONE; i++) {
			assert_int_equal(run_alone(s, 1), 8);
		}
		assert_int_equal(run_alone(s, 1), 16);
		a = ask(s, 1);
		sched_decide(s, 0, &actions);
		assert_int_equal(sms_of(s, a), 16);
		b = ask(s, 2);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 0);
		sched_finish(s, a, 0, true);
		a = ask(s, 1);
		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 2);
		assert_int_equal(sms_of(s, a), 8);
		assert_int_equal(sms_of(s, b), 8);
		sched_finish(s, b, 0, true);
		sched_finish(s, a, 0, true);
	}
	sched_free(s);
}

/* Nobody has to wait for a job of a second on the whole GPU: whoever has such jobs keeps to half.
 */
static void even_keeps_long_jobs_to_half(void **state) {
	struct sched *s = make(sched_policy_find("even"), 1, 1, 0);

	for (unsigned i = 0; i < 3 * SCHED_ALONE; i++) {
		assert_int_equal(run_alone_for(s, 1, NSEC_PER_SEC), 8);
	}
	for (unsigned i = 0; i < SCHED_ALONE; i++) {
		assert_int_equal(run_alone_for(s, 1, SCHED_ALONE_JOB_MAX), 8);
	}
	assert_int_equal(run_alone_for(s, 1, SCHED_ALONE_JOB_MAX + 1), 16);
	assert_int_equal(run_alone(s, 1), 8);
	sched_free(s);
}

/* Programs that come in turns never meet, and keep room for each other; so do two threads of one,
 * whose jobs do. */
static void even_keeps_halves_for_those_who_share(void **state) {
	struct sched *s = make(sched_policy_find("even"), 1, 1, 0);
	struct sched_actions actions;

	for (unsigned i = 0; i < 10 * SCHED_ALONE; i++) {
		assert_int_equal(run_alone(s, 1 + i % 2), 8);
	}
	for (unsigned i = 0; i < 10 * SCHED_ALONE; i++) {
		sched_job_id a = ask(s, 1), b = ask(s, 1);

		sched_decide(s, 0, &actions);
		assert_int_equal(actions.n, 2);
		assert_int_equal(sms_of(s, a), 8);
		assert_int_equal(sms_of(s, b), 8);
		sched_finish(s, a, 0, true);
		sched_finish(s, b, 0, true);
	}
	sched_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_keep_the_rules_and_repeat_themselves),
		cmocka_unit_test(policies_keep_the_bounds_of_tasks),
		cmocka_unit_test(policies_keep_to_the_gpus_of_each_job),
		cmocka_unit_test(policies_give_no_fewer_sms_than_were_measured),
		cmocka_unit_test(policies_schedule_examples_4_and_5),
		cmocka_unit_test(policies_count_power_as_told),
		cmocka_unit_test(stgm_runs_as_many_jobs_as_have_sms),
		cmocka_unit_test(load_policies_pack_jobs_where_told_to),
		cmocka_unit_test(late_jobs_give_up_their_turn_where_told_to),
		cmocka_unit_test(policies_give_no_gpu_without_a_profile),
		cmocka_unit_test(authors_keep_to_the_step),
		cmocka_unit_test(policies_obey_theorem_1),
		cmocka_unit_test(policies_serve_a_lone_task),
		cmocka_unit_test(policies_let_no_job_wait_for_ever),
		cmocka_unit_test(policies_keep_overdue_jobs_at_home),
		cmocka_unit_test(policies_place_tasks_that_cannot_move),
		cmocka_unit_test(even_gives_a_lone_program_the_gpu),
		cmocka_unit_test(even_keeps_long_jobs_to_half),
		cmocka_unit_test(even_keeps_halves_for_those_who_share),
	};

	make_profiles();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
