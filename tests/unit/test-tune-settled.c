/*
 * test-tune-settled.c: what is done to a plan when all that seemed worth a trial was tried.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/core/steer/tune.h"
#include "tests/unit/tune-world.h"

#define HOUR (3600 * NSEC_PER_SEC)

static unsigned burst = 1; /* so many jobs are late together */

/* As its level says, but by chance. */
static void does_by_chance(const struct world *w, const struct terms *terms, nsec_t time,
			   struct seen *ret) {
	static struct seen seen;
	static nsec_t since, last;
	static uint64_t random = 7;

	if (w->since != since || time < last) {
		seen = (struct seen){0};
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

static void a_stationary_load_settles(void **state) {
	static const unsigned late[LEVELS] = {300, 310, 250, 200, 290};
	struct world w = chance_world(late, 1);
	unsigned n_tries = w.n_tries, reviews;

	(void)state;
	look_for(&w, 4 * HOUR);
	assert_int_equal(level(&w), 3);
	assert_int_equal(w.n_tries, n_tries);
	assert_int_equal(w.tune.reviews, 0);
	/* Where jobs are late in bursts, chance is larger than it looks; then the windows grow. */
	w = chance_world(late, 50);
	look_for(&w, 4 * HOUR);
	print_message("bursts: %u reviews, %u tries\n", w.tune.reviews, w.n_tries);
	reviews = w.tune.reviews;
	look_for(&w, 8 * HOUR);
	assert_true(w.tune.reviews <= reviews + 1);
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
				  struct seen *ret) {
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
			struct seen *ret) {
	uint64_t jobs = time / (100 * MS);
	uint64_t late = jobs > 3 ? jobs - 3 : 0;

	(void)w;
	*ret = (struct seen){jobs, late_jobs[terms[0].level] ? late : 0, jobs * MS, 0};
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
	const struct seen seen = {15, 15, 15 * MS, 0};
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
	double whole;

	(void)state;
	while (w.tune.ways.way[0].time == 0) {
		look(&w);
	}
	whole = w.tune.ways.way[0].missed[0];
	w = fake_world(late);
	unreported_jobs = 500;
	while (w.tune.ways.way[0].time == 0) {
		look(&w);
	}
	assert_true(fabs(w.tune.ways.way[0].missed[0] - whole) <= 2);
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
	assert_true(give_plan(&w, &other));
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 0);
}

/* What is known of a task goes with it. */
static void tasks_that_stay_keep_what_is_known(void **state) {
	const struct plan_task tasks[] = {{.known = false}, task(5 * MS, 5 * MS, 4, MS, MS)};
	struct world w = fake_world((const unsigned[LEVELS]){0, 0, 0, 0, 0});
	const int from[] = {-1, 0};
	struct terms before;

	(void)state;
	look_until_kept(&w);
	before = tune_way(&w.tune)->terms[0];
	w.tune.slow[0] = 1.5;
	w.tune.ways.alone[0] = 0.5;
	w.tune.lost[0] = true;
	tune_move(&w.tune, &h200, tasks, from, 2);
	assert_int_equal(w.tune.ways.n, 2);
	assert_int_equal(w.tune.ways.n_ways, 1);
	assert_true(w.tune.slow[0] == 1 && w.tune.slow[1] == 1.5);
	assert_true(w.tune.ways.alone[0] == 0 && w.tune.ways.alone[1] == 0.5);
	assert_true(!w.tune.lost[0] && w.tune.lost[1]);
	assert_true(terms_equal(&tune_way(&w.tune)->terms[1], &before));
	assert_true(tune_way(&w.tune)->terms[0].n > 0);
}

static double counted_jobs(const struct tune *t, unsigned task) {
	double all = 0;

	for (unsigned i = 0; i < t->ways.n_ways; i++) {
		all += t->ways.way[i].jobs[task];
	}
	return all;
}

/* Tasks without a deadline come and go faster than any window is over. */
static void coming_and_going_keeps_what_was_counted(void **state) {
	const struct plan_task tasks[] = {{.known = false}, task(5 * MS, 5 * MS, 4, MS, MS)};
	struct world w = fake_world((const unsigned[LEVELS]){300, 500, 200, 400, 600});
	struct seen seen[MODEL_TASKS_MAX] = {0};
	const int come[] = {-1, 0}, go[] = {1};
	unsigned n_ways, round, now;
	double jobs;
	bool ask;

	(void)state;
	look_until_kept(&w);
	n_ways = w.tune.ways.n_ways;
	round = w.tune.round;
	now = level(&w);
	jobs = counted_jobs(&w.tune, 0);
	assert_true(jobs > 0 && n_ways > 1);
	tune_move(&w.tune, &h200, tasks, come, 2);
	assert_int_equal(w.tune.ways.n_ways, n_ways);
	assert_true(counted_jobs(&w.tune, 1) == jobs);
	assert_true(counted_jobs(&w.tune, 0) == 0);
	assert_int_equal(w.tune.round, round);
	assert_true(w.tune.settled);
	tune_move(&w.tune, &h200, tasks + 1, go, 1);
	assert_true(counted_jobs(&w.tune, 0) == jobs);
	assert_int_equal(level(&w), now);
	/* The window under way goes on as well. */
	w = fake_world((const unsigned[LEVELS]){300, 500, 200, 400, 600});
	for (unsigned i = 0; i < 1000 && w.tune.round == 0; i++) {
		w.time += WINDOW / 100;
		does_as_its_level_says(&w, tune_way(&w.tune)->terms, w.time - w.since, seen);
		tune_judge(&w.tune, seen, w.time - w.since, &ask);
		tune_move(&w.tune, &h200, tasks, come, 2);
		tune_move(&w.tune, &h200, tasks + 1, go, 1);
	}
	assert_int_equal(w.tune.round, 1);
	assert_true(counted_jobs(&w.tune, 0) > 0);
}

/* Ways that differed only in what is gone are one. */
static void ways_that_became_the_same_are_one(void **state) {
	const struct plan_task tasks[] = {task(5 * MS, 5 * MS, 4, MS, MS)};
	struct world w = fake_world((const unsigned[LEVELS]){300, 500, 200, 400, 600});
	struct tune *t = &w.tune;
	const int stays[] = {0};

	(void)state;
	look_until_kept(&w);
	t->ways.way[0].plan.terms[0] = tune_way(t)->terms[0];
	t->ways.way[0].time = t->ways.way[t->ways.now].time = NSEC_PER_SEC;
	t->ways.way[0].jobs[0] = t->ways.way[t->ways.now].jobs[0] = 100;
	assert_int_not_equal(t->ways.now, 0);
	tune_move(t, &h200, tasks, stays, 1);
	assert_int_equal(t->ways.now, 0);
	assert_int_equal(t->ways.way[0].time, 2 * NSEC_PER_SEC);
	assert_true(t->ways.way[0].jobs[0] == 200);
}

/* What was counted is still known, and what was tried just then is not gone on with. */
static void tasks_that_were_away_are_counted_anew(void **state) {
	struct world w = fake_world((const unsigned[LEVELS]){300, 500, 200, 400, 600});
	double jobs;

	(void)state;
	while (look(&w) != TUNE_TRY) {
	}
	jobs = counted_jobs(&w.tune, 0);
	assert_true(jobs > 0);
	tune_resume(&w.tune);
	assert_false(w.tune.trying || w.tune.counts);
	assert_int_equal(level(&w), 0); /* the only one that was counted */
	assert_true(counted_jobs(&w.tune, 0) == jobs);
	w.since = w.time;
	look_until_kept(&w);
	assert_int_equal(level(&w), 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stationary_load_settles),
		cmocka_unit_test(another_load_is_noticed),
		cmocka_unit_test(a_moment_changes_nothing),
		cmocka_unit_test(a_load_that_swings_is_left_alone),
		cmocka_unit_test(another_rate_is_noticed),
		cmocka_unit_test(a_lost_task_stays_lost_in_short_tries),
		cmocka_unit_test(few_jobs_say_nothing),
		cmocka_unit_test(a_hole_corrects_nothing),
		cmocka_unit_test(other_knowledge_begins_anew),
		cmocka_unit_test(tasks_that_stay_keep_what_is_known),
		cmocka_unit_test(coming_and_going_keeps_what_was_counted),
		cmocka_unit_test(ways_that_became_the_same_are_one),
		cmocka_unit_test(tasks_that_were_away_are_counted_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
