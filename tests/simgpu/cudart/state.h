/*
 * state.h: what the stand-in runtime library remembers: the calling thread's device and last error,
 * and what the program's constructors registered (fat binaries, kernels, variables).
 *
 * Nothing reaches the driver before it is needed: the first call that does initialises it, the
 * first that needs a context retains the device's primary context, and a fat binary is loaded when
 * one of its kernels or variables is first used. All functions may be called by several threads at
 * once.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "driver.h"

/* The driver, initialised. Return: cudaSuccess, or why not. */
cudaError_t state_driver(const struct cudart_driver **ret);

/* The same, and the context of the calling thread's device is current. */
cudaError_t state_context(const struct cudart_driver **ret);

/* The device of cudaSetDevice(), 0 at first; each thread has its own. */
int state_device(void);
cudaError_t state_set_device(int device);

/* Remembers @e, unless it is cudaSuccess, as the thread's last error. Returns @e. */
cudaError_t state_error(cudaError_t e);
cudaError_t state_last_error(int forget);

/* CUresult and cudaError_t have the same numbers for the same errors since CUDA 10.1. */
static inline cudaError_t state_error_of(CUresult r) {
	return r == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : (cudaError_t)r;
}

struct state_binary;

/* Never NULL. @fatbin: the wrapper that nvcc emits; stays the program's. */
struct state_binary *state_binary_new(const void *fatbin);

/* The program ends, or a library of it is closed. */
void state_binary_free(struct state_binary *binary);

/* @host is the address by which the program names the kernel or variable. Names stay the program's.
 */
void state_add_kernel(struct state_binary *binary, const void *host, const char *name);
void state_add_variable(struct state_binary *binary, const void *host, const char *name);

/* The driver's handles for what @host names; loads its binary if it is not loaded yet. A context
 * must be current. */
cudaError_t state_find_kernel(const struct cudart_driver *d, const void *host, CUkernel *ret);
cudaError_t state_find_variable(const struct cudart_driver *d, const void *host, CUdeviceptr *ret,
				size_t *ret_size);
