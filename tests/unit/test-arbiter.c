/*
 * test-arbiter.c: another arbiter than the daemon's scheduler: one job at a time on one GPU, first
 * come, first served. Under the policy of that name both must find the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/sim/arbiter.h"
#include "daemon/sim/boundary.h"
#include "daemon/sim/grants.h"

#define MS     NSEC_PER_MSEC
#define SMS    4
#define TASKS  5
#define ROUNDS 200

/* The jobs that are there, in order of arrival; the first one runs if any does. */
struct line {
	uint32_t *ids; /* owned */
	size_t n;
	bool runs;
	nsec_t end; /* of the one that runs */
	uint32_t next_id;
};

static const struct profile_table *profile_of(const struct sim *s, uint32_t id) {
	return s->setup->tasks[s->jobs[id].task].profiles[0];
}

static int line_open(struct sim *s) {
	struct line *line = calloc(1, sizeof(*line));

	assert_non_null(line);
	s->arbiter_state = line;
	line->ids = calloc(s->max_jobs, sizeof(*line->ids));
	assert_non_null(line->ids);
	return 0;
}

static void line_close(void *state) {
	struct line *line = state;

	free(line->ids);
	free(line);
}

/* No number is used twice. */
static int line_arrive(struct sim *s, const struct sim_job *job, nsec_t seen, uint32_t *ret_id) {
	struct line *line = s->arbiter_state;

	*ret_id = line->ids[line->n++] = line->next_id++;
	return 0;
}

static void leave(struct line *line, size_t i) {
	memmove(&line->ids[i], &line->ids[i + 1], (line->n - i - 1) * sizeof(*line->ids));
	line->n--;
}

static bool line_drop(struct sim *s, uint32_t id) {
	struct line *line = s->arbiter_state;
	size_t i = 0;

	while (line->ids[i] != id) {
		i++;
	}
	if (i == 0 && line->runs) {
		return false;
	}
	leave(line, i);
	return true;
}

static int line_happen(struct sim *s, const struct event *event) {
	struct line *line = s->arbiter_state;

	assert_int_equal(event->kind, EVENT_FINISH);
	assert_int_equal(line->ids[0], event->index);
	meter_stop(&s->meters[0], s->now, SMS, profile_of(s, event->index)->power_mw[SMS]);
	leave(line, 0);
	line->runs = false;
	s->changed = true;
	return sim_job_done(s, event->index);
}

static int line_decide(struct sim *s) {
	struct line *line = s->arbiter_state;
	const struct profile_table *p;
	uint32_t id = line->ids[0];

	s->result.decisions++;
	if (line->runs || line->n == 0) {
		return 0;
	}
	line->runs = true;
	p = profile_of(s, id);
	line->end = s->now + p->copy_in + sim_exec_time(s, p, SMS, &s->jobs[id]) + p->copy_out;
	meter_start(&s->meters[0], s->now, SMS, p->power_mw[SMS]);
	return event_push(&s->events, (struct event){.at = line->end,
						     .kind = EVENT_FINISH,
						     .index = id,
						     .order = s->jobs[id].order});
}

static int line_describe(struct sim *s, nsec_t at) {
	struct line *line = s->arbiter_state;

	cycle_add(&s->cycle, line->runs ? line->end - at : 0);
	for (size_t i = 0; i < line->n; i++) {
		boundary_add_job(s, line->ids[i], at);
	}
	return 0;
}

static void line_conclude(struct sim *s) {
}

static const struct sim_arbiter line_arbiter = {
	.open = line_open,
	.close = line_close,
	.arrive = line_arrive,
	.drop = line_drop,
	.happen = line_happen,
	.decide = line_decide,
	.describe = line_describe,
	.conclude = line_conclude,
};

struct world {
	struct sched_gpu_model gpu;
	struct profile_table profiles[TASKS];
	struct sched_task tasks[TASKS];
	struct sim_setup setup;
};

static uint64_t between(uint64_t *random, uint64_t low, uint64_t high) {
	return low + sim_random(random) % (high - low + 1);
}

