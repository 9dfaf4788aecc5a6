/*
 * bench-sim.c: decisions a second of the simulator on one core, one JSON line for each policy: six
 * linear tasks on GPUs of 24 and 6 SMs, 60 % busy. CPU time, simulation and decisions together.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/sim/grants.h"

#define TASKS 6
#define GPUS  2

static double cpu_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void) {
	static const struct sched_gpu_model gpus[GPUS] = {
		{.power = {46, 46000, 445}, .limit = 24, .step = 1},
		{.power = {6, 8000, 652}, .limit = 6, .step = 1},
	};
	static struct profile_table profiles[TASKS][GPUS];
	struct sched_task tasks[TASKS] = {0};

	for (unsigned i = 0; i < TASKS; i++) {
		for (unsigned k = 0; k < GPUS; k++) {
			nsec_t work = (60 + 20 * i) * (k + 1) * NSEC_PER_MSEC;

			if (profile_table_linear(&profiles[i][k], gpus[k].power.n_sms,
						 NSEC_PER_MSEC, NSEC_PER_MSEC, work, 1000) < 0) {
				return 1;
			}
			tasks[i].profiles[k] = &profiles[i][k];
		}
		tasks[i].period = (50 + 9 * i) * NSEC_PER_MSEC;
		tasks[i].deadline = tasks[i].period / 2;
		tasks[i].first_release = i * 3 * NSEC_PER_MSEC;
		tasks[i].spec.priority = -(int)i;
		tasks[i].fixed_gpu = -1;
	}
	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		struct sim_setup setup = {
			.arbiter = &sim_grants,
			.gpus = gpus,
			.n_gpus = GPUS,
			.tasks = tasks,
			.n_tasks = TASKS,
			.policy = *p,
			.duration = 600 * NSEC_PER_SEC,
		};
		struct sim_result result;
		double start;

		sched_params_default(&setup.params);
		setup.params.late = SCHED_LATE_DROP;
		start = cpu_s();
		if (strcmp((*p)->name, "fixed") == 0 || sim_run(&setup, &result) < 0) {
			continue; /* no task has a fixed place */
		}
		printf("{\"bench\":\"sim\",\"policy\":\"%s\",\"decisions\":%llu,"
		       "\"decisions_per_s\":%.0f,\"miss_ratio\":%.4f}\n",
		       (*p)->name, (unsigned long long)result.decisions,
		       (double)result.decisions / (cpu_s() - start),
		       sim_miss_ppm(&result.count) / 1e6);
		sim_result_deinit(&result);
	}
	return 0;
}
