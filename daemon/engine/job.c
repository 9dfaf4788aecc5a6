/*
 * job.c: states of a job. See job.h.
 */
#include "daemon/engine/job.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/base/util.h"
#include "proto/enforcement.h"

static const struct {
	const char *name;
	unsigned next;
} states[_JOB_STATE_N] = {
	[JOB_WAITING] = {"waiting", BIT(JOB_RUNNING) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_RUNNING] = {"running", BIT(JOB_PREEMPTED) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_PREEMPTED] = {"preempted", BIT(JOB_STOPPED) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_STOPPED] = {"stopped", BIT(JOB_WAITING) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_DONE] = {"done", 0},
	[JOB_ABANDONED] = {"abandoned", 0},
};

struct job *job_new(struct session *session, uint64_t number) {
	struct job *job = calloc(1, sizeof(*job));

	if (job) {
		job->session = session;
		job->record.number = number;
		job->state = JOB_WAITING;
		job->sched_id = SCHED_JOB_NONE;
		job->task = SCHED_TASK_NONE;
	}
	return job;
}

struct job *job_from_record(struct session *session, const struct granted_job *record, size_t gpu) {
	struct job *job = job_new(session, record->number);

	if (job) {
		job->record = *record;
		job->release = record->requested;
		job->gpu = gpu;
	}
	return job;
}

struct job *job_free(struct job *job) {
	if (job) {
		assert(job->sched_id == SCHED_JOB_NONE);
		free(job);
	}
	return NULL;
}

void job_set_state(struct job *job, enum job_state state) {
	assert(states[job->state].next & BIT(state));
	job->state = state;
}

nsec_t job_started_late(const struct job *job) {
	return job->record.requested > job->release ? job->record.requested - job->release : 0;
}

nsec_t job_waited(const struct job *job, nsec_t now) {
	nsec_t until = job->record.granted ? job->record.granted : now;

	return until > job->record.requested + job->ran ? until - job->record.requested - job->ran
							: 0;
}

Sbeet__Enforcement job_enforcement(const struct job *job) {
	return enforcement_kept((Sbeet__Enforcement)job->record.enforcement, job->unconfined);
}

const char *job_state_name(enum job_state state) {
	return states[state].name;
}
