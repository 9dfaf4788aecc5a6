/*
 * wave.c: see wave.h.
 */
#include "tests/gpu/wave.h"

#include "tests/apps/kernels/shapes.h"

extern const char compute_ptx[];

void wave_open(struct wave *ret) {
	CUmodule module = driver_open(0, compute_ptx);
	int threads, sms;
	CUdevice device;

	ret->kernel = driver_kernel(module, "compute");
	CU(cuCtxGetDevice(&device));
	CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				device));
	ret->blocks = (unsigned)(sms * (threads / COMPUTE_BLOCK));
	CU(cuStreamCreate(&ret->stream, CU_STREAM_NON_BLOCKING));
	ret->sm_blocks = driver_alloc(COMPUTE_SMS_MAX * sizeof(unsigned));
}

size_t wave_bytes(const struct wave *w) {
	return (size_t)w->blocks * COMPUTE_BLOCK * sizeof(unsigned);
}

void wave_launch(struct wave *w, CUdeviceptr out, unsigned waves, unsigned rounds) {
	unsigned first = 1, mul = 1664525, add = 1013904223;
	void *params[] = {&out, &first, &rounds, &mul, &add, &w->sm_blocks};

	CU(cuLaunchKernel(w->kernel, waves * w->blocks, 1, 1, COMPUTE_BLOCK, 1, 1, 0, w->stream,
			  params, NULL));
}
