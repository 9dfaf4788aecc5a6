/*
 * steer-tasks.h: tasks on an H200, for tests of the model and of plans.
 */
#pragma once

#include "daemon/core/steer/plan.h"

#define SMS   132
#define GROUP 8
#define MS    NSEC_PER_MSEC

static const struct plan_gpu h200 = {.sms = SMS, .group = GROUP};

/* The time of kernels that take @whole on all SMs, and in proportion longer on fewer, by SMs. Valid
 * until the eighth call after this one. */
const nsec_t *linear(nsec_t whole);

/* A task whose jobs are known: they copy for 100 us, and back for 50. @kernels: as for linear(),
 * all of a job. */
struct plan_task task(nsec_t period, nsec_t deadline, unsigned launches, nsec_t block,
		      nsec_t kernels);
