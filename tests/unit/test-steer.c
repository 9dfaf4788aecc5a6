/*
 * test-steer.c: what the model of a shared GPU predicts, and what is planned by it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/profile.h"
#include "daemon/core/steer/tune.h"

#define SMS    132
#define GROUP  8
#define MS     NSEC_PER_MSEC
#define WINDOW (2 * NSEC_PER_SEC)

static const struct plan_gpu h200 = {.sms = SMS, .group = GROUP};

/* Kernels that take @whole on all SMs, and in proportion longer on fewer. */
static const nsec_t *linear(nsec_t whole) {
	static nsec_t tables[8][SMS + 1];
	static unsigned n;
	nsec_t *t = tables[n++ % 8];

	for (unsigned m = 1; m <= SMS; m++) {
		t[m] = whole * SMS / m;
	}
	return t;
}

static struct plan_task task(nsec_t period, nsec_t deadline, unsigned launches, nsec_t block,
			     nsec_t kernels) {
	return (struct plan_task){
		.known = true,
		.model = {.period = period,
			  .deadline = deadline,
			  .copy_in = 100 * NSEC_PER_USEC,
			  .copy_out = 50 * NSEC_PER_USEC,
			  .launches = launches,
			  .block = block,
			  .kernels = linear(kernels)},
	};
}

static bool is_upper(const struct terms *t) {
	return t->n > 0 && t->first > 0;
}

static void one_task_has_all(void **state) {
	struct plan_task one = task(10 * MS, 5 * MS, 4, MS / 10, MS);
	struct plan plan;

	(void)state;
	plan_make(&h200, &one, 1, PLAN_WHOLE, NULL, &plan);
	assert_true(plan.terms[0].steered);
	assert_int_equal(plan.terms[0].n, 0);
	assert_int_equal(plan.terms[0].level, 0);
	assert_int_equal(plan.terms[0].copies, TERMS_COPIES_WHOLE);
}

static void deadlines_are_kept_from_the_rest_without_a_profile(void **state) {
	struct plan_task tasks[2] = {{.model = {.period = 33 * MS, .deadline = 12 * MS}},
				     {.known = false}};
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_false(plan.is_predicted);
	assert_int_equal(plan.terms[0].n, 0);
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.terms[1].first + plan.terms[1].n, terms_groups(SMS, GROUP));
	/* Nobody has a deadline: nobody is kept from anything. */
	tasks[0].model.deadline = 0;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_int_equal(plan.terms[0].n + plan.terms[1].n, 0);
}

static void work_that_is_not_known_keeps_out(void **state) {
	struct plan_task tasks[2] = {task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
				     {.known = false}};
	struct terms rule[2];
	struct plan plan;

	(void)state;
	plan_rule(&h200, tasks, 2, rule);
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_true(plan.is_predicted);
	assert_true(is_upper(&rule[1]));
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.predicted[0].missed, 0);
	assert_int_equal(plan.tail[0], MS / 3 + 50 * NSEC_PER_USEC + 20 * NSEC_PER_USEC);
	assert_int_equal(plan.tail[1], 0);
	/* It always has work. */
	assert_true(plan.predicted[1].done > 5);
}

static void who_is_late_anyway_holds_nobody_up(void **state) {
	struct plan_task tasks[2] = {
		task(2 * MS, MS, 4, 20 * NSEC_PER_USEC, MS), /* 1.15 ms alone, and the wake-up */
		task(37 * MS / 10, 3 * MS / 2, 4, 20 * NSEC_PER_USEC, MS / 4),
	};
	struct model_place places[2] = {{.regions = {true, true}, .copies = TERMS_COPIES_HELD},
					{.regions = {true, true}, .copies = TERMS_COPIES_HELD}};
	const struct model_wake wake = {60000, 110000};
	const struct model_gpu gpu = {.sms = {56, 76}, .piece = 80000};
	struct model_result first[2], last[2];
	struct plan plan;

	(void)state;
	tasks[0].model.copy_in = tasks[1].model.copy_in = 400 * NSEC_PER_USEC;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_true(plan.hopeless[0]);
	assert_false(plan.hopeless[1]);
	model_run(&gpu, &wake, (struct model_task[]){tasks[0].model, tasks[1].model}, places, 2,
		  NSEC_PER_SEC, 1, NULL, first);
	places[0].last = true;
	model_run(&gpu, &wake, (struct model_task[]){tasks[0].model, tasks[1].model}, places, 2,
		  NSEC_PER_SEC, 1, NULL, last);
	assert_true(last[1].response < first[1].response);
}

static void long_blocks_are_kept_out(void **state) {
	struct plan_task tasks[2] = {
		task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
		task(20 * MS, 20 * MS, 2, MS, 6 * MS),
	};
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_true(plan.is_predicted);
	assert_true(plan.terms[1].n > 0);
	/* Its kernels take longer on fewer SMs. */
	assert_true(plan.tail[1] > 6 * MS + 70 * NSEC_PER_USEC);
	assert_int_equal(plan.predicted[0].missed + plan.predicted[1].missed, 0);
	/* Not so where both may go everywhere. */
	plan.terms[0].n = plan.terms[1].n = 0;
	assert_true(plan_predict(&h200, tasks, plan.terms, 2, plan.predicted));
	assert_true(plan.predicted[0].missed > 0);
}

