/*
 * plug.h: what plug-ins of the guests offer. All return a CUresult as a number.
 */
#pragma once

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int plug_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream,
		       void **params);
EXPORT int plug_synchronize(CUstream stream);
EXPORT int plug_set(CUdeviceptr p, unsigned value, unsigned n, CUstream stream);

/* What comes in @then waits for what is in @first. */
EXPORT int plug_wait(CUstream first, CUstream then);

/* How its own opening of the GPU ended; -1: it did not open it. */
EXPORT int plug_opened(void);
