/*
 * test-steer.c: what the model of a shared GPU predicts, and what is planned by it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/core/steer/search.h"
#include "tests/unit/steer-tasks.h"

static bool is_upper(const struct terms *t) {
	return t->n > 0 && t->first > 0;
}

static void one_task_has_all(void **state) {
	struct plan_task one = task(10 * MS, 5 * MS, 4, MS / 10, MS);
	struct plan plan;

	(void)state;
	plan_make(&h200, &one, 1, PLAN_WHOLE, 0, NULL, &plan);
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
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_false(plan.is_predicted);
	assert_int_equal(plan.terms[0].n, 0);
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.terms[1].first + plan.terms[1].n, terms_groups(SMS, GROUP));
	/* Nobody has a deadline: nobody is kept from anything. */
	tasks[0].model.deadline = 0;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_int_equal(plan.terms[0].n + plan.terms[1].n, 0);
}

static void levels_go_by_deadline_without_a_profile(void **state) {
	struct plan_task tasks[3] = {{.model = {.period = 33 * MS, .deadline = 12 * MS}},
				     {.model = {.period = 5 * MS, .deadline = 3 * MS}},
				     {.model = {.period = 50 * MS, .deadline = 50 * MS}}};
	struct terms rule[3];

	(void)state;
	for (unsigned known = 0; known < 2; known++) {
		plan_rule(&h200, tasks, 3, rule);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(rule[i].n, 0);
			assert_int_equal(rule[i].copies, TERMS_COPIES_WHOLE);
			tasks[i] = task(tasks[i].model.period, tasks[i].model.deadline, 2, 10 * MS,
					MS);
		}
		assert_int_equal(rule[0].level, PROTO_TERMS_LEVEL_MAX - 1);
		assert_int_equal(rule[1].level, PROTO_TERMS_LEVEL_MAX);
		assert_int_equal(rule[2].level, PROTO_TERMS_LEVEL_MAX - 2);
	}
	/* Beside work that always runs, levels would wait for its blocks. */
	tasks[2].model.deadline = 0;
	plan_rule(&h200, tasks, 3, rule);
	assert_int_equal(rule[1].level, 0);
	assert_true(is_upper(&rule[2]));
}

/* Where one alone copies, nobody waits for the end of its copies. */
static void copies_are_whole_beside_work_that_makes_none(void **state) {
	struct plan_task tasks[2] = {{.model = {.period = 33 * MS, .deadline = 12 * MS}},
				     {.known = false}};
	struct terms rule[2];

	(void)state;
	plan_rule(&h200, tasks, 2, rule);
	assert_int_equal(rule[1].copies, TERMS_COPIES_HELD); /* nobody knows */
	tasks[0].copies_nothing = true;
	plan_rule(&h200, tasks, 2, rule);
	assert_int_equal(rule[0].copies, TERMS_COPIES_WHOLE);
	assert_int_equal(rule[1].copies, TERMS_COPIES_WHOLE);
	/* A profile knows better. */
	tasks[0] = task(33 * MS, 12 * MS, 2, MS, MS);
	tasks[0].copies_nothing = true;
	plan_rule(&h200, tasks, 2, rule);
	assert_int_equal(rule[1].copies, TERMS_COPIES_HELD);
}

static void work_that_is_not_known_keeps_out(void **state) {
	struct plan_task tasks[2] = {task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
				     {.known = false}};
	struct terms rule[2];
	struct plan plan;

	(void)state;
	plan_rule(&h200, tasks, 2, rule);
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_true(plan.is_predicted);
	assert_true(is_upper(&rule[1]));
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.predicted[0].missed, 0);
	/* A wake-up, a copy back, and that its program hears of it. */
	assert_int_equal(plan.tail[0], MS / 3 + (15 + 50 + 20) * NSEC_PER_USEC);
	assert_int_equal(plan.tail[1], 0);
	/* It always has work. */
	assert_true(plan.predicted[1].done > 5);
}

