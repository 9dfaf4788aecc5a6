/*
 * tune.c: see tune.h.
 */
#include "daemon/core/steer/tune.h"

#include <string.h>

/* Fewer jobs say nothing. */
#define JOBS_MIN 16

/* A task is mispredicted if it misses more of its jobs than predicted by this, and its responses
 * are longer by that. */
#define MISSES_MORE  0.01
#define SLOWER_LEAST 1.01

/* No kernel is taken to be slower than this. */
#define SLOW_MAX 4.0

void tune_start(struct tune *t, unsigned n, nsec_t window) {
	*t = (struct tune){.n = n, .window = window, .best_rate = -1};
	for (unsigned i = 0; i < n; i++) {
		t->slow[i] = 1;
	}
}

nsec_t tune_window(const struct tune *t) {
	nsec_t window = t->window;

	for (unsigned i = 0; i < t->round; i++) {
		window += window / 2;
	}
	return window;
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

/* Whether a task that misses more than predicted is slower than it was taken for. */
static bool correct(struct tune *t, const struct model_result *predicted,
		    const struct tune_seen *seen) {
	bool any = false;

	for (unsigned i = 0; i < t->n; i++) {
		double slower;

		if (seen[i].jobs < JOBS_MIN || predicted[i].done == 0 ||
		    ratio(seen[i].missed, seen[i].jobs) <=
			    ratio(predicted[i].missed, predicted[i].released) + MISSES_MORE) {
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

enum tune_action tune_judge(struct tune *t, const struct terms *terms,
			    const struct model_result *predicted, const struct tune_seen *seen,
			    nsec_t window) {
	uint64_t jobs = 0, missed = 0;
	bool better;
	double rate;

	for (unsigned i = 0; i < t->n; i++) {
		jobs += seen[i].jobs;
		missed += seen[i].missed;
	}
	if (t->settled || jobs < JOBS_MIN || window == 0) {
		return t->settled ? TUNE_KEEP : TUNE_WAIT;
	}
	rate = (double)missed * (double)NSEC_PER_SEC / (double)window;
	better = t->best_rate < 0 || rate < t->best_rate;
	if (better) {
		memcpy(t->best, terms, t->n * sizeof(*terms));
		memcpy(t->best_predicted, predicted, t->n * sizeof(*predicted));
		t->best_rate = rate;
	}
	t->round++;
	if (missed > 0 && t->round < TUNE_ROUNDS_MAX && correct(t, predicted, seen)) {
		return TUNE_PLAN;
	}
	t->settled = true;
	return better ? TUNE_KEEP : TUNE_BACK;
}