static void a_gpu_of_one_group_is_not_cut(void **state) {
	const struct plan_gpu small = {.sms = 4, .group = 4};
	struct plan_task tasks[2] = {task(3 * MS, MS, 6, 100, MS / 300),
				     task(20 * MS, 0, 2, MS, MS / 6)};
	struct plan plan;

	(void)state;
	plan_make(&small, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_int_equal(plan.terms[0].n + plan.terms[1].n, 0);
}

/* For the case that the prediction is wrong. */
static void a_plan_knows_other_ways(void **state) {
	struct plan_task tasks[2] = {
		task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
		task(20 * MS, 20 * MS, 2, MS, 6 * MS),
	};
	unsigned n_everywhere = 0;
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_in_range(plan.n_others, 2, PLAN_OTHERS_MAX);
	for (unsigned i = 0; i < plan.n_others; i++) {
		const struct plan_way *way = &plan.others[i];
		struct model_result r[MODEL_TASKS_MAX];
		bool same = true, everywhere = true;

		for (unsigned k = 0; k < 2; k++) {
			same &= terms_equal(&way->terms[k], &plan.terms[k]);
			everywhere &= way->terms[k].n == 0 && way->terms[k].level == 0 &&
				      way->terms[k].copies == TERMS_COPIES_WHOLE;
			assert_true(way->tail[k] > 0);
		}
		assert_false(same);
		n_everywhere += everywhere;
		assert_true(plan_predict(&h200, tasks, way->terms, 2, r));
		assert_int_equal(way->predicted[0].missed, r[0].missed);
	}
	assert_int_equal(n_everywhere, 1);
}

/* Frames of milliseconds beside works of long blocks that come seldom: a part of the GPU that is
 * too small for these would serve most jobs best. */
static void a_task_of_few_jobs_is_not_given_up(void **state) {
	const nsec_t block = MS / 6;
	struct plan_task tasks[] = {
		task(4484000, 2242000, 101, 2000, 750000),
		task(167 * MS, 83 * MS, 24, block, 16 * MS),
		task(4298000, 2148000, 101, 2000, 750000),
		task(168 * MS, 84 * MS, 24, block, 16 * MS),
		task(42 * MS, 21 * MS, 8, block, 5300000),
	};
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 5, PLAN_WHOLE, NULL, &plan);
	for (unsigned i = 1; i < 5; i += i == 1 ? 2 : 1) {
		assert_true(plan.predicted[i].missed * 4 < plan.predicted[i].released);
	}
}

/* Six works of an evaluation, none of which is predicted to be late: whoever copies whole saves
 * itself microseconds of a deadline of milliseconds, at the cost of those with shorter ones. */
static void mean_responses_let_nobody_copy_first(void **state) {
	const struct {
		nsec_t period, deadline, in, out, kernels;
		unsigned launches;
	} works_of_set[] = {
		{3077000, 1538000, 301263, 13028, 134207, 4},
		{4934000, 2467000, 593093, 312930, 323225, 20},
		{24570000, 12285000, 593093, 312930, 323225, 20},
		{41974000, 20986000, 195981, 92032, 2055688, 400},
		{2283000, 1141000, 58138, 48151, 247868, 6},
		{46619000, 23309000, 168150, 97284, 838841, 3},
	};
	struct plan_task tasks[6];
	struct plan plan;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		tasks[i] = task(works_of_set[i].period, works_of_set[i].deadline,
				works_of_set[i].launches, MS / 100, works_of_set[i].kernels);
		tasks[i].model.copy_in = works_of_set[i].in;
		tasks[i].model.copy_out = works_of_set[i].out;
		tasks[i].model.gap = 2500;
	}
	plan_make(&h200, tasks, 6, PLAN_QUICK, NULL, &plan);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(plan.predicted[i].missed, 0);
		assert_int_equal(plan.terms[i].copies, TERMS_COPIES_HELD);
	}
}

static void who_stops_it_gets_the_rule(void **state) {
	struct plan_task tasks[3] = {
		task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
		task(20 * MS, 20 * MS, 2, MS, 6 * MS),
		task(9 * MS, 4 * MS, 2, MS / 100, MS),
	};
	const _Atomic bool stop = true;
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 3, PLAN_WHOLE, &stop, &plan);
	assert_true(plan.n_tried <= 3);
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.terms[2].n, 0);
}

/* ---- the model, one job of each task ---- */

#define PAIR 2

static const struct model_gpu pair_gpu = {.sms = {66, 66}, .piece = MS / 10, .back = MS / 50};

/* The first job begins at 0, the second at @later. @ret: when each ends. */
static void run_pair(const struct model_task *tasks, enum terms_copies copies, nsec_t later,
		     nsec_t *ret) {
	struct model_place places[PAIR] = {{.regions = {true, false}, .copies = copies},
					   {.regions = {false, true}, .copies = copies}};
	unsigned begun = 1, ended = 0;
	struct model m;

	model_init(&m, &pair_gpu, tasks, places, PAIR);
	model_begin(&m, 0, 0, 0, 0, 1);
	for (nsec_t now = 0; ended < PAIR; now = model_next(&m)) {
		uint32_t bits;

		if (begun == 1 && now >= later) {
			now = later;
			model_begin(&m, 1, now, now, 0, 1);
			begun++;
		}
		bits = model_advance(&m, now);
		for (unsigned i = 0; i < PAIR; i++) {
			if (bits & 1u << i) {
				ret[i] = now;
				ended++;
			}
		}
	}
}

static struct model_task copies(nsec_t deadline, nsec_t in, nsec_t kernels, nsec_t out) {
	struct plan_task t = task(50 * MS, deadline, 1, MS, kernels / 2);

	t.model.copy_in = in;
	t.model.copy_out = out;
	return t.model;
}