/* Deadlines first; but what they don't need is for others. */
static void others_get_what_deadlines_do_not_need(void **state) {
	struct plan_task tasks[3] = {task(33 * MS, 20 * MS, 20, 45 * NSEC_PER_USEC, MS),
				     task(50 * MS, 40 * MS, 20, 45 * NSEC_PER_USEC, MS),
				     {.known = false}};
	struct plan_gpu gated = h200;
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 3, PLAN_WHOLE, 0, NULL, &plan);
	assert_int_equal(plan.predicted[0].missed + plan.predicted[1].missed, 0);
	assert_true(plan.terms[2].n >= 10); /* of 15 groups */
	gated.gates = gated.guards = true;
	tasks[2] = task(0, 0, 10, MS, 10 * MS);
	plan_make(&gated, tasks, 3, PLAN_WHOLE, 0, NULL, &plan);
	assert_int_equal(plan.predicted[0].missed + plan.predicted[1].missed, 0);
	assert_true(plan.terms[2].n == 0 || plan.terms[2].n >= 10);
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
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
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
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
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

/* Most of the GPU is just enough for the one, and a corner of it is for the other. */
static void a_part_may_be_small(void **state) {
	struct plan_task tasks[2] = {
		task(2 * MS, MS / 2, 1, 10 * NSEC_PER_USEC, MS / 100),
		task(20 * MS, 25 * MS / 2, 2, 4 * MS, 10 * MS),
	};
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_int_equal(plan.predicted[0].missed + plan.predicted[1].missed, 0);
	assert_in_range(plan.terms[1].first, 1, 2);
	/* An eighth more of it is too much. */
	plan.terms[1].first += 2;
	plan.terms[1].n -= 2;
	plan.terms[0].n += 2;
	assert_true(plan_predict(&h200, tasks, plan.terms, 2, plan.predicted));
	assert_true(plan.predicted[1].missed > 0);
}

static void a_gpu_of_one_group_is_not_cut(void **state) {
	const struct plan_gpu small = {.sms = 4, .group = 4};
	struct plan_task tasks[2] = {task(3 * MS, MS, 6, 100, MS / 300),
				     task(20 * MS, 0, 2, MS, MS / 6)};
	struct plan plan;

	(void)state;
	plan_make(&small, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
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
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
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
		for (unsigned k = 0; everywhere && k < 2; k++) {
			assert_true(fabs(plan.alone[k] * r[k].released - r[k].missed) < 0.001);
		}
	}
	assert_int_equal(n_everywhere, 1);
	assert_true(plan.alone[0] > 0);
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
	plan_make(&h200, tasks, 5, PLAN_WHOLE, 0, NULL, &plan);
	for (unsigned i = 1; i < 5; i += i == 1 ? 2 : 1) {
		assert_true(plan.predicted[i].missed * 4 < plan.predicted[i].released);
	}
}

/* Frames of which none is late everywhere on the GPU, as long as kernels take no longer than
 * measured: some SMs of their own leave them room. */
static void a_plan_leaves_room_for_slower_kernels(void **state) {
	struct plan_task tasks[2] = {task(10 * MS, 2 * MS, 4, MS / 50, MS / 2),
				     task(50 * MS, 40 * MS, 12, 7 * MS / 10, 84 * MS / 10)};
	struct model_result as_measured[2], slower[2];
	nsec_t kernels[2][SMS + 1];
	struct plan plan;

	(void)state;
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_true(plan_predict(&h200, tasks, plan.terms, 2, as_measured));
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned m = 1; m <= SMS; m++) {
			kernels[i][m] = tasks[i].model.kernels[m] * 5 / 4;
		}
		tasks[i].model.kernels = kernels[i];
		tasks[i].model.block = tasks[i].model.block * 5 / 4;
	}
	assert_true(plan_predict(&h200, tasks, plan.terms, 2, slower));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(as_measured[i].missed, 0);
		assert_int_equal(slower[i].missed, 0);
	}
}

