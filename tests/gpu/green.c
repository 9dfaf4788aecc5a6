/*
 * green.c: see green.h.
 */
#include "tests/gpu/green.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define GROUPS_MAX 128

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

/* On @n of @groups. */
static int make(struct green *g, CUdevice device, CUdevResource *groups, unsigned n) {
	CUdevResourceDesc desc;

	if (green.cuDevResourceGenerateDesc(&desc, groups, n) != CUDA_SUCCESS ||
	    green.cuGreenCtxCreate(&g->handle, desc, device, CU_GREEN_CTX_DEFAULT_STREAM) !=
		    CUDA_SUCCESS) {
		return -ENOTSUP;
	}
	if (green.cuGreenCtxStreamCreate(&g->stream, g->handle, CU_STREAM_NON_BLOCKING, 0) !=
	    CUDA_SUCCESS) {
		green.cuGreenCtxDestroy(g->handle);
		return -ENOTSUP;
	}
	g->n_sms = n * groups[0].sm.smCount;
	return 0;
}

int green_init(struct green *g, CUdevice device, unsigned n_sms) {
	CUdevResource group;

	return load() && find_group(device, n_sms, &group) ? make(g, device, &group, 1) : -ENOTSUP;
}

int green_init_row(struct green *g, CUdevice device, unsigned first, unsigned n_sms) {
	CUdevResource all, rest, groups[GROUPS_MAX];
	unsigned n = GROUPS_MAX, size;

	if (!load() ||
	    green.cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
	    green.cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, 2) != CUDA_SUCCESS ||
	    n == 0) {
		return -ENOTSUP;
	}
	size = groups[0].sm.smCount;
	if (n_sms == 0 || first % size != 0 || n_sms % size != 0 || (first + n_sms) / size > n) {
		return -EINVAL;
	}
	return make(g, device, &groups[first / size], n_sms / size);
}

void green_deinit(struct green *g) {
	green.cuGreenCtxDestroy(g->handle);
	memset(g, 0, sizeof(*g));
}
