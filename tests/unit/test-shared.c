/*
 * test-shared.c: GPUs that programs share without asking: who gets which SMs when.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/steer/model-run.h"
#include "daemon/core/steer/share.h"
#include "daemon/sim/shared.h"

#define MS	 NSEC_PER_MSEC
#define US	 NSEC_PER_USEC
#define SMS	 8
#define TASKS	 4
#define SEGMENTS 64

/* An end of a kernel is rounded up to the next nanosecond. */
#define ROUNDING 8

struct world {
	struct sched_gpu_model gpu;
	struct profile_table profiles[TASKS];
	struct sched_task tasks[TASKS];
	struct sim_setup setup;
	struct sim_segment segments[SEGMENTS]; /* the first ones */
	size_t n_segments;
};

static void keep(void *userdata, const struct sim_segment *segment) {
	struct world *w = userdata;

	if (w->n_segments < SEGMENTS) {
		w->segments[w->n_segments] = *segment;
	}
	w->n_segments++;
}

static void start(struct world *w) {
	memset(w, 0, sizeof(*w));
	w->gpu = (struct sched_gpu_model){.power.n_sms = SMS, .limit = SMS, .step = 1};
	w->setup = (struct sim_setup){
		.arbiter = &sim_shared,
		.gpus = &w->gpu,
		.n_gpus = 1,
		.tasks = w->tasks,
		.duration = 100 * MS,
		.on_segment = keep,
		.userdata = w,
	};
}

/* One more task, whose kernels take @alone on all SMs and in proportion longer on fewer. */
static struct profile_table *add(struct world *w, nsec_t period, nsec_t deadline, nsec_t offset,
				 nsec_t alone) {
	struct profile_table *p = &w->profiles[w->setup.n_tasks];

	assert_int_equal(profile_table_linear(p, SMS, 0, 0, alone * SMS, 0), 0);
	w->tasks[w->setup.n_tasks++] = (struct sched_task){
		.period = period,
		.deadline = deadline,
		.first_release = offset,
		.fixed_gpu = -1,
		.profiles = {p},
	};
	return p;
}

static void run(struct world *w, struct sim_result *ret) {
	w->n_segments = 0;
	assert_int_equal(sim_run(&w->setup, ret), 0);
}

static void assert_near(nsec_t found, nsec_t expected) {
	assert_in_range(found, expected, expected + ROUNDING);
}

static void alone_a_job_takes_what_its_profile_says(void **state) {
	struct profile_table *p;
	struct sim_result result;
	struct world w;

	start(&w);
	p = add(&w, 0, 50 * MS, MS, 4 * MS);
	p->launches = 5;
	p->copy_in = 2 * MS;
	p->copy_out = MS;
	w.setup.overhead = 100 * US;
	run(&w, &result);
	assert_int_equal(result.count.completed, 1);
	assert_near(result.tasks[0].response.max, 7 * MS + 100 * US);
	assert_int_equal(result.tasks[0].home, 0);
	/* Its launches have all SMs, one after the other; copies have none. */
	assert_int_equal(w.n_segments, 5);
	assert_int_equal(w.segments[0].start, MS + 100 * US + 2 * MS);
	assert_int_equal(smset_count(&w.segments[0].sms), SMS);
	sim_result_deinit(&result);
}

static void who_comes_first_has_all_sms(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 0, 50 * MS, 0, 4 * MS);
	add(&w, 0, 50 * MS, MS, 4 * MS);
	run(&w, &result);
	assert_near(result.tasks[0].response.max, 4 * MS);
	assert_near(result.tasks[1].response.max, 7 * MS);
	sim_result_deinit(&result);
}

static void a_cap_leaves_room_for_others(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 0, 50 * MS, 0, 4 * MS);
	add(&w, 0, 50 * MS, MS, 4 * MS);
	w.setup.cap_percent = 50;
	run(&w, &result);
	/* Each on half of the SMs, at once. */
	assert_near(result.tasks[0].response.max, 8 * MS);
	assert_near(result.tasks[1].response.max, 8 * MS);
	assert_int_equal(smset_count(&w.segments[0].sms), SMS / 2);
	assert_true(smset_disjoint(&w.segments[0].sms, &w.segments[1].sms));
	sim_result_deinit(&result);
}

static void a_level_waits_for_a_block(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 0, 50 * MS, 0, 4 * MS)->block = 2 * MS;
	add(&w, 0, 10 * MS, MS, MS);
	w.setup.terms = SIM_TERMS_LEVELS;
	run(&w, &result);
	/* The block runs until 2, the urgent job until 3, the rest of the first one until 5. */
	assert_near(result.tasks[1].response.max, 2 * MS);
	assert_near(result.tasks[0].response.max, 5 * MS);
	sim_result_deinit(&result);
}

