/*
 * tune.c: see tune.h.
 */
#include "daemon/core/steer/tune.h"

#include <assert.h>
#include <string.h>

/* Fewer jobs say nothing. */
#define JOBS_MIN 16

/* A task is mispredicted if it misses more of its jobs than predicted by this; its kernels are
 * slower than known if its responses are longer by that as well. */
#define MISSES_MORE  0.01
#define SLOWER_LEAST 1.01

/* No kernel is taken to be slower than this. */
#define SLOW_MAX 4.0

/* Parts of a window: that a way is tried, and between two looks. */
#define TRY_PART  5
#define STEP_PART 20

/* More late jobs than the best way has in a whole window, by this: it is clearly worse. */
#define CLEARLY_WORSE 16

/* With more of a task's jobs unknown, what is known of the others may be of the fast ones only. */
#define UNREPORTED_MAX 0.01

#define NONE TUNE_WAYS_MAX

void tune_start(struct tune *t, unsigned n, nsec_t window) {
	*t = (struct tune){.n = n, .window = window};
	for (unsigned i = 0; i < n; i++) {
		t->slow[i] = 1;
	}
}

nsec_t tune_step(const struct tune *t) {
	return t->window / STEP_PART + 1;
}

const struct plan_way *tune_way(const struct tune *t) {
	assert(t->n_ways > 0);
	return &t->ways[t->now].way;
}

void tune_apply(const struct tune *t, struct plan_task *tasks, unsigned sms,
		nsec_t times[][PROTO_SMS_MAX + 1]) {
	for (unsigned i = 0; i < t->n; i++) {
		if (!tasks[i].known || t->slow[i] <= 1) {
			continue;
		}
		for (unsigned m = 1; m <= sms; m++) {
			times[i][m] = (nsec_t)((double)tasks[i].model.kernels[m] * t->slow[i]);
		}
		tasks[i].model.kernels = times[i];
	}
}

static double ratio(uint64_t part, uint64_t whole) {
	return whole ? (double)part / (double)whole : 0;
}

/* How long the way that holds should be counted. */
static nsec_t window(const struct tune *t) {
	nsec_t window = t->window;

	for (unsigned i = 0; i < t->round; i++) {
		window += window / 2;
	}
	return t->trying ? t->window / TRY_PART : window;
}

/* ---- ways ---- */

static double rate(const struct tune_way *way) {
	return (double)way->missed / (double)way->time;
}

/* The way with the fewest late jobs; NONE: none was counted. */
static unsigned best_way(const struct tune *t) {
	unsigned best = NONE;

	for (unsigned i = 0; i < t->n_ways; i++) {
		if (t->ways[i].time > 0 &&
		    (best == NONE || rate(&t->ways[i]) < rate(&t->ways[best]))) {
			best = i;
		}
	}
	return best;
}

/* The next way that was not counted yet; NONE: all were. */
static unsigned untried_way(const struct tune *t) {
	for (unsigned i = 0; i < t->n_ways; i++) {
		if (t->ways[i].time == 0 && i != t->now) {
			return i;
		}
	}
	return NONE;
}

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

