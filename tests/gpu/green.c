/*
 * green.c: see green.h.
 */
#include "tests/gpu/green.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define FUNCTIONS(F)                   \
	F(cuDeviceGetDevResource)      \
	F(cuDevSmResourceSplitByCount) \
	F(cuDevResourceGenerateDesc)   \
	F(cuGreenCtxCreate)            \
	F(cuGreenCtxDestroy)           \
	F(cuGreenCtxStreamCreate)

#define DECLARE(name) __typeof__(name) *name;
static struct { FUNCTIONS(DECLARE) } green;

static bool load(void) {
	static void *lib;

	if (!lib) {
		lib = dlopen("libcuda.so.1", RTLD_NOW);
	}
	if (!lib) {
		return false;
	}
#define FIND(name)                                              \
	green.name = (__typeof__(green.name))dlsym(lib, #name); \
	if (!green.name) {                                      \
		return false;                                   \
	}
	FUNCTIONS(FIND)
	return true;
}

/* A group of at least @n_sms SMs; all of them if that is what it takes. */
static bool find_group(CUdevice device, unsigned n_sms, CUdevResource *ret) {
	CUdevResource all, rest;
	unsigned n = 1;

	if (green.cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) {
		return false;
	}
	if (green.cuDevSmResourceSplitByCount(ret, &n, &all, &rest,
					      CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
					      n_sms) != CUDA_SUCCESS ||
	    n < 1) {
		*ret = all;
	}
	return true;
}

int green_init(struct green *g, CUdevice device, unsigned n_sms) {
	CUdevResourceDesc desc;
	CUdevResource group;

	if (!load() || !find_group(device, n_sms, &group) ||
	    green.cuDevResourceGenerateDesc(&desc, &group, 1) != CUDA_SUCCESS ||
	    green.cuGreenCtxCreate(&g->handle, desc, device, CU_GREEN_CTX_DEFAULT_STREAM) !=
		    CUDA_SUCCESS) {
		return -ENOTSUP;
	}
	if (green.cuGreenCtxStreamCreate(&g->stream, g->handle, CU_STREAM_NON_BLOCKING, 0) !=
	    CUDA_SUCCESS) {
		green.cuGreenCtxDestroy(g->handle);
		return -ENOTSUP;
	}
	g->n_sms = group.sm.smCount;
	return 0;
}

void green_deinit(struct green *g) {
	green.cuGreenCtxDestroy(g->handle);
	memset(g, 0, sizeof(*g));
}
