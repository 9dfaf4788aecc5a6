/*
 * tune.c: see tune.h.
 */
#include "daemon/core/steer/tune.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "daemon/core/steer/renumber.h"

/* A task is mispredicted if the part of its jobs that is late differs by this from the prediction;
 * its kernels are slower or faster than known if its responses differ as well, by more than plans
 * leave room for (SEARCH_SLOW). A new plan takes seconds, in which the searches for the last one
 * would have gone on. */
#define MISSES_MORE  0.01
#define SLOWER_LEAST 1.1

/* By one window, or as much faster: beyond that responses grow by waiting, not by kernels. In the
 * model, where jobs come to be late, kernels that are 1.2 times as slow make responses 1.2 to 1.4
 * times as long, and those of 1.4 twice and more. */
#define SLOWER_MOST 1.3

/* No kernel is taken to be slower than this, or faster. */
#define SLOW_MAX 4.0

/* Parts of a window: that a way is tried, what passes of it before it is counted, for programs make
 * what the terms need and were late already, and between two looks, at one that is tried and at one
 * that is settled, too. */
#define TRY_PART    5
#define BEGIN_PART  40
#define STEP_PART   20
#define GLANCE_PART 100
#define WATCH_PART  4

/* The best way holds for this part of a window at most until no task is behind. */
#define CLEAR_PART 4

/* Windows of a settled way grow to 2 to the power of this. */
#define REVIEWS_MAX 6

/* Of a task's jobs that are late: from then on it is lost, and not any more. */
#define LOST_PART  0.75
#define SAVED_PART 0.5

/* A way that is predicted to cost so many times what the best one does is not tried: predictions
 * are off by a third (tests/bench/SIMULATOR.md). */
#define NOT_WORTH 1.5

/* A way is clearly worse once it would cost more than the best one in that time without this many
 * of its late jobs, and so many standard deviations of chance. */
#define WORSE_LEAST  3
#define WORSE_CHANCE 2.0

/* A way that was counted for less than this part of a window is tried again if it may be the best:
 * if so many standard deviations of chance would make it so. */
#define UNSURE_PART   2
#define UNSURE_CHANCE 2.0

/* With more of a task's jobs unknown, what is known of the others may be of the fast ones only. */
#define UNREPORTED_MAX 0.01

#define NONE TUNE_WAYS_MAX

void tune_start(struct tune *t, unsigned n, nsec_t window) {
	*t = (struct tune){.n = n, .window = window, .planned = NONE};
	for (unsigned i = 0; i < n; i++) {
		t->slow[i] = 1;
	}
}

const struct plan_way *tune_way(const struct tune *t) {
	assert(t->n_ways > 0);
	return &t->ways[t->now].way;
}

void tune_apply(const struct tune *t, struct plan_task *tasks, unsigned sms,
		nsec_t times[][PROTO_SMS_MAX + 1]) {
	for (unsigned i = 0; i < t->n; i++) {
		if (!tasks[i].known || t->slow[i] == 1) {
			continue;
		}
		for (unsigned m = 1; m <= sms; m++) {
			times[i][m] = (nsec_t)((double)tasks[i].model.kernels[m] * t->slow[i]);
		}
		tasks[i].model.kernels = times[i];
	}
}

const char *tune_action_name(enum tune_action action) {
	switch (action) {
	case TUNE_WAIT:
		return "wait";
	case TUNE_TRY:
		return "try";
	case TUNE_BACK:
		return "back";
	case TUNE_PLAN:
		return "plan";
	case TUNE_KEEP:
		return "keep";
	}
	return NULL;
}

/* The same for one that is settled. */
static nsec_t watch_window(const struct tune *t) {
	return t->window << (t->reviews < REVIEWS_MAX ? t->reviews : REVIEWS_MAX);
}

nsec_t tune_step(const struct tune *t) {
	return (t->settled		   ? watch_window(t) / WATCH_PART
		: t->trying || t->clearing ? t->window / GLANCE_PART
					   : t->window / STEP_PART) +
	       1;
}

/* ---- ways ---- */

