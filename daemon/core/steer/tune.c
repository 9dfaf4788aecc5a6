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

/* A way that was counted for less than this part of a window is tried again if it may be the best.
 */
#define UNSURE_PART 2

/* With more of a task's jobs unknown, what is known of the others may be of the fast ones only. */
#define UNREPORTED_MAX 0.01

void tune_start(struct tune *t, unsigned n, nsec_t window) {
	*t = (struct tune){.window = window};
	ways_start(&t->ways, n);
	for (unsigned i = 0; i < n; i++) {
		t->slow[i] = 1;
	}
}

const struct plan_way *tune_way(const struct tune *t) {
	assert(t->ways.n_ways > 0);
	return &t->ways.way[t->ways.now].plan;
}

void tune_apply(const struct tune *t, struct plan_task *tasks, unsigned sms,
		nsec_t times[][PROTO_SMS_MAX + 1]) {
	for (unsigned i = 0; i < t->ways.n; i++) {
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

/* How long the way that holds should be counted: the first one as if it were tried. */
static nsec_t window(const struct tune *t) {
	nsec_t window = t->window;

	for (unsigned i = 0; i < t->round; i++) {
		window += window / 2;
	}
	return t->trying || t->round == 0 ? t->window / TRY_PART : window;
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

/* ---- which tasks, and which way holds ---- */

static void hold(struct tune *t, unsigned way, bool trying) {
	t->ways.now = way;
	t->trying = trying;
	t->clearing = t->counts = t->has_reference = t->odd = false;
	t->from = 0;
	memset(t->before, 0, sizeof(t->before));
}

void tune_resume(struct tune *t) {
	unsigned best = ways_best(&t->ways);

	hold(t, t->trying && best != WAYS_NONE ? best : t->ways.now, false);
}

void tune_again(struct tune *t) {
	ways_keep_now(&t->ways);
	t->round = t->reviews = 0;
	t->settled = t->quiet = false;
	hold(t, 0, false);
}

void tune_move(struct tune *t, const struct plan_gpu *gpu, const struct plan_task *tasks,
	       const int *from, unsigned n) {
	t->reviews = 0; /* who has come may do other things */
	ways_move(&t->ways, gpu, tasks, from, n);
	renumber(t->slow, sizeof(*t->slow), from, n);
	renumber(t->before, sizeof(*t->before), from, n);
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
	const struct way *way = &t->ways.way[t->ways.now];
	const struct model_result *predicted = way->plan.predicted;
	bool any = false;

	for (unsigned i = 0; i < t->ways.n; i++) {
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
	memcpy(t->before, seen, t->ways.n * sizeof(*seen));
}

/* The way that holds was counted until now. */
static void add_counted(struct tune *t, const struct seen *part, nsec_t time) {
	ways_count(&t->ways, part, time - t->from + 1);
}

/* Fewer jobs, as in a short try, leave it as it was. */
static void see_lost(struct tune *t, const struct seen *part) {
	for (unsigned i = 0; i < t->ways.n; i++) {
		if (part[i].jobs >= SEEN_JOBS_MIN) {
			t->lost[i] = seen_late(&part[i]) >= (t->lost[i] ? SAVED_PART : LOST_PART);
		}
	}
}

/* ---- plans ---- */

/* Another way is about to hold, before a window of this one is over. */
static void add_rest(struct tune *t, const struct seen *seen, nsec_t time) {
	struct seen part[MODEL_TASKS_MAX], all = seen_count(seen, t->before, t->ways.n, part);

	if (!t->settled && !t->clearing && all.jobs >= SEEN_JOBS_MIN) {
		add_counted(t, part, time);
	}
}

void tune_rule(struct tune *t, const struct terms *terms) {
	hold(t, ways_add(&t->ways, terms), false);
}

static double predicted_part(const struct tune *t, const struct model_result *predicted) {
	const struct model_result all = model_result_sum(predicted, t->ways.n);

	return model_result_late(&all);
}

/* Whether @plan has nothing to offer: no job is late, nor more predicted to be than with @plan.
 * Only that no job was late says little, for tasks that seldom have one may have had none yet. */
static bool offers_nothing(const struct tune *t, const struct plan *plan) {
	return t->quiet &&
	       predicted_part(t, plan->predicted) >= predicted_part(t, tune_way(t)->predicted);
}

bool tune_plan(struct tune *t, const struct plan *plan, const struct seen *seen, nsec_t time) {
	bool any = t->ways.n_ways > 0, first = t->ways.planned == WAYS_NONE;
	bool judged = t->round > 0 && !t->quiet;
	unsigned i, before = t->ways.now;

	if (offers_nothing(t, plan)) {
		return false;
	}
	ways_plan(&t->ways, plan, t->slow);
	i = t->ways.planned;
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
	if (t->trying || i == before || t->ways.way[i].time > 0 ||
	    ways_is_predicted_worse(&t->ways, i)) {
		return false;
	}
	add_rest(t, seen, time);
	t->settled = false;
	hold(t, i, true);
	return true;
}

/* ---- the end of a window ---- */

static void refer_to(struct tune *t, const struct seen *part, nsec_t time) {
	t->has_reference = true;
	t->reference_time = time;
	memcpy(t->reference, part, t->ways.n * sizeof(*part));
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
	unsigned best = ways_best(&t->ways);
	bool tried = t->trying, same = best == t->ways.now, over = t->round >= TUNE_ROUNDS_MAX;

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

/* Another way that may be the best; WAYS_NONE: there is none, or not any more. */
static unsigned next_way(const struct tune *t) {
	return t->round < TUNE_ROUNDS_MAX ? ways_next(&t->ways, t->window / UNSURE_PART)
					  : WAYS_NONE;
}

/* @anew: a settled way did something else than before. */
static enum tune_action after_window(struct tune *t, const struct seen *seen, nsec_t time,
				     const struct seen *part, uint64_t missed, bool anew) {
	unsigned next;

	if (!t->trying) {
		t->round++;
		ways_expect(&t->ways, part, time - t->from);
		if (missed == 0) {
			return settle(t, seen, time, part, true);
		}
		t->ask = (anew || t->ways.now == t->ways.planned) && t->round < TUNE_ROUNDS_MAX &&
			 correct(t, part);
	}
	next = missed > 0 ? next_way(t) : WAYS_NONE;
	if (next == WAYS_NONE) {
		return hold_best(t, seen, time, part);
	}
	if (seen_behind(seen, t->ways.n) && t->ways.now != ways_best(&t->ways)) {
		hold(t, ways_best(&t->ways), false);
		t->clearing = true;
		return TUNE_BACK;
	}
	hold(t, next, true);
	return TUNE_TRY;
}

/* A way holds that is not counted yet. */
static enum tune_action before_window(struct tune *t, const struct seen *seen, nsec_t time) {
	nsec_t part = t->trying			     ? BEGIN_PART
		      : seen_behind(seen, t->ways.n) ? CLEAR_PART
						     : STEP_PART;
	unsigned next;

	if (time < t->window / part) {
		return TUNE_WAIT;
	}
	next = t->clearing ? next_way(t) : WAYS_NONE;
	if (next != WAYS_NONE) {
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
	for (unsigned i = 0; i < t->ways.n; i++) {
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

enum tune_action tune_judge(struct tune *t, const struct seen *seen, nsec_t time, bool *ret_ask) {
	struct seen part[MODEL_TASKS_MAX], all;
	enum tune_action action, wait = t->settled ? TUNE_KEEP : TUNE_WAIT;
	bool over, worse, anew = false;

	*ret_ask = false;
	if (t->ways.n_ways == 0) {
		return TUNE_KEEP;
	}
	if (!t->counts) {
		action = before_window(t, seen, time);
		return action == TUNE_WAIT ? wait : action;
	}
	all = seen_count(seen, t->before, t->ways.n, part);
	see_lost(t, part);
	over = time - t->from >= (t->settled ? watch_window(t) : window(t)) &&
	       all.jobs >= SEEN_JOBS_MIN;
	worse = !t->settled && ways_is_clearly_worse(&t->ways, part, time - t->from);
	if (!over && !worse) {
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
		ways_forget_counts(&t->ways);
	}
	add_counted(t, part, time);
	t->ask = false;
	action = after_window(t, seen, time, part, all.missed, anew);
	*ret_ask = t->ask;
	return action;
}
