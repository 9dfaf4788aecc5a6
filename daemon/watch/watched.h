/*
 * watched.h: what those who watch look at, and change nothing of.
 */
#pragma once

#include <stdint.h>

#include "proto/units.h"

struct engine;
struct event_base;
struct inventory;
struct session_list;

/* Counted over the daemon's life. */
struct totals {
	uint64_t launches, misses, protocol_errors;
	uint64_t unreported;  /* jobs under terms that programs could not tell of */
	uint64_t events_lost; /* by subscribers that read too slowly */
};

/* Part of the server; all of it is borrowed. */
struct watched {
	struct event_base *base;
	clock_fn now;
	nsec_t started;
	const struct engine *engine;
	struct inventory *inventory; /* only to ask for new readings */
	const struct session_list *sessions;
	const struct totals *totals;
};