static unsigned find_way(const struct tune *t, const struct terms *terms) {
	for (unsigned i = 0; i < t->n_ways; i++) {
		bool same = true;

		for (unsigned k = 0; same && k < t->n; k++) {
			same = terms_equal(&t->ways[i].way.terms[k], &terms[k]);
		}
		if (same) {
			return i;
		}
	}
	return NONE;
}

/* How much of each task's jobs MPS alone would have late. */
static void parts_alone(const struct tune *t, double *ret) {
	struct terms whole[MODEL_TASKS_MAX];
	unsigned i;

	for (unsigned k = 0; k < t->n; k++) {
		whole[k] = (struct terms){.steered = true};
	}
	i = find_way(t, whole);
	for (unsigned k = 0; k < t->n; k++) {
		const struct tune_way *way = i != NONE ? &t->ways[i] : NULL;

		ret[k] = way && way->jobs[k] >= SEEN_JOBS_MIN ? way->missed[k] / way->jobs[k]
							      : t->alone[k];
	}
}

/* If this part of what was seen to be late had been. */
static double cost_of_part(const struct tune *t, const struct tune_way *way, double seen) {
	double late = 0, jobs = 0, part[MODEL_TASKS_MAX], alone[MODEL_TASKS_MAX];

	parts_alone(t, alone);
	for (unsigned i = 0; i < t->n; i++) {
		double missed = way->missed[i] * seen;

		/* A single late job may be chance. */
		part[i] = missed > 1 ? (missed - 1) / way->jobs[i] : 0;
		late += missed;
		jobs += way->jobs[i];
	}
	return late + model_worse(part, alone, t->n, jobs);
}

double tune_cost(const struct tune *t, const struct tune_way *way) {
	return cost_of_part(t, way, 1);
}

static double rate(const struct tune *t, unsigned way) {
	return tune_cost(t, &t->ways[way]) / (double)t->ways[way].time;
}

/* The way that costs least; NONE: none was counted. */
static unsigned best_way(const struct tune *t) {
	double least = INFINITY, cost;
	unsigned best = NONE;

	for (unsigned i = 0; i < t->n_ways; i++) {
		cost = t->ways[i].time > 0 ? rate(t, i) : INFINITY;
		if (cost < least) {
			best = i;
			least = cost;
		}
	}
	return best;
}

/* How long the way that holds should be counted: the first one as if it were tried. */
static nsec_t window(const struct tune *t) {
	nsec_t window = t->window;

	for (unsigned i = 0; i < t->round; i++) {
		window += window / 2;
	}
	return t->trying || t->round == 0 ? t->window / TRY_PART : window;
}

/* What @way is predicted to cost if there are as many jobs as were seen last. */
static double predicted_cost(const struct tune *t, const struct plan_way *way) {
	double late = 0, jobs = 0, part[MODEL_TASKS_MAX], alone[MODEL_TASKS_MAX];

	parts_alone(t, alone);
	for (unsigned i = 0; i < t->n; i++) {
		double n = seen_jobs(&t->recent[i]);

		part[i] = model_result_late(&way->predicted[i]);
		late += part[i] * n;
		jobs += n;
	}
	return late + model_worse(part, alone, t->n, jobs);
}

/* Whether a trial of @way would cost late jobs, and not be worth it. */
static bool is_predicted_worse(const struct tune *t, unsigned way) {
	unsigned best = best_way(t);

	return best != NONE && predicted_cost(t, &t->ways[way].way) >=
				       NOT_WORTH * rate(t, best) * (double)t->recent_time;
}

/* The way that was not counted yet and is predicted to cost least, if it may be worth it; NONE:
 * there is none. */
static unsigned untried_way(const struct tune *t) {
	double cost, least = INFINITY;
	unsigned next = NONE;

	for (unsigned i = 0; i < t->n_ways; i++) {
		cost = predicted_cost(t, &t->ways[i].way);
		if (t->ways[i].time == 0 && i != t->now && cost < least) {
			next = i;
			least = cost;
		}
	}
	return next != NONE && !is_predicted_worse(t, next) ? next : NONE;
}

/* What @way costs at least, by chance. */
static double least_rate(const struct tune *t, const struct tune_way *way) {
	double late = 0;

	for (unsigned i = 0; i < t->n; i++) {
		late += way->missed[i];
	}
	return late > 0 ? cost_of_part(t, way, fmax(1 - UNSURE_CHANCE / sqrt(late), 0)) /
				  (double)way->time
			: 0;
}

