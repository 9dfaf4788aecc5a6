/*
 * owners.c: see owners.h.
 */
#include "daemon/core/owners.h"

/* The golden ratio's bits spread numbers that follow each other. */
static size_t bucket_of(uint64_t owner) {
	return owner * 0x9e3779b97f4a7c15ull >> 52;
}

_Static_assert(OWNERS_BUCKETS == 1 << 12, "as many as 64 - 52 bits can name");

sched_job_id owners_last(const struct owners *owners, const struct sched_job *jobs,
			 uint64_t owner) {
	sched_job_id id = owners->newest[bucket_of(owner)] - 1;

	while (id != SCHED_JOB_NONE && jobs[id].owner != owner) {
		id = jobs[id].own_next;
	}
	return id;
}

void owners_add(struct owners *owners, struct sched_job *jobs, sched_job_id id) {
	sched_job_id *newest = &owners->newest[bucket_of(jobs[id].owner)];

	jobs[id].own_prev = SCHED_JOB_NONE;
	jobs[id].own_next = *newest - 1;
	if (jobs[id].own_next != SCHED_JOB_NONE) {
		jobs[jobs[id].own_next].own_prev = id;
	}
	*newest = id + 1;
}

void owners_remove(struct owners *owners, struct sched_job *jobs, sched_job_id id) {
	sched_job_id next = jobs[id].own_next, prev = jobs[id].own_prev;

	if (next != SCHED_JOB_NONE) {
		jobs[next].own_prev = prev;
	}
	if (prev != SCHED_JOB_NONE) {
		jobs[prev].own_next = next;
	} else {
		owners->newest[bucket_of(jobs[id].owner)] = next + 1;
	}
}
