/*
 * pre-next.c: a preload that gets between a program and the driver, as tracers do, and goes on to
 * whoever is next.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

#include "plug.h"

static unsigned n_launches;

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			       unsigned by, unsigned bz, unsigned shared, CUstream stream,
			       void **params, void **extra) {
	static __typeof__(cuLaunchKernel) *real;

	if (!real) {
		real = dlsym(RTLD_NEXT, "cuLaunchKernel");
	}
	__atomic_add_fetch(&n_launches, 1, __ATOMIC_RELAXED);
	return real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
	static __typeof__(cuStreamSynchronize) *real;

	if (!real) {
		real = dlsym(RTLD_NEXT, "cuStreamSynchronize");
	}
	return real(stream);
}
