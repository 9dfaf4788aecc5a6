/*
 * api-launch.c: kernel launches and occupancy.
 *
 * A launch is checked here, against what simgpud told of the kernel, and posted: no answer is
 * waited for. What goes wrong while it runs is seen by the next call that waits, as with a real
 * GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/config.h"
#include "tests/simgpu/driver.h"

struct shape {
	unsigned grid[3], block[3];
	unsigned shared_bytes;
};

/* ---- occupancy ---- */

/* The model of the GPU as config.c's rounding and device.c's rules want it. */
static void gpu_model(const struct wire_gpu *g, struct config_gpu *ret) {
	*ret = (struct config_gpu){
		.cc_major = g->cc_major,
		.cc_minor = g->cc_minor,
		.block_shared_reserved = g->block_shared_reserved,
		.device = {.n_sms = g->n_sms,
			   .sm_threads = g->sm_threads,
			   .sm_blocks = g->sm_blocks,
			   .sm_regs = g->sm_regs,
			   .sm_shared_bytes = g->sm_shared_bytes},
	};
}

static unsigned function_occupancy(CUfunction f, unsigned threads, size_t dynamic_shared) {
	struct config_gpu gpu;
	struct device_kernel needs;

	if (dynamic_shared > UINT32_MAX / 2) {
		return 0;
	}
	gpu_model(context_gpu(f->module->context), &gpu);
	needs = config_block_needs(&gpu, threads, f->regs,
				   f->static_shared + (unsigned)dynamic_shared);
	return device_occupancy(&gpu.device, &needs);
}

static CUresult occupancy(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize) {
	CUcontext c;
	CUfunction f;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = function_resolve(func, c, &f);
	}
	if (r != CUDA_SUCCESS || !numBlocks || blockSize <= 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*numBlocks = (unsigned)blockSize > f->max_threads
			     ? 0
			     : (int)function_occupancy(f, (unsigned)blockSize, dynamicSMemSize);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
								    int blockSize,
								    size_t dynamicSMemSize) {
	return occupancy(numBlocks, func, blockSize, dynamicSMemSize);
}

EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks,
									     CUfunction func,
									     int blockSize,
									     size_t dynamicSMemSize,
									     unsigned int flags) {
	return flags & ~1u ? CUDA_ERROR_INVALID_VALUE
			   : occupancy(numBlocks, func, blockSize, dynamicSMemSize);
}

/* The largest block size, in warps, that gives the most resident threads. */
EXPORT CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(
	int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
	unsigned int flags) {
	unsigned best = 0, best_threads = 0, blocks = 0;
	CUcontext c;
	CUfunction f;
	CUresult r = driver_current(&c);

	if (r == CUDA_SUCCESS) {
		r = function_resolve(func, c, &f);
	}
	if (r != CUDA_SUCCESS || !minGridSize || !blockSize || (flags & ~1u)) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned threads = f->max_threads / 32 * 32; threads >= 32; threads -= 32) {
		size_t shared = blockSizeToDynamicSMemSize
					? blockSizeToDynamicSMemSize((int)threads)
					: dynamicSMemSize;
		unsigned n = function_occupancy(f, threads, shared);

		if (blockSizeLimit > 0 && threads > (unsigned)blockSizeLimit) {
			continue;
		}
		if (n * threads > best_threads) {
			best_threads = n * threads;
			best = threads;
			blocks = n;
		}
	}
	if (best == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*blockSize = (int)best;
	*minGridSize = (int)(blocks * context_gpu(c)->n_sms);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(
	int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit) {
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
							 blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, 0);
}

/* ---- parameters ---- */

/* Packs what the program passed, in either way, into @buffer of f->params_size bytes. */
static CUresult params_pack(CUfunction f, void **params, void **extra, uint8_t *buffer) {
	const void *packed = NULL;
	size_t packed_size = 0;

	if (params && extra) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			packed = extra[1];
		} else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
			packed_size = *(size_t *)extra[1];
		} else {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	if (packed) {
		if (packed_size < f->params_size) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		memcpy(buffer, packed, f->params_size);
		return CUDA_SUCCESS;
	}
	if (f->n_params > 0 && !params) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < f->n_params; i++) {
		if (!params[i]) {
			return CUDA_ERROR_INVALID_VALUE;
		}
		memcpy(buffer + f->params[i].offset, params[i], f->params[i].size);
	}
	return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* SMs that the blocks of a launch into @stream can be on. */
static unsigned stream_sms(CUstream stream, const struct wire_gpu *gpu) {
	return stream_is_default(stream) || !stream->green ? gpu->n_sms : stream->green->n_sms;
}

