/*
 * state.c: the mode and the depth counter. See state.h.
 */
#include "shim/state.h"

#include <stddef.h>

#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/real.h"

STATE_TLS struct state_self state_self;
HOT_LAUNCH _Atomic(enum state_mode) state_mode;

enum state_mode state_find_mode(void) {
	enum state_mode mode = env_get()->disable ? STATE_MODE_OFF : STATE_MODE_ON;

	atomic_store_explicit(&state_mode, mode, memory_order_relaxed);
	return mode;
}

/* What to put back: whether the thread could be cancelled, and its capture mode, for the program
 * may have set one that forbids what we do (queries, memory). */
#define TOKEN_CANCEL  1
#define TOKEN_NO_MODE 2 /* it could not be set */
#define TOKEN_MODE    2 /* bits below the mode */

int state_enter(void) {
	const struct real *real = real_get_loaded();
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int token = state_defer_cancel() == PTHREAD_CANCEL_ENABLE ? TOKEN_CANCEL : 0;

	state_self.depth++;
	if (!real || !real->cuThreadExchangeStreamCaptureMode ||
	    real->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) {
		return token | TOKEN_NO_MODE;
	}
	return token | (int)mode << TOKEN_MODE;
}

void state_leave(int token) {
	CUstreamCaptureMode mode = (CUstreamCaptureMode)(token >> TOKEN_MODE);

	if (!(token & TOKEN_NO_MODE)) {
		real_get_loaded()->cuThreadExchangeStreamCaptureMode(&mode);
	}
	state_self.depth--;
	state_restore_cancel(token & TOKEN_CANCEL ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE);
}
