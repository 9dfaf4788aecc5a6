/*
 * api-entry.c: finding functions by name, naming errors, and the older forms of functions whose
 * newer form is elsewhere.
 *
 * driver.def lists every function that this library exports. A function that is not there is not
 * there: linking against it fails, cuGetProcAddress says so.
 */
#include <string.h>

#include "tests/simgpu/driver.h"

/* The forms that cuda.h hides behind the newest one's name. */
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuEventElapsedTime
#undef cuGetProcAddress

EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev);
EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev);
EXPORT CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags);
EXPORT CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd);
EXPORT CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
					 cuuint64_t flags);

EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
	return cuDeviceGetUuid_v2(uuid, dev);
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev) {
	return cuDevicePrimaryCtxRelease_v2(dev);
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev) {
	return cuDevicePrimaryCtxReset_v2(dev);
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

EXPORT CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd) {
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* ---- by name ---- */

/* Addresses only: the types do not matter, and some are not declared without per-thread streams. */
#define ENTRY(name, symbol, since, per_thread) extern char symbol##_entry[] __asm__(#symbol);
#define THREAD(symbol)			       extern char symbol##_entry[] __asm__(#symbol);
#include "driver.def"
#undef ENTRY
#undef THREAD

static const struct entry {
	const char *name;
	int since; /* CUDA version, as in 12050 */
	void *symbol;
	void *per_thread; /* NULL: the same */
} entries[] = {
#define NONE_entry			       NULL
#define ENTRY(name, symbol, since, per_thread) {#name, since, symbol##_entry, per_thread##_entry},
#define THREAD(symbol)
#include "driver.def"
#undef ENTRY
#undef THREAD
#undef NONE_entry
};

/* The newest form that @version knows; NULL. @ret_too_new: there are only newer ones. */
static const struct entry *entry_find(const char *name, int version, bool *ret_too_new) {
	const struct entry *best = NULL;
	bool too_new = false;

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		const struct entry *e = &entries[i];

		if (strcmp(e->name, name) != 0) {
			continue;
		}
		if (e->since > version) {
			too_new = true;
		} else if (!best || e->since > best->since) {
			best = e;
		}
	}
	*ret_too_new = too_new;
	return best;
}

EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
					    cuuint64_t flags,
					    CUdriverProcAddressQueryResult *symbolStatus) {
	const struct entry *e;
	bool too_new;

	if (!symbol || !pfn || !*symbol || (flags & ~(cuuint64_t)3)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	e = entry_find(symbol, cudaVersion, &too_new);
	if (symbolStatus) {
		*symbolStatus = e	  ? CU_GET_PROC_ADDRESS_SUCCESS
				: too_new ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
					  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	}
	if (!e) {
		*pfn = NULL;
		return symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	}
	*pfn = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && e->per_thread
		       ? e->per_thread
		       : e->symbol;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
					 cuuint64_t flags) {
	return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

/* ---- errors ---- */

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
#define E(error, text) \
	{ error, #error, text }
	E(CUDA_SUCCESS, "no error"),
	E(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	E(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	E(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	E(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
	E(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
	E(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	E(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	E(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	E(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	E(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
	E(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	E(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the requested exec affinity is not supported"),
	E(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
	E(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	E(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	E(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
	E(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	E(CUDA_ERROR_NOT_READY, "device not ready"),
	E(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	E(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	E(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	E(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	E(CUDA_ERROR_ASSERT, "device-side assert triggered"),
	E(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	  "part or all of the requested memory range is already mapped"),
	E(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
	  "pointer does not correspond to a registered memory region"),
	E(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
	E(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
	E(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	E(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
	E(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	E(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
	E(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "MPS has no room for one more client"),
	E(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated"),
	E(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
	  "system has unsupported display driver / cuda driver "
	  "combination"),
	E(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	  "operation not permitted when stream is capturing"),
	E(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
	  "operation failed due to a previous error during capture"),
	E(CUDA_ERROR_STREAM_CAPTURE_MERGE,
	  "operation would result in a merge of separate captures"),
	E(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
	  "capture was not ended in the same stream as it began"),
	E(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
	E(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
	  "dependency created on uncaptured work in another stream"),
	E(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
	  "operation would make the legacy stream depend on a capturing blocking stream"),
	E(CUDA_ERROR_CAPTURED_EVENT,
	  "operation not permitted on an event last recorded in a capturing stream"),
	E(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	  "attempt to terminate a thread-local capture sequence from another thread"),
	E(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef E
};

EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr) {
	for (size_t i = 0; pStr && i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].error == error) {
			*pStr = errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	if (pStr) {
		*pStr = NULL;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr) {
	for (size_t i = 0; pStr && i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].error == error) {
			*pStr = errors[i].text;
			return CUDA_SUCCESS;
		}
	}
	if (pStr) {
		*pStr = NULL;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
