/*
 * ask.h: what a job is asked for.
 */
#pragma once

#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

struct kernel;

struct conn_ask {
	uint64_t job;
	uint8_t uuid[PROTO_UUID_BYTES];
	nsec_t release_ns; /* when its operation was called */
	nsec_t marked_ns, deadline_ns; /* see mark_take() */
	uint32_t enforcement_mask;
	unsigned sm_step; /* with ENFORCEMENT_GREEN: sets of whole multiples of so many SMs */
	Sbeet__OpKind kind;
	const struct kernel *kernel; /* NULL if no launch, or not known */
	uint32_t tid;
	unsigned n_others; /* other GPUs where the job could run as well */
	uint8_t others[PROTO_GPUS_MAX - 1][PROTO_UUID_BYTES];
};
