/*
 * found.h: a GPU used through functions that the guest has found by itself, in whatever way.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>

#include "guest.h"

extern const char guest_ptx[];

/* FOUND(function, exported name, name and version for cuGetProcAddress) */
#define FOUND_FUNCTIONS                                                                         \
	FOUND(cuInit, "cuInit", "cuInit", 2000)                                                 \
	FOUND(cuDeviceGet, "cuDeviceGet", "cuDeviceGet", 2000)                                  \
	FOUND(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", \
	      7000)                                                                             \
	FOUND(cuCtxSetCurrent, "cuCtxSetCurrent", "cuCtxSetCurrent", 4000)                      \
	FOUND(cuModuleLoadData, "cuModuleLoadData", "cuModuleLoadData", 2000)                   \
	FOUND(cuModuleGetFunction, "cuModuleGetFunction", "cuModuleGetFunction", 2000)          \
	FOUND(cuMemAlloc, "cuMemAlloc_v2", "cuMemAlloc", 3020)                                  \
	FOUND(cuMemsetD32Async, "cuMemsetD32Async", "cuMemsetD32Async", 3020)                   \
	FOUND(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync", 3020)             \
	FOUND(cuStreamCreate, "cuStreamCreate", "cuStreamCreate", 2000)                         \
	FOUND(cuStreamSynchronize, "cuStreamSynchronize", "cuStreamSynchronize", 2000)          \
	FOUND(cuLaunchKernel, "cuLaunchKernel", "cuLaunchKernel", 4000)

struct found {
#define FOUND(function, exported, name, since) __typeof__(function) *function;
	FOUND_FUNCTIONS
#undef FOUND
};

/* @name as it is exported and as cuGetProcAddress knows it. Return: NULL if it is not there. */
typedef void *found_finder(const char *exported, const char *name, int since);

/* False, and it is told, if one is missing. */
bool found_all(const char *how, found_finder *find, struct found *ret);

/* A GPU that is open, with an array of FOUND_N values and a stream. */
#define FOUND_N 20480
struct found_gpu {
	const struct found *f;
	CUstream stream;
	CUdeviceptr p;
	CUfunction step;
	unsigned want, n_steps;
};
void found_open(const struct found *f, struct found_gpu *ret);

/* The next step by @launch, one of the found functions or another; NULL: the found one. */
void found_step(struct found_gpu *g, __typeof__(cuLaunchKernel) *launch);
void found_tell(const char *how, struct found_gpu *g);

/* All of it: finds, runs a few steps, tells. */
void found_use(const char *how, found_finder *find);
