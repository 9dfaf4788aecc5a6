/*
 * plug.c: a plug-in that uses the driver, linked with it as most are. GUEST_OPENS: it opens the GPU
 * when it is loaded, and leaves it when it is unloaded.
 */
#include <cuda.h>
#include <stdlib.h>

#include "plug.h"

EXPORT int plug_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream,
		       void **params) {
	return (int)cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

EXPORT int plug_synchronize(CUstream stream) {
	return (int)cuStreamSynchronize(stream);
}

EXPORT int plug_set(CUdeviceptr p, unsigned value, unsigned n, CUstream stream) {
	return (int)cuMemsetD32Async(p, value, n, stream);
}

EXPORT int plug_wait(CUstream first, CUstream then) {
	CUevent e;
	int r = (int)cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);

	if (!r) {
		r = (int)cuEventRecord(e, first);
	}
	if (!r) {
		r = (int)cuStreamWaitEvent(then, e, 0);
	}
	return r ? r : (int)cuEventDestroy(e);
}

static int opened = -1;

EXPORT int plug_opened(void) {
	return opened;
}

static __attribute__((constructor)) void load(void) {
	CUdeviceptr p;
	CUcontext c;

	if (getenv("GUEST_OPENS")) {
		opened = (int)cuInit(0);
		if (!opened) {
			opened = (int)cuDevicePrimaryCtxRetain(&c, 0);
		}
		if (!opened) {
			opened = (int)cuCtxSetCurrent(c);
		}
		if (!opened) {
			opened = (int)cuMemAlloc(&p, 4096);
		}
		if (!opened) {
			opened = (int)cuMemsetD8(p, 1, 4096);
		}
		if (!opened) {
			opened = (int)cuMemFree(p);
		}
	}
}

static __attribute__((destructor)) void unload(void) {
	if (opened == 0) {
		cuCtxSynchronize();
		cuDevicePrimaryCtxRelease(0);
	}
}
