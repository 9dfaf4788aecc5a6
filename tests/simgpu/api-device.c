/* api-device.c: what GPUs there are. Everything was told at the connection's hello. */
#include <stdio.h>
#include <string.h>

#include "tests/simgpu/driver.h"

EXPORT CUresult CUDAAPI cuDeviceGetCount(int *count) {
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS || !count) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*count = (int)driver_n_devices();
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(ordinal, &gpu);

	if (r != CUDA_SUCCESS || !device) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*device = ordinal;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !name || len <= 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	snprintf(name, (size_t)len, "%s", gpu->name);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !uuid) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(uuid->bytes, gpu->uuid, sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !bytes) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*bytes = gpu->memory_bytes;
	return CUDA_SUCCESS;
}

/* "0000:01:00.0" for GPU 0: a made-up bus, one slot a GPU. */
EXPORT CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !pciBusId || len <= 0) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", (unsigned)dev + 1);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
	unsigned domain, bus, slot, function;
	const struct wire_gpu *gpu;
	CUresult r = driver_ready();

	if (r != CUDA_SUCCESS) {
		return r;
	}
	if (!dev || !pciBusId ||
	    sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || bus == 0) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = driver_device((CUdevice)bus - 1, &gpu);
	if (r == CUDA_SUCCESS) {
		*dev = (CUdevice)bus - 1;
	}
	return r;
}

EXPORT CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r == CUDA_SUCCESS) {
		*major = (int)gpu->cc_major;
		*minor = (int)gpu->cc_minor;
	}
	return r;
}

/* Each GPU has a memory of its own here. */
EXPORT CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r == CUDA_SUCCESS) {
		r = driver_device(peerDev, &gpu);
	}
	if (r == CUDA_SUCCESS) {
		*canAccessPeer = 0;
	}
	return r;
}

/* Ours alone, by which sbeetd knows a simulated GPU where there is no NVML: whether it is shared. */
#define DEVICE_ATTRIBUTE_SIMGPU 0x51690

/* Attributes of the model. Everything that is not listed is a feature that it has not got: 0. */
static unsigned device_attribute(const struct wire_gpu *g, CUdevice dev,
				 CUdevice_attribute attribute) {
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		return g->block_threads_max;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		return 2147483647;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
		return 65535;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
		return g->block_shared_max;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return g->block_shared_optin_max;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		return g->block_shared_reserved;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		return g->sm_shared_bytes;
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
		return 65536;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
		return 2147483647;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		return g->sm_regs;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		return g->sm_clock_khz;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
		return 512;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return g->n_sms;
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
		return 1;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return g->copy_engines;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		return g->memory_clock_khz;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
		return g->bus_width_bits;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		return g->l2_bytes;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return g->sm_threads;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		return g->sm_blocks;
	case CU_DEVICE_ATTRIBUTE_INTEGRATED:
		return g->integrated;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return g->cc_major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return g->cc_minor;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return (unsigned)dev + 1;
	default:
		return 0;
	}
}

EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
	const struct wire_gpu *gpu;
	CUresult r = driver_device(dev, &gpu);

	if (r == CUDA_SUCCESS && pi && (int)attrib == DEVICE_ATTRIBUTE_SIMGPU) {
		*pi = (int)gpu->shared;
		return CUDA_SUCCESS;
	}
	if (r != CUDA_SUCCESS || !pi || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	*pi = (int)device_attribute(gpu, dev, attrib);
	return CUDA_SUCCESS;
}
