/*
 * driver.h: what the driver-API sample programs share: opening the GPU, and giving up on an error.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>

/* Ends the program with a message and exit code 1 unless the call returned CUDA_SUCCESS. */
#define CU(call) driver_check((call), #call, __FILE__, __LINE__)

void driver_check(CUresult result, const char *call, const char *file, int line);

/* Initialises the driver, makes GPU @gpu's primary context current and loads @ptx (text). */
CUmodule driver_open(unsigned gpu, const char *ptx);

/* Makes the context of driver_open() current in the calling thread. */
void driver_enter_thread(void);

/* Unloads the module and releases the context. */
void driver_close(CUmodule module);

CUfunction driver_kernel(CUmodule module, const char *name);

/* Never NULL pointers: ends the program if there is not enough memory. */
CUdeviceptr driver_alloc(size_t bytes);
void driver_free(CUdeviceptr p);

/* How many blocks of @block elements cover @n. */
static inline unsigned driver_blocks(size_t n, unsigned block) {
	return (unsigned)((n + block - 1) / block);
}
