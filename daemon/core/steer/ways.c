/*
 * ways.c: see ways.h.
 */
#include "daemon/core/steer/ways.h"

#include <math.h>
#include <string.h>

#include "daemon/core/steer/renumber.h"

/* A way that is predicted to cost so many times what the best one does is not tried: predictions
 * are off by a third (tests/bench/SIMULATOR.md). */
#define NOT_WORTH 1.5

/* A way is clearly worse once it would cost more than the best one in that time without this many
 * of its late jobs, and so many standard deviations of chance. */
#define WORSE_LEAST  3
#define WORSE_CHANCE 2.0

/* A way that was counted for a moment only is tried again if so many standard deviations of chance
 * would make it the best. */
#define UNSURE_CHANCE 2.0

void ways_start(struct ways *w, unsigned n) {
	*w = (struct ways){.n = n, .planned = WAYS_NONE};
}

/* ---- what they cost ---- */

static unsigned find(const struct ways *w, const struct terms *terms) {
	for (unsigned i = 0; i < w->n_ways; i++) {
		bool same = true;

		for (unsigned k = 0; same && k < w->n; k++) {
			same = terms_equal(&w->way[i].plan.terms[k], &terms[k]);
		}
		if (same) {
			return i;
		}
	}
	return WAYS_NONE;
}

/* How much of each task's jobs MPS alone would have late. */
static void parts_alone(const struct ways *w, double *ret) {
	struct terms whole[MODEL_TASKS_MAX];
	unsigned i;

	for (unsigned k = 0; k < w->n; k++) {
		whole[k] = (struct terms){.steered = true};
	}
	i = find(w, whole);
	for (unsigned k = 0; k < w->n; k++) {
		const struct way *way = i != WAYS_NONE ? &w->way[i] : NULL;

		ret[k] = way && way->jobs[k] >= SEEN_JOBS_MIN ? way->missed[k] / way->jobs[k]
							      : w->alone[k];
	}
}

/* If this part of what was seen to be late had been. */
static double cost_of_part(const struct ways *w, const struct way *way, double seen) {
	double late = 0, jobs = 0, part[MODEL_TASKS_MAX], alone[MODEL_TASKS_MAX];

	parts_alone(w, alone);
	for (unsigned i = 0; i < w->n; i++) {
		double missed = way->missed[i] * seen;

		/* A single late job may be chance. */
		part[i] = missed > 1 ? (missed - 1) / way->jobs[i] : 0;
		late += missed;
		jobs += way->jobs[i];
	}
	return late + model_worse(part, alone, w->n, jobs);
}

double ways_rate(const struct ways *w, unsigned i) {
	return cost_of_part(w, &w->way[i], 1) / (double)w->way[i].time;
}

unsigned ways_best(const struct ways *w) {
	double least = INFINITY, cost;
	unsigned best = WAYS_NONE;

	for (unsigned i = 0; i < w->n_ways; i++) {
		cost = w->way[i].time > 0 ? ways_rate(w, i) : INFINITY;
		if (cost < least) {
			best = i;
			least = cost;
		}
	}
	return best;
}

bool ways_is_clearly_worse(const struct ways *w, const struct seen *part, nsec_t time) {
	struct way way = {.time = time};
	unsigned best = ways_best(w);
	double late = 0, luck;

	if (best == WAYS_NONE || best == w->now) {
		return false;
	}
	for (unsigned i = 0; i < w->n; i++) {
		way.jobs[i] = (double)part[i].jobs;
		way.missed[i] = (double)part[i].missed;
		late += way.missed[i];
	}
	luck = WORSE_LEAST + WORSE_CHANCE * sqrt(late);
	return late > luck &&
	       cost_of_part(w, &way, 1 - luck / late) > ways_rate(w, best) * (double)time;
}

/* ---- which one to try ---- */

/* What a way is predicted to cost if there are as many jobs as were seen last. */
static double predicted_cost(const struct ways *w, unsigned way) {
	double late = 0, jobs = 0, part[MODEL_TASKS_MAX], alone[MODEL_TASKS_MAX];

	parts_alone(w, alone);
	for (unsigned i = 0; i < w->n; i++) {
		part[i] = model_result_late(&w->way[way].plan.predicted[i]);
		late += part[i] * w->recent[i];
		jobs += w->recent[i];
	}
	return late + model_worse(part, alone, w->n, jobs);
}

bool ways_is_predicted_worse(const struct ways *w, unsigned i) {
	unsigned best = ways_best(w);

	return best != WAYS_NONE &&
	       predicted_cost(w, i) >= NOT_WORTH * ways_rate(w, best) * (double)w->recent_time;
}

/* The way that was not counted yet and is predicted to cost least, if it may be worth it. */
static unsigned untried(const struct ways *w) {
	double cost, least = INFINITY;
	unsigned next = WAYS_NONE;

	for (unsigned i = 0; i < w->n_ways; i++) {
		cost = predicted_cost(w, i);
		if (w->way[i].time == 0 && i != w->now && cost < least) {
			next = i;
			least = cost;
		}
	}
	return next != WAYS_NONE && !ways_is_predicted_worse(w, next) ? next : WAYS_NONE;
}

/* What @way costs at least, by chance. */
static double least_rate(const struct ways *w, const struct way *way) {
	double late = 0;

	for (unsigned i = 0; i < w->n; i++) {
		late += way->missed[i];
	}
	return late > 0 ? cost_of_part(w, way, fmax(1 - UNSURE_CHANCE / sqrt(late), 0)) /
				  (double)way->time
			: 0;
}

/* Of the ways that were counted for a moment only, and may be better than the best, the one that
 * seems so most. */
