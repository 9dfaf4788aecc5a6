/*
 * mark.c: see mark.h.
 */
#include "shim/mark.h"

#include "proto/limits.h"
#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"

static bool are_alone(void) {
	return env_get()->task.made_by == TASK_JOBS_MARKS;
}

void mark_begin(struct mark *m, nsec_t release, nsec_t deadline, nsec_t now) {
	if (deadline > PROTO_PERIOD_MAX_NS) {
		log_once(LOG_LEVEL_WARN,
			 "A job is marked with a deadline of more than a day, ignoring that");
		deadline = 0;
	}
	if (atomic_load(&m->jobs) == 0) {
		atomic_store(&m->segments, 0);
		atomic_store(&m->segmented, false);
		atomic_store(&m->chosen, 0);
		atomic_store(&m->alone, are_alone());
		atomic_store(&m->deadline, deadline);
		atomic_store(&m->release, release == 0 || release > now ? now : release);
	}
	atomic_fetch_add(&m->jobs, 1);
}

/* Return: whether @n has become 0; false if it was 0 already. */
static bool count_down(_Atomic uint32_t *n) {
	uint32_t before = atomic_load(n);

	while (before > 0 && !atomic_compare_exchange_weak(n, &before, before - 1)) {
	}
	return before == 1;
}

bool mark_end(struct mark *m) {
	if (atomic_load(&m->jobs) == 0) {
		log_once(LOG_LEVEL_WARN, "The end of a job is marked, but not its begin, ignoring");
		return false;
	}
	return count_down(&m->jobs);
}

void mark_segment_begin(struct mark *m) {
	if (atomic_load(&m->jobs) > 0) {
		atomic_fetch_add(&m->segments, 1);
		atomic_store(&m->segmented, true);
	}
}

bool mark_segment_end(struct mark *m) {
	return atomic_load(&m->jobs) > 0 && count_down(&m->segments);
}

HOT_CODE bool mark_is_outside(const struct mark *m) {
	return atomic_load(&m->jobs) == 0 && are_alone();
}

HOT_CODE void mark_take(struct mark *m, nsec_t *ret_release, nsec_t *ret_deadline) {
	bool marked = atomic_load(&m->jobs) > 0;

	if (marked && atomic_load(&m->alone)) {
		*ret_release = atomic_load(&m->release);
		*ret_deadline = atomic_load(&m->deadline);
		return;
	}
	*ret_release = marked ? atomic_exchange(&m->release, 0) : 0;
	*ret_deadline = *ret_release ? atomic_load(&m->deadline) : 0;
}
