/*
 * pace.h: how fast somebody may go on: what he costs is put on an account that time pays off.
 */
#pragma once

#include "proto/units.h"

struct pace {
	nsec_t paid_until; /* zeroed: nothing is owed */
};

/* Adds @cost; as much as @burst may come at once. Return: how long he should be kept waiting,
 * mostly 0. */
static inline nsec_t pace_add(struct pace *pace, nsec_t cost, nsec_t burst, nsec_t now) {
	if (pace->paid_until + burst < now) {
		pace->paid_until = now - burst;
	}
	pace->paid_until += cost;
	return pace->paid_until > now ? pace->paid_until - now : 0;
}

/* Nothing is owed at @now, and nothing may come at once. */
static inline void pace_settle(struct pace *pace, nsec_t now) {
	pace->paid_until = now;
}
