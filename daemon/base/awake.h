/*
 * awake.h: the event loop, which does not sleep for a while after a job has ended.
 *
 * A program that has ended a job often asks for the next one at once. Who is awake then answers in
 * microseconds; a thread of an idle CPU takes tens to hundreds to wake (tests/gpu/RESULTS.md). For
 * the rest of the time, and always where there is nothing to do, the loop sleeps.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"

struct event_base;

struct awake {
	nsec_t time;  /* 0: never */
	nsec_t until; /* 0: asleep */
};

/* From now on for @time after each awake_touch(); 0, or one CPU only: never. */
void awake_set(struct awake *awake, nsec_t time);

/* A job has ended at @now. */
void awake_touch(struct awake *awake, nsec_t now);

/* Whether not to sleep at @now. */
bool awake_is(struct awake *awake, nsec_t now);

/* What follows each turn of the loop. */
typedef void (*awake_turn_fn)(void *userdata);

/* Like event_base_dispatch(), but calls @turn after each turn of the loop: once for all events that
 * were ready together, whatever their handlers did. */
int awake_dispatch(struct awake *awake, struct event_base *base, awake_turn_fn turn,
		   void *userdata);
