/*
 * driver.h: the few functions of CUDA's driver that an examination needs, by dlopen, and the
 * kernels that it runs.
 *
 * For child processes only: a process that has initialised CUDA must not fork. The types are our
 * own declarations of the driver's stable interface, so the build needs no toolkit.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/examine/experiment.h"

typedef uint64_t driver_memory; /* CUdeviceptr */
struct driver_context;
struct driver_module;
struct driver_function;
struct driver_stream;
struct driver_event;

#define DRIVER_FUNCTIONS(X)                                                                      \
	X(init, "cuInit", (unsigned))                                                            \
	X(version, "cuDriverGetVersion", (int *))                                                \
	X(device, "cuDeviceGet", (int *, int))                                                   \
	X(device_count, "cuDeviceGetCount", (int *))                                             \
	X(device_name, "cuDeviceGetName", (char *, int, int))                                    \
	X(device_memory, "cuDeviceTotalMem_v2", (size_t *, int))                                 \
	X(attribute, "cuDeviceGetAttribute", (int *, int, int))                                  \
	X(retain, "cuDevicePrimaryCtxRetain", (struct driver_context **, int))                   \
	X(set_current, "cuCtxSetCurrent", (struct driver_context *))                             \
	X(priorities, "cuCtxGetStreamPriorityRange", (int *, int *))                             \
	X(synchronize, "cuCtxSynchronize", (void))                                               \
	X(load, "cuModuleLoadData", (struct driver_module **, const void *))                     \
	X(function, "cuModuleGetFunction",                                                       \
	  (struct driver_function **, struct driver_module *, const char *))                     \
	X(function_set, "cuFuncSetAttribute", (struct driver_function *, int, int))              \
	X(launch, "cuLaunchKernel",                                                              \
	  (struct driver_function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	   unsigned, struct driver_stream *, void **, void **))                                  \
	X(alloc, "cuMemAlloc_v2", (driver_memory *, size_t))                                     \
	X(alloc_managed, "cuMemAllocManaged", (driver_memory *, size_t, unsigned))               \
	X(alloc_host, "cuMemHostAlloc", (void **, size_t, unsigned))                             \
	X(host_pointer, "cuMemHostGetDevicePointer_v2", (driver_memory *, void *, unsigned))     \
	X(free, "cuMemFree_v2", (driver_memory))                                                 \
	X(free_host, "cuMemFreeHost", (void *))                                                  \
	X(copy_in, "cuMemcpyHtoDAsync_v2",                                                       \
	  (driver_memory, const void *, size_t, struct driver_stream *))                         \
	X(copy_out, "cuMemcpyDtoHAsync_v2",                                                      \
	  (void *, driver_memory, size_t, struct driver_stream *))                               \
	X(stream, "cuStreamCreate", (struct driver_stream **, unsigned))                         \
	X(stream_level, "cuStreamCreateWithPriority", (struct driver_stream **, unsigned, int))  \
	X(stream_wait, "cuStreamSynchronize", (struct driver_stream *))                          \
	X(event, "cuEventCreate", (struct driver_event **, unsigned))                            \
	X(event_record, "cuEventRecord", (struct driver_event *, struct driver_stream *))        \
	X(event_elapsed, "cuEventElapsedTime",                                                   \
	  (float *, struct driver_event *, struct driver_event *))                               \
	X(error_name, "cuGetErrorName", (int, const char **))

#define DRIVER_PORTABLE	     0x01 /* of alloc_host */
#define DRIVER_DEVICEMAP     0x02
#define DRIVER_ATTACH_GLOBAL 0x01 /* of alloc_managed */

struct driver {
#define X(name, symbol, arguments) int(*name) arguments;
	DRIVER_FUNCTIONS(X)
#undef X
	struct driver_context *context;
	struct driver_function *spin, *count, *walk;
	struct experiment_gpu gpu;
	char *error; /* borrowed: where a failed call is told */
	size_t error_size;
};

/* Loads the driver, opens GPU @index, which the calling thread then has, and fills in what it says
 * of the GPU; what must be measured (rates) is 0. Return: 0, or -EIO with one line in @error. Is
 * never closed: the process ends. */
int driver_open(struct driver *d, unsigned index, char *error, size_t error_size);

/* @result of the call @what: 0, or -EIO with one line in the driver's error. */
int driver_check(struct driver *d, int result, const char *what);

/* Launches @f with its record buffer and two numbers. @more: a third, of `walk` alone. */
int driver_launch(struct driver *d, struct driver_function *f, unsigned blocks, unsigned threads,
		  unsigned shared_bytes, struct driver_stream *stream, driver_memory records,
		  uint64_t work, driver_memory data, uint64_t elements);
