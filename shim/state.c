/*
 * state.c: the mode and the depth counter. See state.h.
 */
#include "shim/state.h"

#include <stddef.h>

#include "shim/base/env.h"
#include "shim/real.h"

STATE_TLS unsigned state_depth;
_Atomic(enum state_mode) state_mode;

enum state_mode state_find_mode(void) {
	enum state_mode mode = env_get()->disable ? STATE_MODE_OFF : STATE_MODE_ON;

	atomic_store_explicit(&state_mode, mode, memory_order_relaxed);
	return mode;
}

/* The program may set the thread's capture mode to one that forbids what we do (queries, memory);
 * -1: nothing to put back. */
int state_enter(void) {
	const struct real *real = real_get_loaded();
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	state_depth++;
	if (!real || !real->cuThreadExchangeStreamCaptureMode ||
	    real->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) {
		return -1;
	}
	return (int)mode;
}

void state_leave(int token) {
	CUstreamCaptureMode mode = (CUstreamCaptureMode)token;

	if (token >= 0) {
		real_get_loaded()->cuThreadExchangeStreamCaptureMode(&mode);
	}
	state_depth--;
}
