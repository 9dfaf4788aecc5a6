/*
 * hooks-sync.c: the program's waits and questions, and what it takes away: streams, contexts,
 * events.
 */
#include <stdatomic.h>

#include "shim/enforce.h"
#include "shim/hooks.h"
#include "shim/job.h"
#include "shim/kernel.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/state.h"
#include "shim/track.h"
#include "shim/wait.h"

/* ---- waits: what was handed over before them is complete after them ---- */

static nsec_t wait_begin(void) {
	atomic_fetch_add(&wait_threads, 1);
	state_depth++;
	return nsec_now();
}

static void wait_end(void) {
	state_depth--;
	atomic_fetch_sub(&wait_threads, 1);
}

CUresult on_cuCtxSynchronize(void) {
	nsec_t t = wait_begin();
	CUresult rc = real_get()->cuCtxSynchronize();

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_context(NULL, t);
		wait_done();
	}
	return rc;
}

CUresult on_cuCtxSynchronize_v2(CUcontext context) {
	nsec_t t = wait_begin();
	CUresult rc = real_get()->cuCtxSynchronize_v2(context);

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_context(context, t);
		wait_done();
	}
	return rc;
}

CUresult on_cuStreamSynchronize(CUstream stream) {
	nsec_t t = wait_begin();
	CUresult rc = real_get()->cuStreamSynchronize(stream);

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, false, t);
		wait_done();
	}
	return rc;
}

CUresult on_cuStreamSynchronize_ptsz(CUstream stream) {
	nsec_t t = wait_begin();
	CUresult rc = real_get()->cuStreamSynchronize_ptsz(stream);

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, true, t);
		wait_done();
	}
	return rc;
}

CUresult on_cuEventSynchronize(CUevent event) {
	CUresult rc;

	wait_begin();
	rc = real_get()->cuEventSynchronize(event);
	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_event_complete(event);
		wait_done();
	}
	return rc;
}

/* ---- questions: knowledge as well, but programs ask in passing, so no job ends here ---- */

CUresult on_cuStreamQuery(CUstream stream) {
	nsec_t t = nsec_now();
	CUresult rc = real_get()->cuStreamQuery(stream);

	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, false, t);
	}
	return rc;
}

CUresult on_cuStreamQuery_ptsz(CUstream stream) {
	nsec_t t = nsec_now();
	CUresult rc = real_get()->cuStreamQuery_ptsz(stream);

	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, true, t);
	}
	return rc;
}

CUresult on_cuEventQuery(CUevent event) {
	CUresult rc = real_get()->cuEventQuery(event);

	if (rc == CUDA_SUCCESS) {
		wait_event_complete(event);
	}
	return rc;
}

/* ---- events ---- */

static void recorded(CUresult rc, CUevent event, CUstream stream, bool per_thread, nsec_t at) {
	if (rc == CUDA_SUCCESS && !wait_is_capturing(stream, per_thread)) {
		wait_event_recorded(event, stream, per_thread, at);
	}
}

CUresult on_cuEventRecord(CUevent event, CUstream stream) {
	nsec_t at = nsec_now();
	CUresult rc = real_get()->cuEventRecord(event, stream);

	recorded(rc, event, stream, false, at);
	return rc;
}

CUresult on_cuEventRecord_ptsz(CUevent event, CUstream stream) {
	nsec_t at = nsec_now();
	CUresult rc = real_get()->cuEventRecord_ptsz(event, stream);

	recorded(rc, event, stream, true, at);
	return rc;
}

CUresult on_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
	nsec_t at = nsec_now();
	CUresult rc = real_get()->cuEventRecordWithFlags(event, stream, flags);

	recorded(rc, event, stream, false, at);
	return rc;
}

CUresult on_cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
	nsec_t at = nsec_now();
	CUresult rc = real_get()->cuEventRecordWithFlags_ptsz(event, stream, flags);

	recorded(rc, event, stream, true, at);
	return rc;
}

CUresult on_cuEventDestroy(CUevent event) {
	wait_event_gone(event);
	return real_get()->cuEventDestroy(event);
}

CUresult on_cuEventDestroy_v2(CUevent event) {
	wait_event_gone(event);
	return real_get()->cuEventDestroy_v2(event);
}

/* ---- streams ---- */

static void stream_goes(CUstream stream) {
	const struct real *real = real_get();
	CUcontext context = NULL;
	int token = state_enter();

	track_stream_going(stream);
	if (real->cuCtxGetCurrent) {
		real->cuCtxGetCurrent(&context);
	}
	enforce_stream_destroying(context, stream);
	state_leave(token);
}

CUresult on_cuStreamDestroy(CUstream stream) {
	stream_goes(stream);
	return real_get()->cuStreamDestroy(stream);
}

