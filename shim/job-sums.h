/*
 * job-sums.h: what a job has done so far.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

struct job_sums {
	uint64_t launches, copies, bytes;
	uint64_t waves;	    /* see JobDone in sbeet.proto; 0: not known */
	nsec_t launched_ns; /* the first launch; 0: none */
	nsec_t kernel_end_ns; /* of the last of all kernels; 0: not known */
	bool unconfined;    /* one could not be kept to the job's SMs */
	bool cold;	    /* see JobDone in sbeet.proto; known when it is over */
};
