/*
 * costs.h: how long many decisions took: their sum, the longest, and percentiles within 1/16.
 */
#pragma once

#include "proto/units.h"

/* 16 an octave. */
#define COSTS_CELLS (64 * 16)

/* Zeroed at first. */
struct costs {
	uint64_t cells[COSTS_CELLS];
	uint64_t n;
	nsec_t total, max;
};

void costs_add(struct costs *c, nsec_t cost);

/* Not below the cost that @permille of all are below; 0 if there are none. */
nsec_t costs_percentile(const struct costs *c, unsigned permille);
