/*
 * plug-stubs.c: a plug-in with stubs: functions of the driver's own names, visible to all, that
 * find the driver when they are first called. As a library that is linked statically brings them.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "plug.h"

static void *find(const char *name) {
	static void *driver;

	if (!driver) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	return driver ? dlsym(driver, name) : NULL;
}

#define STUB(name, params, args)                                                \
	EXPORT CUresult name params {                                           \
		static __typeof__(name) *real;                                  \
                                                                                \
		if (!real) {                                                    \
			real = find(#name);                                     \
		}                                                               \
		return real ? real args : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED; \
	}

STUB(cuInit, (unsigned flags), (flags))
STUB(cuDeviceGetCount, (int *n), (n))
STUB(cuLaunchKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, CUstream stream, void **params, void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra))
STUB(cuStreamSynchronize, (CUstream stream), (stream))

EXPORT int plug_opened(void) {
	int n = -1, r = (int)cuInit(0);

	return r ? r : (int)cuDeviceGetCount(&n);
}

EXPORT int plug_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream,
		       void **params) {
	return (int)cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

EXPORT int plug_synchronize(CUstream stream) {
	return (int)cuStreamSynchronize(stream);
}