/* Of the ways that were counted for a moment only, and may be better than the best, the one that
 * seems so most; NONE: there is none. */
static unsigned unsure_way(const struct tune *t) {
	unsigned best = best_way(t), next = NONE;
	double least = best != NONE ? rate(t, best) : 0, cost;

	for (unsigned i = 0; i < t->n_ways; i++) {
		const struct tune_way *way = &t->ways[i];

		if (i == best || i == t->now || way->time == 0 ||
		    way->time >= t->window / UNSURE_PART) {
			continue;
		}
		cost = least_rate(t, way);
		if (cost < least) {
			next = i;
			least = cost;
		}
	}
	return next;
}

/* Of those that neither hold nor are the best, the one that did worst. */
static unsigned least_way(const struct tune *t) {
	unsigned best = best_way(t), least = NONE;

	for (unsigned i = 0; i < t->n_ways; i++) {
		if (i == t->now || i == best) {
			continue;
		}
		if (least == NONE || (t->ways[i].time > 0 &&
				      (t->ways[least].time == 0 || rate(t, i) > rate(t, least)))) {
			least = i;
		}
	}
	return least;
}

/* Its place, a new one or that of the same terms, of which the prediction is a newer one now. */
static unsigned add_way(struct tune *t, const struct terms *terms,
			const struct model_result *predicted, const nsec_t *tail) {
	unsigned i = find_way(t, terms);

	if (i == NONE) {
		i = t->n_ways < TUNE_WAYS_MAX ? t->n_ways++ : least_way(t);
		t->ways[i] = (struct tune_way){.time = 0};
	}
	memcpy(t->ways[i].way.terms, terms, t->n * sizeof(*terms));
	memcpy(t->ways[i].way.predicted, predicted, t->n * sizeof(*predicted));
	memcpy(t->ways[i].way.tail, tail, t->n * sizeof(*tail));
	memcpy(t->ways[i].slow, t->slow, t->n * sizeof(*t->slow));
	return i;
}

static void hold(struct tune *t, unsigned way, bool trying) {
	t->now = way;
	t->trying = trying;
	t->clearing = t->counts = t->has_reference = t->odd = false;
	t->from = 0;
	memset(t->before, 0, sizeof(t->before));
}

void tune_resume(struct tune *t) {
	unsigned best = best_way(t);

	hold(t, t->trying && best != NONE ? best : t->now, false);
}

static void forget_count(struct tune_way *way) {
	memset(way->jobs, 0, sizeof(way->jobs));
	memset(way->missed, 0, sizeof(way->missed));
	way->time = 0;
}

void tune_again(struct tune *t) {
	if (t->n_ways > 0) {
		t->ways[0] = t->ways[t->now];
		forget_count(&t->ways[0]);
		t->n_ways = 1;
	}
	t->planned = t->planned == NONE ? NONE : 0;
	t->round = t->reviews = 0;
	t->settled = t->quiet = false;
	hold(t, 0, false);
}

/* What was counted of @other was of @way. */
static void merge_way(struct tune_way *way, const struct tune_way *other, unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		way->jobs[i] += other->jobs[i];
		way->missed[i] += other->missed[i];
	}
	way->time += other->time;
}

/* Drops ways that were not counted, for the next plan brings others, and those that are the same
 * now that some tasks are gone. */
static void drop_ways(struct tune *t) {
	unsigned n = t->n_ways;

	t->n_ways = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned to = find_way(t, t->ways[i].way.terms);

		if (to != NONE) {
			merge_way(&t->ways[to], &t->ways[i], t->n);
		} else if (i == t->now || t->ways[i].time > 0) {
			to = t->n_ways++;
			t->ways[to] = t->ways[i];
		} else {
			to = t->now;
		}
		t->planned = t->planned == i ? to : t->planned;
		t->now = t->now == i ? to : t->now;
	}
}

