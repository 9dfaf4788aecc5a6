/*
 * marks.c: what sbeet.h calls, exported.
 */
#include "shim/sbeet.h"

#include <errno.h>

#include "shim/job.h"
#include "shim/lane.h"
#include "shim/mark.h"
#include "shim/state.h"
#include "shim/worker.h"

SBEET_EXPORT void sbeet_mark(unsigned mark, uint64_t release_ns, uint64_t deadline_ns);

/* @m ends what it has held: over as soon as it is complete. */
static void end_job(struct mark *m) {
	if (atomic_load(&m->alone)) {
		job_end_marked(m);
	}
}

static void say(struct mark *m, unsigned mark, nsec_t release, nsec_t deadline) {
	switch (mark) {
	case SBEET_MARK_JOB_BEGIN:
		mark_begin(m, release, deadline, nsec_now());
		break;
	case SBEET_MARK_JOB_END:
		if (mark_end(m)) {
			end_job(m);
		}
		break;
	case SBEET_MARK_SEGMENT_BEGIN:
		mark_segment_begin(m);
		break;
	case SBEET_MARK_SEGMENT_END:
		if (mark_segment_end(m)) {
			end_job(m);
		}
		break;
	default:
		break;
	}
}

void sbeet_mark(unsigned mark, uint64_t release_ns, uint64_t deadline_ns) {
	int saved = errno, cancel;
	struct worker *w;

	if (state_bypass()) {
		return;
	}
	cancel = state_defer_cancel();
	w = worker_get();
	if (w) {
		say(lane_mark(w->lanes), mark, release_ns, deadline_ns);
	}
	state_restore_cancel(cancel);
	errno = saved;
}
