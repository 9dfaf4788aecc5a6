/*
 * fake.c: what the fake driver does where it is more than nothing: do_NAME for the function NAME.
 * The functions themselves are in exports.c.
 */
#include "tests/fake/fake.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fake/exports.h"

#define N_DEVICES 2

struct CUctx_st {
	CUdevice device;
};

struct CUstream_st {
	_Atomic int capturing;
	unsigned flags;
};

struct CUevent_st {
	int unused;
};

static struct CUctx_st primaries[N_DEVICES] = {{0}, {1}};
static _Thread_local CUcontext stack[16];
static _Thread_local int depth;
static _Atomic bool is_held;
static _Atomic unsigned launches, spoiled;

void fake_hold(bool held) {
	atomic_store(&is_held, held);
}

unsigned fake_launches(void) {
	return atomic_load(&launches);
}

unsigned fake_spoiled(void) {
	return atomic_load(&spoiled);
}

static bool is_stream(CUstream s) {
	return s && s != CU_STREAM_LEGACY && s != CU_STREAM_PER_THREAD;
}

/* To be called where the driver would spoil a capture. */
static void touch(CUstream s) {
	if (is_stream(s) && atomic_load(&s->capturing)) {
		atomic_fetch_add(&spoiled, 1);
	}
}

static CUresult wait_released(void) {
	const struct timespec pause = {.tv_nsec = 100000};

	while (atomic_load(&is_held)) {
		nanosleep(&pause, NULL);
	}
	return CUDA_SUCCESS;
}

static CUresult query(void) {
	return atomic_load(&is_held) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- start ---- */

CUresult do_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
	return exports_find(symbol, function, version, flags);
}

CUresult do_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
				CUdriverProcAddressQueryResult *status) {
	return exports_find(symbol, function, version, flags);
}

CUresult do_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
	*uuid = (CUuuid){.bytes = {(char)(device + 1)}};
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

CUresult do_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	if (device < 0 || device >= N_DEVICES || !context) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*context = &primaries[device];
	return CUDA_SUCCESS;
}

CUresult do_cuCtxGetCurrent(CUcontext *context) {
	*context = stack[depth];
	return CUDA_SUCCESS;
}

CUresult do_cuCtxSetCurrent(CUcontext context) {
	stack[depth] = context;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxPushCurrent_v2(CUcontext context) {
	stack[++depth] = context;
	return CUDA_SUCCESS;
}

CUresult do_cuCtxPopCurrent_v2(CUcontext *context) {
	*context = stack[depth--];
	return CUDA_SUCCESS;
}

CUresult do_cuCtxGetDevice(CUdevice *device) {
	if (!stack[depth]) {
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	*device = stack[depth]->device;
	return CUDA_SUCCESS;
}

/* ---- waits and questions ---- */

CUresult do_cuCtxSynchronize(void) {
	return wait_released();
}

CUresult do_cuStreamSynchronize(CUstream stream) {
	touch(stream);
	return wait_released();
}

CUresult do_cuStreamQuery(CUstream stream) {
	touch(stream);
	return query();
}

CUresult do_cuEventSynchronize(CUevent event) {
	return wait_released();
}

CUresult do_cuEventQuery(CUevent event) {
	return query();
}

CUresult do_cuEventRecord(CUevent event, CUstream stream) {
	touch(stream);
	return CUDA_SUCCESS;
}

CUresult do_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n) {
	return wait_released();
}

/* ---- streams and events ---- */

CUresult do_cuStreamCreate(CUstream *stream, unsigned flags) {
	*stream = calloc(1, sizeof(**stream));
	(*stream)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamDestroy_v2(CUstream stream) {
	free(is_stream(stream) ? stream : NULL);
	return CUDA_SUCCESS;
}

CUresult do_cuStreamGetFlags(CUstream stream, unsigned *flags) {
	*flags = is_stream(stream) ? stream->flags : 0;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
	*status = is_stream(stream) && atomic_load(&stream->capturing)
			  ? CU_STREAM_CAPTURE_STATUS_ACTIVE
			  : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
	if (is_stream(stream)) {
		atomic_store(&stream->capturing, 1);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
	if (is_stream(stream)) {
		atomic_store(&stream->capturing, 0);
	}
	return CUDA_SUCCESS;
}

CUresult do_cuEventCreate(CUevent *event, unsigned flags) {
	*event = calloc(1, sizeof(**event));
	return CUDA_SUCCESS;
}

CUresult do_cuEventDestroy_v2(CUevent event) {
	free(event);
	return CUDA_SUCCESS;
}

/* ---- code ---- */

CUresult do_cuModuleLoadData(CUmodule *module, const void *image) {
	if (!module) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*module = (CUmodule)0x100;
	return CUDA_SUCCESS;
}

CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
	if (!function) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*function = (CUfunction)0x200;
	return CUDA_SUCCESS;
}

CUresult do_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			   unsigned by, unsigned bz, unsigned shared, CUstream stream,
			   void **params, void **extra) {
	/* Not atomic: this is the launch that benchmarks compare with. */
	atomic_store_explicit(&launches, atomic_load_explicit(&launches, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return CUDA_SUCCESS;
}
