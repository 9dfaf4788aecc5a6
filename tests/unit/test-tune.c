/*
 * test-tune.c: plans that are corrected by what their tasks do, on GPUs that are models themselves,
 * of other tasks than those that are known, or do as the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/core/steer/tune.h"
#include "tests/unit/steer-tasks.h"
#include "tests/unit/tune-world.h"

static double play(const struct plan_task *truth, const struct terms *terms, unsigned n,
		   struct seen *ret) {
	struct model_result r[MODEL_TASKS_MAX];
	double misses = 0;

	assert_true(plan_predict(&h200, truth, terms, n, r));
	for (unsigned i = 0; i < n; i++) {
		ret[i] = (struct seen){r[i].done, r[i].missed, r[i].response, 0};
		misses += r[i].missed;
	}
	return misses;
}

/* A GPU that is a model itself, of other tasks than those that are known. */
static void does_as_the_model(const struct world *w, const struct terms *terms, nsec_t time,
			      struct seen *ret) {
	static struct terms of[MODEL_TASKS_MAX];
	static struct model_result r[MODEL_TASKS_MAX];

	if (time <= tune_step(&w->tune) || memcmp(of, terms, sizeof(*of) * w->n) != 0) {
		memcpy(of, terms, sizeof(*of) * w->n);
		assert_true(plan_predict(&h200, w->truth, terms, w->n, r));
	}
	for (unsigned i = 0; i < w->n; i++) {
		nsec_t jobs = time / w->truth[i].model.period;

		ret[i] = (struct seen){jobs, jobs * r[i].missed / r[i].released,
				       jobs * (r[i].response / r[i].done), 0};
	}
}

/* Three tasks, of which the first takes @whole on the whole GPU, and is known to take @known. */
struct mistaken {
	struct plan_task tasks[3], truth[3];
	struct world w; /* points into this */
};

/* @m: with a first plan. @load: what the others take. */
static void be_mistaken(struct mistaken *m, nsec_t known, nsec_t whole, const nsec_t load[2]) {
	*m = (struct mistaken){
		.tasks = {task(3 * MS, MS, 6, 20 * NSEC_PER_USEC, known),
			  task(9 * MS, 4 * MS, 2, MS / 100, load[0]),
			  task(20 * MS, 20 * MS, 2, MS, load[1])},
		.w = {.n = 3, .does = does_as_the_model, .known = m->tasks, .truth = m->truth},
	};
	memcpy(m->truth, m->tasks, sizeof(m->truth));
	m->truth[0].model.kernels = linear(whole);
	tune_start(&m->w.tune, 3, WINDOW);
	make_plan(&m->w);
}

static const nsec_t light_load[2] = {2 * MS, 6 * MS}, heavy_load[2] = {3 * MS, 8 * MS};

static double late(const struct mistaken *m, const struct plan_task *tasks) {
	struct seen seen[3];

	return play(tasks, tune_way(&m->w.tune)->terms, 3, seen);
}

static void what_is_slower_than_known_is_planned_anew(void **state) {
	struct mistaken m;
	double first, last;

	(void)state;
	be_mistaken(&m, MS / 4, MS / 2, light_load);
	first = late(&m, m.truth);
	look_until_kept(&m.w);
	last = late(&m, m.truth);
	print_message("late: %.0f by the first plan, %.0f at last\n", first, last);
	assert_true(first > 0);
	assert_true(last < first);
	assert_true(m.w.n_plans > 1);
	assert_true(m.w.tune.slow[0] > 1.2);
	/* It is left alone now. */
	assert_int_equal(look(&m.w), TUNE_KEEP);
}

/* For how slow the first task is taken when the second plan is made. */
static double slow_after_one_window(nsec_t known, nsec_t whole, const nsec_t load[2]) {
	struct mistaken m;

	be_mistaken(&m, known, whole, load);
	while (m.w.n_plans == 1) {
		look(&m.w);
	}
	return m.w.tune.slow[0];
}

/* Most of what jobs take longer, or less long, is waiting for each other. */
static void one_window_does_not_change_kernels_much(void **state) {
	double slower = slow_after_one_window(MS / 4, MS / 2, light_load);
	double faster = slow_after_one_window(MS / 2, MS / 10, heavy_load);

	(void)state;
	print_message("%.2f, %.2f times as slow\n", slower, faster);
	assert_true(slower > 1.2 && slower < 1.4);
	assert_true(faster > 0.7 && faster < 0.9);
}

