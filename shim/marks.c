/*
 * marks.c: see marks.h; and what sbeet.h calls, exported.
 */
#include "shim/marks.h"

#include <dlfcn.h>
#include <errno.h>

#include "shim/job.h"
#include "shim/lane.h"
#include "shim/mark.h"
#include "shim/real.h"
#include "shim/sbeet.h"
#include "shim/worker.h"

/* What a caller must find as it was. */
struct before {
	int error, cancel;
};

/* Return: whether to go on, to leave(). */
static bool enter(struct before *before) {
	before->error = errno;
	if (state_bypass()) {
		return false;
	}
	before->cancel = state_defer_cancel();
	return true;
}

static void leave(const struct before *before) {
	state_restore_cancel(before->cancel);
	errno = before->error;
}

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

/* Return: where it was marked. */
static struct mark *say_here(unsigned mark, nsec_t release, nsec_t deadline) {
	struct before before;
	struct mark *m = NULL;
	struct worker *w;

	if (!enter(&before)) {
		return NULL;
	}
	w = worker_get();
	if (w) {
		m = lane_mark(w->lanes);
		say(m, mark, release, deadline);
	}
	leave(&before);
	return m;
}

bool marks_are_found(void) {
	const struct real_dl *dl = real_dl_get();
	/* RTLD_DEFAULT would look into this library, too. */
	void *program = dl->open ? dl->open(NULL, RTLD_LAZY) : NULL;

	return program && dl->sym(program, "sbeet_mark") == (void *)sbeet_mark;
}

void sbeet_mark(unsigned mark, uint64_t release_ns, uint64_t deadline_ns) {
	say_here(mark, release_ns, deadline_ns);
}

struct mark *marks_begin_job(nsec_t release, nsec_t deadline) {
	return say_here(SBEET_MARK_JOB_BEGIN, release, deadline);
}

void marks_end_job(struct mark *m) {
	struct before before;

	if (enter(&before)) {
		say(m, SBEET_MARK_JOB_END, 0, 0);
		leave(&before);
	}
}
