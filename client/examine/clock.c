/* clock.c: see clock.h. */
#include "client/examine/clock.h"

#include <errno.h>

#define TRIES 8

/* An event, and a kernel right behind it. */
static int compare_once(struct clock *c, struct driver *d, driver_memory record) {
	struct experiment_block block = {0};
	nsec_t before = nsec_now(), after;
	int r = driver_check(d, d->event_record(c->zero, NULL), "recording an event");

	r = r < 0 ? r : driver_launch(d, d->spin, 1, 32, 0, NULL, record, 0, 0, 0);
	r = r < 0 ? r : driver_check(d, d->synchronize(), "cuCtxSynchronize");
	after = nsec_now();
	r = r < 0 ? r
		  : driver_check(d, d->copy_out(&block, record, sizeof(block), NULL), "copying");
	r = r < 0 ? r : driver_check(d, d->synchronize(), "cuCtxSynchronize");
	if (r == 0) {
		c->zero_at = block.start; /* the event that stays is the last one */
		if (c->off == 0 || after - before < c->off) {
			c->off = after - before;
			c->ahead = (int64_t)(block.start - before - (after - before) / 2);
		}
	}
	return r;
}

int clock_compare(struct clock *c, struct driver *d) {
	driver_memory record;
	int r = driver_check(d, d->alloc(&record, sizeof(struct experiment_block)),
			     "allocating memory");

	*c = (struct clock){.off = 0};
	r = r < 0 ? r : driver_check(d, d->event(&c->zero, 0), "making an event");
	for (int i = 0; r == 0 && i < TRIES; i++) {
		r = compare_once(c, d, record);
	}
	return r;
}

uint64_t clock_gpu(const struct clock *c, nsec_t t) {
	return t + (uint64_t)c->ahead;
}

int clock_event(const struct clock *c, struct driver *d, struct driver_event *event,
		uint64_t *ret) {
	float ms;
	int r = driver_check(d, d->event_elapsed(&ms, c->zero, event), "reading an event");

	if (r == 0) {
		*ret = c->zero_at + (uint64_t)((double)ms * 1e6);
	}
	return r;
}
