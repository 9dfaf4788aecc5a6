/*
 * tune-world.c: see tune-world.h.
 */
#include "tests/unit/tune-world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

bool give_plan(struct world *w, const struct plan *plan) {
	struct seen seen[MODEL_TASKS_MAX] = {{0}};

	if (w->tune.ways.n_ways > 0) {
		w->does(w, tune_way(&w->tune)->terms, w->time - w->since, seen);
	}
	return tune_plan(&w->tune, plan, seen, w->time - w->since);
}

void make_plan(struct world *w) {
	static nsec_t times[MODEL_TASKS_MAX][PROTO_SMS_MAX + 1];
	struct plan_task slowed[MODEL_TASKS_MAX];
	struct plan plan;

	memcpy(slowed, w->known, w->n * sizeof(*slowed));
	tune_apply(&w->tune, slowed, SMS, times);
	plan_make(&h200, slowed, w->n, PLAN_WHOLE, 0, NULL, &plan);
	w->n_plans++;
	if (give_plan(w, &plan)) {
		w->since = w->time;
	}
}

enum tune_action look(struct world *w) {
	struct seen seen[MODEL_TASKS_MAX];
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

void look_until_kept(struct world *w) {
	for (unsigned i = 0; i < 10000; i++) {
		if (look(w) == TUNE_KEEP) {
			return;
		}
	}
	fail_msg("it never ends");
}

void look_for(struct world *w, nsec_t time) {
	for (nsec_t end = w->time + time; w->time < end;) {
		look(w);
	}
}

const unsigned *late_jobs;
unsigned unreported_jobs;

void does_as_its_level_says(const struct world *w, const struct terms *terms, nsec_t time,
			    struct seen *ret) {
	nsec_t jobs = time / MS;
	nsec_t known = jobs - jobs * unreported_jobs / 1000;

	(void)w;
	*ret = (struct seen){known, known * late_jobs[terms[0].level] / 1000, known * MS,
			     jobs - known};
}

void fake_way(struct plan_way *way, unsigned level) {
	*way = (struct plan_way){
		.terms = {{.steered = true, .level = level}},
		.predicted = {{.released = 1000, .done = 1000, .response = 1000 * MS}},
	};
}

void fake_plan(struct plan *plan, unsigned first, unsigned n) {
	struct plan_way way;

	*plan = (struct plan){.is_predicted = true, .alone = {1}};
	fake_way(&way, first);
	memcpy(plan->terms, way.terms, sizeof(way.terms));
	memcpy(plan->predicted, way.predicted, sizeof(way.predicted));
	for (unsigned i = 0; i < n; i++) {
		if (i != first) {
			fake_way(&plan->others[plan->n_others++], i);
		}
	}
}

struct world fake_world(const unsigned *by_level) {
	struct world w = {.n = 1, .does = does_as_its_level_says};
	struct plan plan;

	late_jobs = by_level;
	unreported_jobs = 0;
	tune_start(&w.tune, 1, WINDOW);
	fake_plan(&plan, 0, LEVELS);
	assert_true(give_plan(&w, &plan));
	return w;
}

unsigned level(const struct world *w) {
	return tune_way(&w->tune)->terms[0].level;
}

bool was_tried(const struct world *w, unsigned level) {
	for (unsigned i = 0; i < w->tune.ways.n_ways; i++) {
		if (w->tune.ways.way[i].plan.terms[0].level == level) {
			return w->tune.ways.way[i].time > 0;
		}
	}
	return false;
}
