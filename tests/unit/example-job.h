/*
 * example-job.h: a granted job as any daemon may have written it.
 */
#pragma once

#include "proto/granted-job.h"

/* No field has the value of another one, and none is 0. */
static inline struct granted_job example_job(void) {
	return (struct granted_job){
		.number = 1,
		.sequence = 2,
		.slot = 3,
		.requested = 4,
		.deadline = 5,
		.granted = 6,
		.sms = smset_range(7, 8),
		.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN,
		.enforcement_mask = 0x12,
		.tid = 9,
		.uuid = {10, 11, 12},
	};
}