/* Four tasks, drawn at random, for which single changes end in plans with some late jobs. */
static void what_no_single_change_mends_several_do(void **state) {
	const nsec_t unit = MS / 20;
	struct plan_gpu gated = h200;
	struct plan_task tasks[] = {
		task(18 * MS, 9 * MS, 2, 54 * unit / 2, 54 * unit),
		task(10 * MS, 5 * MS, 11, 26 * unit / 11, 26 * unit),
		task(15 * MS, 15 * MS / 2, 2, 57 * unit / 4, 57 * unit),
		task(5 * MS, 5 * MS / 2, 19, 16 * unit / 57, 16 * unit),
	};
	struct plan plan;

	(void)state;
	tasks[0].model.copy_in = unit;
	tasks[1].model.copy_in = 6 * unit;
	tasks[2].model.copy_in = 28 * unit;
	tasks[3].model.copy_in = 8 * unit;
	gated.gates = gated.guards = true;
	plan_make(&gated, tasks, 4, PLAN_WHOLE, 0, NULL, &plan);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(plan.predicted[i].missed, 0);
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
	plan_make(&h200, tasks, 6, PLAN_QUICK, 0, NULL, &plan);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(plan.predicted[i].missed, 0);
		assert_int_equal(plan.terms[i].copies, TERMS_COPIES_HELD);
	}
}

static void short_launches_are_looked_at_together(void **state) {
	/* 5 us each, in which gaps are 2.5, and four of them in one. */
	struct plan_task many[2] = {task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, MS / 3),
				    task(7 * MS, 3 * MS, 401, MS / 1000, 2 * MS)};
	struct plan_task few[2] = {many[0], many[1]};
	struct plan of_many, of_few;

	(void)state;
	many[1].model.gap = 2500;
	few[1].model.launches = 101;
	few[1].model.gap = 10000;
	plan_make(&h200, many, 2, PLAN_QUICK, 0, NULL, &of_many);
	plan_make(&h200, few, 2, PLAN_QUICK, 0, NULL, &of_few);
	assert_int_equal(of_many.n_tried, of_few.n_tried);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(of_many.predicted[i].released, of_few.predicted[i].released);
		assert_in_range(of_many.predicted[i].response,
				of_few.predicted[i].response * 99 / 100,
				of_few.predicted[i].response * 101 / 100);
	}
}

/* Whether a plan has the small copy of a task made by a kernel beside two that hardly do anything
 * but copy back, for @takes each time. */
static bool is_back_by_kernel(nsec_t takes) {
	struct plan_task tasks[3] = {task(MS + MS / 9, 7 * MS / 10, 1, MS / 100, MS / 5),
				     task(MS / 4, 0, 1, MS / 100, MS / 100)};
	struct plan_gpu gated = h200;
	struct plan plan;

	gated.gates = gated.guards = true;
	tasks[0].model.copy_in = MS / 5;
	tasks[0].model.copy_out = MS / 100;
	tasks[1].model.copy_in = 0;
	tasks[1].model.copy_out = takes;
	tasks[2] = tasks[1];
	plan_make(&gated, tasks, 3, PLAN_QUICK, 0, NULL, &plan);
	assert_false(takes > SEARCH_BACK_MAX && plan.terms[1].back_by_kernel);
	return plan.terms[0].back_by_kernel;
}

static void a_kernel_copies_back_beside_long_copies_only(void **state) {
	(void)state;
	assert_true(is_back_by_kernel(SEARCH_BACK_MAX + 1));
	assert_false(is_back_by_kernel(SEARCH_BACK_MAX));
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
	plan_make(&h200, tasks, 3, PLAN_WHOLE, 0, &stop, &plan);
	assert_true(plan.n_tried <= 3);
	assert_true(is_upper(&plan.terms[1]));
	assert_int_equal(plan.terms[2].n, 0);
}

/* ---- the model, one job of each task ---- */

