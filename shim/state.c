/*
 * state.c: start, fork, and the depth counter. See state.h.
 */
#include "shim/state.h"

#include <pthread.h>
#include <stddef.h>

#include "shim/enforce.h"
#include "shim/env.h"
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

/* The connection, the tracker and all jobs are the parent's. What the child had of them is
 * forgotten, not freed: locks and lists may have been copied in the middle of a change. */
static void after_fork(void) {
	state_depth = 0;
	conn_after_fork();
	track_after_fork();
	records_after_fork();
	job_after_fork();
	link_after_fork();
	wait_after_fork();
	worker_after_fork();
	place_after_fork();
	graph_after_fork();
	enforce_after_fork();
}

__attribute__((constructor)) static void start(void) {
	pthread_atfork(NULL, NULL, after_fork);
}