static void renumber_way(struct tune_way *way, const int *from, unsigned n) {
	renumber(way->slow, sizeof(*way->slow), from, n);
	renumber(way->jobs, sizeof(*way->jobs), from, n);
	renumber(way->missed, sizeof(*way->missed), from, n);
	for (unsigned i = 0; i < n; i++) {
		way->slow[i] = from[i] < 0 ? 1 : way->slow[i];
	}
}

void tune_move(struct tune *t, const struct plan_gpu *gpu, const struct plan_task *tasks,
	       const int *from, unsigned n) {
	t->n = n;
	t->reviews = 0; /* who has come may do other things */
	for (unsigned i = 0; i < t->n_ways; i++) {
		plan_way_move(gpu, tasks, from, n, &t->ways[i].way);
		renumber_way(&t->ways[i], from, n);
	}
	drop_ways(t);
	renumber(t->slow, sizeof(*t->slow), from, n);
	renumber(t->alone, sizeof(*t->alone), from, n);
	renumber(t->before, sizeof(*t->before), from, n);
	renumber(t->recent, sizeof(*t->recent), from, n);
	renumber(t->lost, sizeof(*t->lost), from, n);
	renumber(t->reference, sizeof(*t->reference), from, n);
	for (unsigned i = 0; i < n; i++) {
		t->slow[i] = from[i] < 0 ? 1 : t->slow[i];
	}
}

/* ---- what was seen ---- */

/* By how much more of its jobs were late than predicted; < 0: less; 0: too little is known. */
static double misprediction(const struct model_result *predicted, const struct seen *seen) {
	double more = seen_late(seen) - model_result_late(predicted);
	bool known = seen->jobs >= SEEN_JOBS_MIN && predicted->done > 0 &&
		     (double)seen->unreported / (double)seen->jobs <= UNREPORTED_MAX;

	return known && fabs(more) > MISSES_MORE ? more : 0;
}

static double mean(nsec_t sum, uint64_t n) {
	return n ? (double)sum / (double)n : 0;
}

/* Whether a task that misses more, or less, than predicted is slower, or faster, than it was taken
 * for. */
static bool correct(struct tune *t, const struct seen *seen) {
	const struct tune_way *way = &t->ways[t->now];
	const struct model_result *predicted = way->way.predicted;
	bool any = false;

	for (unsigned i = 0; i < t->n; i++) {
		double more = misprediction(&predicted[i], &seen[i]), slower, slow;

		if (more == 0) {
			continue;
		}
		slower = mean(seen[i].response, seen[i].jobs - (uint64_t)seen[i].behind) /
			 mean(predicted[i].response, predicted[i].done);
		if (more > 0 ? slower <= SLOWER_LEAST : slower >= 1 / SLOWER_LEAST) {
			continue;
		}
		slower = fmin(fmax(slower, 1 / SLOWER_MOST), SLOWER_MOST);
		slow = fmin(fmax(way->slow[i] * slower, 1 / SLOW_MAX), SLOW_MAX);
		any |= slow != t->slow[i];
		t->slow[i] = slow;
	}
	return any;
}

static void count_from(struct tune *t, const struct seen *seen, nsec_t time) {
	t->counts = true;
	t->from = time;
	memcpy(t->before, seen, t->n * sizeof(*seen));
}

/* The way that holds was counted until now. */
static void add_counted(struct tune *t, const struct seen *part, nsec_t time) {
	struct tune_way *way = &t->ways[t->now];

	for (unsigned i = 0; i < t->n; i++) {
		double all = seen_jobs(&part[i]);

		way->jobs[i] += all;
		way->missed[i] += seen_late(&part[i]) * all;
	}
	way->time += time - t->from + 1;
}

/* Fewer jobs, as in a short try, leave it as it was. */
static void see_lost(struct tune *t, const struct seen *part) {
	for (unsigned i = 0; i < t->n; i++) {
		if (part[i].jobs >= SEEN_JOBS_MIN) {
			t->lost[i] = seen_late(&part[i]) >= (t->lost[i] ? SAVED_PART : LOST_PART);
		}
	}
}

/* ---- plans ---- */

/* Another way is about to hold, before a window of this one is over. */
static void add_rest(struct tune *t, const struct seen *seen, nsec_t time) {
	struct seen part[MODEL_TASKS_MAX], all = seen_count(seen, t->before, t->n, part);

	if (!t->settled && !t->clearing && all.jobs >= SEEN_JOBS_MIN) {
		add_counted(t, part, time);
	}
}