static void a_return_waits_for_copies_of_others(void **state) {
	/* Both copy back: from 2 to 3, and from 3 to 7. */
	struct model_task tasks[PAIR] = {copies(9 * MS, MS, MS, MS), copies(9 * MS, 0, 2 * MS, 0)};
	nsec_t alone[PAIR], ends[PAIR];

	(void)state;
	run_pair(tasks, TERMS_COPIES_WHOLE, MS / 4, alone);
	tasks[1].copy_out = 4 * MS;
	run_pair(tasks, TERMS_COPIES_WHOLE, MS / 4, ends);
	assert_true(alone[0] > 3 * MS && alone[0] < 3 * MS + MS / 10);
	assert_true(ends[0] > 7 * MS && ends[0] < 7 * MS + MS / 10);
	/* They are not held. */
	run_pair(tasks, TERMS_COPIES_HELD, MS / 4, ends);
	assert_true(ends[0] > 7 * MS && ends[0] < 7 * MS + MS / 10);
}

static void who_has_much_to_do_after_its_copy_copies_first(void **state) {
	/* The second one is due sooner, but the first one would be late if it let it go first. */
	const struct model_task tasks[PAIR] = {copies(12 * MS, 4 * MS, 7 * MS, 0),
					       copies(11 * MS, 4 * MS, MS, 0)};
	nsec_t ends[PAIR];

	(void)state;
	run_pair(tasks, TERMS_COPIES_HELD, MS / 20, ends);
	assert_true(ends[0] < 12 * MS);
	assert_true(ends[1] < 11 * MS);
}

/* Both copy at once, and the second one is due first. */
static void copies_that_go_first_stay_whole(void **state) {
	const struct model_task tasks[PAIR] = {copies(50 * MS, 8 * MS, MS, 0),
					       copies(20 * MS, 4 * MS, MS, 0)};
	nsec_t held[PAIR], first[PAIR];

	(void)state;
	run_pair(tasks, TERMS_COPIES_HELD, MS / 20, held);
	run_pair(tasks, TERMS_COPIES_FIRST, MS / 20, first);
	/* It waits for a piece, or for all of the other copy. */
	assert_true(held[1] < 5 * MS + MS / 10 + 2 * pair_gpu.piece);
	assert_true(first[1] > 13 * MS && first[1] < 13 * MS + MS / 10);
}

static void a_run_ends_when_enough_are_late(void **state) {
	const struct model_wake wake = {MS / 10, MS / 10};
	const struct model_task tasks[PAIR] = {copies(MS / 2, MS / 10, MS, MS / 10),
					       copies(MS / 2, MS / 10, MS, MS / 10)};
	const struct model_place places[PAIR] = {{.regions = {true, true}},
						 {.regions = {true, true}}};
	struct model_limit limit = {.events = 1000000, .missed = 5};
	struct model_result whole[PAIR], part[PAIR];
	nsec_t time;

	(void)state;
	model_run(&pair_gpu, &wake, tasks, places, PAIR, NSEC_PER_SEC, 1, NULL, whole);
	time = model_run(&pair_gpu, &wake, tasks, places, PAIR, NSEC_PER_SEC, 1, &limit, part);
	assert_true(whole[0].missed + whole[1].missed > 30);
	assert_in_range(part[0].missed + part[1].missed, 5, 6);
	assert_true(time < NSEC_PER_SEC / 4);
	assert_true(limit.events > 0);
}

/* ---- tuning, on a GPU that is a model itself, but whose first task is slower than its profile
 * ---- */

static double play(const struct plan_task *truth, const struct terms *terms, unsigned n,
		   struct tune_seen *ret) {
	struct model_result r[MODEL_TASKS_MAX];
	double misses = 0;

	assert_true(plan_predict(&h200, truth, terms, n, r));
	for (unsigned i = 0; i < n; i++) {
		ret[i] = (struct tune_seen){r[i].done, r[i].missed, r[i].response, 0};
		misses += r[i].missed;
	}
	return misses;
}

/* Jobs of nothing, as often as can be: to look at a second of them would take minutes. */
static void a_plan_for_tiny_jobs_ends(void **state) {
	struct plan_task tasks[MODEL_TASKS_MAX];
	struct plan plan;

	(void)state;
	for (unsigned i = 0; i < MODEL_TASKS_MAX; i++) {
		tasks[i] = task(1, 1, 1, 0, 1);
		tasks[i].model.copy_in = tasks[i].model.copy_out = 0;
	}
	plan_make(&h200, tasks, 2, PLAN_WHOLE, NULL, &plan);
	assert_true(plan.predicted[0].done > 1000);
	assert_true(plan.predicted[0].released > plan.predicted[0].done);
	assert_int_equal(plan.predicted[0].released, plan.predicted[0].missed);
	plan_make(&h200, tasks, MODEL_TASKS_MAX, PLAN_QUICK, NULL, &plan);
	assert_true(plan.is_predicted);
}

/* What is tuned, and a GPU that does what `does` says. */
struct world {
	struct tune tune;
	unsigned n;
	/* Of each task's jobs under @terms in @time. */
	void (*does)(const struct world *w, const struct terms *terms, nsec_t time,
		     struct tune_seen *ret);
	const struct plan_task *known, *truth;
	nsec_t time, since; /* now; the terms hold */
	unsigned n_tries, n_plans;
};