static unsigned unsure(const struct ways *w, nsec_t sure) {
	unsigned best = ways_best(w), next = WAYS_NONE;
	double least = best != WAYS_NONE ? ways_rate(w, best) : 0, cost;

	for (unsigned i = 0; i < w->n_ways; i++) {
		const struct way *way = &w->way[i];

		if (i == best || i == w->now || way->time == 0 || way->time >= sure) {
			continue;
		}
		cost = least_rate(w, way);
		if (cost < least) {
			next = i;
			least = cost;
		}
	}
	return next;
}

unsigned ways_next(const struct ways *w, nsec_t sure) {
	unsigned next = untried(w);

	return next != WAYS_NONE ? next : unsure(w, sure);
}

/* ---- which ones there are ---- */

/* Of those that neither hold nor are the best, the one that did worst. */
static unsigned worst(const struct ways *w) {
	unsigned best = ways_best(w), worst = WAYS_NONE;

	for (unsigned i = 0; i < w->n_ways; i++) {
		if (i == w->now || i == best) {
			continue;
		}
		if (worst == WAYS_NONE ||
		    (w->way[i].time > 0 &&
		     (w->way[worst].time == 0 || ways_rate(w, i) > ways_rate(w, worst)))) {
			worst = i;
		}
	}
	return worst;
}

unsigned ways_add(struct ways *w, const struct terms *terms) {
	unsigned i = find(w, terms);

	if (i == WAYS_NONE) {
		i = w->n_ways < WAYS_MAX ? w->n_ways++ : worst(w);
		w->way[i] = (struct way){.time = 0};
	}
	memcpy(w->way[i].plan.terms, terms, w->n * sizeof(*terms));
	return i;
}

/* A new way, or one that is known, of which the prediction is a newer one now. */
static unsigned add_predicted(struct ways *w, const struct terms *terms,
			      const struct model_result *predicted, const nsec_t *tail,
			      const double *slow) {
	unsigned i = ways_add(w, terms);
	struct way *way = &w->way[i];

	memcpy(way->plan.predicted, predicted, w->n * sizeof(*predicted));
	memcpy(way->plan.tail, tail, w->n * sizeof(*tail));
	memcpy(way->slow, slow, w->n * sizeof(*slow));
	return i;
}

void ways_plan(struct ways *w, const struct plan *plan, const double *slow) {
	bool first = w->planned == WAYS_NONE;

	memcpy(w->alone, plan->alone, w->n * sizeof(*w->alone));
	w->planned = add_predicted(w, plan->terms, plan->predicted, plan->tail, slow);
	for (unsigned k = 0; k < plan->n_others && w->n_ways < WAYS_MAX; k++) {
		const struct plan_way *o = &plan->others[k];

		if (first || find(w, o->terms) == WAYS_NONE) {
			add_predicted(w, o->terms, o->predicted, o->tail, slow);
		}
	}
}

/* What was counted of @other was of @way. */
static void merge(struct way *way, const struct way *other, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		way->jobs[i] += other->jobs[i];
		way->missed[i] += other->missed[i];
	}
	way->time += other->time;
}

/* Drops ways that were not counted, or are the same as others. */
static void drop(struct ways *w) {
	unsigned n = w->n_ways;

	w->n_ways = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned to = find(w, w->way[i].plan.terms);

		if (to != WAYS_NONE) {
			merge(&w->way[to], &w->way[i], w->n);
		} else if (i == w->now || w->way[i].time > 0) {
			to = w->n_ways++;
			w->way[to] = w->way[i];
		} else {
			to = w->now;
		}
		w->planned = w->planned == i ? to : w->planned;
		w->now = w->now == i ? to : w->now;
	}
}

static void renumber_way(struct way *way, const int *from, unsigned n) {
	renumber(way->slow, sizeof(*way->slow), from, n);
	renumber(way->jobs, sizeof(*way->jobs), from, n);
	renumber(way->missed, sizeof(*way->missed), from, n);
	for (unsigned i = 0; i < n; i++) {
		way->slow[i] = from[i] < 0 ? 1 : way->slow[i];
	}
}

void ways_move(struct ways *w, const struct plan_gpu *gpu, const struct plan_task *tasks,
	       const int *from, unsigned n) {
	w->n = n;
	for (unsigned i = 0; i < w->n_ways; i++) {
		plan_way_move(gpu, tasks, from, n, &w->way[i].plan);
		renumber_way(&w->way[i], from, n);
	}
	drop(w);
	renumber(w->alone, sizeof(*w->alone), from, n);
	renumber(w->recent, sizeof(*w->recent), from, n);
}

/* ---- what was counted ---- */

static void forget_count(struct way *way) {
	memset(way->jobs, 0, sizeof(way->jobs));
	memset(way->missed, 0, sizeof(way->missed));
	way->time = 0;
}

void ways_keep_now(struct ways *w) {
	if (w->n_ways > 0) {
		w->way[0] = w->way[w->now];
		forget_count(&w->way[0]);
		w->n_ways = 1;
	}
	w->now = 0;
	w->planned = w->planned == WAYS_NONE ? WAYS_NONE : 0;
}

void ways_forget_counts(struct ways *w) {
	for (unsigned i = 0; i < w->n_ways; i++) {
		forget_count(&w->way[i]);
	}
}

void ways_count(struct ways *w, const struct seen *part, nsec_t time) {
	struct way *way = &w->way[w->now];

	for (unsigned i = 0; i < w->n; i++) {
		double jobs = seen_jobs(&part[i]);

		way->jobs[i] += jobs;
		way->missed[i] += seen_late(&part[i]) * jobs;
	}
	way->time += time;
}

void ways_expect(struct ways *w, const struct seen *part, nsec_t time) {
	for (unsigned i = 0; i < w->n; i++) {
		w->recent[i] = seen_jobs(&part[i]);
	}
	w->recent_time = time;
}