static void make_world(struct world *w, uint64_t seed) {
	static const nsec_t periods[] = {10 * MS, 20 * MS, 25 * MS, 40 * MS, 50 * MS};
	uint64_t random = seed;

	*w = (struct world){
		.gpu = {.power = {.n_sms = SMS, .static_mw = 1000, .idle_mw_per_sm = 10},
			.limit = SMS,
			.step = 1}};
	for (unsigned i = 0; i < TASKS; i++) {
		struct sched_task *task = &w->tasks[i];

		assert_int_equal(profile_table_linear(&w->profiles[i], SMS, between(&random, 0, MS),
						      between(&random, 0, MS),
						      between(&random, 1, 4 * 6) * MS, 100),
				 0);
		task->period = periods[between(&random, 0, 4)];
		task->deadline = between(&random, task->period / 2, task->period);
		task->first_release = between(&random, 0, 9) * MS;
		task->fixed_gpu = -1;
		task->profiles[0] = &w->profiles[i];
	}
	w->setup = (struct sim_setup){.gpus = &w->gpu,
				      .n_gpus = 1,
				      .tasks = w->tasks,
				      .n_tasks = TASKS,
				      .policy = sched_policy_find("fcfs"),
				      .duration = 1000 * MS,
				      .exec = (enum sim_exec)between(&random, 0, _SIM_EXEC_N - 1),
				      .exec_share_permille = 600,
				      .sequential = between(&random, 0, 1),
				      .seed = seed};
	sched_params_default(&w->setup.params);
	w->setup.params.power = SCHED_POWER_HELD; /* as line_arbiter counts it */
	w->setup.params.late = (enum sched_late)between(&random, 0, _SCHED_LATE_N - 1);
}

static void sim_runs_what_another_arbiter_starts(void **state) {
	uint64_t missed = 0, dropped = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct sim_result own, grants;
		struct world w;

		make_world(&w, seed);
		w.setup.arbiter = &line_arbiter;
		assert_int_equal(sim_run(&w.setup, &own), 0);
		w.setup.arbiter = &sim_grants;
		assert_int_equal(sim_run(&w.setup, &grants), 0);
		assert_memory_equal(&own.count, &grants.count, sizeof(own.count));
		assert_int_equal(own.decisions, grants.decisions);
		assert_int_equal(own.energy_total_pj, grants.energy_total_pj);
		assert_int_equal(own.active[0], grants.active[0]);
		for (size_t i = 0; i < TASKS; i++) {
			assert_memory_equal(&own.tasks[i].response, &grants.tasks[i].response,
					    sizeof(own.tasks[i].response));
			assert_int_equal(own.tasks[i].lateness_max, grants.tasks[i].lateness_max);
		}
		missed += own.count.missed;
		dropped += w.setup.params.late == SCHED_LATE_DROP && own.count.missed > 0;
		sim_result_deinit(&own);
		sim_result_deinit(&grants);
	}
	assert_true(missed > 0 && dropped > 0);
}

static bool note_repetition(void *userdata, const struct sim_boundary *boundary) {
	bool *repeats = userdata;

	*repeats |= boundary->repeats;
	return true;
}

static void sim_finds_when_another_arbiter_repeats_itself(void **state) {
	unsigned n_repeat = 0, n_differ = 0;

	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		bool own = false, grants = false;
		struct sim_result result;
		struct world w;

		make_world(&w, seed);
		w.setup.exec = SIM_EXEC_WORST;
		w.setup.duration = 10000 * MS;
		w.setup.boundary = 10 * MS;
		w.setup.hyperperiod = 200 * MS;
		w.setup.on_boundary = note_repetition;
		w.setup.arbiter = &line_arbiter;
		w.setup.userdata = &own;
		assert_int_equal(sim_run(&w.setup, &result), 0);
		sim_result_deinit(&result);
		w.setup.arbiter = &sim_grants;
		w.setup.userdata = &grants;
		assert_int_equal(sim_run(&w.setup, &result), 0);
		sim_result_deinit(&result);
		/* The scheduler learns overheads, so it may take longer to repeat. */
		assert_true(own || !grants);
		n_repeat += own;
		n_differ += !own;
	}
	assert_true(n_repeat > 0 && n_differ > 0);
}

static int refuse(struct sim *s) {
	return -EINVAL;
}

static void close_nothing(void *state) {
	assert_null(state);
}

static void sim_ends_when_the_arbiter_refuses(void **state) {
	static const struct sim_arbiter refusing = {.open = refuse, .close = close_nothing};
	struct sim_result result = {.decisions = 77};
	struct world w;

	make_world(&w, 1);
	assert_int_equal(sim_run(&w.setup, &result), -EINVAL); /* none is chosen */
	w.setup.arbiter = &refusing;
	assert_int_equal(sim_run(&w.setup, &result), -EINVAL);
	assert_int_equal(result.decisions, 77);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_runs_what_another_arbiter_starts),
		cmocka_unit_test(sim_finds_when_another_arbiter_repeats_itself),
		cmocka_unit_test(sim_ends_when_the_arbiter_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
