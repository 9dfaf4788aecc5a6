/*
 * nap.h: waiting by looking again and again. For what nobody tells, above all while the process
 * exits: whoever calls exit() may hold any lock.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "proto/units.h"

/* Sleeps for @t, unless it is @deadline already. Return: whether to look again. */
static inline bool nap_before(nsec_t deadline, nsec_t t) {
	const struct timespec pause = nsec_timespec(t);
	bool early = nsec_now() < deadline;

	if (early) {
		nanosleep(&pause, NULL);
	}
	return early;
}
