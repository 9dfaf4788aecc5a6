/*
 * test-sim.c: the simulator against what must hold of every schedule, for every policy and for GPUs
 * that are shared without one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/sim/grants.h"
#include "daemon/sim/shared.h"
#include "energy.h"

#define MS	  NSEC_PER_MSEC
#define GPUS	  2
#define TASKS_MAX 8
#define ROUNDS	  20

/* A random small system and what a run of it emitted. */
struct world {
	struct sched_gpu_model gpus[GPUS];
	struct profile_table profiles[TASKS_MAX][GPUS];
	struct sched_task tasks[TASKS_MAX];
	struct sim_setup setup;
	struct sim_segment *segments; /* owned */
	size_t n_segments, allocated;
};

static void keep_segment(void *userdata, const struct sim_segment *segment) {
	struct world *w = userdata;

	if (w->n_segments == w->allocated) {
		w->allocated = w->allocated ? 2 * w->allocated : 256;
		w->segments = reallocarray(w->segments, w->allocated, sizeof(*w->segments));
		assert_non_null(w->segments);
	}
	w->segments[w->n_segments++] = *segment;
}

static uint64_t between(uint64_t *random, uint64_t low, uint64_t high) {
	return low + sim_random(random) % (high - low + 1);
}

static void make_profile(struct profile_table *p, unsigned n_sms, uint64_t *random) {
	nsec_t work = between(random, 2 * MS, 60 * MS);
	uint32_t power = (uint32_t)between(random, 100, 4000);

	assert_int_equal(profile_table_init(p, n_sms, between(random, 0, 2) * MS / 2,
					    between(random, 0, 2) * MS / 2),
			 0);
	for (unsigned m = 1; m <= n_sms; m++) {
		/* up to a fifth off the line, so not monotone */
		nsec_t worst = work / m * between(random, 80, 120) / 100;

		assert_int_equal(profile_table_set(p, m, worst / 2, worst, m * power), 0);
	}
	assert_int_equal(profile_table_finish(p), 0);
}

static void make_world(struct world *w, const struct sched_policy *policy, uint64_t seed) {
	static const unsigned n_sms[GPUS] = {20, 6};
	uint64_t random = seed;

	memset(w, 0, sizeof(*w));
	w->setup.n_tasks = between(&random, 1, TASKS_MAX);
	for (unsigned k = 0; k < GPUS; k++) {
		w->gpus[k] = (struct sched_gpu_model){
			.power = {.n_sms = n_sms[k],
				  .static_mw = (uint32_t)between(&random, 0, 50000),
				  .idle_mw_per_sm = (uint32_t)between(&random, 0, 800)},
			.limit = (unsigned)between(&random, n_sms[k] / 2, n_sms[k]),
			.step = (unsigned)between(&random, 1, 2),
		};
	}
	for (size_t i = 0; i < w->setup.n_tasks; i++) {
		struct sched_task *task = &w->tasks[i];

		task->period = between(&random, 10, 60) * MS;
		task->deadline = between(&random, 8 * MS, task->period);
		task->first_release = between(&random, 0, 20) * MS / 2;
		task->spec.priority = (int)i;
		task->fixed_gpu = (int)(i % GPUS);
		task->fixed_sms = smset_range(0, w->gpus[i % GPUS].limit);
		for (unsigned k = 0; k < GPUS; k++) {
			make_profile(&w->profiles[i][k], n_sms[k], &random);
			task->profiles[k] = &w->profiles[i][k];
		}
	}
	w->setup.arbiter = &sim_grants;
	w->setup.gpus = w->gpus;
	w->setup.n_gpus = GPUS;
	w->setup.tasks = w->tasks;
	w->setup.policy = policy;
	sched_params_default(&w->setup.params);
	w->setup.params.free_at_kernel_end = between(&random, 0, 1);
	w->setup.params.migration_cost = between(&random, 0, 1) * MS / 4;
	w->setup.duration = 500 * MS + between(&random, 0, 5 * MS);
	w->setup.exec = (enum sim_exec)between(&random, 0, _SIM_EXEC_N - 1);
	w->setup.exec_share_permille = 600;
	w->setup.params.late = (enum sched_late)between(&random, 0, _SCHED_LATE_N - 1);
	w->setup.params.power = (enum sched_power)between(&random, 0, _SCHED_POWER_N - 1);
	w->setup.seed = seed;
	w->setup.on_segment = keep_segment;
	w->setup.userdata = w;
}

