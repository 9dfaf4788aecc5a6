/*
 * expected.c: see expected.h.
 */
#include "shim/expected.h"

#include <stdatomic.h>

#include "shim/base/hot.h"
#include "shim/releases.h"
#include "shim/seat.h"
#include "shim/terms.h"

/* What others may run into the next job. */
static nsec_t overlap(const struct terms_next *next) {
	return next->spare / 2 < PROTO_OVERLAP_NS ? next->spare / 2 : PROTO_OVERLAP_NS;
}

static bool copies_go_first(uint64_t terms) {
	return terms_unpack(terms).copies == TERMS_COPIES_FIRST;
}

/* When @job and the next one need the SMs. @next: NULL: that is not known. */
static void tell_needs(struct lane *lane, const struct books_job *job,
		       const struct terms_next *next) {
	uint64_t due = atomic_load(&lane->due_ns);
	struct seat_needs needs = {0};

	if (next) {
		needs.from = next->lead > 0 ? job->began_ns + next->lead : 0;
	}
	if (next && terms_guarded(job->terms)) {
		needs.next_from = releases_from(&lane->releases) + next->lead + overlap(next);
		needs.next_until = releases_until(&lane->releases) + next->lead;
		needs.next_due = board_due(due, next->period);
	}
	seat_needs(lane->device, &needs);
}

/* The job of @lane has just opened: it is about to copy. */
static void tell_copy(const struct lane *lane) {
	nsec_t within = terms_copy_due(lane->device), now = atomic_load(&lane->granted_ns);

	if (within > 0) {
		seat_expect_copy(lane->device, &(struct seat_copy){.from = now,
								   .due = board_due(now, within),
								   .late = BOARD_ABOUT_NS});
	}
}

/* The job of @lane is over: when the next one copies. Not before, for until its own copy is
 * announced nobody may forget that it is about to come. */
static void tell_next_copy(const struct lane *lane) {
	nsec_t within = terms_copy_due(lane->device), until;
	const struct releases *r = &lane->releases;
	struct seat_copy copy;
	struct terms_next next;

	if (within == 0 || r->next == 0 || !terms_next(lane->device, &next) ||
	    next.period < next.lead + PROTO_APART_NS) {
		return;
	}
	until = releases_until(r);
	copy.from = releases_from(r) + overlap(&next);
	copy.late = until > copy.from ? (uint32_t)(until - copy.from) : 0;
	copy.due = board_due(atomic_load(&lane->granted_ns) + next.period, within);
	seat_expect_copy(lane->device, &copy);
}

HOT_CODE void expected_opened(struct lane *lane, const struct books_job *job) {
	bool awaited = terms_are_awaited(job->terms), first = copies_go_first(job->terms);
	struct terms_next next;
	bool known;

	if (!awaited && !first) {
		return;
	}
	known = terms_next(lane->device, &next);
	if (known && (first || terms_guarded(job->terms))) {
		releases_note(&lane->releases, books_release(job), next.period);
	}
	if (awaited) {
		tell_needs(lane, job, known ? &next : NULL);
	}
	if (first) {
		tell_copy(lane);
	}
}

HOT_CODE void expected_closed(struct lane *lane) {
	uint64_t terms = atomic_load(&lane->terms);

	if (terms_guarded(terms)) {
		seat_needs_over(lane->device);
	}
	if (copies_go_first(terms)) {
		tell_next_copy(lane);
	}
}