static void make_plan(struct world *w) {
	static nsec_t times[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
	struct plan_task slowed[MODEL_TASKS_MAX];
	struct plan plan;

	memcpy(slowed, w->known, w->n * sizeof(*slowed));
	tune_apply(&w->tune, slowed, SMS, times);
	plan_make(&h200, slowed, w->n, PLAN_WHOLE, NULL, &plan);
	w->n_plans++;
	if (tune_plan(&w->tune, &plan)) {
		w->since = w->time;
	}
}

static enum tune_action look(struct world *w) {
	struct tune_seen seen[MODEL_TASKS_MAX];
	enum tune_action action;
	bool ask;

	w->time += tune_step(&w->tune);
	w->does(w, tune_way(&w->tune)->terms, w->time - w->since, seen);
	action = tune_judge(&w->tune, seen, w->time - w->since, &ask);
	if (action == TUNE_TRY || action == TUNE_BACK) {
		w->since = w->time;
	}
	w->n_tries += action == TUNE_TRY;
	if (ask) {
		make_plan(w);
	}
	return action;
}

static void look_until_kept(struct world *w) {
	for (unsigned i = 0; i < 10000; i++) {
		if (look(w) == TUNE_KEEP) {
			return;
		}
	}
	fail_msg("it never ends");
}

/* A GPU that is a model itself, of other tasks than those that are known. */
static void does_as_the_model(const struct world *w, const struct terms *terms, nsec_t time,
			      struct tune_seen *ret) {
	static struct terms of[MODEL_TASKS_MAX];
	static struct model_result r[MODEL_TASKS_MAX];

	if (time <= tune_step(&w->tune) || memcmp(of, terms, sizeof(*of) * w->n) != 0) {
		memcpy(of, terms, sizeof(*of) * w->n);
		assert_true(plan_predict(&h200, w->truth, terms, w->n, r));
	}
	for (unsigned i = 0; i < w->n; i++) {
		nsec_t jobs = time / w->truth[i].model.period;

		ret[i] = (struct tune_seen){jobs, jobs * r[i].missed / r[i].released,
					    jobs * (r[i].response / r[i].done), 0};
	}
}

static void what_is_slower_than_known_is_planned_anew(void **state) {
	struct plan_task tasks[3] = {
		task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 4),
		task(9 * MS, 4 * MS, 2, MS / 100, 2 * MS),
		task(20 * MS, 20 * MS, 2, MS, 6 * MS),
	};
	struct plan_task truth[3];
	struct world w = {.n = 3, .does = does_as_the_model, .known = tasks, .truth = truth};
	struct tune_seen seen[3];
	double first, last;

	(void)state;
	memcpy(truth, tasks, sizeof(tasks));
	truth[0].model.kernels = linear(MS / 2);
	tune_start(&w.tune, 3, WINDOW);
	make_plan(&w);
	first = play(truth, tune_way(&w.tune)->terms, 3, seen);
	look_until_kept(&w);
	last = play(truth, tune_way(&w.tune)->terms, 3, seen);
	print_message("late: %.0f by the first plan, %.0f at last\n", first, last);
	assert_true(first > 0);
	assert_true(last < first);
	assert_true(w.n_plans > 1);
	assert_true(w.tune.slow[0] > 1.2);
	/* It is left alone now. */
	assert_int_equal(look(&w), TUNE_KEEP);
}

static void what_is_faster_than_known_is_planned_anew(void **state) {
	struct plan_task tasks[3] = {
		task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 2),
		task(9 * MS, 4 * MS, 2, MS / 100, 3 * MS),
		task(20 * MS, 20 * MS, 2, MS, 8 * MS),
	};
	struct plan_task truth[3];
	struct world w = {.n = 3, .does = does_as_the_model, .known = tasks, .truth = truth};
	struct tune_seen seen[3];
	double first, last;

	(void)state;
	memcpy(truth, tasks, sizeof(tasks));
	truth[0].model.kernels = linear(MS / 4);
	tune_start(&w.tune, 3, WINDOW);
	make_plan(&w);
	first = play(truth, tune_way(&w.tune)->terms, 3, seen);
	look_until_kept(&w);
	last = play(truth, tune_way(&w.tune)->terms, 3, seen);
	print_message("late: %.0f by the first plan, %.0f at last\n", first, last);
	assert_true(first > 0);
	assert_true(last <= first);
	assert_true(w.n_plans > 1);
	assert_true(w.tune.slow[0] < 0.9);
}

static void what_is_as_predicted_is_kept(void **state) {
	struct plan_task tasks[2] = {task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 4),
				     task(20 * MS, 20 * MS, 2, MS, 6 * MS)};
	struct world w = {.n = 2, .does = does_as_the_model, .known = tasks, .truth = tasks};

	(void)state;
	tune_start(&w.tune, 2, WINDOW);
	make_plan(&w);
	look_until_kept(&w);
	assert_int_equal(w.n_plans, 1);
	assert_int_equal(w.n_tries, 0);
	assert_true(w.time <= WINDOW + 3 * tune_step(&w.tune));
}

/* ---- tuning, with plans that say nothing: the level of the terms says how many of a thousand
 * jobs, one each millisecond, are late ---- */

#define LEVELS 5

static const unsigned *late_jobs; /* by level */
static unsigned unreported_jobs;  /* of a thousand */

static void does_as_its_level_says(const struct world *w, const struct terms *terms, nsec_t time,
				   struct tune_seen *ret) {
	nsec_t jobs = time / MS;
	nsec_t known = jobs - jobs * unreported_jobs / 1000;

	(void)w;
	*ret = (struct tune_seen){known, known * late_jobs[terms[0].level] / 1000, known * MS,
				  jobs - known};
}

static void fake_way(struct plan_way *way, unsigned level) {
	*way = (struct plan_way){
		.terms = {{.steered = true, .level = level}},
		.predicted = {{.released = 1000, .done = 1000, .response = 1000 * MS}},
	};
}

