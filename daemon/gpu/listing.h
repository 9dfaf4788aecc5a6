/*
 * listing.h: which GPUs sbeetd serves: those that NVML knows; where there is no NVML, or one that
 * knows none, as on some Jetsons, those of CUDA's driver. Loads drivers, and may block: for the
 * worker thread or a process of its own, as nvml.h.
 */
#pragma once

#include "daemon/core/state.h"
#include "daemon/gpu/nvml.h"

struct gpu_listing {
	struct nvml *nvml; /* the caller's to close; NULL: the GPUs are those of CUDA's driver */
	struct nvml_gpu gpus[SCHED_GPUS_MAX];
	size_t n;
	unsigned n_left_out; /* that NVML has and can't read */
	bool integrated;     /* one of them shares the CPU's memory and power sensors */
};

/* Return: 0, even if there is no GPU; negative errno: neither can be asked. @why: one line on what
 * can't be; empty if NVML can. */
int gpu_list(struct gpu_listing *ret, char *why, size_t why_size);