static void copies_of_one_direction_follow_each_other(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 0, 50 * MS, 0, MS)->copy_in = 5 * MS;
	add(&w, 0, 50 * MS, MS, MS)->copy_in = 2 * MS;
	run(&w, &result);
	assert_near(result.tasks[0].response.max, 6 * MS);
	assert_near(result.tasks[1].response.max, 7 * MS);
	sim_result_deinit(&result);
}

static void jobs_of_a_task_follow_each_other(void **state) {
	struct sim_result result;
	struct world w;

	for (unsigned sequential = 0; sequential < 2; sequential++) {
		start(&w);
		add(&w, 2 * MS, 2 * MS, 0, 3 * MS);
		w.setup.sequential = sequential;
		w.setup.duration = 12 * MS;
		run(&w, &result);
		assert_int_equal(result.count.released, 6);
		assert_int_equal(result.count.completed, 3);
		assert_int_equal(result.count.missed, 6);
		sim_result_deinit(&result);
	}
}

static void late_jobs_are_given_up_if_they_have_not_begun(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 2 * MS, 2 * MS, 0, 5 * MS);
	w.setup.params.late = SCHED_LATE_DROP;
	w.setup.duration = 12 * MS;
	run(&w, &result);
	/* Those of 0, 4 and 10 run: of the two that waited at 5, the one of 2 was given up at 4. */
	assert_int_equal(result.count.completed, 2);
	assert_int_equal(result.count.missed, 6);
	sim_result_deinit(&result);
}

static void steer_keeps_long_blocks_from_short_deadlines(void **state) {
	uint64_t missed[_SIM_TERMS_N];
	struct sim_result result;
	struct world w;

	for (unsigned terms = 0; terms < _SIM_TERMS_N; terms++) {
		start(&w);
		add(&w, 3 * MS, MS, 0, MS / 4)->block = MS / 100;
		add(&w, 20 * MS, 20 * MS, 0, 6 * MS)->block = 3 * MS;
		w.setup.terms = (enum sim_terms)terms;
		run(&w, &result);
		missed[terms] = result.count.missed;
		sim_result_deinit(&result);
	}
	assert_true(missed[SIM_TERMS_SAME] > 0);
	assert_true(missed[SIM_TERMS_LEVELS] > 0);
	assert_int_equal(missed[SIM_TERMS_PLANNED], 0);
}

static bool until_it_repeats(void *userdata, const struct sim_boundary *boundary) {
	return !boundary->repeats;
}

static void it_comes_back_to_an_earlier_state(void **state) {
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 4 * MS, 3 * MS, 0, MS);
	add(&w, 6 * MS, 6 * MS, MS, 2 * MS)->launches = 3;
	w.setup.duration = 10 * NSEC_PER_SEC;
	w.setup.boundary = MS;
	w.setup.hyperperiod = 12 * MS;
	w.setup.on_boundary = until_it_repeats;
	run(&w, &result);
	assert_true(result.end < NSEC_PER_SEC);
	sim_result_deinit(&result);

	/* Work that piles up never does. */
	w.profiles[0].exec[SMS] = 5 * MS;
	w.setup.duration = NSEC_PER_SEC;
	run(&w, &result);
	assert_int_equal(result.end, NSEC_PER_SEC);
	sim_result_deinit(&result);
}

static void too_many_tasks_are_refused(void **state) {
	static struct sched_task tasks[SIM_SHARED_TASKS_MAX + 1];
	struct sim_result result;
	struct world w;

	start(&w);
	add(&w, 4 * MS, 3 * MS, 0, MS);
	for (size_t i = 0; i <= SIM_SHARED_TASKS_MAX; i++) {
		tasks[i] = w.tasks[0];
	}
	w.setup.tasks = tasks;
	w.setup.n_tasks = SIM_SHARED_TASKS_MAX;
	run(&w, &result);
	sim_result_deinit(&result);
	w.setup.n_tasks++;
	assert_int_equal(sim_run(&w.setup, &result), -EUSERS);
	/* A task that can run nowhere; a setup that is out of range. */
	w.setup.n_tasks = 1;
	tasks[0].profiles[0] = NULL;
	assert_int_equal(sim_run(&w.setup, &result), -EINVAL);
	w.setup.tasks = w.tasks;
	w.setup.cap_percent = 101;
	assert_int_equal(sim_run(&w.setup, &result), -EINVAL);
}

#define SEEDS 20