/* A plan of level @first, and others of those below @n. */
static void fake_plan(struct plan *plan, unsigned first, unsigned n) {
	struct plan_way way;

	*plan = (struct plan){.is_predicted = true};
	fake_way(&way, first);
	memcpy(plan->terms, way.terms, sizeof(way.terms));
	memcpy(plan->predicted, way.predicted, sizeof(way.predicted));
	for (unsigned i = 0; i < n; i++) {
		if (i != first) {
			fake_way(&plan->others[plan->n_others++], i);
		}
	}
}

static struct world fake_world(const unsigned *by_level) {
	struct world w = {.n = 1, .does = does_as_its_level_says};
	struct plan plan;

	late_jobs = by_level;
	unreported_jobs = 0;
	tune_start(&w.tune, 1, WINDOW);
	fake_plan(&plan, 0, LEVELS);
	assert_true(tune_plan(&w.tune, &plan));
	return w;
}

static unsigned level(const struct world *w) {
	return tune_way(&w->tune)->terms[0].level;
}

static void the_way_with_fewest_late_jobs_stays(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){300, 310, 250, 100, 290});

	(void)state;
	while (look(&w) != TUNE_BACK) {
	}
	assert_int_equal(level(&w), 3);
	assert_int_equal(w.n_tries, LEVELS - 1);
	assert_true(w.time < 2 * WINDOW);
	look_until_kept(&w);
	assert_int_equal(level(&w), 3);
}

static void a_plan_better_than_all_others_comes_back(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 310, 250, 300, 290});

	(void)state;
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
	assert_int_equal(w.n_tries, LEVELS - 1);
}

static void nothing_is_tried_while_no_job_is_late(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){0, 0, 0, 0, 0});
	struct plan other;

	(void)state;
	look_until_kept(&w);
	assert_int_equal(w.n_tries, 0);
	/* A better plan would make nothing better. */
	fake_plan(&other, 4, 0);
	assert_false(tune_plan(&w.tune, &other));
	assert_int_equal(level(&w), 0);
	/* Once one is found the rest is not tried. */
	w = fake_world((const unsigned[LEVELS]){100, 0, 0, 0, 0});
	look_until_kept(&w);
	assert_int_equal(w.n_tries, 1);
	assert_int_equal(level(&w), 1);
}

static void what_is_clearly_worse_is_given_up_early(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){20, 900, 900, 900, 900});
	nsec_t began = 0;

	(void)state;
	while (look(&w) != TUNE_TRY) {
	}
	began = w.time;
	while (look(&w) == TUNE_WAIT) {
	}
	/* At the first look at what is counted: a try would last four times as long. */
	assert_int_equal(w.time - began, 2 * tune_step(&w.tune));
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

static void a_second_answer_replaces_a_first_one(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 100, 100, 100, 50});
	struct plan same, other;

	(void)state;
	fake_plan(&same, 0, LEVELS);
	fake_plan(&other, 4, 0);
	look(&w);
	assert_false(tune_plan(&w.tune, &same));
	assert_int_equal(level(&w), 0);
	assert_true(tune_plan(&w.tune, &other));
	assert_int_equal(level(&w), 4);
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 4);
}

/* Also while others are tried, and when nothing more was to be done. */
static void a_late_answer_is_tried(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){200, 100, 100, 100, 100});
	struct plan other;

	(void)state;
	late_jobs = (const unsigned[LEVELS + 1]){200, 100, 100, 100, 100, 10};
	fake_plan(&other, 5, 0);
	while (look(&w) != TUNE_TRY) {
	}
	assert_false(tune_plan(&w.tune, &other));
	look_until_kept(&w);
	assert_int_equal(level(&w), 5);
	w = fake_world(late_jobs);
	look_until_kept(&w);
	assert_true(tune_plan(&w.tune, &other));
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 5);
}

/* ---- a settled plan ---- */

#define HOUR (3600 * NSEC_PER_SEC)

static unsigned burst = 1; /* so many jobs are late together */

/* As its level says, but by chance. */
static void does_by_chance(const struct world *w, const struct terms *terms, nsec_t time,
			   struct tune_seen *ret) {
	static struct tune_seen seen;
	static nsec_t since, last;
	static uint64_t random = 7;

	if (w->since != since || time < last) {
		seen = (struct tune_seen){0};
		since = w->since;
	}
	last = time;
	while (seen.jobs < time / MS) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		seen.jobs += burst;
		seen.response += burst * MS;
		seen.missed += (random >> 33) % 1000 < late_jobs[terms[0].level] ? burst : 0;
	}
	*ret = seen;
}

static struct world chance_world(const unsigned *by_level, unsigned in_bursts_of) {
	struct world w = fake_world(by_level);

	w.does = does_by_chance;
	burst = in_bursts_of;
	look_until_kept(&w);
	return w;
}

static void look_for(struct world *w, nsec_t time) {
	for (nsec_t end = w->time + time; w->time < end;) {
		look(w);
	}
}

static void a_stationary_load_settles(void **state) {
	static const unsigned late[LEVELS] = {300, 310, 250, 200, 290};
	struct world w = chance_world(late, 1);
	unsigned n_tries = w.n_tries;

	(void)state;
	look_for(&w, 4 * HOUR);
	assert_int_equal(level(&w), 3);
	assert_int_equal(w.n_tries, n_tries);
	assert_int_equal(w.tune.reviews, 0);
	/* Where jobs are late in bursts, chance is larger than it looks; then the windows grow. */
	w = chance_world(late, 50);
	look_for(&w, 4 * HOUR);
	print_message("bursts: %u reviews, %u tries\n", w.tune.reviews, w.n_tries);
	n_tries = w.n_tries;
	look_for(&w, 8 * HOUR);
	assert_int_equal(w.n_tries, n_tries);
}

