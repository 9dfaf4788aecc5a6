/*
 * timer.h: a timer of sbeetd's own work, which comes whether or not there is memory.
 *
 * libevent needs memory to add a timer whenever more of them are pending than ever before, also to
 * add one again that has just come. Where a client waits for a timer that can't be added, the
 * client is turned away. What sbeetd does again and again has nobody to turn away, and would never
 * be done again. So a timer of this kind that can't be added waits in a list, and the event loop
 * (awake.h) does not sleep for long while there are any.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "proto/units.h"

struct timer {
	struct event event;
	bool waits; /* for memory, in the list */
	nsec_t at;  /* then: when it is due */
	TAILQ_ENTRY(timer) link;
};

void timer_init(struct timer *timer, struct event_base *base, event_callback_fn fn, void *userdata);

/* Calls fn once, in @after from now, not from here; if it was set before, instead of that. */
void timer_set(struct timer *timer, nsec_t after);

bool timer_is_set(const struct timer *timer);

/* Also one that is not set, or was zeroed and never initialised. */
void timer_stop(struct timer *timer);

/* Adds the timers that wait for memory; those that are due come in the next turn of the loop
 * without any. Return: whether some still wait: this should be called again within TIMER_RETRY. */
bool timer_retry(void);

#define TIMER_RETRY NSEC_PER_MSEC
