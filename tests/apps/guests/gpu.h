/*
 * gpu.h: the simplest ways to use a GPU, for guests. Whatever fails is told and ends the guest with
 * exit code 1.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>

#include "guest.h"

/* The kernels of kernels/guest.cu. */
extern const char guest_ptx[];

#define CU(call) gpu_check((call), #call)

void gpu_check(CUresult result, const char *call);

/* "WHAT: CUDA_ERROR_X". */
void gpu_tell(const char *what, CUresult result);

#define TELL_RESULT(call) gpu_tell(#call, (call))

/* Opens GPU 0: primary context, current; @gpu. */
struct gpu {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction step, spin, count, await, set, sum;
};
extern struct gpu gpu;
void gpu_open(void);

/* The kernels, of the current context. */
void gpu_load(void);

/* A thread's first call. */
void gpu_enter(void);

/* A function of the driver that this machine's may lack (the simulated one's does): then the guest
 * is skipped. */
void *gpu_function(const char *name);

/* GPU_NEEDS(cuIpcGetMemHandle): from here on a local pointer of that name, of cuda.h's type. */
#define GPU_NEEDS(name)		     GPU_NEEDS_AS(name, #name)
#define GPU_NEEDS_AS(name, exported) __typeof__(name) *name = gpu_function(exported)

CUstream gpu_stream(unsigned flags);

/* Zeroed. */
CUdeviceptr gpu_alloc(size_t bytes);
unsigned gpu_word(CUdeviceptr p);

/* Blocks of 32 threads, each of which counts at @p when it is done. */
void gpu_spin(CUstream stream, CUdeviceptr p, unsigned blocks, unsigned rounds);

/* Steps that do not commute. Any thread may take one; they must come in turn. */
struct chain {
	CUdeviceptr p;
	unsigned n;	  /* values */
	unsigned n_steps; /* taken */
	unsigned want;	  /* each value after them */
};
#define CHAIN_N 4096
struct chain chain_new(unsigned n);

/* The parameters of the next step, for launching it in whatever way; the step counts as taken. */
struct chain_step {
	CUdeviceptr p;
	unsigned n, add;
	unsigned blocks, threads;
	void *params[4];
};
void chain_next(struct chain *c, struct chain_step *ret);
void chain_step(struct chain *c, CUstream stream);

/* Sets all values to @value, in the stream. */
void chain_restart(struct chain *c, CUstream stream, unsigned value);

/* Copies back in the stream and tells whether all is right. */
void chain_tell(const char *name, struct chain *c, CUstream stream);

/* A launch of the next step that is only a call. */
#define CHAIN_LAUNCH(launch, c, stream)                                                       \
	({                                                                                    \
		struct chain_step s_;                                                         \
                                                                                              \
		chain_next((c), &s_);                                                         \
		(launch)(gpu.step, s_.blocks, 1, 1, s_.threads, 1, 1, 0, (stream), s_.params, \
			 NULL);                                                               \
	})