static void another_load_is_noticed(void **state) {
	struct world w = chance_world((const unsigned[LEVELS]){300, 310, 250, 200, 290}, 1);

	(void)state;
	assert_int_equal(level(&w), 3);
	/* Late more often. */
	late_jobs = (const unsigned[LEVELS]){100, 310, 250, 600, 290};
	look_for(&w, 20 * WINDOW);
	assert_int_equal(level(&w), 0);
	/* Less often, and another way never. */
	late_jobs = (const unsigned[LEVELS]){50, 310, 0, 600, 290};
	look_for(&w, 40 * WINDOW);
	assert_int_equal(level(&w), 2);
	/* No job was late, then many are. */
	late_jobs = (const unsigned[LEVELS]){300, 20, 400, 600, 290};
	look_for(&w, 80 * WINDOW);
	assert_int_equal(level(&w), 1);
}

static void a_moment_changes_nothing(void **state) {
	struct world w = chance_world((const unsigned[LEVELS]){300, 310, 250, 200, 290}, 1);
	const unsigned *before = late_jobs;
	unsigned n_tries = w.n_tries;

	(void)state;
	late_jobs = (const unsigned[LEVELS]){100, 310, 250, 900, 290};
	look_for(&w, WINDOW / 4);
	late_jobs = before;
	look_for(&w, HOUR);
	assert_int_equal(level(&w), 3);
	assert_int_equal(w.n_tries, n_tries);
}

/* Other ways are better half of the time: after some reviews it stays with one. */
static void a_load_that_swings_is_left_alone(void **state) {
	static const unsigned one[LEVELS] = {400, 310, 250, 100, 290};
	static const unsigned other[LEVELS] = {100, 310, 250, 400, 290};
	struct world w = chance_world(one, 1);
	unsigned n_tries;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		late_jobs = i % 2 ? one : other;
		look_for(&w, 7 * WINDOW);
	}
	n_tries = w.n_tries;
	print_message("swings: %u reviews, %u tries\n", w.tune.reviews, n_tries);
	for (unsigned i = 0; i < 1000; i++) {
		late_jobs = i % 2 ? one : other;
		look_for(&w, 7 * WINDOW);
	}
	assert_int_equal(w.n_tries, n_tries);
}

static nsec_t rate_changed;

/* From then on jobs come half as often. */
static void does_at_half_the_rate(const struct world *w, const struct terms *terms, nsec_t time,
				  struct tune_seen *ret) {
	nsec_t before = rate_changed > w->since ? rate_changed - w->since : 0;

	before = before < time ? before : time;

	does_as_its_level_says(w, terms, before + (time - before) / 2, ret);
}

static void another_rate_is_noticed(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){300, 310, 250, 200, 290});

	(void)state;
	look_until_kept(&w);
	look_for(&w, 8 * WINDOW);
	assert_int_equal(w.tune.reviews, 0);
	w.does = does_at_half_the_rate;
	rate_changed = w.time;
	look_for(&w, 20 * WINDOW);
	assert_int_equal(w.tune.reviews, 1);
	look_for(&w, HOUR);
	assert_int_equal(w.tune.reviews, 1);
}

/* One job each tenth of a second; the first ones of each way happen to be in time, and a try has
 * hardly more. */
static void does_little(const struct world *w, const struct terms *terms, nsec_t time,
			struct tune_seen *ret) {
	uint64_t jobs = time / (100 * MS);
	uint64_t late = jobs > 3 ? jobs - 3 : 0;

	(void)w;
	*ret = (struct tune_seen){jobs, late_jobs[terms[0].level] ? late : 0, jobs * MS, 0};
}

static void a_lost_task_stays_lost_in_short_tries(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){1, 1, 1, 1, 1});

	(void)state;
	w.does = does_little;
	while (!w.tune.lost[0]) {
		assert_int_equal(w.n_tries, 0);
		look(&w);
	}
	for (unsigned i = 0; i < 1000; i++) {
		look(&w);
		assert_true(w.tune.lost[0]);
	}
	assert_true(w.n_tries > 1);
	late_jobs = (const unsigned[LEVELS]){0, 0, 0, 0, 0};
	look_for(&w, HOUR);
	assert_false(w.tune.lost[0]);
}

static void few_jobs_say_nothing(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){500, 0, 0, 0, 0});
	const struct tune_seen seen = {15, 15, 15 * MS, 0};
	bool ask;

	(void)state;
	for (nsec_t time = 0; time < 10 * WINDOW; time += WINDOW / 3) {
		assert_int_equal(tune_judge(&w.tune, &seen, time, &ask), TUNE_WAIT);
	}
}

/* Many jobs that nobody told of: the others say how often jobs are late, but not how long they
 * take. */
static void a_hole_corrects_nothing(void **state) {
	static const unsigned late[LEVELS] = {200, 100, 0, 0, 0};
	struct world w = fake_world(late);
	uint64_t whole;

	(void)state;
	while (w.tune.ways[0].time == 0) {
		look(&w);
	}
	whole = w.tune.ways[0].missed;
	w = fake_world(late);
	unreported_jobs = 500;
	while (w.tune.ways[0].time == 0) {
		assert_int_equal(w.n_tries, 0);
		look(&w);
	}
	assert_in_range(w.tune.ways[0].missed, whole - 2, whole + 2);
	assert_int_equal(w.n_tries, 0);
	assert_int_equal(w.n_plans, 0);
	assert_true(w.tune.slow[0] == 1);
	/* A few don't matter. */
	w = fake_world(late);
	unreported_jobs = 5;
	look_until_kept(&w);
	assert_true(w.n_tries > 0);
}

