/*
 * clock.h: the GPU's clock beside the CPU's, and beside that of its events.
 */
#pragma once

#include "client/examine/driver.h"

struct clock {
	int64_t ahead; /* of CLOCK_MONOTONIC, in ns */
	nsec_t off;    /* by at most so much */
	struct driver_event *zero;
	uint64_t zero_at;
};

/* Runs short kernels. Return: 0 or -EIO, as driver_check(). */
int clock_compare(struct clock *c, struct driver *d);

/* What the GPU's clock shows at @t of CLOCK_MONOTONIC. */
uint64_t clock_gpu(const struct clock *c, nsec_t t);

/* What it showed at @event, which is done. */
int clock_event(const struct clock *c, struct driver *d, struct driver_event *event, uint64_t *ret);
