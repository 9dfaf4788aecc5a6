/* test-policy-params.c: the papers' examples, and what the parameters of policies change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "core-sim.h"
#include "daemon/core/sched.h"
#include "daemon/core/task.h"

static struct core_sim sim; /* too big for a stack */

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

/* With less than all SMs for the first job none is late, as in the text; so it is, with less energy
 * (Theorem 1), if the first job waits for the more urgent ones that come. */
static void policies_schedule_examples_4_and_5(void **state) {
	static const struct example example_4[] = {{12, 6, 1, 1, 0}, {7, 1, 1, 1, 1}};
	static const struct example example_5[] = {
		{14, 6, 1, 1, 0}, {7, 1, 1, 1, 1}, {10, 1, 1, 1, 2}};
	static const char *const whole[] = {"fcfs", "rm", "load-dist", "bcf"};
	static const struct {
		const char *policy;
		unsigned n_sms;
	} spatial[] = {{"sbeet", 6}, {"lookahead", 8}};

	for (size_t n = 2; n <= 3; n++) {
		const struct example *tasks = n == 2 ? example_4 : example_5;

		for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
			run_example(whole[i], tasks, n);
			assert_int_equal(sim.tasks[1].missed, 1);
		}
		for (size_t i = 0; i < sizeof(spatial) / sizeof(spatial[0]); i++) {
			run_example(spatial[i].policy, tasks, n);
			assert_int_equal(sim.missed, 0);
			assert_int_equal(sim.tasks[0].n_sms, spatial[i].n_sms);
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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_schedule_examples_4_and_5),
		cmocka_unit_test(policies_count_power_as_told),
		cmocka_unit_test(stgm_runs_as_many_jobs_as_have_sms),
		cmocka_unit_test(load_policies_pack_jobs_where_told_to),
		cmocka_unit_test(late_jobs_give_up_their_turn_where_told_to),
		cmocka_unit_test(authors_keep_to_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