/* Plans leave room for that, and the searches that are under way go on. */
static void what_is_a_little_slower_than_known_is_not(void **state) {
	struct mistaken m;

	(void)state;
	be_mistaken(&m, MS / 2, MS / 2 + MS / 24, heavy_load);
	assert_true(late(&m, m.truth) > late(&m, m.tasks));
	look_until_kept(&m.w);
	assert_int_equal(m.w.n_plans, 1);
}

static void what_is_faster_than_known_is_planned_anew(void **state) {
	struct mistaken m;
	double first, last;

	(void)state;
	be_mistaken(&m, MS / 2, MS / 4, heavy_load);
	first = late(&m, m.truth);
	look_until_kept(&m.w);
	last = late(&m, m.truth);
	print_message("late: %.0f by the first plan, %.0f at last\n", first, last);
	assert_true(first > 0);
	assert_true(last <= first);
	assert_true(m.w.n_plans > 1);
	assert_true(m.w.tune.slow[0] < 0.9);
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

/* A thousand jobs a second of one task, and twenty of another: at level 0 all of the latter are
 * late, at level 1 more of the former. */
static void does_as_two_tasks(const struct world *w, const struct terms *terms, nsec_t time,
			      struct seen *ret) {
	nsec_t jobs = time / MS, few = time / (50 * MS);
	bool first = terms[0].level == 0;

	(void)w;
	ret[0] = (struct seen){jobs, jobs * (first ? 50 : 90) / 1000, jobs * MS, 0};
	ret[1] = (struct seen){few, first ? few : 0, few * MS, 0};
}

static void a_task_of_few_jobs_is_not_given_up(void **state) {
	struct world w = {.n = 2, .does = does_as_two_tasks};
	struct plan plan;

	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) {
		tune_start(&w.tune, 2, WINDOW);
		fake_plan(&plan, 0, 2);
		plan.alone[0] = 0.1;
		plan.alone[1] = lost; /* under MPS alone it would be late as well */
		assert_true(give_plan(&w, &plan));
		w.time = w.since = 0;
		look_until_kept(&w);
		assert_int_equal(level(&w), lost ? 0 : 1);
		assert_true(was_tried(&w, 1));
	}
}

/* A single late job may be chance. */
static void does_one_late_job(const struct world *w, const struct terms *terms, nsec_t time,
			      struct seen *ret) {
	nsec_t few = time / (50 * MS);

	does_as_two_tasks(w, terms, time, ret);
	ret[1].missed = terms[0].level == 0 && few > 4 ? 1 : 0;
}