/* Several launches a job, in blocks. */
static void make_shared(struct world *w, enum sim_terms terms, uint64_t random) {
	w->setup.arbiter = &sim_shared;
	w->setup.terms = terms;
	w->setup.cap_percent = terms >= SIM_TERMS_PLANNED ? 0 : (unsigned)between(&random, 0, 100);
	w->setup.overhead = between(&random, 0, 1) * MS / 10;
	w->setup.sequential = between(&random, 0, 1);
	for (size_t i = 0; i < w->setup.n_tasks; i++) {
		for (unsigned k = 0; k < GPUS; k++) {
			w->profiles[i][k].launches = (unsigned)between(&random, 1, 8);
			w->profiles[i][k].block = between(&random, 0, 1) * MS / 20;
		}
	}
}

static void free_world(struct world *w) {
	free(w->segments);
}

typedef void (*check_fn)(const struct world *, const struct sim_result *);

static void check_world(struct world *w, check_fn check) {
	struct sim_result result;

	assert_int_equal(sim_run(&w->setup, &result), 0);
	check(w, &result);
	sim_result_deinit(&result);
	free_world(w);
}

/* Calls @check for runs of every policy, and of GPUs that are shared without any. */
static void for_all(check_fn check) {
	struct world w;

	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
			make_world(&w, *p, seed);
			check_world(&w, check);
		}
	}
	for (unsigned terms = 0; terms < _SIM_TERMS_N; terms++) {
		for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
			make_world(&w, NULL, seed);
			make_shared(&w, (enum sim_terms)terms, seed);
			check_world(&w, check);
		}
	}
}

static void check_energy(const struct world *w, const struct sim_result *result) {
	struct power_segment *power = calloc(w->n_segments + 1, sizeof(*power));
	nsec_t *edges = calloc(2 * w->n_segments + 2, sizeof(*edges));
	bool held = w->setup.params.power == SCHED_POWER_HELD;
	uint64_t total = 0;

	assert_true(power && edges);
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *s = &w->segments[i];

		power[i] = (struct power_segment){.gpu = s->gpu,
						  .n_sms = smset_count(&s->sms),
						  .dynamic_mw = s->dynamic_mw,
						  .start = held ? s->start : s->kernel_start,
						  .end = held ? s->end : s->kernel_end};
	}
	for (unsigned k = 0; k < GPUS; k++) {
		uint64_t pj = power_energy_pj(&w->gpus[k].power, k, power, w->n_segments, 0,
					      w->setup.duration, edges);

		assert_int_equal(result->energy_pj[k], pj);
		total += pj;
	}
	assert_int_equal(result->energy_total_pj, total);
	free(power);
	free(edges);
}

static bool overlap(const struct sim_segment *a, const struct sim_segment *b) {
	return a->gpu == b->gpu && a->start < b->end && b->start < a->end;
}

/* SMs in use on the segment's GPU at its start. */
static unsigned in_use_at_start(const struct world *w, const struct sim_segment *s) {
	unsigned n = 0;

	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *other = &w->segments[i];

		if (other->gpu == s->gpu && other->start <= s->start && s->start < other->end) {
			n += smset_count(&other->sms);
		}
	}
	return n;
}

static void check_sms(const struct world *w, const struct sim_result *result) {
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *s = &w->segments[i];
		struct smset all = smset_range(0, w->gpus[s->gpu].power.n_sms);

		assert_true(smset_within(&s->sms, &all) && !smset_empty(&s->sms));
		for (size_t j = 0; j < i; j++) {
			assert_true(!overlap(s, &w->segments[j]) ||
				    smset_disjoint(&s->sms, &w->segments[j].sms));
		}
		/* What nobody hands out keeps no limit. */
		assert_true(!w->setup.policy || in_use_at_start(w, s) <= w->gpus[s->gpu].limit);
	}
}

static void check_times(const struct world *w, const struct sim_result *result) {
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *s = &w->segments[i];
		const struct sched_task *task = &w->tasks[s->task];

		assert_true(s->start >= task->first_release + s->job * task->period);
		assert_true(s->start <= s->kernel_start && s->kernel_start <= s->kernel_end &&
			    s->kernel_end <= s->end && s->end <= w->setup.duration);
		assert_true(s->kernel_end == s->end || !w->setup.params.free_at_kernel_end);
	}
}

