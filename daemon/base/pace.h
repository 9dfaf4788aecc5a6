/*
 * pace.h: a rate limit with a burst (token bucket): costs add to a debt that time pays off.
 */
#pragma once

#include <stdbool.h>

#include "proto/units.h"

struct pace {
	nsec_t paid_until; /* zeroed: nothing is owed */
};

/* How long it takes to pay what is owed. */
static inline nsec_t pace_owed(const struct pace *pace, nsec_t now) {
	return pace->paid_until > now ? pace->paid_until - now : 0;
}

/* When @burst may come at once again: then the pace is as good as new. */
static inline nsec_t pace_full_at(const struct pace *pace, nsec_t burst) {
	return pace->paid_until + burst;
}

/* Adds @cost; as much as @burst may come at once. Return: how long to wait, mostly 0. */
static inline nsec_t pace_add(struct pace *pace, nsec_t cost, nsec_t burst, nsec_t now) {
	if (pace->paid_until + burst < now) {
		pace->paid_until = now - burst;
	}
	pace->paid_until += cost;
	return pace_owed(pace, now);
}

/* Adds @cost unless something would be owed then. Return: whether it was added. */
static inline bool pace_take(struct pace *pace, nsec_t cost, nsec_t burst, nsec_t now) {
	struct pace after = *pace;

	if (pace_add(&after, cost, burst, now) > 0) {
		return false;
	}
	*pace = after;
	return true;
}

/* Nothing is owed at @now, and nothing may come at once. */
static inline void pace_settle(struct pace *pace, nsec_t now) {
	pace->paid_until = now;
}
