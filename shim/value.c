/*
 * value.c: see value.h.
 */
#include "shim/real.h"

#include "shim/value.h"

#include <stdatomic.h>

#include "shim/base/log.h"

static _Atomic bool refused; /* the driver can't let streams wait for values */

bool value_can_wait(bool per_thread) {
	const struct real *real = real_get();

	return !atomic_load_explicit(&refused, memory_order_relaxed) &&
	       (per_thread ? real->cuStreamWaitValue32_v2_ptsz && real->cuStreamWriteValue32_v2_ptsz
			   : real->cuStreamWaitValue32_v2 && real->cuStreamWriteValue32_v2);
}

bool value_wait(CUstream stream, bool per_thread, CUdeviceptr at) {
	const struct real *real = real_get();
	__typeof__(real->cuStreamWaitValue32_v2) wait =
		per_thread ? real->cuStreamWaitValue32_v2_ptsz : real->cuStreamWaitValue32_v2;

	if (wait(stream, at, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS) {
		return true;
	}
	atomic_store(&refused, true);
	log_once(LOG_LEVEL_INFO,
		 "The driver lets no stream wait for a value: copies and kernels "
		 "go as ever");
	return false;
}

bool value_write(CUstream stream, bool per_thread, CUdeviceptr at, uint32_t value) {
	const struct real *real = real_get();
	__typeof__(real->cuStreamWriteValue32_v2) write =
		per_thread ? real->cuStreamWriteValue32_v2_ptsz : real->cuStreamWriteValue32_v2;

	return write(stream, at, value, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}
