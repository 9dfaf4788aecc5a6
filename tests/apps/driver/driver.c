/*
 * driver.c: see driver.h.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

static CUdevice device;
static CUcontext context;

void driver_check(CUresult result, const char *call, const char *file, int line) {
	const char *name = NULL;
	const char *text = NULL;

	if (result == CUDA_SUCCESS) {
		return;
	}
	cuGetErrorName(result, &name);
	cuGetErrorString(result, &text);
	fprintf(stderr, "%s:%d: %s: %s (%d): %s\n", file, line, call, name ? name : "?",
		(int)result, text ? text : "?");
	exit(1);
}

CUmodule driver_open(unsigned gpu, const char *ptx) {
	CUmodule module;
	int n;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&n));
	if (gpu >= (unsigned)n) {
		fprintf(stderr, "there is no GPU %u: the driver shows %d\n", gpu, n);
		exit(1);
	}
	CU(cuDeviceGet(&device, (int)gpu));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, ptx));
	return module;
}

void driver_enter_thread(void) {
	CU(cuCtxSetCurrent(context));
}

void driver_close(CUmodule module) {
	CU(cuModuleUnload(module));
	CU(cuCtxSetCurrent(NULL));
	CU(cuDevicePrimaryCtxRelease(device));
}

CUfunction driver_kernel(CUmodule module, const char *name) {
	CUfunction kernel;

	CU(cuModuleGetFunction(&kernel, module, name));
	return kernel;
}

CUdeviceptr driver_alloc(size_t bytes) {
	CUdeviceptr p;

	CU(cuMemAlloc(&p, bytes > 0 ? bytes : 1));
	return p;
}

void driver_free(CUdeviceptr p) {
	CU(cuMemFree(p));
}
