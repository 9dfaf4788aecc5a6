/*
 * driver.h: which GPUs there are, asked of CUDA's driver: for machines without NVML, such as the
 * Jetsons. Makes no context, so it takes no memory of a GPU. For the worker thread only, as nvml.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/gpu/nvml.h"

/* At most @max GPUs. @ret_integrated: they share the CPU's memory and power sensors. Return: their
 * number; -ENOENT: no such library; -EIO: it refuses. @why: one line. */
int driver_list(struct nvml_gpu *gpus, size_t max, bool *ret_integrated, char *why,
		size_t why_size);