#define PAIR 2

static const struct model_gpu pair_gpu = {.sms = {66, 66}, .piece = MS / 10, .back = MS / 50};

/* @n tasks, a job of each. @begins: when, in this order, the first at 0. @ret: when each ends. */
static void run_jobs(const struct model_task *tasks, const struct model_place *places, unsigned n,
		     const nsec_t *begins, nsec_t *ret) {
	unsigned begun = 1, ended = 0;
	struct model m;

	model_init(&m, &pair_gpu, tasks, places, n);
	model_begin(&m, 0, 0, 0, 0, 1);
	for (nsec_t now = 0; ended < n; now = model_next(&m)) {
		uint32_t bits;

		if (begun < n && now >= begins[begun]) {
			now = begins[begun];
			model_begin(&m, begun, now, now, 0, 1);
			begun++;
		}
		bits = model_advance(&m, now);
		for (unsigned i = 0; i < n; i++) {
			if (bits & 1u << i) {
				ret[i] = now;
				ended++;
			}
		}
	}
}

/* The first job begins at 0, the second at @later. @ret: when each ends. */
static void run_pair(const struct model_task *tasks, enum terms_copies copies, nsec_t later,
		     nsec_t *ret) {
	const struct model_place places[PAIR] = {{.regions = {true, false}, .copies = copies},
						 {.regions = {false, true}, .copies = copies}};

	run_jobs(tasks, places, PAIR, (nsec_t[]){0, later}, ret);
}

static struct model_task copies(nsec_t deadline, nsec_t in, nsec_t kernels, nsec_t out) {
	struct plan_task t = task(50 * MS, deadline, 1, MS, kernels / 2);

	t.model.copy_in = in;
	t.model.copy_out = out;
	return t.model;
}

/* Two tasks by themselves on their halves; the copy back of the first one by a kernel, or not. */
static void run_back(const struct model_task *tasks, bool by_kernel, nsec_t *ret) {
	const struct model_place places[PAIR] = {
		{.regions = {true, false}, .back_by_kernel = by_kernel},
		{.regions = {false, true}}};

	run_jobs(tasks, places, PAIR, (nsec_t[]){0, MS / 4}, ret);
}

static void a_kernel_copies_back_beside_what_others_copy(void **state) {
	/* The second one copies back from 2.25 to 6.25, the first one wants to from 3 to 4. */
	const struct model_task tasks[PAIR] = {copies(9 * MS, MS, 2 * MS, MS),
					       copies(9 * MS, 0, 2 * MS, 4 * MS)};
	nsec_t ends[PAIR];

	(void)state;
	run_back(tasks, false, ends);
	assert_in_range(ends[0], 7 * MS + MS / 4, 7 * MS + MS / 2);
	run_back(tasks, true, ends);
	assert_in_range(ends[0], 4 * MS, 4 * MS + MS / 10);
	assert_in_range(ends[1], 6 * MS + MS / 4, 6 * MS + MS / 2);
}

