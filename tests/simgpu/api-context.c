/*
 * api-context.c: contexts. Each thread has a stack of them, the top being the current one. A
 * primary context exists once a device and is counted; cuCtxCreate makes further ones.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/driver.h"

/* CUDA sets no limit; nobody nests this deep. */
#define CONTEXT_STACK 64

static _Thread_local struct {
	CUcontext contexts[CONTEXT_STACK];
	unsigned n; /* of them pushed, the current one included */
} context_stack;

CUcontext *context_slot(void) {
	return &context_stack.contexts[context_stack.n > 0 ? context_stack.n - 1 : 0];
}

CUresult context_new(int device, unsigned flags, bool is_primary, CUcontext *ret) {
	struct wire_value_reply reply;
	CUcontext c = calloc(1, sizeof(*c));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (c) {
		r = driver_ask(WIRE_CONTEXT_NEW, driver_gpu_index(device), 0, 0, &reply);
	}
	if (r != CUDA_SUCCESS) {
		free(c);
		return r;
	}
	c->tag = DRIVER_CONTEXT;
	c->id = (uint32_t)reply.value;
	c->null_stream = (uint32_t)reply.value2;
	c->device = device;
	c->flags = flags;
	c->is_primary = is_primary;
	c->limits[CU_LIMIT_STACK_SIZE] = 1024;
	c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1024 * 1024;
	c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * 1024 * 1024;
	c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	groups_new(c);
	pthread_mutex_lock(&driver.list_lock);
	c->next = driver.contexts;
	driver.contexts = c;
	pthread_mutex_unlock(&driver.list_lock);
	*ret = c;
	return CUDA_SUCCESS;
}

void context_free(CUcontext context) {
	pthread_mutex_lock(&driver.list_lock);
	for (CUcontext *p = &driver.contexts; *p; p = &(*p)->next) {
		if (*p == context) {
			*p = context->next;
			break;
		}
	}
	context->next = driver.destroyed;
	driver.destroyed = context;
	pthread_mutex_unlock(&driver.list_lock);
	groups_free(context);
	(void)driver_ask(WIRE_CONTEXT_FREE, context->id, 0, 0, NULL);
	context->tag = 0;
}

/* ---- primary contexts ---- */

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !pctx) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&driver.lock);
	if (!driver.primary[dev]) {
		r = context_new(dev, driver.primary_flags[dev], true, &driver.primary[dev]);
	}
	if (r == CUDA_SUCCESS) {
		driver.primary_refs[dev]++;
		*pctx = driver.primary[dev];
	}
	pthread_mutex_unlock(&driver.lock);
	return r;
}

/* With the lock held. */
static void primary_reset(CUdevice dev) {
	if (driver.primary[dev]) {
		context_free(driver.primary[dev]);
		driver.primary[dev] = NULL;
	}
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	pthread_mutex_lock(&driver.lock);
	if (driver.primary_refs[dev] == 0) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--driver.primary_refs[dev] == 0) {
		primary_reset(dev);
	}
	pthread_mutex_unlock(&driver.lock);
	return r;
}

/* Whoever holds it still does, as on a real GPU. */
EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&driver.lock);
		primary_reset(dev);
		pthread_mutex_unlock(&driver.lock);
	}
	return r;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r == CUDA_SUCCESS) {
		driver.primary_flags[dev] = flags;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !flags || !active) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*flags = driver.primary_flags[dev];
	*active = driver.primary[dev] != NULL;
	return CUDA_SUCCESS;
}

/* ---- the stack ---- */

EXPORT CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (ctx && ctx->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (context_stack.n == 0) {
		context_stack.n = 1;
	}
	*context_slot() = ctx;
	if (!ctx) {
		context_stack.n--;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS || !pctx) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*pctx = *context_slot();
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!ctx || ctx->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (context_stack.n == CONTEXT_STACK) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context_stack.contexts[context_stack.n++] = ctx;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (context_stack.n == 0) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (pctx) {
		*pctx = *context_slot();
	}
	*context_slot() = NULL;
	context_stack.n--;
	return CUDA_SUCCESS;
}

/* ---- further contexts ---- */

static CUresult context_create(CUcontext *pctx, unsigned int flags, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !pctx) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&driver.lock);
	r = context_new(dev, flags, false, pctx);
	pthread_mutex_unlock(&driver.lock);
	return r == CUDA_SUCCESS ? cuCtxPushCurrent(*pctx) : r;
}

/* Older forms of cuCtxCreate: cuda.h declares the newest only. */
EXPORT CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
EXPORT CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray,
				       int numParams, unsigned int flags, CUdevice dev);

EXPORT CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev) {
	return context_create(pctx, flags, dev);
}

EXPORT CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray,
				       int numParams, unsigned int flags, CUdevice dev) {
	return numParams > 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
			     : context_create(pctx, flags, dev);
}

EXPORT CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
				       unsigned int flags, CUdevice dev) {
	if (ctxCreateParams &&
	    (ctxCreateParams->numExecAffinityParams > 0 || ctxCreateParams->cigParams)) {
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	}
	return context_create(pctx, flags, dev);
}

EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext ctx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!ctx || ctx->tag != DRIVER_CONTEXT || ctx->is_primary) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (*context_slot() == ctx) {
		(void)cuCtxPopCurrent(NULL);
	}
	(void)driver_ask(WIRE_CONTEXT_SYNC, ctx->id, 0, 0, NULL);
	pthread_mutex_lock(&driver.lock);
	context_free(ctx);
	pthread_mutex_unlock(&driver.lock);
	return CUDA_SUCCESS;
}

/* ---- what contexts tell ---- */

EXPORT CUresult CUDAAPI cuCtxSynchronize(void) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = capture_check_thread();
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	return context_note(c, driver_ask(WIRE_CONTEXT_SYNC, c->id, 0, 0, NULL));
}

EXPORT CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
	CUcontext c = *context_slot();
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!device) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!c || c->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*device = c->device;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		*flags = c->flags;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId) {
	ctx = ctx ? ctx : *context_slot();
	if (!ctx || ctx->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*ctxId = ctx->id;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version) {
	ctx = ctx ? ctx : *context_slot();
	if (!ctx || ctx->tag != DRIVER_CONTEXT) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*version = 3020;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS && leastPriority) {
		*leastPriority = 0;
	}
	if (r == CUDA_SUCCESS && greatestPriority) {
		*greatestPriority = -5;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!pvalue || (unsigned)limit >= CU_LIMIT_MAX) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*pvalue = c->limits[limit];
	return CUDA_SUCCESS;
}

/* Kept and told, otherwise without effect: the interpreter's stack and heap have no such limits. */
EXPORT CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if ((unsigned)limit >= CU_LIMIT_MAX) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	c->limits[limit] = value;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig) {
	CUcontext c;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		*pconfig = CU_FUNC_CACHE_PREFER_NONE;
	}
	return r;
}

/* A hint; there is no cache to configure. */
EXPORT CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
	CUcontext c;

	(void)config;
	return driver_current(&c);
}
