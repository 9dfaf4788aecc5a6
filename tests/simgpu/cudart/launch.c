/*
 * launch.c: what nvcc's host code calls: registration of a program's kernels and variables, and
 * kernel launches.
 */
#include <string.h>

#include "state.h"

/* The calls that nvcc generates are declared in headers for C++ only. */
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
			    int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *fatbin) {
	return (void **)state_binary_new(fatbin);
}

void __cudaRegisterFatBinaryEnd(void **handle) {
}

void __cudaUnregisterFatBinary(void **handle) {
	state_binary_free((struct state_binary *)handle);
}

char __cudaInitModule(void **handle) {
	const struct cudart_driver *d;

	return state_context(&d) == cudaSuccess;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
			    int *warp_size) {
	state_add_kernel((struct state_binary *)handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global) {
	state_add_variable((struct state_binary *)handle, host, name);
}

/* kernel<<<grid, block, shared, stream>>>(args) pushes these and then calls the kernel's host
 * function, which pops them and launches. Arguments may launch kernels too, hence a stack. */
#define CONFIGURATIONS_MAX 16

struct configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

static _Thread_local struct configuration configurations[CONFIGURATIONS_MAX];
static _Thread_local unsigned n_configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
	if (n_configurations == CONFIGURATIONS_MAX) {
		state_error(cudaErrorLaunchOutOfResources);
		return 1; /* the launch does not happen */
	}
	configurations[n_configurations++] = (struct configuration){grid, block, shared, stream};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
	const struct configuration *c;

	if (n_configurations == 0) {
		return state_error(cudaErrorMissingConfiguration);
	}
	c = &configurations[--n_configurations];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	memcpy(stream, &c->stream, sizeof(c->stream));
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *host) {
	const struct cudart_driver *d;
	CUkernel kernel = NULL;
	cudaError_t e;

	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_find_kernel(d, host, &kernel);
	}
	if (e == cudaSuccess) {
		*ret = kernel;
	}
	return state_error(e);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream) {
	const struct cudart_driver *d;
	cudaError_t e;

	if (!kernel) { /* __cudaGetKernel() failed before */
		return state_error(cudaErrorInvalidDeviceFunction);
	}
	e = state_context(&d);
	if (e != cudaSuccess) {
		return state_error(e);
	}
	return state_error(state_error_of(d->cuLaunchKernel((CUfunction)kernel, grid.x, grid.y,
							    grid.z, block.x, block.y, block.z,
							    (unsigned)shared, stream, args, NULL)));
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream) {
	cudaKernel_t kernel = NULL;
	cudaError_t e;

	e = __cudaGetKernel(&kernel, func);
	return e == cudaSuccess ? __cudaLaunchKernel(kernel, grid, block, args, shared, stream) : e;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args) {
	const struct cudart_driver *d;
	cudaKernel_t kernel = NULL;
	CUlaunchConfig c;
	cudaError_t e;

	e = __cudaGetKernel(&kernel, func);
	if (e == cudaSuccess) {
		e = state_context(&d);
	}
	if (e != cudaSuccess) {
		return state_error(e);
	}
	c = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = config->stream,
		/* cuda.h and driver_types.h lay them out alike: the real runtime relies on it too
		 */
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
	return state_error(state_error_of(d->cuLaunchKernelEx(&c, (CUfunction)kernel, args, NULL)));
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value) {
	const struct cudart_driver *d;
	CUfunction_attribute a;
	CUfunction function;
	CUkernel kernel = NULL;
	cudaError_t e;
	CUresult r;

	switch (attribute) {
	case cudaFuncAttributeMaxDynamicSharedMemorySize:
		a = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
		break;
	case cudaFuncAttributePreferredSharedMemoryCarveout:
		a = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
		break;
	default:
		return state_error(cudaErrorInvalidValue);
	}
	e = state_context(&d);
	if (e == cudaSuccess) {
		e = state_find_kernel(d, func, &kernel);
	}
	if (e != cudaSuccess) {
		return state_error(e);
	}
	r = d->cuKernelGetFunction(&function, kernel);
	if (r == CUDA_SUCCESS) {
		r = d->cuFuncSetAttribute(function, a, value);
	}
	return state_error(state_error_of(r));
}
