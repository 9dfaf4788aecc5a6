/*
 * watch.c: see watch.h.
 */
#include "shim/watch.h"

/* Between questions: a sixteenth of the time that the job has been quiet, within these. */
#define ASK_MIN_NS     (20 * NSEC_PER_USEC)
#define ASK_MAX_NS     (500 * NSEC_PER_USEC)
#define ASK_WAITING_NS (5 * NSEC_PER_MSEC) /* a thread waits itself and will tell us */

static void meet(struct watch *w, const struct watch_view *v) {
	if (v->job != w->job) {
		w->own += w->job != 0 && w->own < WATCH_OWN_JOBS;
		w->pause = 0;
	} else if (v->ops == w->ops) {
		return;
	}
	w->job = v->job;
	w->ops = v->ops;
	w->active = v->now;
}

bool watch_is_seldom(const struct watch *w) {
	return w->own == WATCH_OWN_JOBS;
}

static bool is_seldom(const struct watch *w, const struct watch_view *v) {
	return watch_is_seldom(w) && !v->prompt;
}

nsec_t watch_look(struct watch *w, const struct watch_view *v) {
	nsec_t most, least;

	meet(w, v);
	most = is_seldom(w, v) ? WATCH_SELDOM_NS : WATCH_MAX_NS;
	least = is_seldom(w, v) || v->linger > most ? most : v->linger;
	if (v->held) {
		return v->now + most;
	}
	if (!v->draining && v->now < w->active + v->linger) {
		/* A program that keeps going is looked at less and less. */
		w->pause = nsec_clamp(w->pause * 2, least, most);
		return v->now + w->pause;
	}
	w->pause = 0;
	return v->inside ? v->now + WATCH_MAX_NS : 0; /* an operation will be told of */
}

nsec_t watch_again(const struct watch *w, const struct watch_view *v) {
	nsec_t least = v->waiting && is_seldom(w, v) ? WATCH_SELDOM_NS : ASK_MIN_NS;

	return v->now + nsec_clamp((v->now - w->active) / 16, least,
				   v->waiting ? ASK_WAITING_NS : ASK_MAX_NS);
}

void watch_ended(struct watch *w) {
	w->own = 0;
	w->job = 0;
}