static void one_late_job_is_chance(void **state) {
	struct world w = {.n = 2, .does = does_one_late_job};
	struct plan plan;

	(void)state;
	tune_start(&w.tune, 2, WINDOW);
	fake_plan(&plan, 0, 2);
	plan.alone[0] = 0.1;
	assert_true(give_plan(&w, &plan));
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

/* All is judged by what is known last of MPS alone: level 1 was counted before that was known. */
static void what_was_counted_before_is_judged_anew(void **state) {
	static const unsigned late[LEVELS] = {900, 200, 300, 0, 0};
	struct world w = {.n = 1, .does = does_as_its_level_says};
	struct plan plan;

	(void)state;
	late_jobs = late;
	unreported_jobs = 0;
	tune_start(&w.tune, 1, WINDOW);
	fake_plan(&plan, 1, 2);
	plan.alone[0] = 0;
	assert_true(give_plan(&w, &plan));
	while (!was_tried(&w, 1)) {
		look(&w);
	}
	fake_plan(&plan, 2, 3);
	give_plan(&w, &plan);
	look_until_kept(&w);
	assert_true(was_tried(&w, 2));
	assert_int_equal(level(&w), 1);
}

/* Of each task's jobs, of a thousand, at each level. */
static void does_as_two_tasks_of_three_levels(const struct world *w, const struct terms *terms,
					      nsec_t time, struct seen *ret) {
	static const unsigned late[3][2] = {{300, 500}, {260, 0}, {200, 400}};
	nsec_t jobs[2] = {time / MS, time / (20 * MS)};

	(void)w;
	for (unsigned i = 0; i < 2; i++) {
		ret[i] = (struct seen){jobs[i], jobs[i] * late[terms[0].level][i] / 1000,
				       jobs[i] * MS, 0};
	}
}

/* Level 2 makes more of the second task late than level 1, but not more than level 0 does, which is
 * MPS alone and was said to make none late. */
static void what_mps_alone_did_counts_more_than_what_was_predicted(void **state) {
	struct world w = {.n = 2, .does = does_as_two_tasks_of_three_levels};
	struct plan plan;

	(void)state;
	tune_start(&w.tune, 2, WINDOW);
	fake_plan(&plan, 0, 3);
	for (unsigned k = 0; k < plan.n_others; k++) {
		plan.others[k].terms[1] = (struct terms){.steered = true};
	}
	plan.terms[1] = (struct terms){.steered = true};
	plan.alone[0] = plan.alone[1] = 0;
	assert_true(give_plan(&w, &plan));
	look_until_kept(&w);
	assert_true(was_tried(&w, 1));
	assert_true(was_tried(&w, 2));
	assert_int_equal(level(&w), 2);
}

static void what_would_give_a_task_up_is_not_tried(void **state) {
	struct world w = {.n = 2, .does = does_as_two_tasks};
	struct plan plan;

	(void)state;
	tune_start(&w.tune, 2, WINDOW);
	fake_plan(&plan, 1, 2);
	plan.alone[0] = 0.1;
	plan.others[0].predicted[0].missed = 50;
	plan.others[0].predicted[1].released = plan.others[0].predicted[1].missed = 20;
	assert_true(give_plan(&w, &plan));
	look_until_kept(&w);
	assert_int_equal(level(&w), 1);
	assert_int_equal(w.n_tries, 0);
}

/* ---- a task that queues: a release each millisecond; its jobs take another part of that at each
 * level, and are late while others wait ---- */

struct queue_level {
	unsigned done; /* in a second, when there are enough to do */
	unsigned late; /* of a thousand, when none waits */
};

static struct {
	const struct queue_level *by_level;
	bool seen_late; /* jobs that wait are known to be late */
	unsigned level;
	uint64_t before, waiting; /* when that level began, and now */
} queue;

static void does_queue(const struct world *w, const struct terms *terms, nsec_t time,
		       struct seen *ret) {
	const struct queue_level *now = &queue.by_level[terms[0].level];
	uint64_t released = time / MS, most = time * now->done / 1000 / MS, done, caught_up;

	(void)w;
	if (terms[0].level != queue.level || time == 0) {
		queue.level = terms[0].level;
		queue.before = queue.waiting;
	}
	done = queue.before + released;
	done = done < most ? done : most;
	queue.waiting = queue.before + released - done;
	caught_up = queue.before == 0  ? 0
		    : now->done > 1000 ? queue.before * now->done / (now->done - 1000)
				       : UINT64_MAX;
	caught_up = caught_up < done ? caught_up : done;
	*ret = (struct seen){
		.jobs = done,
		.missed = (queue.seen_late ? caught_up : 0) + (done - caught_up) * now->late / 1000,
		.response = done * MS,
		.behind = (int64_t)queue.waiting - (int64_t)queue.before,
		.waiting = queue.waiting,
	};
}

static struct world queue_world(const struct queue_level *by_level, unsigned n) {
	struct world w = {.n = 1, .does = does_queue};
	struct plan plan;

	memset(&queue, 0, sizeof(queue));
	queue.by_level = by_level;
	tune_start(&w.tune, 1, WINDOW);
	fake_plan(&plan, 0, n);
	assert_true(give_plan(&w, &plan));
	return w;
}

/* Those of its jobs that are done seem to be in time. */
static void a_way_that_falls_behind_is_not_the_best(void **state) {
	struct world w = queue_world((const struct queue_level[]){{1500, 200}, {500, 0}}, 2);

	(void)state;
	look_until_kept(&w);
	assert_true(was_tried(&w, 1));
	assert_true(w.tune.ways.way[1].time < WINDOW / 10); /* and soon given up */
	assert_int_equal(level(&w), 0);
}

/* At level 1 jobs are left, which at level 2 make all late that come next. */
static void what_a_trial_left_behind_is_done_before_the_next(void **state) {
	struct world w =
		queue_world((const struct queue_level[]){{1200, 200}, {500, 0}, {1100, 100}}, 3);

	(void)state;
	queue.seen_late = true;
	look_until_kept(&w);
	assert_true(was_tried(&w, 1));
	assert_true(was_tried(&w, 2));
	assert_int_equal(level(&w), 2);
}

/* Nor does it count for the way that comes back. */
static void what_a_trial_left_behind_is_done_before_the_best_is_counted(void **state) {
	struct world w = queue_world((const struct queue_level[]){{1150, 200}, {500, 0}}, 2);

	(void)state;
	queue.seen_late = true;
	look_until_kept(&w);
	assert_true(was_tried(&w, 1));
	assert_int_equal(level(&w), 0);
	assert_true(w.tune.ways.way[0].missed[0] <= w.tune.ways.way[0].jobs[0] / 4);
}

/* Sixty late jobs, of which fifty were released before. */
static void jobs_made_up_for_are_late_once(void **state) {
	struct world w = queue_world((const struct queue_level[]){{1000, 0}}, 1);
	struct seen seen = {0};
	bool ask;

	(void)state;
	assert_int_equal(tune_judge(&w.tune, &seen, WINDOW / 10, &ask), TUNE_WAIT);
	seen = (struct seen){.jobs = 1000, .missed = 60, .behind = -50};
	tune_judge(&w.tune, &seen, WINDOW, &ask);
	assert_int_equal(w.tune.ways.way[0].missed[0], 10);
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
	assert_false(give_plan(&w, &other));
	assert_int_equal(level(&w), 0);
	/* Once one is found the rest is not tried. */
	w = fake_world((const unsigned[LEVELS]){100, 0, 0, 0, 0});
	look_until_kept(&w);
	assert_int_equal(w.n_tries, 1);
	assert_int_equal(level(&w), 1);
}

/* As predicted, for the task with the late jobs has seldom one, and had none yet. */
static void a_plan_of_fewer_late_jobs_is_taken_before_there_is_one(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){0, 0, 0, 0, 0});
	struct plan other;

	(void)state;
	w.tune.ways.way[w.tune.ways.now].plan.predicted[0] = (struct model_result){
		.released = 1000, .missed = 12, .done = 1000, .response = 1000};
	look_until_kept(&w);
	fake_plan(&other, 3, 0);
	other.predicted[0].released = 1000;
	other.predicted[0].missed = 12;
	assert_false(give_plan(&w, &other));
	assert_int_equal(level(&w), 0);
	fake_plan(&other, 4, 0);
	other.predicted[0].released = 1000;
	other.predicted[0].missed = 11;
	assert_true(give_plan(&w, &other));
	assert_int_equal(level(&w), 4);
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 4);
	/* One that does worse is given back. */
	late_jobs = (const unsigned[LEVELS + 1]){0, 0, 0, 0, 0, 100};
	fake_plan(&other, 5, 0);
	other.predicted[0].released = 1000;
	assert_true(give_plan(&w, &other));
	w.since = w.time;
	look_until_kept(&w);
	assert_int_not_equal(level(&w), 5);
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
	/* At the first look after what is not counted: a try would last eight times as long. */
	assert_in_range(w.time - began, WINDOW / 40, WINDOW / 20);
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
	/* What is not that much worse may be chance, and runs on. */
	w = fake_world((const unsigned[LEVELS]){20, 120, 900, 900, 900});
	while (look(&w) != TUNE_TRY) {
	}
	began = w.time;
	while (look(&w) == TUNE_WAIT) {
	}
	assert_in_range(w.time - began, WINDOW / 20, WINDOW / 8);
	/* Each is counted by what it did until then: the worst are not tried again. */
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
	assert_int_equal(w.n_tries, LEVELS - 1);
}

