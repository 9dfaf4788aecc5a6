/*
 * launch.h: one kernel launch as every launch function of the driver says it, so that jobs and
 * enforcement see a single form.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

struct launch {
	CUfunction function; /* or a CUkernel cast to it, as the driver allows */
	unsigned grid[3];
	unsigned block[3];
	unsigned shared_bytes;
	CUstream stream;	      /* as the program gave it, CU_STREAM_LEGACY and PER_THREAD included */
	bool per_thread_default;      /* a _ptsz entry: stream 0 means the per-thread stream */
	void **params;		      /* borrowed; NULL when extra is used or there are none */
	void **extra;		      /* borrowed */
	const CUlaunchConfig *config; /* cuLaunchKernelEx only, else NULL */
	bool cooperative;
};

/* What cuLaunchKernelEx() is given for a launch without attributes. */
static inline CUlaunchConfig launch_plain_config(const unsigned grid[3], const unsigned block[3],
						 unsigned shared_bytes, CUstream stream) {
	return (CUlaunchConfig){
		.gridDimX = grid[0],
		.gridDimY = grid[1],
		.gridDimZ = grid[2],
		.blockDimX = block[0],
		.blockDimY = block[1],
		.blockDimZ = block[2],
		.sharedMemBytes = shared_bytes,
		.hStream = stream,
	};
}

/* In its grid; below 2^63 where the driver takes it. */
static inline uint64_t launch_blocks(const struct launch *l) {
	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

/* In each block. */
static inline uint64_t launch_threads(const struct launch *l) {
	return (uint64_t)l->block[0] * l->block[1] * l->block[2];
}