static void other_knowledge_begins_anew(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){0, 100, 0, 0, 0});
	struct plan other;

	(void)state;
	fake_plan(&other, 1, 0);
	look_until_kept(&w);
	tune_again(&w.tune);
	assert_int_equal(level(&w), 0);
	assert_true(tune_plan(&w.tune, &other));
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

/* Whatever the tasks do, and whatever is planned for them. */
static void it_ends(void **state) {
	unsigned numbers[LEVELS + 1];
	uint64_t random = 1;

	(void)state;
	for (unsigned run = 0; run < 200; run++) {
		struct world w = fake_world(numbers);
		struct plan plan;
		unsigned n_kept = 0;

		for (unsigned i = 0; i < 100000 && n_kept < 10; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			numbers[random >> 33 & 3] = (unsigned)(random >> 40) % 1000;
			if (random >> 60 == 0) {
				fake_plan(&plan, (unsigned)(random >> 50) % (LEVELS + 1), 0);
				w.since = tune_plan(&w.tune, &plan) ? w.time : w.since;
			}
			n_kept += look(&w) == TUNE_KEEP;
		}
		assert_int_equal(n_kept, 10);
	}
}

/* ---- the model against an H200: tests/gpu/evaluation ---- */

static const struct {
	const char *name;
	unsigned launches, waves; /* of all SMs, of each launch */
} works[] = {
	{"vecadd", 20, 15},  {"stream", 400, 4},  {"matmul", 3, 4},  {"matmul-small", 6, 1},
	{"hotspot", 101, 4}, {"histogram", 4, 1}, {"compute", 8, 4}, {"compute-long", 24, 4},
};
#define N_WORKS (sizeof(works) / sizeof(works[0]))

static struct profile_table profiles[N_WORKS];

static size_t work_of(const char *name) {
	size_t i = 0;

	while (i < N_WORKS && strcmp(works[i].name, name) != 0) {
		i++;
	}
	assert_true(i < N_WORKS);
	return i;
}

static FILE *open_data(const char *name) {
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("SBEET_EVALUATION"), name);
	f = fopen(path, "re");
	assert_non_null(f);
	return f;
}

static int read_profiles(void **state) {
	uint64_t copy_in, best, worst, copy_out;
	FILE *f = open_data("measured.txt");
	char name[64];
	unsigned sms;

	(void)state;
	while (fscanf(f, "%63s %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %*f", name, &sms,
		      &copy_in, &best, &worst, &copy_out) == 6) {
		struct profile_table *p = &profiles[work_of(name)];

		if (p->n_sms == 0) {
			assert_int_equal(profile_table_init(p, SMS, copy_in, copy_out), 0);
		}
		p->copy_in = copy_in; /* on all SMs at last, as it was measured last */
		p->copy_out = copy_out;
		assert_int_equal(profile_table_set(p, sms, best, best, 1), 0);
	}
	fclose(f);
	for (size_t i = 0; i < N_WORKS; i++) {
		assert_int_equal(profile_table_finish(&profiles[i]), 0);
	}
	return 0;
}

struct cell {
	char column[32], set[32];
	struct plan_task tasks[8];
	struct terms terms[8];
	unsigned n, missed;
};

static bool read_line(FILE *f, struct cell *c, unsigned *missed) {
	char line[512], work[32], groups[32], copies[32];
	struct plan_task *t = &c->tasks[0];
	unsigned first, last;
	const struct profile_table *p;
	size_t w;

	do {
		if (!fgets(line, sizeof(line), f)) {
			return false;
		}
	} while (line[0] == '#');
	assert_int_equal(sscanf(line, "%31s %31s %31s %" SCNu64 " %" SCNu64 " %31s %31s %*u %u",
				c->column, c->set, work, &t->model.period, &t->model.deadline,
				groups, copies, missed),
			 8);
	w = work_of(work);
	p = &profiles[w];
	t->known = true;
	t->model.copy_in = p->copy_in;
	t->model.copy_out = p->copy_out;
	t->model.launches = works[w].launches;
	t->model.kernels = p->exec;
	t->model.block = p->exec[SMS] / works[w].launches / works[w].waves;
	t->model.gap = 2500;
	c->terms[0] = (struct terms){.steered = true};
	c->terms[0].copies = strcmp(copies, "held") == 0 ? TERMS_COPIES_HELD : TERMS_COPIES_WHOLE;
	if (sscanf(groups, "%u-%u", &first, &last) == 2) {
		/* The driver's cut in that run counted what is left over as group 16. */
		last = last == 16 ? terms_groups(SMS, GROUP) - 1 : last;
		c->terms[0].first = first;
		c->terms[0].n = last - first + 1;
		c->terms[0].group = GROUP;
	}
	return true;
}

/* Sums over the task sets of @column; those are whole lines of the file, one after the other. */
static void sum_column(const char *column, double *ret_predicted, double *ret_measured) {
	FILE *f = open_data("terms.txt");
	struct cell one, cell = {.n = 0};
	unsigned missed;
	bool more;

	*ret_predicted = *ret_measured = 0;
	do {
		more = read_line(f, &one, &missed);
		if (cell.n > 0 && (!more || strcmp(one.set, cell.set) != 0 ||
				   strcmp(one.column, cell.column) != 0)) {
			struct model_result r[MODEL_TASKS_MAX];
			double released = 0, late = 0;

			assert_true(plan_predict(&h200, cell.tasks, cell.terms, cell.n, r));
			for (unsigned i = 0; i < cell.n; i++) {
				released = (double)r[i].released;
				late += released > 0 ? r[i].missed / released * 2e9 /
							       (double)cell.tasks[i].model.period
						     : 0;
			}
			print_message("%s %s: predicted %.0f, measured %u\n", cell.column, cell.set,
				      late, cell.missed);
			*ret_predicted += late;
			*ret_measured += cell.missed;
			cell.n = cell.missed = 0;
		}
		if (more && strcmp(one.column, column) == 0) {
			strcpy(cell.column, one.column);
			strcpy(cell.set, one.set);
			cell.tasks[cell.n] = one.tasks[0];
			cell.terms[cell.n++] = one.terms[0];
			cell.missed += missed;
		}
	} while (more);
	fclose(f);
	assert_true(*ret_measured > 0);
}