static void a_second_answer_replaces_a_first_one(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 100, 100, 100, 50});
	struct plan same, other;

	(void)state;
	fake_plan(&same, 0, LEVELS);
	fake_plan(&other, 4, 0);
	look(&w);
	assert_false(give_plan(&w, &same));
	assert_int_equal(level(&w), 0);
	assert_true(give_plan(&w, &other));
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
	assert_false(give_plan(&w, &other));
	look_until_kept(&w);
	assert_int_equal(level(&w), 5);
	w = fake_world(late_jobs);
	look_until_kept(&w);
	assert_true(give_plan(&w, &other));
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 5);
}

/* ---- ways that are predicted to be worse ---- */

/* Of a thousand jobs so many are late, by prediction. */
static void predict(struct world *w, unsigned level, unsigned missed) {
	for (unsigned i = 0; i < w->tune.ways.n_ways; i++) {
		if (w->tune.ways.way[i].plan.terms[0].level == level) {
			w->tune.ways.way[i].plan.predicted[0].missed = missed;
		}
	}
}

static void what_is_predicted_worse_is_not_tried(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 150, 50, 150, 150});

	(void)state;
	predict(&w, 1, 900);
	predict(&w, 2, 90);
	predict(&w, 3, 110);
	look_until_kept(&w);
	assert_int_equal(level(&w), 2);
	assert_int_equal(w.n_tries, 2);
	assert_false(was_tried(&w, 1));
	assert_true(was_tried(&w, 2));
	assert_false(was_tried(&w, 3));
	assert_true(was_tried(&w, 4));
}

