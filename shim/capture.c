/*
 * capture.c: see capture.h.
 */
#include "shim/capture.h"

#include <stdatomic.h>

#include "shim/real.h"

static _Atomic unsigned captures;

void capture_begin(void) {
	atomic_fetch_add(&captures, 1);
}

void capture_end(void) {
	unsigned n = atomic_load(&captures);

	/* Never below 0: a capture may have begun before we looked. */
	while (n > 0 && !atomic_compare_exchange_weak(&captures, &n, n - 1)) {
	}
}

bool capture_any(void) {
	/* In the order that all see: who begins a capture says so, then waits for the tracker's
	 * question; the tracker begins its question, then looks here. */
	return atomic_load(&captures) > 0;
}

bool capture_is_on(CUstream stream, bool per_thread) {
	const struct real *real = real_get();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult rc;

	if (!capture_any()) {
		return false;
	}
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
	atomic_store(&captures, 0);
}