static void check_count(const struct world *w, const struct sim_result *result) {
	struct sim_count sum = {0};

	for (size_t i = 0; i < result->n_tasks; i++) {
		const struct sim_count *c = &result->tasks[i].count;
		const struct sched_task *task = &w->tasks[i];
		uint64_t releases = 0;

		for (nsec_t t = task->first_release; t < w->setup.duration; t += task->period) {
			releases++;
		}
		assert_int_equal(c->released, releases);
		/* late ones are both completed and missed */
		assert_true(c->completed + c->open <= c->released &&
			    c->missed + c->open <= c->released &&
			    c->completed + c->open + c->missed >= c->released);
		sum.released += c->released;
		sum.completed += c->completed;
		sum.missed += c->missed;
		sum.open += c->open;
	}
	assert_memory_equal(&sum, &result->count, sizeof(sum));
}

static void check_repeat(const struct world *w, const struct sim_result *result) {
	struct world again = *w;
	struct sim_result second;

	again.segments = NULL;
	again.n_segments = again.allocated = 0;
	again.setup.userdata = &again;
	assert_int_equal(sim_run(&again.setup, &second), 0);
	assert_int_equal(again.n_segments, w->n_segments);
	for (size_t i = 0; i < w->n_segments; i++) {
		assert_true(smset_equal(&again.segments[i].sms, &w->segments[i].sms));
		assert_int_equal(again.segments[i].start, w->segments[i].start);
		assert_int_equal(again.segments[i].end, w->segments[i].end);
		assert_int_equal(again.segments[i].task, w->segments[i].task);
	}
	assert_int_equal(second.energy_total_pj, result->energy_total_pj);
	assert_memory_equal(&second.count, &result->count, sizeof(second.count));
	free(again.segments);
	sim_result_deinit(&second);
}

static void check_all(const struct world *w, const struct sim_result *result) {
	check_energy(w, result);
	check_sms(w, result);
	check_times(w, result);
	check_count(w, result);
	check_repeat(w, result);
}

/* Its energy is the integral of the schedule; no SM is given twice, and the limit is kept; no job
 * starts before its release, and each is counted once; and it does the same again. */
static void sim_keeps_the_rules(void **state) {
	for_all(check_all);
}

/* Whether anything holds SMs of the GPU at a moment. */
static bool is_busy(const struct world *w, unsigned gpu, nsec_t at) {
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *s = &w->segments[i];

		if (s->gpu == gpu && s->start <= at && at < s->end) {
			return true;
		}
	}
	return false;
}

/* While a job waits that may go anywhere, no GPU is idle: neither at its release nor when a job
 * that ran there has ended. */
static void check_work_conserved(const struct world *w, const struct sim_result *result) {
	for (size_t i = 0; i < w->n_segments; i++) {
		const struct sim_segment *s = &w->segments[i];
		const struct sched_task *task = &w->tasks[s->task];
		nsec_t release = task->first_release + s->job * task->period;

		for (unsigned k = 0; release < s->start && k < GPUS; k++) {
			assert_true(is_busy(w, k, release));
			for (size_t j = 0; j < w->n_segments; j++) {
				nsec_t end = w->segments[j].end;

				assert_true(end < release || end >= s->start || is_busy(w, k, end));
			}
		}
	}
}

static void sim_conserves_work_where_the_policy_does(void **state) {
	static const char *const names[] = {"fcfs", "rm", "load-dist"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
			struct sim_result result;
			struct world w;

			make_world(&w, sched_policy_find(names[i]), seed);
			assert_int_equal(sim_run(&w.setup, &result), 0);
			check_work_conserved(&w, &result);
			sim_result_deinit(&result);
			free_world(&w);
		}
	}
}

#define MANY   3
#define ORDERS 3

/* The world's first GPU twice and its second once, at the places that @order names. */
static void run_in_order(struct world *w, const unsigned *order, struct sim_result *ret) {
	static struct sched_gpu_model gpus[MANY];

	for (size_t k = 0; k < MANY; k++) {
		gpus[order[k]] = w->gpus[k / 2];
		for (size_t i = 0; i < w->setup.n_tasks; i++) {
			w->tasks[i].profiles[order[k]] = &w->profiles[i][k / 2];
		}
	}
	for (size_t i = 0; i < w->setup.n_tasks; i++) {
		size_t k = i % MANY;

		w->tasks[i].fixed_gpu = (int)order[k];
		w->tasks[i].fixed_sms = smset_range(0, w->gpus[k / 2].limit);
	}
	w->setup.gpus = gpus;
	w->setup.n_gpus = MANY;
	assert_int_equal(sim_run(&w->setup, ret), 0);
}

