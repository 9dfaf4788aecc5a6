/*
 * hooks-stream.c: what the program does with its streams beside giving them work: making one wait
 * for another, functions and callbacks, attributes, captures, their end.
 */
#include <stdint.h>

#include "shim/capture.h"
#include "shim/enforce/dependent.h"
#include "shim/enforce/enforce.h"
#include "shim/hooks.h"
#include "shim/host-function.h"
#include "shim/place.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/track.h"
#include "shim/worker.h"

/* ---- order ---- */

static struct place_use follow(CUstream stream, bool per_thread) {
	/* The event may be of a capture, which the stream joins by this. */
	if (place_active() && capture_any() && !capture_is_on(stream, per_thread)) {
		place_capturing(stream, per_thread);
	}
	return place_use_begin(stream, per_thread);
}

static CUresult followed(struct place_use *use, CUresult rc) {
	place_use_end(use);
	return rc;
}

CUresult on_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
	struct place_use use = follow(stream, false);

	dependent_end_turn();
	return followed(&use, real_get()->cuStreamWaitEvent(use.at, event, flags));
}

CUresult on_cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
	struct place_use use = follow(stream, true);

	dependent_end_turn();
	return followed(&use, real_get()->cuStreamWaitEvent_ptsz(use.at, event, flags));
}

typedef CUresult(CUDAAPI *add_callback_fn)(CUstream, CUstreamCallback, void *, unsigned);

static CUresult add_callback(add_callback_fn add, CUstream stream, bool per_thread,
			     CUstreamCallback callback, void *data, unsigned flags) {
	struct place_use use = follow(stream, per_thread);
	struct host_function *h = host_function_new_callback(callback, data, stream, per_thread);
	CUresult rc;

	if (!h) {
		return followed(&use, add(use.at, callback, data, flags));
	}
	rc = add(use.at, host_function_call_back, h, flags);
	if (rc != CUDA_SUCCESS) {
		host_function_free(h);
	}
	return followed(&use, rc);
}

CUresult on_cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
				unsigned flags) {
	return add_callback(real_get()->cuStreamAddCallback, stream, false, function, data, flags);
}

CUresult on_cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void *data,
				     unsigned flags) {
	return add_callback(real_get()->cuStreamAddCallback_ptsz, stream, true, function, data,
			    flags);
}

typedef CUresult(CUDAAPI *launch_host_fn)(CUstream, CUhostFn, void *);

static CUresult launch_host(launch_host_fn launch, CUstream stream, bool per_thread,
			    CUhostFn function, void *data) {
	struct place_use use = place_use_begin(stream, per_thread);
	struct host_function *h = host_function_new(function, data, stream, per_thread);
	CUresult rc;

	if (!h) {
		return followed(&use, launch(use.at, function, data));
	}
	rc = launch(use.at, host_function_call, h);
	if (rc != CUDA_SUCCESS) {
		host_function_free(h);
	}
	return followed(&use, rc);
}

CUresult on_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
	return launch_host(real_get()->cuLaunchHostFunc, stream, false, function, data);
}

CUresult on_cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data) {
	return launch_host(real_get()->cuLaunchHostFunc_ptsz, stream, true, function, data);
}

/* ---- attributes ---- */

static CUresult attributes_set(CUresult rc, CUstream stream, bool per_thread) {
	if (rc == CUDA_SUCCESS && place_active()) {
		place_attributes_set(stream, per_thread);
	}
	return rc;
}

CUresult on_cuStreamSetAttribute(CUstream stream, CUstreamAttrID which,
				 const CUstreamAttrValue *value) {
	return attributes_set(real_get()->cuStreamSetAttribute(stream, which, value), stream,
			      false);
}

CUresult on_cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID which,
				      const CUstreamAttrValue *value) {
	return attributes_set(real_get()->cuStreamSetAttribute_ptsz(stream, which, value), stream,
			      true);
}