/* And soon: the first plan may be a bad one. */
static void what_is_predicted_best_is_tried_first(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){300, 310, 250, 100, 290});

	(void)state;
	predict(&w, 1, 20);
	predict(&w, 2, 90);
	predict(&w, 3, 10);
	predict(&w, 4, 30);
	while (look(&w) != TUNE_TRY) {
	}
	assert_true(w.time < WINDOW / 3);
	assert_int_equal(level(&w), 3);
	look_until_kept(&w);
	assert_int_equal(level(&w), 3);
	assert_true(was_tried(&w, 1) && was_tried(&w, 2) && was_tried(&w, 4));
}

/* The better the best way is, the fewer others are worth a trial. */
static void less_is_tried_beside_a_good_way(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){500, 20, 700, 700, 700});

	(void)state;
	for (unsigned i = 2; i < LEVELS; i++) {
		predict(&w, i, 400);
	}
	look_until_kept(&w);
	assert_int_equal(level(&w), 1);
	assert_int_equal(w.n_tries, 1);
}

/* Where level @rule held for @time before the first plan, and all other ways are predicted badly.
 */
static struct world rule_world(const unsigned *by_level, unsigned rule, nsec_t time) {
	struct world w = {.n = 1, .does = does_as_its_level_says};
	struct plan_way way;
	struct plan plan;

	late_jobs = by_level;
	unreported_jobs = 0;
	tune_start(&w.tune, 1, WINDOW);
	fake_way(&way, rule);
	tune_rule(&w.tune, way.terms);
	assert_int_equal(level(&w), rule);
	w.time = time;
	fake_plan(&plan, 0, LEVELS);
	for (unsigned i = 0; i < plan.n_others; i++) {
		plan.others[i].predicted[0].missed = 900;
	}
	assert_true(give_plan(&w, &plan));
	assert_int_equal(level(&w), 0);
	w.since = w.time;
	return w;
}

static void the_rule_comes_back_if_the_plan_does_worse(void **state) {
	struct world w =
		rule_world((const unsigned[LEVELS]){300, 400, 200, 400, 400}, 2, WINDOW / 4);

	(void)state;
	look_until_kept(&w);
	assert_int_equal(level(&w), 2);
	assert_false(was_tried(&w, 1) || was_tried(&w, 3) || was_tried(&w, 4));
}

static void a_plan_that_does_better_than_the_rule_stays(void **state) {
	struct world w =
		rule_world((const unsigned[LEVELS]){100, 400, 200, 400, 400}, 2, WINDOW / 4);

	(void)state;
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

static void a_few_jobs_under_the_rule_say_nothing(void **state) {
	struct world w = rule_world((const unsigned[LEVELS]){300, 400, 0, 400, 400}, 2, 12 * MS);

	(void)state;
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
	assert_false(was_tried(&w, 2));
}

/* The plan may be the rule: what it did before counts. */
static void the_rule_may_be_the_plan(void **state) {
	struct world w =
		rule_world((const unsigned[LEVELS]){300, 400, 200, 400, 400}, 0, WINDOW / 4);

	(void)state;
	assert_true(was_tried(&w, 0));
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

/* Half as many jobs more of level 3 are late when it is tried first. */
static void does_worse_at_first(const struct world *w, const struct terms *terms, nsec_t time,
				struct seen *ret) {
	static unsigned tried;

	does_as_its_level_says(w, terms, time, ret);
	if (terms[0].level == 3) {
		tried = tried ? tried : w->n_tries;
		ret->missed += w->n_tries == tried ? ret->missed / 2 : 0;
	}
}

static void bad_luck_is_no_end(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 310, 250, 80, 290});

	(void)state;
	w.does = does_worse_at_first;
	look_until_kept(&w);
	assert_int_equal(level(&w), 3);
	assert_true(w.n_tries <= LEVELS + 3);
}

