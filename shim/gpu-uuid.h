/*
 * gpu-uuid.h: which GPU a device number means in this process.
 */
#pragma once

#include <stdint.h>

#include <cuda.h>

/* PROTO_UUID_BYTES; for a MIG instance its own. Enters the driver for the first look at a device
 * only. NULL: the driver can't say, or the number is beyond what is managed. */
const uint8_t *gpu_uuid(CUdevice device);

/* After fork, in the child: forget everything without calling the driver. */
void gpu_uuid_after_fork(void);
