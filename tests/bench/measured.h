/*
 * measured.h: the works of the evaluation on an H200, as they were measured there and as sbeetd
 * sees them, for benchmarks of plans.
 */
#pragma once

#include <stdio.h>

#include "daemon/core/profile.h"
#include "daemon/core/steer/plan.h"

#define MEASURED_SMS   132
#define MEASURED_WORKS 8

/* Where tasks may yield, with guard bands, as sbeetd plans by default. */
extern const struct plan_gpu measured_gpu;

/* A file of tests/gpu/evaluation, which is @folder. Ends the program if it can't be read, as
 * measured_read() does. */
FILE *measured_open(const char *folder, const char *name);

/* Reads the profiles. Comes before all below. */
void measured_read(const char *folder);

/* MEASURED_WORKS: no work of this name. */
size_t measured_work(const char *name);

const struct profile_table *measured_profile(size_t work);

struct plan_task measured_task(size_t work, nsec_t period, nsec_t deadline);
