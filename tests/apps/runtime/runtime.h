/*
 * runtime.h: what the runtime-API sample programs share: choosing the GPU, and giving up on an
 * error.
 */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#include "../common.h"
#include "../reference.h"

/* Ends the program with a message and exit code 1 unless the call returned cudaSuccess. */
#define RT(call) runtime_check((call), #call, __FILE__, __LINE__)

static inline void runtime_check(cudaError_t result, const char *call, const char *file, int line) {
	if (result != cudaSuccess) {
		fprintf(stderr, "%s:%d: %s: %s (%d): %s\n", file, line, call,
			cudaGetErrorName(result), (int)result, cudaGetErrorString(result));
		exit(1);
	}
}

static inline void runtime_open(unsigned gpu) {
	int n;

	RT(cudaGetDeviceCount(&n));
	if (gpu >= (unsigned)n) {
		fprintf(stderr, "there is no GPU %u: the driver shows %d\n", gpu, n);
		exit(1);
	}
	RT(cudaSetDevice((int)gpu));
}

/* How many blocks of @block elements cover @n. */
static inline unsigned runtime_blocks(size_t n, unsigned block) {
	return (unsigned)((n + block - 1) / block);
}

/* Host memory for @n values, zeroed. */
template <typename T> static inline T *host_alloc(size_t n) {
	return static_cast<T *>(app_alloc(n, sizeof(T)));
}

template <typename T> static inline T *device_alloc(size_t n) {
	void *p;

	RT(cudaMalloc(&p, n * sizeof(T)));
	return static_cast<T *>(p);
}

template <typename T> static inline T *pinned_alloc(size_t n) {
	void *p;

	RT(cudaMallocHost(&p, n * sizeof(T)));
	return static_cast<T *>(p);
}
