/*
 * stubs.c: a program with functions of the driver's own names that find the driver when they are
 * first called, and that count. Linked with -rdynamic, they are what others find first.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "found.h"

static unsigned n_calls;

static void *find(const char *name) {
	static void *driver;

	if (!driver) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	return driver ? dlsym(driver, name) : NULL;
}

#define STUB(name, params, args)                                                \
	__attribute__((visibility("default"))) CUresult name params {           \
		static __typeof__(name) *real;                                  \
                                                                                \
		if (!real) {                                                    \
			real = find(#name);                                     \
		}                                                               \
		n_calls++;                                                      \
		return real ? real args : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED; \
	}

STUB(cuInit, (unsigned flags), (flags))
STUB(cuDeviceGet, (CUdevice * d, int n), (d, n))
STUB(cuDeviceGetCount, (int *n), (n))
STUB(cuDevicePrimaryCtxRetain, (CUcontext * c, CUdevice d), (c, d))
STUB(cuCtxSetCurrent, (CUcontext c), (c))
STUB(cuCtxGetCurrent, (CUcontext * c), (c))
STUB(cuCtxSynchronize, (void), ())
STUB(cuModuleLoadData, (CUmodule * m, const void *image), (m, image))
STUB(cuStreamCreate, (CUstream * s, unsigned flags), (s, flags))
STUB(cuStreamSynchronize, (CUstream s), (s))
STUB(cuLaunchKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, CUstream s, void **params, void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, s, params, extra))

static void *own(const char *exported, const char *name, int since) {
	void *f = dlsym(RTLD_DEFAULT, exported);

	(void)name, (void)since;
	return f ? f : find(exported);
}

static void called(void) {
	int n = -1;

	TELL("init %d\n", (int)cuInit(0));
	TELL("count %d\n", (int)cuDeviceGetCount(&n));
	TELL("%u calls\n", n_calls);
}

/* The driver's own functions are found, or the program's where these come first. */
static void used(void) {
	found_use("used", own);
	TELL("%u calls\n", n_calls);
}

const struct guest guests[] = {
	{"called", called},
	{"used", used},
	{NULL, NULL},
};