/* Of those that neither hold nor are the best, the one that did worst. */
static unsigned least_way(const struct tune *t) {
	unsigned best = best_way(t), least = NONE;

	for (unsigned i = 0; i < t->n_ways; i++) {
		if (i == t->now || i == best) {
			continue;
		}
		if (least == NONE ||
		    (t->ways[i].time > 0 &&
		     (t->ways[least].time == 0 || rate(&t->ways[i]) > rate(&t->ways[least])))) {
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
	return i;
}

static void hold(struct tune *t, unsigned way, bool trying) {
	t->now = way;
	t->trying = trying;
	t->counts = false;
}

void tune_again(struct tune *t) {
	if (t->n_ways > 0) {
		t->ways[0].way = t->ways[t->now].way;
		t->ways[0].missed = t->ways[0].time = 0;
		t->n_ways = 1;
	}
	t->planned = 0;
	t->settled = t->quiet = false;
	hold(t, 0, false);
}

bool tune_plan(struct tune *t, const struct plan *plan) {
	bool first = t->n_ways == 0, judged = best_way(t) != NONE;
	unsigned i, before = t->now;

	if (t->quiet) {
		return false;
	}
	i = t->planned = add_way(t, plan->terms, plan->predicted, plan->tail);
	for (unsigned k = 0; k < plan->n_others && t->n_ways < TUNE_WAYS_MAX; k++) {
		const struct plan_way *o = &plan->others[k];

		if (find_way(t, o->terms) == NONE) {
			add_way(t, o->terms, o->predicted, o->tail);
		}
	}
	if (!judged && (first || i != before)) {
		hold(t, i, false);
		return true;
	}
	/* If it is none of those that were counted; while others are tried its turn comes. */
	if (t->trying || i == before || t->ways[i].time > 0) {
		return false;
	}
	t->settled = false;
	hold(t, i, true);
	return true;
}

/* ---- the judgement ---- */

static bool is_mispredicted(const struct model_result *predicted, const struct tune_seen *seen) {
	return seen->jobs >= JOBS_MIN && predicted->done > 0 &&
	       ratio(seen->unreported, seen->jobs) <= UNREPORTED_MAX &&
	       ratio(seen->missed, seen->jobs) >
		       ratio(predicted->missed, predicted->released) + MISSES_MORE;
}

static bool any_is_mispredicted(const struct tune *t, const struct tune_seen *seen) {
	for (unsigned i = 0; i < t->n; i++) {
		if (is_mispredicted(&tune_way(t)->predicted[i], &seen[i])) {
			return true;
		}
	}
	return false;
}

/* Whether a task that misses more than predicted is slower than it was taken for. */
static bool correct(struct tune *t, const struct tune_seen *seen) {
	const struct model_result *predicted = tune_way(t)->predicted;
	bool any = false;

	for (unsigned i = 0; i < t->n; i++) {
		double slower;

		if (!is_mispredicted(&predicted[i], &seen[i])) {
			continue;
		}
		slower = ratio(seen[i].response, seen[i].jobs) /
			 ratio(predicted[i].response, predicted[i].done);
		if (slower > SLOWER_LEAST && t->slow[i] < SLOW_MAX) {
			t->slow[i] *= slower;
			t->slow[i] = t->slow[i] > SLOW_MAX ? SLOW_MAX : t->slow[i];
			any = true;
		}
	}
	return any;
}

static void count_from(struct tune *t, const struct tune_seen *seen, nsec_t time) {
	t->counts = true;
	t->from = time;
	memcpy(t->before, seen, t->n * sizeof(*seen));
}

/* What was counted of each task, and of all: as if those that are not known were like the others.
 */
static struct tune_seen counted(const struct tune *t, const struct tune_seen *seen,
				struct tune_seen *ret) {
	struct tune_seen all = {0};

	for (unsigned i = 0; i < t->n; i++) {
		ret[i].jobs = seen[i].jobs - t->before[i].jobs;
		ret[i].missed = seen[i].missed - t->before[i].missed;
		ret[i].response = seen[i].response - t->before[i].response;
		ret[i].unreported = seen[i].unreported - t->before[i].unreported;
		all.jobs += ret[i].jobs;
		all.missed += ret[i].missed;
		all.missed +=
			(uint64_t)(ratio(ret[i].missed, ret[i].jobs) * (double)ret[i].unreported);
	}
	return all;
}

/* It can't become the best any more in this window. */
static bool is_clearly_worse(const struct tune *t, uint64_t missed) {
	unsigned best = best_way(t);

	return best != NONE && best != t->now &&
	       (double)missed > rate(&t->ways[best]) * (double)window(t) + CLEARLY_WORSE;
}

static enum tune_action settle(struct tune *t, bool quiet) {
	t->settled = true;
	t->quiet = quiet;
	return TUNE_KEEP;
}

/* All were tried that could be: the best way holds for a whole window, or for ever. */
static enum tune_action hold_best(struct tune *t, const struct tune_seen *seen, nsec_t time) {
	unsigned best = best_way(t);
	bool tried = t->trying, same = best == t->now;

	if (t->round >= TUNE_ROUNDS_MAX) {
		t->settled = true;
	} else if (same && !tried && !t->ask) {
		return settle(t, false);
	}
	if (!same || tried) {
		hold(t, best, false);
		return TUNE_BACK;
	}
	if (t->settled) {
		return TUNE_KEEP;
	}
	count_from(t, seen, time);
	return TUNE_PLAN;
}

static enum tune_action after_window(struct tune *t, const struct tune_seen *seen, nsec_t time,
				     const struct tune_seen *part, uint64_t missed) {
	bool worse = any_is_mispredicted(t, part);
	unsigned next = untried_way(t);

	if (!t->trying) {
		t->round++;
		if (missed == 0) {
			return settle(t, true);
		}
		t->ask = worse && t->now == t->planned && t->round < TUNE_ROUNDS_MAX &&
			 correct(t, part);
	}
	if (next != NONE && missed > 0 && t->round < TUNE_ROUNDS_MAX && (worse || t->trying)) {
		hold(t, next, true);
		return TUNE_TRY;
	}
	return hold_best(t, seen, time);
}

enum tune_action tune_judge(struct tune *t, const struct tune_seen *seen, nsec_t time,
			    bool *ret_ask) {
	struct tune_seen part[MODEL_TASKS_MAX], all;
	struct tune_way *way = &t->ways[t->now];
	enum tune_action action;
	bool over;

	*ret_ask = false;
	if (t->settled || t->n_ways == 0) {
		return TUNE_KEEP;
	}
	if (!t->counts) {
		if (time >= tune_step(t)) {
			count_from(t, seen, time);
		}
		return TUNE_WAIT;
	}
	all = counted(t, seen, part);
	over = time - t->from >= window(t) && all.jobs >= JOBS_MIN;
	if (!over && !is_clearly_worse(t, all.missed)) {
		return TUNE_WAIT;
	}
	way->missed += all.missed;
	way->time += time - t->from + 1;
	t->ask = false;
	action = after_window(t, seen, time, part, all.missed);
	*ret_ask = t->ask;
	return action;
}
