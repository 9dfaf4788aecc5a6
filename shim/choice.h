/*
 * choice.h: a program that can run its next job on several GPUs lets sbeetd choose one (sbeet.h).
 */
#pragma once

#include "shim/state.h"

/* What sbeet.h calls: see sbeet_job_gpu() there. */
SBEET_EXPORT int sbeet_choose_gpu(const int *gpus, unsigned n);
