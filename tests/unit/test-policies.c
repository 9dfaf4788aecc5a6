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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_keep_the_rules_and_repeat_themselves),
		cmocka_unit_test(policies_keep_the_bounds_of_tasks),
		cmocka_unit_test(policies_keep_to_the_gpus_of_each_job),
		cmocka_unit_test(policies_give_no_fewer_sms_than_were_measured),
		cmocka_unit_test(policies_give_no_gpu_without_a_profile),
		cmocka_unit_test(policies_obey_theorem_1),
		cmocka_unit_test(policies_serve_a_lone_task),
		cmocka_unit_test(policies_let_no_job_wait_for_ever),
		cmocka_unit_test(policies_keep_overdue_jobs_at_home),
		cmocka_unit_test(policies_place_tasks_that_cannot_move),
	};

	make_profiles();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
