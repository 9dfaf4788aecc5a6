/*
 * releases.c: see releases.h.
 */
#include "shim/releases.h"

#include "proto/terms.h"

/* The grid moves by this part of what a release is off; a larger one than that of a period makes a
 * new grid. */
#define FOLLOW_PART 4
#define STRAY_PART  4

/* What a job that is earlier than known adds, and each other one takes away: one in 100 is earlier.
 */
#define EARLY_UP   (50 * NSEC_PER_USEC)
#define EARLY_DOWN (EARLY_UP / 100)

/* Jobs may come later than the latest one by this part of that; it is forgotten by the other part
 * with each job. */
#define MORE_PART   4
#define FORGET_PART 1000

/* Nothing is known better than that; and of a period no larger part is waited for. */
#define OFF_MIN	 (20 * NSEC_PER_USEC)
#define OFF_PART 8

static nsec_t limit(nsec_t off, nsec_t period) {
	nsec_t most = period / OFF_PART;

	off = off > OFF_MIN ? off : OFF_MIN;
	return off < most ? off : most;
}

/* @known: by how much jobs come early, or late; @seen: the last one. */
static nsec_t track_early(nsec_t known, nsec_t seen) {
	return seen > known ? known + EARLY_UP : known > EARLY_DOWN ? known - EARLY_DOWN : 0;
}

static nsec_t track_late(nsec_t known, nsec_t seen) {
	return seen > known ? seen + seen / MORE_PART : known - known / FORGET_PART;
}

void releases_note(struct releases *r, nsec_t release, nsec_t period) {
	nsec_t early = r->next > release ? r->next - release : 0;
	nsec_t late = r->next < release ? release - r->next : 0;

	if (r->next == 0 || early + late > period / STRAY_PART) {
		r->next = release + period;
		r->early = r->late = limit(PROTO_GUARD_NS, period);
		return;
	}
	r->early = limit(track_early(r->early, early), period);
	r->late = limit(track_late(r->late, late), period);
	r->next = r->next + late / FOLLOW_PART - early / FOLLOW_PART + period;
}

nsec_t releases_from(const struct releases *r) {
	return r->next - r->early;
}

nsec_t releases_until(const struct releases *r) {
	return r->next + r->late;
}
