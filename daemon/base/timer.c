/*
 * timer.c: see timer.h.
 */
#include "daemon/base/timer.h"

TAILQ_HEAD(timer_list, timer);

/* Of all event loops, of which there is one. */
static struct timer_list waiting = TAILQ_HEAD_INITIALIZER(waiting);

void timer_init(struct timer *timer, struct event_base *base, event_callback_fn fn,
		void *userdata) {
	*timer = (struct timer){.waits = false};
	event_assign(&timer->event, base, -1, EV_TIMEOUT, fn, userdata);
}

static void stop_waiting(struct timer *timer) {
	if (timer->waits) {
		TAILQ_REMOVE(&waiting, timer, link);
		timer->waits = false;
	}
}

void timer_set(struct timer *timer, nsec_t after) {
	struct timeval t = nsec_timeval(after);

	stop_waiting(timer);
	if (event_add(&timer->event, &t) < 0) {
		event_del(&timer->event);
		timer->waits = true;
		timer->at = nsec_now() + after;
		TAILQ_INSERT_TAIL(&waiting, timer, link);
	}
}

bool timer_is_set(const struct timer *timer) {
	return timer->waits || event_pending(&timer->event, EV_TIMEOUT, NULL);
}

void timer_stop(struct timer *timer) {
	stop_waiting(timer);
	if (event_initialized(&timer->event)) {
		event_del(&timer->event);
	}
}

bool timer_retry(void) {
	struct timer *timer, *next;
	nsec_t now;

	if (TAILQ_EMPTY(&waiting)) {
		return false;
	}
	now = nsec_now();
	for (timer = TAILQ_FIRST(&waiting); timer; timer = next) {
		bool due = timer->at <= now;
		struct timeval t = nsec_timeval(due ? 0 : timer->at - now);

		next = TAILQ_NEXT(timer, link);
		if (due) {
			event_active(&timer->event, EV_TIMEOUT, 0);
		}
		if (due || event_add(&timer->event, &t) == 0) {
			stop_waiting(timer);
		}
	}
	return !TAILQ_EMPTY(&waiting);
}