/* Jobs that are late in 2 s, of all task sets, if every program has at most half of the SMs. */
static double predict_capped(void) {
	static const struct model_wake wake = {80 * NSEC_PER_USEC, 130 * NSEC_PER_USEC};
	const struct model_gpu gpu = {.sms = {SMS, 0}, .back = 20 * NSEC_PER_USEC};
	struct model_place places[MODEL_TASKS_MAX];
	struct model_result results[MODEL_TASKS_MAX];
	struct model_task tasks[8];
	FILE *f = open_data("terms.txt");
	struct cell one, cell = {.n = 0};
	unsigned missed, late = 0;
	bool more;

	for (unsigned i = 0; i < MODEL_TASKS_MAX; i++) {
		places[i] = (struct model_place){.regions = {true, false}, .most_sms = SMS / 2};
	}
	do {
		more = read_line(f, &one, &missed);
		if (cell.n > 0 && (!more || strcmp(one.set, cell.set) != 0)) {
			model_run(&gpu, &wake, tasks, places, cell.n, 2 * NSEC_PER_SEC, 1, NULL,
				  results);
			for (unsigned i = 0; i < cell.n; i++) {
				late += results[i].missed;
			}
			cell.n = 0;
		}
		if (more && strcmp(one.column, "mps") == 0) {
			strcpy(cell.set, one.set);
			tasks[cell.n++] = one.tasks[0].model;
		}
	} while (more);
	fclose(f);
	return late;
}

static void a_cap_is_near_what_was_measured(void **state) {
	double predicted = predict_capped(), measured = 0;
	FILE *f = open_data("capped.txt");
	char line[512];
	unsigned missed;

	(void)state;
	while (fgets(line, sizeof(line), f)) {
		if (line[0] != '#') {
			assert_int_equal(sscanf(line, "mps-50 %*s %u", &missed), 1);
			measured += missed;
		}
	}
	fclose(f);
	print_message("mps-50: %.0f predicted, %.0f measured\n", predicted, measured);
	assert_true(measured > 0);
	assert_true(predicted > measured * 2 / 3 && predicted < measured * 4 / 3);
}

static void predictions_are_near_what_was_measured(void **state) {
	static const char *const columns[] = {"mps", "own"};
	double predicted, measured;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		sum_column(columns[i], &predicted, &measured);
		print_message("%s: %.0f predicted, %.0f measured\n", columns[i], predicted,
			      measured);
		assert_true(predicted > measured * 2 / 3 && predicted < measured * 4 / 3);
	}
	/* Which of two ways is better is what plans need most. */
	sum_column("planh-held", &predicted, &measured);
	print_message("planh-held: %.0f predicted, %.0f measured\n", predicted, measured);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_task_has_all),
		cmocka_unit_test(deadlines_are_kept_from_the_rest_without_a_profile),
		cmocka_unit_test(work_that_is_not_known_keeps_out),
		cmocka_unit_test(who_is_late_anyway_holds_nobody_up),
		cmocka_unit_test(long_blocks_are_kept_out),
		cmocka_unit_test(a_gpu_of_one_group_is_not_cut),
		cmocka_unit_test(a_plan_knows_other_ways),
		cmocka_unit_test(a_task_of_few_jobs_is_not_given_up),
		cmocka_unit_test(mean_responses_let_nobody_copy_first),
		cmocka_unit_test(who_stops_it_gets_the_rule),
		cmocka_unit_test(a_plan_for_tiny_jobs_ends),
		cmocka_unit_test(a_return_waits_for_copies_of_others),
		cmocka_unit_test(who_has_much_to_do_after_its_copy_copies_first),
		cmocka_unit_test(copies_that_go_first_stay_whole),
		cmocka_unit_test(a_run_ends_when_enough_are_late),
		cmocka_unit_test(what_is_slower_than_known_is_planned_anew),
		cmocka_unit_test(what_is_as_predicted_is_kept),
		cmocka_unit_test(the_way_with_fewest_late_jobs_stays),
		cmocka_unit_test(a_plan_better_than_all_others_comes_back),
		cmocka_unit_test(nothing_is_tried_while_no_job_is_late),
		cmocka_unit_test(what_is_clearly_worse_is_given_up_early),
		cmocka_unit_test(a_second_answer_replaces_a_first_one),
		cmocka_unit_test(a_late_answer_is_tried),
		cmocka_unit_test(what_is_faster_than_known_is_planned_anew),
		cmocka_unit_test(a_stationary_load_settles),
		cmocka_unit_test(another_load_is_noticed),
		cmocka_unit_test(a_moment_changes_nothing),
		cmocka_unit_test(a_load_that_swings_is_left_alone),
		cmocka_unit_test(another_rate_is_noticed),
		cmocka_unit_test(a_lost_task_stays_lost_in_short_tries),
		cmocka_unit_test(few_jobs_say_nothing),
		cmocka_unit_test(a_hole_corrects_nothing),
		cmocka_unit_test(other_knowledge_begins_anew),
		cmocka_unit_test(it_ends),
		cmocka_unit_test_setup(predictions_are_near_what_was_measured, read_profiles),
		cmocka_unit_test(a_cap_is_near_what_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
