/*
 * point.h: the order of operations and waits, told by a logical clock instead of a real one.
 *
 * The clock goes on when somebody begins to wait, to ask or to record an event, not with an
 * operation, which only reads it: so a launch costs no reading of the real clock, and threads that
 * only launch share a cache line that nobody writes. What has a point up to that of a wait was
 * handed to the driver before the wait began.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef uint64_t point_t; /* 0: before everything */

#define POINT_NEVER UINT64_MAX /* after everything */

extern _Atomic point_t point_clock;

/* Where an operation stands that the driver has just been handed. */
static inline point_t point_now(void) {
	return atomic_load(&point_clock);
}

/* Of who is about to wait or ask. Operations that are handed over later stand behind it; some that
 * were before may, if their threads haven't come to point_now() yet. */
static inline point_t point_mark(void) {
	return atomic_fetch_add(&point_clock, 1);
}
