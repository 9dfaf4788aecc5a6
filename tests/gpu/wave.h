/*
 * wave.h: the kernel of compute.cu in waves: as many blocks as the GPU runs at a time.
 *
 * Any error of CUDA ends the program.
 */
#pragma once

#include <stddef.h>

#include "tests/apps/driver/driver.h"

struct wave {
	CUstream stream; /* does not wait for others */
	CUfunction kernel;
	CUdeviceptr sm_blocks;
	unsigned blocks; /* of one wave */
};

/* Opens GPU 0; its primary context is current. */
void wave_open(struct wave *ret);

/* Results of one wave. */
size_t wave_bytes(const struct wave *w);

/* Adds to the results at @out of @waves waves what @rounds rounds of arithmetic give. Doesn't wait.
 */
void wave_launch(struct wave *w, CUdeviceptr out, unsigned waves, unsigned rounds);
