/*
 * pre-handle.c: a preload that gets between a program and the driver, which it opens itself.
 */
#include <cuda.h>
#include <dlfcn.h>

#include "plug.h"

static void *find(const char *name) {
	static void *driver;

	if (!driver) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	return dlsym(driver, name);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			       unsigned by, unsigned bz, unsigned shared, CUstream stream,
			       void **params, void **extra) {
	static __typeof__(cuLaunchKernel) *real;

	if (!real) {
		real = find("cuLaunchKernel");
	}
	return real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t n, CUstream stream) {
	static __typeof__(cuMemsetD32Async) *real;

	if (!real) {
		real = find("cuMemsetD32Async");
	}
	return real(p, value, n, stream);
}
