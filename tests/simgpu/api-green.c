/*
 * api-green.c: parts of a GPU: SM resources, green contexts and their streams.
 *
 * A resource names SMs by a bit mask in the bytes that the driver keeps for itself. Groups are cut
 * in an order of our own, the same in every process: group i of size k has the SMs i, i + n, i + 2n
 * and so on, n = SMs / k. So neighbours in the order are no neighbours by number, as on real GPUs.
 * $SIMGPU_GREEN=off is a driver that makes none, =slow one that takes as long for it as a real one.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/driver.h"

struct sm_mask {
	uint64_t words[WIRE_SMS_MAX / 64];
};

/* As a resource hides it. */
struct hidden {
	struct sm_mask mask;
	int32_t device;
};

_Static_assert(sizeof(CUdevResourceType) + sizeof(struct hidden) <= offsetof(CUdevResource, sm),
	       "what we hide fits where the driver hides things");

struct CUdevResourceDesc_st {
	struct sm_mask mask;
	int device;
};

/* ---- resources ---- */

static struct hidden hidden_get(const CUdevResource *r) {
	struct hidden h;

	memcpy(&h, (const char *)r + sizeof(r->type), sizeof(h));
	return h;
}

static unsigned mask_count(const struct sm_mask *mask) {
	unsigned n = 0;

	for (size_t i = 0; i < WIRE_SMS_MAX / 64; i++) {
		n += (unsigned)__builtin_popcountll(mask->words[i]);
	}
	return n;
}

static void mask_add(struct sm_mask *mask, unsigned sm) {
	mask->words[sm / 64] |= 1ull << sm % 64;
}

static CUdevResource resource_of(const struct sm_mask *mask, int device, unsigned least,
				 unsigned multiple) {
	struct hidden h = {.mask = *mask, .device = device};
	CUdevResource r = {.type = CU_DEV_RESOURCE_TYPE_SM};

	memcpy((char *)&r + sizeof(r.type), &h, sizeof(h));
	r.sm.smCount = mask_count(mask);
	r.sm.minSmPartitionSize = least;
	r.sm.smCoscheduledAlignment = multiple;
	return r;
}

/* The smallest group, and of what its size is a multiple: documented with
 * cuDevSmResourceSplitByCount. */
static void group_limits(const struct wire_gpu *gpu, unsigned flags, unsigned *ret_least,
			 unsigned *ret_multiple) {
	bool whole = !(flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);

	*ret_least = gpu->cc_major >= 9 && whole ? 8 : gpu->cc_major == 8 ? 4 : 2;
	*ret_multiple = gpu->cc_major >= 9 && whole ? 8 : 2;
}

EXPORT CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
					       CUdevResourceType type) {
	const char *off = getenv("SIMGPU_GREEN");
	const struct wire_gpu *gpu;
	struct sm_mask mask = {0};
	unsigned least, multiple;
	CUresult r = driver_device(device, &gpu);

	if (off && strcmp(off, "off") == 0) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < gpu->n_sms; i++) {
		mask_add(&mask, i);
	}
	group_limits(gpu, 0, &least, &multiple);
	*resource = resource_of(&mask, device, least, multiple);
	return CUDA_SUCCESS;
}

/* The SMs of @mask, in the order of this file: @ret has room for all. Return: how many. */
static unsigned order_sms(const struct sm_mask *mask, unsigned size, unsigned *ret) {
	unsigned sms[WIRE_SMS_MAX], n = 0, n_groups;

	for (unsigned i = 0; i < WIRE_SMS_MAX; i++) {
		if (mask->words[i / 64] >> i % 64 & 1) {
			sms[n++] = i;
		}
	}
	n_groups = n / size;
	for (unsigned i = 0; i < n; i++) {
		/* What is left over comes last. */
		ret[i] = i < n_groups * size ? sms[i / size + i % size * n_groups] : sms[i];
	}
	return n;
}

