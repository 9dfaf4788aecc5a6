/*
 * granted-job.c: see granted-job.h.
 */
#include "proto/granted-job.h"

#include <errno.h>
#include <string.h>

void granted_job_to_wire(const struct granted_job *job, uint8_t sms[static 32], Sbeet__Held *ret) {
	sbeet__held__init(ret);
	ret->job = job->number;
	ret->sequence = job->sequence;
	ret->release_ns = job->requested;
	ret->deadline_ns = job->deadline;
	ret->granted_ns = job->granted;
	ret->sms.data = sms;
	ret->sms.len = smset_to_bytes(&job->sms, sms);
	ret->slot = job->slot;
	ret->enforcement = (Sbeet__Enforcement)job->enforcement;
	ret->enforcement_mask = job->enforcement_mask;
	ret->tid = job->tid;
	ret->gpu_uuid.data = (uint8_t *)job->uuid;
	ret->gpu_uuid.len = sizeof(job->uuid);
}

int granted_job_from_wire(const Sbeet__Held *held, struct granted_job *ret) {
	struct granted_job job = {
		.number = held->job,
		.sequence = held->sequence,
		.requested = held->release_ns,
		.deadline = held->deadline_ns,
		.granted = held->granted_ns,
		.slot = held->slot,
		.enforcement = (uint32_t)held->enforcement,
		.enforcement_mask = held->enforcement_mask,
		.tid = held->tid,
	};

	if (smset_from_bytes(held->sms.data, held->sms.len, &job.sms) < 0 ||
	    smset_empty(&job.sms) || held->gpu_uuid.len != sizeof(job.uuid)) {
		return -EINVAL;
	}
	memcpy(job.uuid, held->gpu_uuid.data, sizeof(job.uuid));
	*ret = job;
	return 0;
}