void tune_rule(struct tune *t, const struct terms *terms) {
	const struct model_result unknown[MODEL_TASKS_MAX] = {0};
	const nsec_t tail[MODEL_TASKS_MAX] = {0};

	hold(t, add_way(t, terms, unknown, tail), false);
}

static double predicted_part(const struct tune *t, const struct model_result *predicted) {
	const struct model_result all = model_result_sum(predicted, t->n);

	return model_result_late(&all);
}

/* Whether @plan has nothing to offer: no job is late, nor more predicted to be than with @plan.
 * Only that no job was late says little, for tasks that seldom have one may have had none yet. */
static bool offers_nothing(const struct tune *t, const struct plan *plan) {
	return t->quiet && predicted_part(t, plan->predicted) >=
				   predicted_part(t, t->ways[t->now].way.predicted);
}

bool tune_plan(struct tune *t, const struct plan *plan, const struct seen *seen, nsec_t time) {
	bool any = t->n_ways > 0, first = t->planned == NONE;
	bool judged = t->round > 0 && !t->quiet;
	unsigned i, before = t->now;

	if (offers_nothing(t, plan)) {
		return false;
	}
	memcpy(t->alone, plan->alone, t->n * sizeof(*t->alone));
	i = t->planned = add_way(t, plan->terms, plan->predicted, plan->tail);
	for (unsigned k = 0; k < plan->n_others && t->n_ways < TUNE_WAYS_MAX; k++) {
		const struct plan_way *o = &plan->others[k];

		if (first || find_way(t, o->terms) == NONE) {
			add_way(t, o->terms, o->predicted, o->tail);
		}
	}
	if (!judged && (first || i != before)) {
		if (any) {
			add_rest(t, seen, time);
		}
		t->settled = t->quiet = false;
		t->round = 0;
		hold(t, i, false);
		return true;
	}
	/* If it is none of those that were counted; while others are tried its turn comes. */
	if (t->trying || i == before || t->ways[i].time > 0 || is_predicted_worse(t, i)) {
		return false;
	}
	add_rest(t, seen, time);
	t->settled = false;
	hold(t, i, true);
	return true;
}

/* ---- the end of a window ---- */

/* @part: of each task, what was counted in @time. */
static bool is_clearly_worse(const struct tune *t, const struct seen *part, nsec_t time) {
	struct tune_way way = {.time = time};
	unsigned best = best_way(t);
	double late = 0, luck;

	if (t->settled || best == NONE || best == t->now) {
		return false;
	}
	for (unsigned i = 0; i < t->n; i++) {
		way.jobs[i] = (double)part[i].jobs;
		way.missed[i] = (double)part[i].missed;
		late += way.missed[i];
	}
	luck = WORSE_LEAST + WORSE_CHANCE * sqrt(late);
	return late > luck && cost_of_part(t, &way, 1 - luck / late) > rate(t, best) * (double)time;
}

static void refer_to(struct tune *t, const struct seen *part, nsec_t time) {
	t->has_reference = true;
	t->reference_time = time;
	memcpy(t->reference, part, t->n * sizeof(*part));
}

/* The way that holds stays, after @part. */
static enum tune_action settle(struct tune *t, const struct seen *seen, nsec_t time,
			       const struct seen *part, bool quiet) {
	t->settled = true;
	t->quiet = quiet;
	t->odd = false;
	refer_to(t, part, time - t->from);
	count_from(t, seen, time);
	return TUNE_KEEP;
}

/* All were tried that could be: the best way holds for a whole window, or for good. */
static enum tune_action hold_best(struct tune *t, const struct seen *seen, nsec_t time,
				  const struct seen *part) {
	unsigned best = best_way(t);
	bool tried = t->trying, same = best == t->now, over = t->round >= TUNE_ROUNDS_MAX;

	if (!same || tried) {
		t->settled |= over;
		hold(t, best, false);
		return TUNE_BACK;
	}
	if (over || !t->ask) {
		return settle(t, seen, time, part, false);
	}
	count_from(t, seen, time);
	return TUNE_PLAN;
}