/* What is left before its window is over was counted as far as it went. */
static void a_plan_in_between_loses_no_count(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 100, 100, 100, 100});
	struct plan other;
	nsec_t before;
	unsigned way;

	(void)state;
	late_jobs = (const unsigned[LEVELS + 1]){100, 100, 100, 100, 100, 10};
	while (look(&w) != TUNE_BACK) {
	}
	for (unsigned i = 0; i < 5; i++) {
		look(&w);
	}
	way = w.tune.ways.now;
	before = w.tune.ways.way[way].time;
	fake_plan(&other, 5, 0);
	assert_true(give_plan(&w, &other));
	assert_int_equal(level(&w), 5);
	assert_true(w.tune.ways.way[way].time >= before + 3 * WINDOW / 20);
}

static void a_new_plan_is_not_tried_if_it_is_predicted_worse(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 100, 100, 100, 100});
	struct plan other;

	(void)state;
	late_jobs = (const unsigned[LEVELS + 1]){100, 100, 100, 100, 100, 10};
	look_until_kept(&w);
	fake_plan(&other, 5, 0);
	other.predicted[0].missed = 400;
	assert_false(give_plan(&w, &other));
	assert_true(level(&w) != 5);
	other.predicted[0].missed = 90;
	assert_true(give_plan(&w, &other));
	assert_int_equal(level(&w), 5);
}

/* If as many jobs are late by now as it was predicted to have late, it may be worth a trial. */
static void what_was_not_tried_is_when_more_jobs_are_late(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){100, 200, 200, 200, 200});

	(void)state;
	predict(&w, 4, 500);
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
	assert_false(was_tried(&w, 4));
	late_jobs = (const unsigned[LEVELS]){600, 700, 700, 700, 200};
	for (unsigned i = 0; i < 1000; i++) {
		look(&w);
	}
	assert_int_equal(level(&w), 4);
}

/* Whatever the tasks do, and whatever is planned for them. */
static void it_ends(void **state) {
	unsigned numbers[LEVELS + 1] = {0};
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
				w.since = give_plan(&w, &plan) ? w.time : w.since;
			}
			n_kept += look(&w) == TUNE_KEEP;
		}
		assert_int_equal(n_kept, 10);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_slower_than_known_is_planned_anew),
		cmocka_unit_test(one_window_does_not_change_kernels_much),
		cmocka_unit_test(what_is_a_little_slower_than_known_is_not),
		cmocka_unit_test(what_is_as_predicted_is_kept),
		cmocka_unit_test(the_way_with_fewest_late_jobs_stays),
		cmocka_unit_test(a_task_of_few_jobs_is_not_given_up),
		cmocka_unit_test(one_late_job_is_chance),
		cmocka_unit_test(what_would_give_a_task_up_is_not_tried),
		cmocka_unit_test(what_was_counted_before_is_judged_anew),
		cmocka_unit_test(what_mps_alone_did_counts_more_than_what_was_predicted),
		cmocka_unit_test(a_way_that_falls_behind_is_not_the_best),
		cmocka_unit_test(what_a_trial_left_behind_is_done_before_the_next),
		cmocka_unit_test(what_a_trial_left_behind_is_done_before_the_best_is_counted),
		cmocka_unit_test(jobs_made_up_for_are_late_once),
		cmocka_unit_test(a_plan_better_than_all_others_comes_back),
		cmocka_unit_test(nothing_is_tried_while_no_job_is_late),
		cmocka_unit_test(a_plan_of_fewer_late_jobs_is_taken_before_there_is_one),
		cmocka_unit_test(what_is_clearly_worse_is_given_up_early),
		cmocka_unit_test(a_second_answer_replaces_a_first_one),
		cmocka_unit_test(a_late_answer_is_tried),
		cmocka_unit_test(what_is_faster_than_known_is_planned_anew),
		cmocka_unit_test(what_is_predicted_worse_is_not_tried),
		cmocka_unit_test(what_is_predicted_best_is_tried_first),
		cmocka_unit_test(less_is_tried_beside_a_good_way),
		cmocka_unit_test(the_rule_comes_back_if_the_plan_does_worse),
		cmocka_unit_test(a_plan_that_does_better_than_the_rule_stays),
		cmocka_unit_test(a_few_jobs_under_the_rule_say_nothing),
		cmocka_unit_test(the_rule_may_be_the_plan),
		cmocka_unit_test(bad_luck_is_no_end),
		cmocka_unit_test(a_plan_in_between_loses_no_count),
		cmocka_unit_test(a_new_plan_is_not_tried_if_it_is_predicted_worse),
		cmocka_unit_test(what_was_not_tried_is_when_more_jobs_are_late),
		cmocka_unit_test(it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
