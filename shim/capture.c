/*
 * capture.c: see capture.h.
 */
#include "shim/capture.h"
#include "shim/base/hot.h"

#include "shim/real.h"

HOT_LAUNCH _Atomic unsigned capture_count;

void capture_begin(void) {
	atomic_fetch_add(&capture_count, 1);
}

void capture_end(void) {
	unsigned n = atomic_load(&capture_count);

	/* Never below 0: a capture may have begun before we looked. */
	while (n > 0 && !atomic_compare_exchange_weak(&capture_count, &n, n - 1)) {
	}
}

bool capture_ask(CUstream stream, bool per_thread) {
	const struct real *real = real_get();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult rc;

	if (per_thread && real->cuStreamIsCapturing_ptsz) {
		rc = real->cuStreamIsCapturing_ptsz(stream, &status);
	} else if (real->cuStreamIsCapturing) {
		rc = real->cuStreamIsCapturing(stream, &status);
	} else {
		return false;
	}
	/* An error means that the default stream may not be used now: the driver tells the program.
	 */
	return rc != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void capture_after_fork(void) {
	atomic_store(&capture_count, 0);
}
