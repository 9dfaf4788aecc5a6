/*
 * device.c: devices and errors of the stand-in runtime library.
 */
#include <string.h>

#include <cuda_profiler_api.h>

#include "state.h"

cudaError_t cudaGetDeviceCount(int *ret) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_driver(&d);
	if (e == cudaSuccess) {
		e = state_error_of(d->cuDeviceGetCount(ret));
	}
	return state_error(e);
}

cudaError_t cudaGetDevice(int *ret) {
	*ret = state_device();
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
	return state_error(state_set_device(device));
}

/* How a thread waits is not modelled. */
cudaError_t cudaSetDeviceFlags(unsigned flags) {
	(void)flags;
	return cudaSuccess;
}

cudaError_t cudaProfilerStart(void) {
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *ret) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_driver(&d);
	if (e == cudaSuccess) {
		e = state_error_of(d->cuDriverGetVersion(ret));
	}
	return state_error(e);
}

cudaError_t cudaRuntimeGetVersion(int *ret) {
	*ret = CUDART_VERSION;
	return cudaSuccess;
}

/* The runtime's attribute numbers are the driver's. */
cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr attribute, int device) {
	const struct cudart_driver *d;
	cudaError_t e;

	e = state_driver(&d);
	if (e == cudaSuccess) {
		e = state_error_of(
			d->cuDeviceGetAttribute(ret, (CUdevice_attribute)attribute, device));
	}
	return state_error(e);
}

/* The properties that programs print and size their grids by; the rest stays zero. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device) {
	struct cudaDeviceProp p = {.warpSize = 32};
	const struct {
		CUdevice_attribute attribute;
		int *value;
	} attributes[] = {
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &p.multiProcessorCount},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &p.major},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &p.minor},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &p.maxThreadsPerBlock},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
		 &p.maxThreadsPerMultiProcessor},
		{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &p.concurrentKernels},
		{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &p.asyncEngineCount},
		{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, &p.streamPrioritiesSupported},
	};
	const struct cudart_driver *d;
	cudaError_t e;
	CUresult r;

	e = state_driver(&d);
	if (e != cudaSuccess) {
		return state_error(e);
	}
	r = d->cuDeviceGetName(p.name, sizeof(p.name), device);
	if (r == CUDA_SUCCESS) {
		r = d->cuDeviceTotalMem(&p.totalGlobalMem, device);
	}
	for (size_t i = 0; r == CUDA_SUCCESS && i < sizeof(attributes) / sizeof(attributes[0]);
	     i++) {
		r = d->cuDeviceGetAttribute(attributes[i].value, attributes[i].attribute, device);
	}
	if (r == CUDA_SUCCESS) {
		*ret = p;
	}
	return state_error(state_error_of(r));
}

cudaError_t cudaGetLastError(void) {
	return state_last_error(1);
}

cudaError_t cudaPeekAtLastError(void) {
	return state_last_error(0);
}

/* The errors that a program may meet here. */
const char *cudaGetErrorName(cudaError_t e) {
	switch (e) {
#define NAME(error) \
	case error: \
		return #error;
		NAME(cudaSuccess)
		NAME(cudaErrorInvalidValue)
		NAME(cudaErrorMemoryAllocation)
		NAME(cudaErrorInitializationError)
		NAME(cudaErrorCudartUnloading)
		NAME(cudaErrorInvalidConfiguration)
		NAME(cudaErrorInvalidSymbol)
		NAME(cudaErrorInsufficientDriver)
		NAME(cudaErrorMissingConfiguration)
		NAME(cudaErrorInvalidDeviceFunction)
		NAME(cudaErrorNoDevice)
		NAME(cudaErrorInvalidDevice)
		NAME(cudaErrorInvalidKernelImage)
		NAME(cudaErrorDeviceUninitialized)
		NAME(cudaErrorNoKernelImageForDevice)
		NAME(cudaErrorInvalidPtx)
		NAME(cudaErrorInvalidResourceHandle)
		NAME(cudaErrorSymbolNotFound)
		NAME(cudaErrorNotReady)
		NAME(cudaErrorIllegalAddress)
		NAME(cudaErrorLaunchOutOfResources)
		NAME(cudaErrorLaunchTimeout)
		NAME(cudaErrorAssert)
		NAME(cudaErrorMisalignedAddress)
		NAME(cudaErrorIllegalInstruction)
		NAME(cudaErrorLaunchFailure)
		NAME(cudaErrorNotSupported)
		NAME(cudaErrorUnknown)
#undef NAME
	default:
		return "unrecognized error code";
	}
}

const char *cudaGetErrorString(cudaError_t e) {
	const struct cudart_driver *d;
	const char *text;

	if (cudart_driver_get(&d) == CUDA_SUCCESS &&
	    d->cuGetErrorString((CUresult)e, &text) == CUDA_SUCCESS) {
		return text;
	}
	return cudaGetErrorName(e);
}