/* The same tasks for the model, with other first releases each time. */
static double predict(const struct world *w, const struct model_task *tasks) {
	const struct model_wake wake = {w->setup.overhead, w->setup.overhead};
	const struct model_gpu gpu = {.sms = {SMS, 0}};
	struct model_place places[TASKS] = {{.regions = {true, false}},
					    {.regions = {true, false}},
					    {.regions = {true, false}},
					    {.regions = {true, false}}};
	struct model_result results[TASKS];
	double missed = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		model_run(&gpu, &wake, tasks, places, TASKS, w->setup.duration, seed, NULL,
			  results);
		for (unsigned i = 0; i < TASKS; i++) {
			missed += results[i].missed;
		}
	}
	return missed;
}

/* Both drive the same arbiters: whoever releases the jobs, about as many are late. */
static void it_agrees_with_the_model_that_plans(void **state) {
	struct model_task tasks[TASKS];
	double missed = 0, predicted;
	struct sim_result result;
	uint64_t random = 1;
	struct world w;

	start(&w);
	w.setup.overhead = 80 * US;
	w.setup.sequential = true;
	w.setup.duration = NSEC_PER_SEC;
	for (unsigned i = 0; i < TASKS; i++) {
		struct profile_table *p =
			add(&w, (3 + 2 * i) * MS, (2 + i) * MS, 0, (i + 1) * MS / 2);

		p->copy_in = (i + 1) * MS / 10;
		p->launches = i + 1;
		p->block = MS / 20;
		tasks[i] = (struct model_task){.period = w.tasks[i].period,
					       .deadline = w.tasks[i].deadline,
					       .copy_in = p->copy_in,
					       .launches = p->launches,
					       .block = p->block,
					       .gap = 2500,
					       .kernels = p->exec};
	}
	predicted = predict(&w, tasks);
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		for (unsigned i = 0; i < TASKS; i++) {
			w.tasks[i].first_release = sim_random(&random) % w.tasks[i].period;
		}
		run(&w, &result);
		missed += (double)result.count.missed;
		sim_result_deinit(&result);
	}
	print_message("late: %.0f by the model, %.0f simulated\n", predicted, missed);
	assert_true(predicted > 100);
	assert_true(missed > 0.9 * predicted && missed < 1.1 * predicted);
}

/* ---- terms that follow what is seen ---- */

#define LOOK	  (50 * MS)
#define LOOKS	  200
#define MOST_SEEN 100000

/* All that ran: what a task's jobs came to follows from their last segments. */
static struct sim_segment seen_segments[MOST_SEEN];
static size_t n_seen;

static void see(void *userdata, const struct sim_segment *segment) {
	(void)userdata;
	assert_true(n_seen < MOST_SEEN);
	seen_segments[n_seen++] = *segment;
}

/* The last segment of its job. The simulation's end cuts jobs off. */
static bool is_last(const struct world *w, size_t index) {
	const struct sim_segment *a = &seen_segments[index];

	for (size_t i = index + 1; i < n_seen; i++) {
		const struct sim_segment *b = &seen_segments[i];

		if (b->task == a->task) {
			return b->job != a->job;
		}
	}
	return a->end < w->setup.duration;
}

/* What sbeetd would have counted in the time of look @k, of tasks without copies. */
static void count_seen(const struct world *w, unsigned k, struct share_seen *ret) {
	memset(ret, 0, TASKS * sizeof(*ret));
	for (size_t i = 0; i < w->setup.n_tasks; i++) {
		ret[i].deadline = w->tasks[i].deadline;
	}
	for (size_t i = 0; i < n_seen; i++) {
		const struct sim_segment *s = &seen_segments[i];
		const struct sched_task *task = &w->tasks[s->task];
		nsec_t release = task->first_release + s->job * task->period;
		struct share_seen *seen = &ret[s->task];

		seen->busy |= s->start <= k * LOOK && s->end > k * LOOK;
		if (s->end > (k - 1) * LOOK && s->end <= k * LOOK && is_last(w, i)) {
			seen->jobs++;
			seen->launches += task->profiles[0]->launches;
			seen->response += s->end - release;
			seen->missed += task->deadline && s->end - release > task->deadline;
			if (s->end - release > seen->longest) {
				seen->longest = s->end - release;
			}
		}
	}
}

/* Between look @k and the next one all ran on the SMs of these terms. */
static void expect_places(unsigned k, const struct terms *terms) {
	for (size_t i = 0; i < n_seen; i++) {
		const struct sim_segment *s = &seen_segments[i];
		const struct terms *t = &terms[s->task];
		struct smset all = smset_range(0, SMS), part = smset_range(t->first, t->n);

		if (s->start < (k + 1) * LOOK && s->end > k * LOOK) {
			assert_true(smset_within(&s->sms, t->n > 0 ? &part : &all));
		}
	}
}

/* Runs the world, and asks the policy's own function what follows from what was seen: that is where
 * everybody was. Return: what it came to. */
