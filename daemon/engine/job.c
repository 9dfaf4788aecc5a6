/*
 * job.c: states of a job. See job.h.
 */
#include "daemon/engine/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/util.h"
#include "proto/enforcement.h"

static const struct {
	const char *name;
	unsigned next;
} states[_JOB_STATE_N] = {
	[JOB_WAITING] = {"waiting", BIT(JOB_RUNNING) | BIT(JOB_ABANDONED)},
	[JOB_RUNNING] = {"running", BIT(JOB_PREEMPTED) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_PREEMPTED] = {"preempted", BIT(JOB_RUNNING) | BIT(JOB_DONE) | BIT(JOB_ABANDONED)},
	[JOB_DONE] = {"done", 0},
	[JOB_ABANDONED] = {"abandoned", 0},
};

struct job *job_new(struct session *session, uint64_t number) {
	struct job *job = calloc(1, sizeof(*job));

	if (job) {
		job->session = session;
		job->number = number;
		job->state = JOB_WAITING;
		job->sched_id = SCHED_JOB_NONE;
		job->task = SCHED_TASK_NONE;
	}
	return job;
}

void job_record(const struct job *job, const uint8_t uuid[static PROTO_UUID_BYTES],
		struct granted_job *ret) {
	*ret = (struct granted_job){
		.number = job->number,
		.sequence = job->sequence,
		.requested = job->requested,
		.deadline = job->deadline,
		.granted = job->granted,
		.sms = job->sms,
		.slot = job->slot,
		.enforcement = (uint32_t)job->enforcement,
		.enforcement_mask = job->enforcement_mask,
		.tid = job->tid,
	};
	memcpy(ret->uuid, uuid, sizeof(ret->uuid));
}

struct job *job_from_record(struct session *session, const struct granted_job *record, size_t gpu) {
	struct job *job = job_new(session, record->number);

	if (job) {
		job->sequence = record->sequence;
		job->requested = job->release = record->requested;
		job->deadline = record->deadline;
		job->granted = record->granted;
		job->sms = record->sms;
		job->slot = record->slot;
		job->enforcement = (Sbeet__Enforcement)record->enforcement;
		job->enforcement_mask = record->enforcement_mask;
		job->tid = record->tid;
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
	return job->requested > job->release ? job->requested - job->release : 0;
}

nsec_t job_waited(const struct job *job, nsec_t now) {
	nsec_t until = job->granted ? job->granted : now;

	return until > job->requested ? until - job->requested : 0;
}

Sbeet__Enforcement job_enforcement(const struct job *job) {
	return enforcement_kept(job->enforcement, job->unconfined);
}

const char *job_state_name(enum job_state state) {
	return states[state].name;
}