CUresult on_cuStreamDestroy_v2(CUstream stream) {
	stream_goes(stream);
	return real_get()->cuStreamDestroy_v2(stream);
}

/* The tracker must not ask a stream that is being captured: it would spoil the capture. */
static void capture_begins(void) {
	wait_capture_begins();
	track_settle();
}

static CUresult capture_began(CUresult rc) {
	if (rc != CUDA_SUCCESS) {
		wait_capture_ends();
	}
	return rc;
}

CUresult on_cuStreamBeginCapture(CUstream stream) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCapture(stream));
}

CUresult on_cuStreamBeginCapture_ptsz(CUstream stream) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCapture_ptsz(stream));
}

CUresult on_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCapture_v2(stream, mode));
}

CUresult on_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult on_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					const CUgraphNode *dependencies,
					const CUgraphEdgeData *edges, size_t n,
					CUstreamCaptureMode mode) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCaptureToGraph(stream, graph, dependencies,
								     edges, n, mode));
}

CUresult on_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
					     const CUgraphNode *dependencies,
					     const CUgraphEdgeData *edges, size_t n,
					     CUstreamCaptureMode mode) {
	capture_begins();
	return capture_began(real_get()->cuStreamBeginCaptureToGraph_ptsz(
		stream, graph, dependencies, edges, n, mode));
}

/* Whatever it returns, a capture that there was is over, unless the stream was not the one it began
 * on; such a program gets an error and our tracker a holiday until the capture ends. */
static CUresult capture_ended(CUresult rc) {
	if (rc != CUDA_ERROR_ILLEGAL_STATE && rc != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
		wait_capture_ends();
	}
	return rc;
}

CUresult on_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
	return capture_ended(real_get()->cuStreamEndCapture(stream, graph));
}

CUresult on_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
	return capture_ended(real_get()->cuStreamEndCapture_ptsz(stream, graph));
}

/* ---- contexts ---- */

/* Primary contexts go with the last of those who hold them. */
static struct {
	_Atomic(CUcontext) context;
	_Atomic unsigned held;
} primaries[JOB_DEVICES_MAX];

static void context_goes(CUcontext context) {
	int token = state_enter();

	records_drain(); /* they name kernels of the context */
	track_context_going(context);
	enforce_context_destroying(context);
	kernel_context_destroying(context);
	state_leave(token);
}

static CUresult context_gone(CUresult rc) {
	job_forget_contexts();
	wait_done(); /* nothing of it runs any more */
	return rc;
}

CUresult on_cuCtxDestroy(CUcontext context) {
	context_goes(context);
	return context_gone(real_get()->cuCtxDestroy(context));
}

CUresult on_cuCtxDestroy_v2(CUcontext context) {
	context_goes(context);
	return context_gone(real_get()->cuCtxDestroy_v2(context));
}

CUresult on_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	CUresult rc = real_get()->cuDevicePrimaryCtxRetain(context, device);

	if (rc == CUDA_SUCCESS && context && device >= 0 && device < JOB_DEVICES_MAX) {
		atomic_store(&primaries[device].context, *context);
		atomic_fetch_add(&primaries[device].held, 1);
	}
	return rc;
}

/* @all: whoever holds it. Return: whether the primary context of @device goes. */
static bool primary_goes(CUdevice device, bool all) {
	CUcontext context;
	unsigned held;

	if (device < 0 || device >= JOB_DEVICES_MAX) {
		return false;
	}
	context = atomic_load(&primaries[device].context);
	held = atomic_load(&primaries[device].held);
	while (!all && held > 1) {
		if (atomic_compare_exchange_weak(&primaries[device].held, &held, held - 1)) {
			return false; /* others have it still */
		}
	}
	if (!context) {
		return false;
	}
	context_goes(context);
	if (!all) {
		atomic_store(&primaries[device].held, 0);
	}
	return true;
}

CUresult on_cuDevicePrimaryCtxRelease(CUdevice device) {
	bool goes = primary_goes(device, false);
	CUresult rc = real_get()->cuDevicePrimaryCtxRelease(device);

	return goes ? context_gone(rc) : rc;
}

CUresult on_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	bool goes = primary_goes(device, false);
	CUresult rc = real_get()->cuDevicePrimaryCtxRelease_v2(device);

	return goes ? context_gone(rc) : rc;
}

CUresult on_cuDevicePrimaryCtxReset(CUdevice device) {
	bool goes = primary_goes(device, true);
	CUresult rc = real_get()->cuDevicePrimaryCtxReset(device);

	return goes ? context_gone(rc) : rc;
}

CUresult on_cuDevicePrimaryCtxReset_v2(CUdevice device) {
	bool goes = primary_goes(device, true);
	CUresult rc = real_get()->cuDevicePrimaryCtxReset_v2(device);

	return goes ? context_gone(rc) : rc;
}
