/*
 * effect.h: does it help a GPU's urgent programs that others are preempted, and that their time
 * slices are short? What the driver answers does not say so: some answer success and do nothing.
 *
 * So the first jobs of an urgent program beside others that work are timed, each in one of three
 * ways in turn: left to the driver's time slices, with the others preempted, and with short time
 * slices. A way works where the median job takes clearly less time than the first way's.
 *
 * For one GPU. Pure: no I/O, no allocation, the clock is passed in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

enum effect_way {
	EFFECT_LEFT,	  /* to the driver's time slices */
	EFFECT_PREEMPTED, /* the others, with the driver's time slices */
	EFFECT_SLICED,	  /* short time slices, nobody is preempted */
	_EFFECT_WAY_N,
};

enum effect_verdict {
	EFFECT_UNKNOWN, /* too few jobs, or too long ones: the GPU's share in them does not show */
	EFFECT_WORKS,
	EFFECT_FAILS,
	_EFFECT_VERDICT_N,
};

/* Others that work: 1, 2, 3, and more. Short time slices are for one. */
#define EFFECT_OTHERS 4

/* Of each way. */
#define EFFECT_JOBS 8

/* A job that lasts longer counts as one that lasted so long, and is helped in all ways from then on.
 */
#define EFFECT_LIMIT_NS (50 * NSEC_PER_MSEC)

/* All 0 at first. */
struct effect {
	struct effect_cell {
		unsigned n[_EFFECT_WAY_N];
		nsec_t took[_EFFECT_WAY_N][EFFECT_JOBS];
	} cells[EFFECT_OTHERS]; /* by the others that work, less one */
	bool runs;		/* a job is being timed */
	enum effect_way way;
	unsigned others;
	nsec_t began;
};

/* Whether there is still something to time before time slices may be set: with @others >= 1 that
 * work. */
bool effect_needs_own_slices(const struct effect *e, unsigned others);

/* A job has opened beside @others >= 1 that work. @sliced: their time slices are short. Return:
 * whether it is timed; then e->way is how it runs. */
bool effect_begin(struct effect *e, unsigned others, bool sliced, nsec_t now);

/* The job is over. @same: the same others worked all the time; else it does not count. */
void effect_end(struct effect *e, bool same, nsec_t now);

/* The median; 0: too few jobs. */
nsec_t effect_time(const struct effect *e, unsigned others, enum effect_way way);

enum effect_verdict effect_judge(const struct effect *e, unsigned others, enum effect_way way);