/* Another way that may be the best; NONE: there is none. */
static unsigned next_way(const struct tune *t) {
	unsigned next = t->round < TUNE_ROUNDS_MAX ? untried_way(t) : NONE;

	return next != NONE || t->round >= TUNE_ROUNDS_MAX ? next : unsure_way(t);
}

/* @anew: a settled way did something else than before. */
static enum tune_action after_window(struct tune *t, const struct seen *seen, nsec_t time,
				     const struct seen *part, uint64_t missed, bool anew) {
	unsigned next;

	if (!t->trying) {
		t->round++;
		t->recent_time = time - t->from;
		memcpy(t->recent, part, t->n * sizeof(*part));
		if (missed == 0) {
			return settle(t, seen, time, part, true);
		}
		t->ask = (anew || t->now == t->planned) && t->round < TUNE_ROUNDS_MAX &&
			 correct(t, part);
	}
	next = missed > 0 ? next_way(t) : NONE;
	if (next == NONE) {
		return hold_best(t, seen, time, part);
	}
	if (seen_behind(seen, t->n) && t->now != best_way(t)) {
		hold(t, best_way(t), false);
		t->clearing = true;
		return TUNE_BACK;
	}
	hold(t, next, true);
	return TUNE_TRY;
}

/* A way holds that is not counted yet. */
static enum tune_action before_window(struct tune *t, const struct seen *seen, nsec_t time) {
	nsec_t part = t->trying ? BEGIN_PART : seen_behind(seen, t->n) ? CLEAR_PART : STEP_PART;
	unsigned next;

	if (time < t->window / part) {
		return TUNE_WAIT;
	}
	next = t->clearing ? next_way(t) : NONE;
	if (next != NONE) {
		hold(t, next, true);
		return TUNE_TRY;
	}
	t->clearing = false;
	count_from(t, seen, time);
	return TUNE_WAIT;
}

/* ---- a settled way ---- */

/* Whether any task does something else than when the way settled. */
static bool do_differently(const struct tune *t, const struct seen *part, nsec_t time) {
	for (unsigned i = 0; i < t->n; i++) {
		if (seen_differs(&t->reference[i], t->reference_time, &part[i], time)) {
			return true;
		}
	}
	return false;
}

/* After a window of a settled way. If no job is late, no other way can do better. Return: whether
 * all ways are to be looked at again. */
static bool is_to_review(struct tune *t, const struct seen *part, nsec_t time, uint64_t missed) {
	bool odd = t->has_reference && missed > 0 && do_differently(t, part, time);
	bool again = odd && t->odd;

	if (!t->has_reference) {
		refer_to(t, part, time);
	}
	t->odd = odd && !again;
	return again;
}

static void forget_counts(struct tune *t) {
	for (unsigned i = 0; i < t->n_ways; i++) {
		forget_count(&t->ways[i]);
	}
}

enum tune_action tune_judge(struct tune *t, const struct seen *seen, nsec_t time, bool *ret_ask) {
	struct seen part[MODEL_TASKS_MAX], all;
	enum tune_action action, wait = t->settled ? TUNE_KEEP : TUNE_WAIT;
	bool over, anew = false;

	*ret_ask = false;
	if (t->n_ways == 0) {
		return TUNE_KEEP;
	}
	if (!t->counts) {
		action = before_window(t, seen, time);
		return action == TUNE_WAIT ? wait : action;
	}
	all = seen_count(seen, t->before, t->n, part);
	see_lost(t, part);
	over = time - t->from >= (t->settled ? watch_window(t) : window(t)) &&
	       all.jobs >= SEEN_JOBS_MIN;
	if (!over && !is_clearly_worse(t, part, time - t->from)) {
		return wait;
	}
	if (t->settled) {
		if (!is_to_review(t, part, time - t->from, all.missed)) {
			count_from(t, seen, time);
			return TUNE_KEEP;
		}
		anew = true;
		t->settled = t->quiet = false;
		t->reviews++;
		t->round = 0;
		forget_counts(t);
	}
	add_counted(t, part, time);
	t->ask = false;
	action = after_window(t, seen, time, part, all.missed, anew);
	*ret_ask = t->ask;
	return action;
}