CUresult on_cuStreamCopyAttributes(CUstream to, CUstream from) {
	return attributes_set(real_get()->cuStreamCopyAttributes(to, from), to, false);
}

CUresult on_cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
	return attributes_set(real_get()->cuStreamCopyAttributes_ptsz(to, from), to, true);
}

/* ---- their end ---- */

static void stream_goes(CUstream stream) {
	int token = state_enter();

	track_stream_going(stream);
	if (place_active()) {
		place_stream_destroying(stream);
	}
	enforce_stream_destroying(worker_current_context(), stream);
	worker_forget_streams();
	state_leave(token);
}

/* With what was being captured in it. */
static CUresult stream_gone(CUstream stream, CUresult rc) {
	if (rc == CUDA_SUCCESS) {
		capture_end(worker_stream_key(NULL, NULL, stream, false));
	}
	return rc;
}

CUresult on_cuStreamDestroy(CUstream stream) {
	stream_goes(stream);
	return stream_gone(stream, real_get()->cuStreamDestroy(stream));
}

CUresult on_cuStreamDestroy_v2(CUstream stream) {
	stream_goes(stream);
	return stream_gone(stream, real_get()->cuStreamDestroy_v2(stream));
}

/* ---- captures ---- */

/* The tracker must not ask a stream that is being captured: it would spoil the capture. And what is
 * captured has no place but the stream itself. Return: the key of the stream. */
static uint64_t capture_begins(CUstream stream, bool per_thread) {
	const struct stream_id id = worker_stream_here(stream, per_thread);

	capture_begin(id.key, worker_context_of(&id),
		      id.stream == CU_STREAM_PER_THREAD ? worker_get() : NULL);
	if (place_active() && !capture_is_on(stream, per_thread)) {
		place_capturing(stream, per_thread);
	}
	question_settle(0);
	return id.key;
}

static CUresult capture_began(uint64_t key, CUresult rc) {
	if (rc != CUDA_SUCCESS) {
		capture_end(key);
	}
	return rc;
}

CUresult on_cuStreamBeginCapture(CUstream stream) {
	uint64_t key = capture_begins(stream, false);

	return capture_began(key, real_get()->cuStreamBeginCapture(stream));
}

CUresult on_cuStreamBeginCapture_ptsz(CUstream stream) {
	uint64_t key = capture_begins(stream, true);

	return capture_began(key, real_get()->cuStreamBeginCapture_ptsz(stream));
}

CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
	uint64_t key = capture_begins(stream, false);

	return capture_began(key, real_get()->cuStreamBeginCapture_v2(stream, mode));
}

CUresult on_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
	uint64_t key = capture_begins(stream, true);

	return capture_began(key, real_get()->cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult on_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					const CUgraphNode *dependencies,
					const CUgraphEdgeData *edges, size_t n,
					CUstreamCaptureMode mode) {
	uint64_t key = capture_begins(stream, false);

	return capture_began(key, real_get()->cuStreamBeginCaptureToGraph(
					  stream, graph, dependencies, edges, n, mode));
}

CUresult on_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
					     const CUgraphNode *dependencies,
					     const CUgraphEdgeData *edges, size_t n,
					     CUstreamCaptureMode mode) {
	uint64_t key = capture_begins(stream, true);

	return capture_began(key, real_get()->cuStreamBeginCaptureToGraph_ptsz(
					  stream, graph, dependencies, edges, n, mode));
}

/* Whatever it returns, a capture that began in the stream is over, unless another thread may have
 * to end it; such a program gets an error and our tracker a holiday until the capture ends. */
static CUresult capture_ended(CUstream stream, bool per_thread, CUresult rc) {
	if (rc != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
		capture_end(worker_stream_here(stream, per_thread).key);
	}
	return rc;
}

CUresult on_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
	return capture_ended(stream, false, real_get()->cuStreamEndCapture(stream, graph));
}

CUresult on_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
	return capture_ended(stream, true, real_get()->cuStreamEndCapture_ptsz(stream, graph));
}