static void a_kernel_that_copies_back_waits_for_a_block_of_others(void **state) {
	/* Kernels to 0.5 on all SMs, then the second one's, of lower level, a block to 2.5. */
	const struct model_place places[PAIR] = {
		{.regions = {true, true}, .level = 1, .back_by_kernel = true},
		{.regions = {true, true}}};
	struct model_task tasks[PAIR] = {copies(9 * MS, 0, MS, MS / 10), copies(0, 0, 6 * MS, 0)};
	nsec_t ends[PAIR];

	(void)state;
	tasks[1].block = 2 * MS;
	run_jobs(tasks, places, PAIR, (nsec_t[]){0, MS / 4}, ends);
	assert_in_range(ends[0], 5 * MS / 2 + MS / 10, 5 * MS / 2 + MS / 5);
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

/* The first copy holds the second one up until that can't be in time any more. */
static void a_copy_that_is_late_anyway_goes_last(void **state) {
	const struct model_task tasks[] = {copies(20 * MS, 8 * MS, MS, 0),
					   copies(9 * MS, 4 * MS, 4 * MS, 0),
					   copies(15 * MS, 4 * MS, MS, 0)};
	const struct model_place places[] = {
		{.regions = {true, false}, .copies = TERMS_COPIES_FIRST},
		{.regions = {false, true}, .copies = TERMS_COPIES_HELD},
		{.regions = {true, false}, .copies = TERMS_COPIES_HELD}};
	nsec_t ends[3];

	(void)state;
	run_jobs(tasks, places, 3, (nsec_t[]){0, MS / 20, MS / 10}, ends);
	assert_true(ends[2] < MS / 10 + 15 * MS);
	assert_true(ends[1] > 20 * MS); /* it comes, too */
}

/* A task that always copies, in pieces, beside one that is late if it waits for one. */
static void run_beside_copies(enum terms_copies copies_of_urgent, nsec_t period, nsec_t piece,
			      struct model_result ret[PAIR]) {
	const struct model_wake wake = {MS / 50, MS / 50};
	const struct model_gpu gpu = {
		.sms = {66, 66}, .piece = piece, .guard = MS, .overlap = MS / 100};
	struct model_task tasks[PAIR] = {copies(8 * MS / 5, MS, MS / 10, 0),
					 copies(0, 5 * MS, MS, 0)};
	const struct model_place places[PAIR] = {
		{.regions = {true, true}, .copies = copies_of_urgent},
		{.regions = {true, true}, .copies = TERMS_COPIES_HELD}};

	tasks[0].period = period;
	tasks[1].period = 0;
	model_run(&gpu, &wake, tasks, places, PAIR, NSEC_PER_SEC, 1, NULL, ret);
}

static void pieces_wait_for_copies_that_go_first(void **state) {
	struct model_result held[PAIR], first[PAIR];

	(void)state;
	run_beside_copies(TERMS_COPIES_HELD, 12 * MS + MS / 3, MS, held);
	run_beside_copies(TERMS_COPIES_FIRST, 12 * MS + MS / 3, MS, first);
	assert_true(held[0].missed > 10);
	assert_int_equal(first[0].missed, 0);
	assert_in_range(first[1].done, held[1].done * 9 / 10, held[1].done);
}

/* The link is not free long enough between them. */
static void copies_that_follow_each_other_are_not_waited_for(void **state) {
	struct model_result held[PAIR], first[PAIR];
	const nsec_t period = MS + PROTO_APART_NS - 1;

	(void)state;
	run_beside_copies(TERMS_COPIES_HELD, period, MS / 20, held);
	run_beside_copies(TERMS_COPIES_FIRST, period, MS / 20, first);
	assert_true(held[1].done > 10);
	assert_int_equal(first[1].done, held[1].done);
	assert_int_equal(first[1].response, held[1].response);
}

/* Of 2 ms, with a pause of 0.2 ms before each but the first. */
static void pieces_of_a_copy_cost_time(void **state) {
	const struct model_task task = copies(50 * MS, 5 * MS, MS, 0);
	const struct model_place place = {.regions = {true, true}, .copies = TERMS_COPIES_HELD};
	const struct model_gpu gpu = {.sms = {66, 66}, .piece = 2 * MS, .pause = MS / 5};
	struct model_result whole, pieces;

	(void)state;
	model_run(&pair_gpu, &(struct model_wake){0, 0}, &task, &place, 1, NSEC_PER_SEC, 1, NULL,
		  &whole);
	model_run(&gpu, &(struct model_wake){0, 0}, &task, &place, 1, NSEC_PER_SEC, 1, NULL,
		  &pieces);
	assert_int_equal(pieces.longest - whole.longest, 2 * gpu.pause - pair_gpu.back);
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

/* It leaves no time but what its program needs from one job to the next. */
/* Runs the open jobs of @m to the end. @ret: when each one's ended. */
static void run_to_the_end(struct model *m, nsec_t *ret) {
	for (nsec_t next = model_next(m); next < UINT64_MAX; next = model_next(m)) {
		uint32_t ended = model_advance(m, next);

		for (unsigned i = 0; i < m->n; i++) {
			ret[i] = ended & 1u << i ? next : ret[i];
		}
	}
}

static void kernels_slow_each_other_while_both_run(void **state) {
	const struct model_gpu gpu = {.sms = {66, 66}};
	const struct model_place places[2] = {{.regions = {true}}, {.regions = {false, true}}};
	struct model_task tasks[2] = {
		{.launches = 1, .block = MS / 100, .kernels = linear(MS / 2)},
		{.launches = 1, .block = MS / 100, .kernels = linear(MS / 4)},
	};
	nsec_t ends[2];
	struct model m;

	(void)state;
	for (unsigned slower = 0; slower < 2; slower++) {
		tasks[0].beside = tasks[1].beside = slower ? 1.5 : 0;
		model_init(&m, &gpu, tasks, places, 2);
		model_begin(&m, 0, 0, 0, 0, 1);
		model_begin(&m, 1, 0, 0, 0, 1);
		model_advance(&m, 0);
		run_to_the_end(&m, ends);
		/* The longer one is alone from then on. */
		assert_in_range(ends[1], slower ? 3 * MS / 4 : MS / 2,
				(slower ? 3 * MS / 4 : MS / 2) + 5);
		assert_in_range(ends[0], slower ? 5 * MS / 4 : MS, (slower ? 5 * MS / 4 : MS) + 5);
	}
}

static void who_always_has_work_never_sleeps(void **state) {
	const struct model_wake wake = {MS / 10, MS / 10};
	const struct model_place everywhere = {.regions = {true, true}};
	struct model_task endless = copies(0, 0, MS / 4, 0);
	struct model_result r;

	(void)state;
	endless.period = 0;
	model_run(&pair_gpu, &wake, &endless, &everywhere, 1, NSEC_PER_SEC, 1, NULL, &r);
	assert_in_range(r.done, NSEC_PER_SEC / (endless.kernels[132] + pair_gpu.back) - 2,
			NSEC_PER_SEC / (endless.kernels[132] + pair_gpu.back));
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
	plan_make(&h200, tasks, 2, PLAN_WHOLE, 0, NULL, &plan);
	assert_true(plan.predicted[0].done > 1000);
	assert_true(plan.predicted[0].released > plan.predicted[0].done);
	assert_int_equal(plan.predicted[0].released, plan.predicted[0].missed);
	plan_make(&h200, tasks, MODEL_TASKS_MAX, PLAN_QUICK, 0, NULL, &plan);
	assert_true(plan.is_predicted);
}

/* One without a deadline has left, another one has come. */
static void a_plan_goes_on_beside_others(void **state) {
	const int from[] = {-1, 1, 2};
	const struct plan_task tasks[] = {
		{.known = false}, task(5 * MS, 5 * MS, 4, MS, MS), task(9 * MS, 9 * MS, 4, MS, MS)};
	struct plan plan = {
		.terms = {{.steered = true, .level = 3},
			  {.steered = true, .n = 5, .group = GROUP, .level = 2},
			  {.steered = true, .first = 5, .n = 10, .group = GROUP}},
		.predicted = {{.released = 1}, {.released = 2}, {.released = 3}},
		.alone = {1, 2, 3},
		.hopeless = {true, false, true},
		.tail = {1, 2, 3},
		.n_others = 1,
	};
	const struct plan before = plan;

	(void)state;
	/* All may use all there, and the first one waits. */
	plan.others[0].terms[0] = (struct terms){.steered = true, .yields = true};
	plan.others[0].terms[1] = (struct terms){
		.steered = true, .awaited = true, .guarded = true, .copies = TERMS_COPIES_FIRST};
	plan.others[0].terms[2] = (struct terms){.steered = true};
	plan_move(&h200, tasks, from, 3, &plan);
	for (unsigned i = 1; i < 3; i++) {
		assert_true(terms_equal(&plan.terms[i], &before.terms[i]));
		assert_int_equal(plan.predicted[i].released, i + 1);
		assert_int_equal(plan.tail[i], i + 1);
		assert_true(plan.alone[i] == i + 1);
	}
	assert_true(plan.hopeless[2] && !plan.hopeless[0]);
	assert_int_equal(plan.predicted[0].released + plan.tail[0], 0);
	assert_true(terms_equal(&plan.terms[0], &before.terms[2])); /* above the cut */
	assert_true(terms_equal(&plan.others[0].terms[0],
				&(struct terms){.steered = true,
						.first = 7,
						.n = 8,
						.group = GROUP,
						.yields = true,
						.copies = TERMS_COPIES_HELD}));
}

/* Where only those above the cut have a deadline to keep. */
static void who_comes_is_kept_from_deadlines(void **state) {
	const int from[] = {1, -1};
	const struct plan_task tasks[] = {task(5 * MS, 5 * MS, 4, MS, MS), {.known = false}};
	struct plan_way way = {.terms = {{.steered = true, .n = 5, .group = GROUP},
					 {.steered = true, .first = 5, .n = 10, .group = GROUP}}};
	const struct plan_way before = way;

	(void)state;
	plan_way_move(&h200, tasks, from, 2, &way);
	assert_true(terms_equal(&way.terms[0], &before.terms[1]));
	assert_true(terms_equal(&way.terms[1], &before.terms[0]));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_task_has_all),
		cmocka_unit_test(deadlines_are_kept_from_the_rest_without_a_profile),
		cmocka_unit_test(levels_go_by_deadline_without_a_profile),
		cmocka_unit_test(copies_are_whole_beside_work_that_makes_none),
		cmocka_unit_test(work_that_is_not_known_keeps_out),
		cmocka_unit_test(others_get_what_deadlines_do_not_need),
		cmocka_unit_test(who_is_late_anyway_holds_nobody_up),
		cmocka_unit_test(long_blocks_are_kept_out),
		cmocka_unit_test(a_part_may_be_small),
		cmocka_unit_test(a_gpu_of_one_group_is_not_cut),
		cmocka_unit_test(a_plan_knows_other_ways),
		cmocka_unit_test(a_task_of_few_jobs_is_not_given_up),
		cmocka_unit_test(what_no_single_change_mends_several_do),
		cmocka_unit_test(a_plan_leaves_room_for_slower_kernels),
		cmocka_unit_test(mean_responses_let_nobody_copy_first),
		cmocka_unit_test(short_launches_are_looked_at_together),
		cmocka_unit_test(a_kernel_copies_back_beside_long_copies_only),
		cmocka_unit_test(who_stops_it_gets_the_rule),
		cmocka_unit_test(a_plan_for_tiny_jobs_ends),
		cmocka_unit_test(a_kernel_copies_back_beside_what_others_copy),
		cmocka_unit_test(a_kernel_that_copies_back_waits_for_a_block_of_others),
		cmocka_unit_test(who_has_much_to_do_after_its_copy_copies_first),
		cmocka_unit_test(copies_that_go_first_stay_whole),
		cmocka_unit_test(a_copy_that_is_late_anyway_goes_last),
		cmocka_unit_test(pieces_wait_for_copies_that_go_first),
		cmocka_unit_test(copies_that_follow_each_other_are_not_waited_for),
		cmocka_unit_test(pieces_of_a_copy_cost_time),
		cmocka_unit_test(a_run_ends_when_enough_are_late),
		cmocka_unit_test(kernels_slow_each_other_while_both_run),
		cmocka_unit_test(who_always_has_work_never_sleeps),
		cmocka_unit_test(a_plan_goes_on_beside_others),
		cmocka_unit_test(who_comes_is_kept_from_deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
