/*
 * awake.c: see awake.h.
 */
#include "daemon/base/awake.h"

#include <event2/event.h>
#include <sched.h>
#include <time.h>

#include "daemon/base/timer.h"
#include "proto/spin.h"

void awake_set(struct awake *awake, nsec_t time) {
	*awake = (struct awake){.time = spin_allowed(time)};
}

void awake_touch(struct awake *awake, nsec_t now) {
	if (awake->time > 0) {
		awake->until = now + awake->time;
	}
}

bool awake_is(struct awake *awake, nsec_t now) {
	if (now >= awake->until) {
		awake->until = 0;
	}
	return awake->until > 0;
}

int awake_dispatch(struct awake *awake, struct event_base *base, awake_turn_fn turn,
		   void *userdata) {
	bool served = true;
	int r = 0;

	while (r == 0 && !event_base_got_break(base)) {
		bool retry = timer_retry();
		/* No look at the clock by a daemon that sleeps anyway. */
		bool stay = awake->until > 0 && awake_is(awake, nsec_now());

		if (retry) {
			nanosleep(&(struct timespec){.tv_nsec = TIMER_RETRY}, NULL);
		} else if (stay && !served) {
			/* The program that was answered may have to run on this very CPU. */
			sched_yield();
		}
		/* EVLOOP_NONBLOCK alone would go on for as long as anything is ready. */
		r = event_base_loop(base, EVLOOP_ONCE | (stay || retry ? EVLOOP_NONBLOCK : 0));
		served = event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 1) > 0;
		turn(userdata);
	}
	return r;
}