static CUresult shape_check(CUfunction f, const struct shape *s, CUstream stream,
			    bool cooperative) {
	const struct wire_gpu *gpu = context_gpu(f->module->context);
	uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];
	uint64_t blocks = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
	unsigned occupancy_now;

	if (blocks == 0 || threads == 0 || s->grid[0] > 2147483647u || s->grid[1] > 65535 ||
	    s->grid[2] > 65535 || s->block[0] > 1024 || s->block[1] > 1024 || s->block[2] > 64 ||
	    threads > gpu->block_threads_max || (int)s->shared_bytes < 0 ||
	    (int)s->shared_bytes > f->max_dynamic_shared) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (threads > f->max_threads) {
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	}
	occupancy_now = function_occupancy(f, (unsigned)threads, s->shared_bytes);
	if (occupancy_now == 0) {
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	}
	if (cooperative && blocks > (uint64_t)occupancy_now * stream_sms(stream, gpu)) {
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	}
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const struct shape *s, CUstream stream, bool per_thread,
		       void **params, void **extra, bool cooperative) {
	struct wire_launch q = {.h = {.type = WIRE_LAUNCH}};
	struct client_message m = {.head = &q, .head_size = sizeof(q)};
	uint8_t small[1024], *buffer = small;
	struct target t;
	bool taken = false;
	CUfunction f;
	CUresult r = stream_target(stream, per_thread, &t);

	if (r == CUDA_SUCCESS) {
		r = function_resolve(function, t.context, &f);
	}
	if (r == CUDA_SUCCESS) {
		r = shape_check(f, s, stream, cooperative);
	}
	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (f->params_size > sizeof(small)) {
		buffer = malloc(f->params_size);
		if (!buffer) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	memset(buffer, 0, f->params_size); /* what lies between parameters */
	r = params_pack(f, params, extra, buffer);
	if (r == CUDA_SUCCESS) {
		q.stream = t.stream;
		q.part = stream_is_default(stream) || !stream->green ? 0 : stream->green->id;
		q.module = f->module->id;
		q.kernel = f->index;
		q.shared_bytes = s->shared_bytes;
		memcpy(q.grid, s->grid, sizeof(q.grid));
		memcpy(q.block, s->block, sizeof(q.block));
		q.params_size = (uint32_t)f->params_size;
		m.data = buffer;
		m.data_size = f->params_size;
		m.function = f;
		r = capture_take(&t, &m, &taken);
	}
	if (r == CUDA_SUCCESS && !taken) {
		r = client_post(&m) < 0 ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
	}
	if (buffer != small) {
		free(buffer);
	}
	return context_note(t.context, r);
}

/* What Hopper does: the blocks of a cluster are side by side, at most 8 of them, or 16 for who asks
 * for that; 16 are in no group of SMs that a green context is made of. That a kernel's blocks know
 * of each other is not simulated: PTX that says so is refused. */
#define CLUSTER_MAX	  16
#define CLUSTER_GREEN_MAX 8

static CUresult cluster_check(const CUlaunchAttributeValue *value, CUstream stream) {
	uint64_t blocks = (uint64_t)value->clusterDim.x * value->clusterDim.y * value->clusterDim.z;
	unsigned most =
		stream_is_default(stream) || !stream->green ? CLUSTER_MAX : CLUSTER_GREEN_MAX;

	return blocks <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Attributes that change nothing here are accepted; those that would change what runs are not. */
static CUresult launch_attributes(const CUlaunchConfig *config, bool *ret_cooperative) {
	bool cooperative = false;
	CUresult r;

	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		switch (a->id) {
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			cooperative = a->value.cooperative != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			r = cluster_check(&a->value, config->hStream);
			if (r != CUDA_SUCCESS) {
				return r;
			}
			break;
		default:
			return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	*ret_cooperative = cooperative;
	return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra,
			  bool per_thread) {
	bool cooperative;
	struct shape s;
	CUresult r;

	if (!config) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = launch_attributes(config, &cooperative);
	if (r != CUDA_SUCCESS) {
		return r;
	}
	s = (struct shape){
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared_bytes = config->sharedMemBytes,
	};
	return launch(f, &s, config->hStream, per_thread, params, extra, cooperative);
}

EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
				       unsigned int gridDimZ, unsigned int blockDimX,
				       unsigned int blockDimY, unsigned int blockDimZ,
				       unsigned int sharedMemBytes, CUstream hStream,
				       void **kernelParams, void **extra) {
	struct shape s = {
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};

	return launch(f, &s, hStream, false, kernelParams, extra, false);
}

EXPORT typeof(cuLaunchKernel) cuLaunchKernel_ptsz;
EXPORT CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX,
					    unsigned int gridDimY, unsigned int gridDimZ,
					    unsigned int blockDimX, unsigned int blockDimY,
					    unsigned int blockDimZ, unsigned int sharedMemBytes,
					    CUstream hStream, void **kernelParams, void **extra) {
	struct shape s = {
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};

	return launch(f, &s, hStream, true, kernelParams, extra, false);
}

EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
					 void **kernelParams, void **extra) {
	return launch_ex(config, f, kernelParams, extra, false);
}

EXPORT typeof(cuLaunchKernelEx) cuLaunchKernelEx_ptsz;
EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
					      void **kernelParams, void **extra) {
	return launch_ex(config, f, kernelParams, extra, true);
}

EXPORT CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
						  unsigned int gridDimY, unsigned int gridDimZ,
						  unsigned int blockDimX, unsigned int blockDimY,
						  unsigned int blockDimZ,
						  unsigned int sharedMemBytes, CUstream hStream,
						  void **kernelParams) {
	struct shape s = {
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};

	return launch(f, &s, hStream, false, kernelParams, NULL, true);
}

EXPORT typeof(cuLaunchCooperativeKernel) cuLaunchCooperativeKernel_ptsz;
EXPORT CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(
	CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
	unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
	unsigned int sharedMemBytes, CUstream hStream, void **kernelParams) {
	struct shape s = {
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};

	return launch(f, &s, hStream, true, kernelParams, NULL, true);
}