/* Wherever a GPU stands in the list, nothing changes but its number; of two equal ones the first is
 * taken. First fit is about the order of the list, so it is left out. */
static void sim_does_not_care_where_a_gpu_stands(void **state) {
	static const unsigned orders[][MANY] = {{0, 1, 2}, {0, 2, 1}, {1, 2, 0}};

	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		for (uint64_t seed = 1; seed <= ROUNDS && strcmp((*p)->name, "ffd-sbeet"); seed++) {
			struct world worlds[ORDERS];
			struct sim_result results[ORDERS];

			for (size_t n = 0; n < ORDERS; n++) {
				make_world(&worlds[n], *p, seed);
				worlds[n].setup.userdata = &worlds[n];
				run_in_order(&worlds[n], orders[n], &results[n]);
			}
			for (size_t n = 1; n < ORDERS; n++) {
				assert_memory_equal(&results[n].count, &results[0].count,
						    sizeof(results[0].count));
				assert_int_equal(worlds[n].n_segments, worlds[0].n_segments);
				for (size_t i = 0; i < worlds[0].n_segments; i++) {
					const struct sim_segment *a = &worlds[0].segments[i];
					const struct sim_segment *b = &worlds[n].segments[i];

					assert_int_equal(b->gpu, orders[n][a->gpu]);
					assert_int_equal(b->task, a->task);
					assert_int_equal(b->start, a->start);
					assert_int_equal(b->end, a->end);
				}
				for (size_t k = 0; k < MANY; k++) {
					assert_int_equal(results[n].energy_pj[orders[n][k]],
							 results[0].energy_pj[k]);
				}
			}
			for (size_t n = 0; n < ORDERS; n++) {
				sim_result_deinit(&results[n]);
				free_world(&worlds[n]);
			}
		}
	}
}

/* One task, all by hand: two jobs of 1 + 8 + 1 ms with a period of 20 ms in a window of 25 ms. */
static void make_single(struct world *w, nsec_t exec) {
	memset(w, 0, sizeof(*w));
	w->gpus[0] = (struct sched_gpu_model){
		.power = {.n_sms = 4, .static_mw = 1000, .idle_mw_per_sm = 10},
		.limit = 4,
		.step = 1};
	assert_int_equal(profile_table_linear(&w->profiles[0][0], 4, 1 * MS, 1 * MS, 4 * exec, 100),
			 0);
	w->tasks[0] = (struct sched_task){.period = 20 * MS, .deadline = 10 * MS, .fixed_gpu = -1};
	w->tasks[0].profiles[0] = &w->profiles[0][0];
	w->setup = (struct sim_setup){
		.arbiter = &sim_grants,
		.gpus = w->gpus,
		.n_gpus = 1,
		.tasks = w->tasks,
		.n_tasks = 1,
		.policy = sched_policy_find("fcfs"),
		.duration = 25 * MS,
		.on_segment = keep_segment,
		.userdata = w,
	};
	sched_params_default(&w->setup.params);
	w->setup.params.free_at_kernel_end = false;
}

static void sim_times_and_judges_by_hand(void **state) {
	struct sim_result r;
	struct world w;

	make_single(&w, 8 * MS);
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.count.released, 2);
	assert_int_equal(r.count.completed, 1);
	assert_int_equal(r.count.missed, 0); /* ends at its deadline: in time */
	assert_int_equal(r.count.open, 1);   /* cut, but its deadline is at 30 ms */
	assert_int_equal(r.tasks[0].response.max, 10 * MS);
	assert_int_equal(r.tasks[0].lateness_max, 0);
	assert_int_equal(r.active[0], 8 * MS + 4 * MS); /* without its copies */
	assert_int_equal(r.energy_total_pj, 25 * MS * 1000 + 12 * MS * 400);
	assert_int_equal(w.n_segments, 2);
	assert_int_equal(w.segments[1].end, 25 * MS);
	sim_result_deinit(&r);
	free_world(&w);

	make_single(&w, 8 * MS);
	w.setup.params.power = SCHED_POWER_HELD;
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.active[0], 10 * MS + 5 * MS);
	assert_int_equal(r.energy_total_pj, 25 * MS * 1000 + 15 * MS * 400);
	sim_result_deinit(&r);
	free_world(&w);

	make_single(&w, 8 * MS + 1);
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.count.missed, 1);
	assert_int_equal(r.tasks[0].lateness_max, 1);
	assert_int_equal(sim_miss_ppm(&r.count), 1000000);
	sim_result_deinit(&r);
	free_world(&w);
}

