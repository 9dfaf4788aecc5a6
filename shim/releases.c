/*
 * releases.c: see releases.h.
 */
#include "shim/releases.h"

#include "proto/terms.h"

/* The grid moves by this part of what a release is off; a larger one than that of a period makes a
 * new grid. */
#define FOLLOW_PART 4
#define STRAY_PART  4

/* What a job that is off by more adds to what is known, and each other one takes away: then as many
 * are off by more as the one goes into the other. */
#define UP	   (50 * NSEC_PER_USEC)
#define DOWN_EARLY (UP / 100)
#define DOWN_LATE  (UP / 500)

/* Nothing is known better than that; and of a period no larger part is waited for. */
#define OFF_MIN	 (20 * NSEC_PER_USEC)
#define OFF_PART 8

static nsec_t limit(nsec_t off, nsec_t period) {
	nsec_t most = period / OFF_PART;

	off = off > OFF_MIN ? off : OFF_MIN;
	return off < most ? off : most;
}

/* @off: what was known of how far jobs are off; @seen: how far the last one was. */
static nsec_t track(nsec_t off, nsec_t seen, nsec_t down, nsec_t period) {
	return limit(seen > off ? off + UP : off > down ? off - down : 0, period);
}

void releases_note(struct releases *e, nsec_t release, nsec_t period) {
	nsec_t early = e->next > release ? e->next - release : 0;
	nsec_t late = e->next < release ? release - e->next : 0;

	if (e->next == 0 || early + late > period / STRAY_PART) {
		e->next = release + period;
		e->early = e->late = limit(PROTO_GUARD_NS, period);
		return;
	}
	e->early = track(e->early, early, DOWN_EARLY, period);
	e->late = track(e->late, late, DOWN_LATE, period);
	e->next = e->next + late / FOLLOW_PART - early / FOLLOW_PART + period;
}

nsec_t releases_from(const struct releases *e) {
	return e->next - e->early;
}

nsec_t releases_until(const struct releases *e) {
	return e->next + e->late;
}
