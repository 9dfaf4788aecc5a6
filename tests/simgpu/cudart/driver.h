/*
 * driver.h: the driver functions that the stand-in runtime library uses, looked up the way the real
 * one does: dlopen, then cuGetProcAddress for everything.
 */
#pragma once

#include <cuda.h>

#define CUDART_DRIVER_FUNCTIONS(X)     \
	X(cuInit)                      \
	X(cuDriverGetVersion)          \
	X(cuGetErrorString)            \
	X(cuDeviceGet)                 \
	X(cuDeviceGetCount)            \
	X(cuDeviceGetName)             \
	X(cuDeviceGetAttribute)        \
	X(cuDeviceGetUuid)             \
	X(cuDeviceTotalMem)            \
	X(cuDevicePrimaryCtxRetain)    \
	X(cuCtxGetCurrent)             \
	X(cuCtxSetCurrent)             \
	X(cuCtxSynchronize)            \
	X(cuCtxGetStreamPriorityRange) \
	X(cuMemAlloc)                  \
	X(cuMemFree)                   \
	X(cuMemGetInfo)                \
	X(cuMemAllocHost)              \
	X(cuMemFreeHost)               \
	X(cuMemHostAlloc)              \
	X(cuMemAllocAsync)             \
	X(cuMemFreeAsync)              \
	X(cuMemcpy)                    \
	X(cuMemcpyAsync)               \
	X(cuMemcpyHtoD)                \
	X(cuMemcpyHtoDAsync)           \
	X(cuMemcpyDtoH)                \
	X(cuMemcpyDtoHAsync)           \
	X(cuMemcpyDtoD)                \
	X(cuMemcpyDtoDAsync)           \
	X(cuMemsetD8)                  \
	X(cuMemsetD8Async)             \
	X(cuLibraryLoadData)           \
	X(cuLibraryUnload)             \
	X(cuLibraryGetKernel)          \
	X(cuLibraryGetGlobal)          \
	X(cuKernelGetFunction)         \
	X(cuFuncGetAttribute)          \
	X(cuFuncSetAttribute)          \
	X(cuLaunchKernel)              \
	X(cuLaunchKernelEx)            \
	X(cuLaunchHostFunc)            \
	X(cuStreamCreate)              \
	X(cuStreamCreateWithPriority)  \
	X(cuStreamAddCallback)         \
	X(cuStreamDestroy)             \
	X(cuStreamQuery)               \
	X(cuStreamSynchronize)         \
	X(cuStreamWaitEvent)           \
	X(cuEventCreate)               \
	X(cuEventDestroy)              \
	X(cuEventElapsedTime)          \
	X(cuEventQuery)                \
	X(cuEventRecord)               \
	X(cuEventSynchronize)

/* Field names are cuda.h's: its macros give them the suffix of the variant (cuMemAlloc_v2), here
 * and where they are used. */
struct cudart_driver {
#define FIELD(name) __typeof__(name) *name;
	CUDART_DRIVER_FUNCTIONS(FIELD)
#undef FIELD
};

/* Loads the driver once in the process and calls cuInit(). Return: CUDA_SUCCESS; what cuInit()
 * says; CUDA_ERROR_NOT_FOUND without a driver, or with one that lacks a function; @ret is set on
 * success only and stays valid. */
CUresult cudart_driver_get(const struct cudart_driver **ret);