/* Behind a job of 40 ms the next one's deadline passes before it can start. */
static void sim_gives_up_late_jobs_when_asked(void **state) {
	struct sim_result r;
	struct world w;

	make_single(&w, 40 * MS);
	w.setup.duration = 100 * MS;
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.count.released, 5);
	assert_int_equal(r.count.missed, 5);
	assert_int_equal(r.grants, 3); /* at 0, 42 and 84 ms */
	assert_int_equal(w.segments[1].job, 1);
	sim_result_deinit(&r);
	w.setup.params.late = SCHED_LATE_DROP;
	w.n_segments = 0;
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.count.missed, 5);
	assert_int_equal(r.grants, 3);
	assert_int_equal(w.segments[1].job, 2); /* those of 20 and 60 ms were given up */
	assert_int_equal(w.segments[2].job, 4);
	sim_result_deinit(&r);
	free_world(&w);
}

static nsec_t count_calls(void *userdata) {
	struct world *w = userdata;

	return w->allocated += 5;
}

static void drop_segment(void *userdata, const struct sim_segment *segment) {
}

static void sim_measures_decisions_with_the_callers_clock(void **state) {
	struct sim_result r;
	struct world w;

	make_single(&w, 8 * MS);
	w.setup.clock = count_calls;
	w.setup.on_segment = drop_segment;
	assert_int_equal(sim_run(&w.setup, &r), 0);
	assert_int_equal(r.decisions, 3); /* two releases, one end */
	assert_int_equal(r.cost.total, 15);
	assert_int_equal(r.cost.p50, 5);
	assert_int_equal(r.cost.p99, 5);
	assert_int_equal(r.cost.max, 5);
	sim_result_deinit(&r);
}

static void sim_draws_times_within_the_profile(void **state) {
	struct sim_result a, b;
	struct world w;

	make_single(&w, 8 * MS);
	for (unsigned m = 1; m <= 4; m++) {
		w.profiles[0][0].exec_best[m] /= 4;
	}
	w.setup.duration = 10000 * MS;
	w.setup.exec = SIM_EXEC_DRAWN;
	assert_int_equal(sim_run(&w.setup, &a), 0);
	assert_in_range(a.tasks[0].response.min, 4 * MS, 4 * MS + MS / 10);
	assert_in_range(a.tasks[0].response.max, 10 * MS - MS / 10, 10 * MS);
	assert_in_range(a.tasks[0].response.mean, 7 * MS - MS / 2, 7 * MS + MS / 2);
	w.setup.seed = 1;
	assert_int_equal(sim_run(&w.setup, &b), 0);
	assert_int_not_equal(a.energy_total_pj, b.energy_total_pj);
	sim_result_deinit(&a);
	sim_result_deinit(&b);
	free_world(&w);
}

static void sim_refuses_what_cannot_be(void **state) {
	struct sim_result r = {.decisions = 77};
	struct world w;

	make_single(&w, MS);
	w.setup.duration = 0;
	assert_int_equal(sim_run(&w.setup, &r), -EINVAL);
	w.setup.duration = SIM_DURATION_MAX;
	w.tasks[0].period = 1000;
	w.tasks[0].deadline = 1000;
	assert_int_equal(sim_run(&w.setup, &r), -E2BIG);
	w.tasks[0].deadline = 2000;
	w.setup.duration = 25 * MS;
	assert_int_equal(sim_run(&w.setup, &r), -EINVAL);
	w.tasks[0].deadline = 1000;
	w.setup.n_gpus = 0;
	assert_int_equal(sim_run(&w.setup, &r), -EINVAL);
	assert_int_equal(r.decisions, 77);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_keeps_the_rules),
		cmocka_unit_test(sim_conserves_work_where_the_policy_does),
		cmocka_unit_test(sim_does_not_care_where_a_gpu_stands),
		cmocka_unit_test(sim_times_and_judges_by_hand),
		cmocka_unit_test(sim_gives_up_late_jobs_when_asked),
		cmocka_unit_test(sim_measures_decisions_with_the_callers_clock),
		cmocka_unit_test(sim_draws_times_within_the_profile),
		cmocka_unit_test(sim_refuses_what_cannot_be),
	};

	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