static struct share follow_share(struct world *w) {
	struct plan_gpu cut = {.sms = SMS, .group = 1};
	struct plan_task unknown[TASKS] = {{.known = false}};
	nsec_t deadlines[TASKS] = {0};
	struct terms terms[TASKS];
	struct sim_result result;
	struct share share;
	unsigned n = (unsigned)w->setup.n_tasks;

	n_seen = 0;
	w->setup.terms = SIM_TERMS_SHARED;
	w->setup.duration = LOOKS * LOOK;
	w->setup.on_segment = see;
	assert_int_equal(sim_run(&w->setup, &result), 0);
	sim_result_deinit(&result);
	for (unsigned i = 0; i < n; i++) {
		deadlines[i] = unknown[i].model.deadline = w->tasks[i].deadline;
		unknown[i].model.period = w->tasks[i].period;
	}
	cut.gates = w->setup.params.yield;
	cut.guards = w->setup.params.guard;
	share_start(&share, n, &cut);
	for (unsigned k = 0; k < LOOKS; k++) {
		struct share_seen seen[TASKS];

		count_seen(w, k, seen);
		if (k > 0) {
			share_look(&share, seen, LOOK);
		}
		plan_rule(&cut, unknown, n, terms);
		share_apply(&share, deadlines, cut.group, terms);
		expect_places(k, terms);
	}
	return share;
}

/* How many SMs the task held at most. */
static unsigned most_sms(size_t task) {
	unsigned most = 0;

	for (size_t i = 0; i < n_seen; i++) {
		unsigned n = smset_count(&seen_segments[i].sms);

		most = seen_segments[i].task == task && n > most ? n : most;
	}
	return most;
}

/* Of 8 SMs the rule gives 4 to a program without a deadline. One of long kernels gets what the
 * deadline leaves. */
static void long_kernels_get_what_deadlines_leave(void **state) {
	struct share share;
	struct world w;

	start(&w);
	add(&w, 5 * MS, 4 * MS, 0, MS / 4)->block = MS / 20;
	add(&w, 20 * MS, 0, 0, 15 * MS)->block = MS;
	share = follow_share(&w);
	assert_true(share.place.confined);
	assert_true(share.place.lower < SMS / 2);
	assert_int_equal(most_sms(1), SMS - share.place.lower);
}

/* One of short kernels runs everywhere, at a lower level. */
static void short_kernels_run_everywhere(void **state) {
	struct share share;
	struct world w;

	start(&w);
	add(&w, 5 * MS, 4 * MS, 0, MS / 4)->block = MS / 20;
	add(&w, 10 * MS, 0, 0, 2 * MS)->launches = 30;
	share = follow_share(&w);
	assert_true(share.place.free[1]);
	assert_int_equal(most_sms(1), SMS);
}

/* Where programs may yield one of long kernels runs everywhere too, but for the time of jobs. */
static void others_yield_where_they_may(void **state) {
	struct share share;
	struct world w;

	start(&w);
	w.setup.params.yield = true;
	add(&w, 5 * MS, 4 * MS, 0, MS / 4)->block = MS / 20;
	add(&w, 20 * MS, 0, 0, 15 * MS)->block = MS / 2;
	share = follow_share(&w);
	assert_true(share.place.yield);
	assert_int_equal(most_sms(1), SMS);
}

/* Where nothing is left, what was tried is taken back: others have no more than by the rule. */
static void tight_deadlines_leave_nothing(void **state) {
	struct share share;
	struct world w;

	start(&w);
	add(&w, 5 * MS, 4 * MS, 0, 2 * MS)->block = MS / 20;
	add(&w, 20 * MS, 0, 0, 15 * MS)->block = MS;
	share = follow_share(&w);
	assert_int_equal(share.place.lower, SMS / 2);
	assert_int_equal(most_sms(1), SMS / 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_a_job_takes_what_its_profile_says),
		cmocka_unit_test(who_comes_first_has_all_sms),
		cmocka_unit_test(a_cap_leaves_room_for_others),
		cmocka_unit_test(a_level_waits_for_a_block),
		cmocka_unit_test(copies_of_one_direction_follow_each_other),
		cmocka_unit_test(jobs_of_a_task_follow_each_other),
		cmocka_unit_test(late_jobs_are_given_up_if_they_have_not_begun),
		cmocka_unit_test(steer_keeps_long_blocks_from_short_deadlines),
		cmocka_unit_test(it_comes_back_to_an_earlier_state),
		cmocka_unit_test(too_many_tasks_are_refused),
		cmocka_unit_test(it_agrees_with_the_model_that_plans),
		cmocka_unit_test(long_kernels_get_what_deadlines_leave),
		cmocka_unit_test(short_kernels_run_everywhere),
		cmocka_unit_test(others_yield_where_they_may),
		cmocka_unit_test(tight_deadlines_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