EXPORT CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
						    const CUdevResource *input,
						    CUdevResource *remaining, unsigned int useFlags,
						    unsigned int minCount) {
	unsigned least, multiple, size, n, n_groups, order[WIRE_SMS_MAX];
	const struct wire_gpu *gpu;
	struct sm_mask rest = {0};
	struct hidden h;
	CUresult r;

	if (!nbGroups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	h = hidden_get(input);
	r = driver_device(h.device, &gpu);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	group_limits(gpu, useFlags, &least, &multiple);
	size = minCount > least ? minCount : least;
	size += (multiple - size % multiple) % multiple;
	if (size > mask_count(&h.mask)) {
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	}
	n = order_sms(&h.mask, size, order);
	n_groups = result && *nbGroups < n / size ? *nbGroups : n / size;
	for (unsigned g = 0; result && g < n_groups; g++) {
		struct sm_mask group = {0};

		for (unsigned i = 0; i < size; i++) {
			mask_add(&group, order[g * size + i]);
		}
		result[g] = resource_of(&group, h.device, least, multiple);
	}
	for (unsigned i = n_groups * size; i < n; i++) {
		mask_add(&rest, order[i]);
	}
	if (remaining) {
		*remaining = resource_of(&rest, h.device, least, multiple);
	}
	*nbGroups = n_groups;
	return CUDA_SUCCESS;
}

/* Descriptors have no end in the API: they are kept. */
EXPORT CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc,
						  CUdevResource *resources,
						  unsigned int nbResources) {
	struct CUdevResourceDesc_st desc = {.device = -1}, *d;

	if (!phDesc || !resources || nbResources == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < nbResources; i++) {
		struct hidden h = hidden_get(&resources[i]);

		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM ||
		    (desc.device >= 0 && desc.device != h.device)) {
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		}
		desc.device = h.device;
		for (size_t k = 0; k < WIRE_SMS_MAX / 64; k++) {
			if (desc.mask.words[k] & h.mask.words[k]) {
				return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
			}
			desc.mask.words[k] |= h.mask.words[k];
		}
	}
	d = malloc(sizeof(*d));
	if (!d) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*d = desc;
	*phDesc = d;
	return CUDA_SUCCESS;
}

/* ---- green contexts ---- */

/* What one takes on an H200. */
static void take_time(void) {
	const char *slow = getenv("SIMGPU_GREEN");
	const struct timespec t = {.tv_nsec = 1500000};

	if (slow && strcmp(slow, "slow") == 0) {
		nanosleep(&t, NULL);
	}
}

EXPORT CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
					 unsigned int flags) {
	struct wire_part q = {.h = {.type = WIRE_PART_NEW}};
	struct wire_value_reply reply;
	CUcontext context;
	CUgreenCtx g;
	CUresult r;

	if (!phCtx || !desc || desc->device != dev || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	take_time();
	r = cuDevicePrimaryCtxRetain(&context, dev);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	g = calloc(1, sizeof(*g));
	q.context = context->id;
	memcpy(q.sms, desc->mask.words, sizeof(q.sms));
	r = g ? driver_call(&q, sizeof(q), -1, &reply, sizeof(reply)) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		free(g);
		cuDevicePrimaryCtxRelease(dev);
		return r;
	}
	*g = (struct CUgreenCtx_st){.tag = DRIVER_GREEN,
				    .id = (uint32_t)reply.value,
				    .context = context,
				    .device = dev,
				    .n_sms = mask_count(&desc->mask)};
	*phCtx = g;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!hCtx || hCtx->tag != DRIVER_GREEN) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (hCtx->context->tag == DRIVER_CONTEXT) {
		r = driver_ask(WIRE_PART_FREE, hCtx->id, 0, 0, NULL);
		cuDevicePrimaryCtxRelease(hCtx->device);
	}
	hCtx->tag = 0;
	free(hCtx->alias);
	free(hCtx);
	return r;
}

EXPORT CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!pContext || !hCtx || hCtx->tag != DRIVER_GREEN) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = context_check(hCtx->context);
	pthread_mutex_lock(&driver.lock);
	if (r == CUDA_SUCCESS && !hCtx->alias) {
		hCtx->alias = malloc(sizeof(*hCtx->alias));
		r = hCtx->alias ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (hCtx->alias) {
			*hCtx->alias = *hCtx->context;
			hCtx->alias->green = hCtx;
		}
	}
	pthread_mutex_unlock(&driver.lock);
	*pContext = hCtx->alias;
	return r;
}

EXPORT CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx,
					       unsigned int flags, int priority) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!greenCtx || greenCtx->tag != DRIVER_GREEN) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (!phStream || flags != CU_STREAM_NON_BLOCKING) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = context_check(greenCtx->context);
	return r == CUDA_SUCCESS
		       ? stream_new(greenCtx->context, greenCtx, flags, priority, phStream)
		       : r;
}

EXPORT CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx) {
	struct target t;
	CUresult r = stream_ask_about(hStream, false, &t);

	if (r == CUDA_SUCCESS && !phCtx) {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS) {
		*phCtx = stream_is_default(hStream) ? NULL : hStream->green;
	}
	return r;
}
