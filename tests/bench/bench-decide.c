/*
 * bench-decide.c: what one decision costs: a JSON line for each policy and number of tasks, in
 * microseconds, over all decisions of a simulated run on 4 GPUs of 132 SMs given out in pairs.
 * The load stays the same as tasks are added, so the curve shows what their number costs.
 *
 * And what it costs to give all tasks their homes, which the daemon does when one comes or goes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/sim/grants.h"

#define GPUS	 4
#define SMS	 132
#define PROFILES 4
#define LOAD	 2 /* GPUs' worth of work */

static struct profile_table profiles[PROFILES];

static nsec_t read_clock(void *userdata) {
	struct timespec t;

	(void)userdata;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

/* Work that speeds up with SMs, but for a part that does not, so that m_opt lies below 132. */
static int make_profiles(void) {
	for (unsigned i = 0; i < PROFILES; i++) {
		int r = profile_table_init(&profiles[i], SMS, NSEC_PER_MSEC, NSEC_PER_MSEC);

		for (unsigned m = 1; r == 0 && m <= SMS; m++) {
			nsec_t t = (400 + 200 * i) * NSEC_PER_MSEC / m + (i + 1) * NSEC_PER_MSEC;

			r = profile_table_set(&profiles[i], m, t / 2, t, m * 3000);
		}
		if (r < 0 || profile_table_finish(&profiles[i]) < 0) {
			return -1;
		}
	}
	return 0;
}

static void make_tasks(struct sched_task *tasks, size_t n) {
	uint64_t random = 1;

	for (size_t i = 0; i < n; i++) {
		const struct profile_table *p = &profiles[sim_random(&random) % PROFILES];
		nsec_t period = profile_total(p, SMS) * n / LOAD;

		period += period * (sim_random(&random) % 100) / 100;
		tasks[i] = (struct sched_task){.period = period,
					       .deadline = period / 2,
					       .first_release = sim_random(&random) % period,
					       .fixed_gpu = -1};
		for (size_t k = 0; k < GPUS; k++) {
			tasks[i].profiles[k] = p;
		}
	}
}

static int run(const char *policy, size_t n) {
	struct sched_gpu_model gpus[GPUS];
	struct sched_task *tasks = calloc(n, sizeof(*tasks));
	struct sim_setup setup = {
		.arbiter = &sim_grants,
		.gpus = gpus,
		.n_gpus = GPUS,
		.tasks = tasks,
		.n_tasks = n,
		.policy = sched_policy_find(policy),
		.duration = 20 * NSEC_PER_SEC,
		.exec = SIM_EXEC_WORST,
		.exec_share_permille = 1000,
		.seed = 1,
		.clock = read_clock,
	};
	struct sim_result result;
	int r;

	if (!tasks) {
		return -1;
	}
	for (size_t k = 0; k < GPUS; k++) {
		gpus[k] = (struct sched_gpu_model){
			.power = {SMS, 100000, 300}, .limit = SMS, .step = 2};
	}
	make_tasks(tasks, n);
	sched_params_default(&setup.params);
	r = sim_run(&setup, &result);
	free(tasks);
	if (r < 0) {
		fprintf(stderr, "bench-decide: cannot simulate %zu tasks: %d\n", n, r);
		return r;
	}
	printf("{\"bench\": \"decide\", \"policy\": \"%s\", \"tasks\": %zu, \"decisions\": %llu, "
	       "\"median_us\": %.2f, \"p99_us\": %.2f, \"mean_us\": %.2f}\n",
	       policy, n, (unsigned long long)result.decisions,
	       (double)result.cost.p50 / NSEC_PER_USEC, (double)result.cost.p99 / NSEC_PER_USEC,
	       (double)result.cost.total / NSEC_PER_USEC / (double)result.decisions);
	sim_result_deinit(&result);
	return 0;
}

static int distribute(const char *policy, size_t n) {
	struct sched_task *tasks = calloc(n, sizeof(*tasks));
	struct sched *s = NULL;
	sched_task_id id;
	nsec_t begin;
	int r = tasks ? sched_new(&s, sched_policy_find(policy), 1) : -1;

	for (size_t k = 0; r == 0 && k < GPUS; k++) {
		struct sched_gpu_model model = {{SMS, 100000, 300}, .limit = SMS, .step = 2};

		sched_add_gpu(s, SMS, SCHED_SHARING_MPS);
		r = sched_set_gpu_model(s, k, &model);
	}
	if (r == 0) {
		make_tasks(tasks, n);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = sched_add_task(s, &tasks[i], &id);
	}
	if (r == 0) {
		begin = read_clock(NULL);
		sched_distribute(s);
		printf("{\"bench\": \"distribute\", \"policy\": \"%s\", \"tasks\": %zu, "
		       "\"ms\": %.3f}\n",
		       policy, n, (double)(read_clock(NULL) - begin) / NSEC_PER_MSEC);
	}
	sched_free(s);
	free(tasks);
	return r;
}

int main(void) {
	static const char *const policies[] = {"sbeet-mg", "lookahead"};
	static const char *const partitions[] = {"sbeet-mg", "bfd-sbeet", "stgm"};
	static const size_t counts[] = {20, 200, 2000, 20000};
	int r = make_profiles();

	for (size_t i = 0; r == 0 && i < sizeof(policies) / sizeof(policies[0]); i++) {
		for (size_t j = 0; r == 0 && j < sizeof(counts) / sizeof(counts[0]); j++) {
			r = run(policies[i], counts[j]);
		}
	}
	for (size_t i = 0; r == 0 && i < sizeof(partitions) / sizeof(partitions[0]); i++) {
		for (size_t j = 0; r == 0 && j < sizeof(counts) / sizeof(counts[0]); j++) {
			r = distribute(partitions[i], counts[j]);
		}
	}
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
