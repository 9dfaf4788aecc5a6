/*
 * effect.c: see effect.h.
 */
#include "daemon/preempt/effect.h"

#include <stdlib.h>
#include <string.h>

/* Of the time of jobs that are left to themselves, in percent: up to the one it is an effect, from
 * the other on it is none. */
#define WORKS_PERCENT 75
#define FAILS_PERCENT 90

/* Such jobs show that others' turns delay them if the median one takes so much longer than the
 * fastest one of all. */
#define DELAYED_PERCENT 200

static unsigned place_of(unsigned others) {
	return (others < EFFECT_OTHERS ? others : EFFECT_OTHERS) - 1;
}

static bool is_full(const struct effect_cell *c, enum effect_way way) {
	return c->n[way] == EFFECT_JOBS;
}

bool effect_needs_own_slices(const struct effect *e, unsigned others) {
	const struct effect_cell *c = &e->cells[place_of(others)];

	return !is_full(c, EFFECT_LEFT) || !is_full(c, EFFECT_PREEMPTED);
}

bool effect_begin(struct effect *e, unsigned others, bool sliced, nsec_t now) {
	const struct effect_cell *c = &e->cells[place_of(others)];
	enum effect_way way =
		sliced						    ? EFFECT_SLICED
		: c->n[EFFECT_LEFT] <= c->n[EFFECT_PREEMPTED] ? EFFECT_LEFT
							      : EFFECT_PREEMPTED;

	if (is_full(c, way)) {
		return false;
	}
	e->runs = true;
	e->way = way;
	e->others = others;
	e->began = now;
	return true;
}

void effect_end(struct effect *e, bool same, nsec_t now) {
	struct effect_cell *c = &e->cells[place_of(e->others)];

	if (e->runs && same && !is_full(c, e->way)) {
		c->took[e->way][c->n[e->way]++] = now - e->began;
	}
	e->runs = false;
}

static int compare(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

nsec_t effect_time(const struct effect *e, unsigned others, enum effect_way way) {
	const struct effect_cell *c = &e->cells[place_of(others)];
	nsec_t sorted[EFFECT_JOBS];

	if (!is_full(c, way)) {
		return 0;
	}
	memcpy(sorted, c->took[way], sizeof(sorted));
	qsort(sorted, EFFECT_JOBS, sizeof(*sorted), compare);
	return sorted[EFFECT_JOBS / 2];
}

static nsec_t fastest(const struct effect_cell *c) {
	nsec_t best = UINT64_MAX;

	for (unsigned way = 0; way < _EFFECT_WAY_N; way++) {
		for (unsigned i = 0; i < c->n[way]; i++) {
			best = c->took[way][i] < best ? c->took[way][i] : best;
		}
	}
	return best;
}

enum effect_verdict effect_judge(const struct effect *e, unsigned others, enum effect_way way) {
	nsec_t left = effect_time(e, others, EFFECT_LEFT), took = effect_time(e, others, way);

	if (left == 0 || took == 0 || took >= EFFECT_LIMIT_NS) {
		return EFFECT_UNKNOWN;
	}
	if (took * 100 <= left * WORKS_PERCENT) {
		return EFFECT_WORKS;
	}
	return took * 100 >= left * FAILS_PERCENT &&
			       left * 100 >=
				       fastest(&e->cells[place_of(others)]) * DELAYED_PERCENT
		       ? EFFECT_FAILS
		       : EFFECT_UNKNOWN;
}
