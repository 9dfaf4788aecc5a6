/*
 * fuzz-segments.c: any bytes are a set of tasks that all methods of analysis take, or refused with
 * a message; and no response in a short schedule is above a corrected bound.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "client/sim/segments.h"
#include "daemon/core/analysis/method.h"
#include "daemon/sim/schedule.h"

/* All methods on the largest sets take too long here. */
#define TASKS_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct rta_task *task, const struct rta_bound *b) {
	nsec_t sum = 0;

	if (b->response == RTA_FOREVER) {
		return;
	}
	for (size_t k = 0; k < _RTA_TERM_N; k++) {
		sum += b->terms[k];
	}
	if (b->response > task->period || b->response < task->c + task->g || sum != b->response) {
		abort();
	}
}

/* All at once, as long as 50 jobs of the shortest period. */
static void simulate(const char *method, enum schedule_approach approach,
		     const struct rta_set *set) {
	static const struct rta_readings readings;
	static const nsec_t offsets[TASKS_MAX];
	const struct rta_method *m = rta_method_find(method);
	struct rta_bound bounds[RTA_TASKS_MAX];
	struct schedule_result result;
	struct schedule_setup setup = {
		.set = set, .approach = approach, .mode = m->mode, .offsets = offsets};

	setup.duration = set->tasks[0].period;
	for (size_t i = 1; i < set->n_tasks; i++) {
		if (set->tasks[i].period < setup.duration) {
			setup.duration = set->tasks[i].period;
		}
	}
	setup.duration *= 50;
	rta_method_run(m, set, &readings, bounds);
	schedule_simulate(&setup, &result);
	for (size_t i = 0; i < set->n_real_time; i++) {
		if (result.longest[i] > bounds[i].response) {
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	static const struct rta_readings readings;
	static const struct imports nothing;
	struct rta_bound bounds[RTA_TASKS_MAX];
	struct segments s;
	char error[256];
	int r;

	error[0] = '\0';
	r = segments_init(&s, "input", (const char *)bytes, size, RTA_FOREVER, &nothing, error,
			  sizeof(error));
	if (r < 0) {
		if (!*error) {
			abort();
		}
		return 0;
	}
	for (size_t k = 0; k < rta_n_methods && s.set.n_tasks <= TASKS_MAX; k++) {
		unsigned levels[RTA_TASKS_MAX];

		rta_method_run(&rta_methods[k], &s.set, &readings, bounds);
		for (size_t i = 0; i < s.set.n_real_time; i++) {
			check(&s.set.tasks[i], &bounds[i]);
		}
		rta_method_assign(&rta_methods[k], &s.set, &readings, true, bounds, levels);
	}
	if (s.set.n_tasks <= TASKS_MAX) {
		simulate("safe", SCHEDULE_IOCTL, &s.set);
		simulate("safe-kthread", SCHEDULE_KTHREAD, &s.set);
		simulate("safe-mpcp-suspend", SCHEDULE_MPCP, &s.set);
		simulate("safe-fmlp-busy", SCHEDULE_FMLP, &s.set);
	}
	segments_deinit(&s);
	return 0;
}
