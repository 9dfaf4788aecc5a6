/*
 * test-ways.c: which of the ways to serve one task is the best, is tried next, or is forgotten. The
 * terms of a way differ in their level.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/core/steer/ways.h"

#define JOBS 1000 /* in each time that is counted */
#define TIME NSEC_PER_SEC
#define SURE (2 * TIME)

static const double known_speed[MODEL_TASKS_MAX] = {1};

static struct plan_way way_of_level(unsigned level, unsigned missed) {
	return (struct plan_way){.terms = {{.steered = true, .level = level}},
				 .predicted = {{.released = JOBS, .done = JOBS, .missed = missed}}};
}

/* Ways of the levels from 1 on that are predicted to have so many of JOBS jobs late; the first one
 * is the plan. */
static void plan_levels(struct ways *w, const unsigned *missed, unsigned n) {
	struct plan_way first = way_of_level(1, missed[0]);
	struct plan plan = {.is_predicted = true, .alone = {1}, .n_others = n - 1};

	memcpy(plan.terms, first.terms, sizeof(plan.terms));
	memcpy(plan.predicted, first.predicted, sizeof(plan.predicted));
	for (unsigned i = 1; i < n; i++) {
		plan.others[i - 1] = way_of_level(i + 1, missed[i]);
	}
	ways_plan(w, &plan, known_speed);
}

/* So many of JOBS jobs were late under the way @i, which holds now. */
static void count(struct ways *w, unsigned i, unsigned missed) {
	const struct seen part = {.jobs = JOBS, .missed = missed};

	w->now = i;
	ways_count(w, &part, TIME);
	ways_expect(w, &part, TIME);
}

static unsigned level_of(const struct ways *w, unsigned i) {
	return w->way[i].plan.terms[0].level;
}

static void what_was_counted_outlives_a_new_prediction(void **state) {
	struct ways w;

	(void)state;
	ways_start(&w, 1);
	plan_levels(&w, (const unsigned[]){100, 50}, 2);
	count(&w, w.planned, 30);
	plan_levels(&w, (const unsigned[]){20, 10}, 2);
	assert_int_equal(w.n_ways, 2);
	assert_int_equal(w.way[w.planned].plan.predicted[0].missed, 20);
	assert_true(w.way[w.planned].missed[0] == 30);
	/* Of the others only those of the first plan are news. */
	assert_int_equal(w.way[1].plan.predicted[0].missed, 50);
}

static void the_least_predicted_is_tried_first_and_what_is_worse_is_not(void **state) {
	struct ways w;

	(void)state;
	ways_start(&w, 1);
	plan_levels(&w, (const unsigned[]){0, 80, 40, 200}, 4);
	count(&w, 0, 100);
	assert_int_equal(level_of(&w, ways_next(&w, SURE)), 3);
	count(&w, ways_next(&w, SURE), 110);
	assert_int_equal(level_of(&w, ways_next(&w, SURE)), 2);
	count(&w, ways_next(&w, SURE), 300);
	assert_int_equal(level_of(&w, ways_best(&w)), 1);
	assert_true(ways_is_predicted_worse(&w, 3));
	/* Nor one again that no luck makes the best. */
	assert_int_equal(level_of(&w, ways_next(&w, SURE)), 3);
	count(&w, ways_next(&w, SURE), 110);
	assert_int_equal(ways_next(&w, SURE), WAYS_NONE);
}

static void what_is_worse_than_luck_allows_is_clearly_worse(void **state) {
	const struct seen few = {.jobs = 20, .missed = 5}, many = {.jobs = 200, .missed = 50};
	struct ways w;

	(void)state;
	ways_start(&w, 1);
	plan_levels(&w, (const unsigned[]){0, 0}, 2);
	count(&w, 0, 100);
	assert_false(ways_is_clearly_worse(&w, &many, TIME / 5)); /* it is the best itself */
	w.now = 1;
	assert_false(ways_is_clearly_worse(&w, &few, TIME / 50));
	assert_true(ways_is_clearly_worse(&w, &many, TIME / 5));
}

/* And neither the one that holds nor the best. */
static void the_worst_makes_room(void **state) {
	struct ways w;

	(void)state;
	ways_start(&w, 1);
	for (unsigned i = 0; i < WAYS_MAX; i++) {
		count(&w, ways_add(&w, way_of_level(i, 0).terms), 100 * i);
	}
	assert_int_equal(w.now, WAYS_MAX - 1); /* holds, and did worst */
	assert_int_equal(ways_add(&w, way_of_level(WAYS_MAX, 0).terms), WAYS_MAX - 2);
	assert_int_equal(w.n_ways, WAYS_MAX);
	assert_true(w.way[WAYS_MAX - 2].time == 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_counted_outlives_a_new_prediction),
		cmocka_unit_test(the_least_predicted_is_tried_first_and_what_is_worse_is_not),
		cmocka_unit_test(what_is_worse_than_luck_allows_is_clearly_worse),
		cmocka_unit_test(the_worst_makes_room),
	};

	return cmocka_run_group_tests_name("ways", tests, NULL, NULL);
}
