/*
 * hooks-sync.c: the program's waits and questions, events, and the end of contexts.
 */
#include <stdint.h>

#include "shim/attach.h"
#include "shim/base/hot.h"
#include "shim/capture.h"
#include "shim/copy-back.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "shim/graph.h"
#include "shim/hooks.h"
#include "shim/job.h"
#include "shim/keeper.h"
#include "shim/kernel-time.h"
#include "shim/place.h"
#include "shim/point.h"
#include "shim/primary.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/track.h"
#include "shim/wait.h"
#include "shim/worker.h"

/* ---- waits: what was handed over before them is complete after them ---- */

static point_t wait_begin(void) {
	worker_wait_begin(worker_get());
	state_self.depth++;
	return point_mark();
}

static CUstream where(CUstream stream, bool per_thread) {
	return place_active() ? place_where(stream, per_thread) : stream;
}

HOT_CODE static void wait_end(void) {
	state_self.depth--;
	worker_wait_end(state_self.worker);
}

HOT_CODE CUresult on_cuCtxSynchronize(void) {
	point_t t = wait_begin();
	CUresult rc = real_get()->cuCtxSynchronize();

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_context(NULL, t);
		job_close_complete();
	}
	return rc;
}

HOT_CODE CUresult on_cuCtxSynchronize_v2(CUcontext context) {
	point_t t = wait_begin();
	CUresult rc = real_get()->cuCtxSynchronize_v2(context);

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_context(context, t);
		job_close_complete();
	}
	return rc;
}

HOT_CODE CUresult on_cuStreamSynchronize(CUstream stream) {
	point_t t = wait_begin();
	CUresult rc = real_get()->cuStreamSynchronize(where(stream, false));

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, false, t);
		job_close_complete();
	}
	return rc;
}

HOT_CODE CUresult on_cuStreamSynchronize_ptsz(CUstream stream) {
	point_t t = wait_begin();
	CUresult rc = real_get()->cuStreamSynchronize_ptsz(where(stream, true));

	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, true, t);
		job_close_complete();
	}
	return rc;
}

CUresult on_cuEventSynchronize(CUevent event) {
	uint64_t turn = wait_event_last(event);
	CUresult rc;

	wait_begin();
	rc = real_get()->cuEventSynchronize(event);
	wait_end();
	if (rc == CUDA_SUCCESS) {
		wait_event_complete(event, turn);
		job_close_complete();
	}
	return rc;
}

/* ---- questions: knowledge as well, but programs ask in passing, so no job ends here ---- */

CUresult on_cuStreamQuery(CUstream stream) {
	point_t t = point_mark();
	CUresult rc = real_get()->cuStreamQuery(where(stream, false));

	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, false, t);
	}
	return rc;
}

CUresult on_cuStreamQuery_ptsz(CUstream stream) {
	point_t t = point_mark();
	CUresult rc = real_get()->cuStreamQuery_ptsz(where(stream, true));

	if (rc == CUDA_SUCCESS) {
		wait_covered_stream(stream, true, t);
	}
	return rc;
}

CUresult on_cuEventQuery(CUevent event) {
	uint64_t turn = wait_event_last(event);
	CUresult rc = real_get()->cuEventQuery(event);

	if (rc == CUDA_SUCCESS) {
		wait_event_complete(event, turn);
	}
	return rc;
}

/* ---- events ---- */

struct recording {
	struct place_use use;
	CUevent event;
	uint64_t turn; /* see wait_event_recording() */
	point_t at;
};

static struct recording recording_begin(CUevent event, CUstream stream, bool per_thread) {
	struct recording r = {
		.event = event,
		.turn = wait_event_recording(event),
		.at = point_mark(),
	};

	r.use = place_use_begin(stream, per_thread);
	return r;
}

static CUresult recording_end(struct recording *r, CUresult rc) {
	place_use_end(&r->use);
	if (rc != CUDA_SUCCESS || capture_is_on(r->use.stream, r->use.per_thread)) {
		r->turn = 0;
	}
	wait_event_recorded(r->event, r->turn, r->use.stream, r->use.per_thread, r->at);
	return rc;
}

CUresult on_cuEventRecord(CUevent event, CUstream stream) {
	struct recording r = recording_begin(event, stream, false);

	return recording_end(&r, real_get()->cuEventRecord(event, r.use.at));
}

CUresult on_cuEventRecord_ptsz(CUevent event, CUstream stream) {
	struct recording r = recording_begin(event, stream, true);

	return recording_end(&r, real_get()->cuEventRecord_ptsz(event, r.use.at));
}

/* In a capture, an external one makes a node that records the event. */
static CUresult flagged(CUresult rc, CUevent event, unsigned flags) {
	if (rc == CUDA_SUCCESS && flags & CU_EVENT_RECORD_EXTERNAL) {
		wait_event_shared(event);
	}
	return rc;
}

CUresult on_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
	struct recording r = recording_begin(event, stream, false);
	CUresult rc = real_get()->cuEventRecordWithFlags(event, r.use.at, flags);

	return flagged(recording_end(&r, rc), event, flags);
}

CUresult on_cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
	struct recording r = recording_begin(event, stream, true);
	CUresult rc = real_get()->cuEventRecordWithFlags_ptsz(event, r.use.at, flags);

	return flagged(recording_end(&r, rc), event, flags);
}

/* Behind all streams of a context: that is no mark in one of them. */
static CUresult recorded_unmarked(CUevent event, CUresult rc) {
	wait_event_recorded(event, 0, NULL, false, 0);
	return rc;
}

CUresult on_cuCtxRecordEvent(CUcontext context, CUevent event) {
	wait_event_recording(event);
	return recorded_unmarked(event, real_get()->cuCtxRecordEvent(context, event));
}

CUresult on_cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
	wait_event_recording(event);
	return recorded_unmarked(event, real_get()->cuGreenCtxRecordEvent(green, event));
}

/* ---- events that launches of graphs record, or other processes ---- */

static CUresult named(CUresult rc, CUevent event) {
	if (rc == CUDA_SUCCESS) {
		wait_event_shared(event);
	}
	return rc;
}

/* NULL: the node records none. */
static CUevent event_of(const CUgraphNodeParams *params) {
	return params && params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? params->eventRecord.event
									 : NULL;
}

CUresult on_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				      size_t n, CUevent event) {
	return named(real_get()->cuGraphAddEventRecordNode(node, graph, after, n, event), event);
}

CUresult on_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
			   CUgraphNodeParams *params) {
	return named(real_get()->cuGraphAddNode(node, graph, after, n, params), event_of(params));
}

CUresult on_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			      const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params) {
	return named(real_get()->cuGraphAddNode_v2(node, graph, after, edges, n, params),
		     event_of(params));
}

CUresult on_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
	return named(real_get()->cuGraphEventRecordNodeSetEvent(node, event), event);
}

CUresult on_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params) {
	return named(real_get()->cuGraphNodeSetParams(node, params), event_of(params));
}

CUresult on_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
	return named(real_get()->cuIpcGetEventHandle(handle, event), event);
}

CUresult on_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
	CUresult rc = real_get()->cuIpcOpenEventHandle(event, handle);

	return named(rc, rc == CUDA_SUCCESS && event ? *event : NULL);
}

/* The two that change an instantiated graph, too. */
static CUresult exec_named(CUresult rc, CUgraphExec exec, CUevent event) {
	if (rc == CUDA_SUCCESS) {
		graph_updated(exec, NULL);
	}
	return named(rc, event);
}

CUresult on_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
	return exec_named(real_get()->cuGraphExecEventRecordNodeSetEvent(exec, node, event), exec,
			  event);
}

CUresult on_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
				     CUgraphNodeParams *params) {
	return exec_named(real_get()->cuGraphExecNodeSetParams(exec, node, params), exec,
			  event_of(params));
}

/* ---- their end ---- */

CUresult on_cuEventDestroy(CUevent event) {
	wait_event_gone(event);
	return real_get()->cuEventDestroy(event);
}

CUresult on_cuEventDestroy_v2(CUevent event) {
	wait_event_gone(event);
	return real_get()->cuEventDestroy_v2(event);
}

/* ---- contexts ---- */

/* Before the driver is asked, for afterwards nothing of it may be touched. Should the driver
 * refuse, the context is met anew, without twins for what is loaded. */
static void context_goes(CUcontext context) {
	int token = state_enter();

	records_drain(); /* they name kernels of the context */
	track_context_going(context);
	terms_context_destroying(context);
	if (place_active()) {
		place_context_destroying(context);
	}
	keeper_context_destroying(context);
	copy_back_context_destroying(context);
	worker_for_each(w) {
		kernel_time_forget(&w->times, context);
	}
	graph_context_destroying(context);
	enforce_context_destroying(context);
	kernel_context_destroying(context);
	state_leave(token);
}

/* @context: NULL: its streams are still there. */
static CUresult context_gone(CUcontext context, CUresult rc) {
	if (rc == CUDA_SUCCESS && context) {
		capture_context_gone(context);
	}
	worker_forget_streams();
	job_context_gone(); /* nothing of it runs any more */
	return rc;
}

CUresult on_cuCtxDestroy(CUcontext context) {
	attach_forget(context);
	context_goes(context);
	return context_gone(context, real_get()->cuCtxDestroy(context));
}

CUresult on_cuCtxDestroy_v2(CUcontext context) {
	attach_forget(context);
	context_goes(context);
	return context_gone(context, real_get()->cuCtxDestroy_v2(context));
}

CUresult on_cuCtxAttach(CUcontext *context, unsigned flags) {
	CUresult rc = real_get()->cuCtxAttach(context, flags);

	if (rc == CUDA_SUCCESS && context) {
		attach_add(*context);
	}
	return rc;
}

CUresult on_cuCtxDetach(CUcontext context) {
	if (attach_take(context)) {
		return real_get()->cuCtxDetach(context); /* others have it still */
	}
	context_goes(context);
	return context_gone(context, real_get()->cuCtxDetach(context));
}

/* One of the program's own. */
CUresult on_cuGreenCtxDestroy(CUgreenCtx green) {
	CUcontext context;

	if (real_get()->cuCtxFromGreenCtx &&
	    real_get()->cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS) {
		context_goes(context);
	}
	return context_gone(NULL, real_get()->cuGreenCtxDestroy(green));
}

/* ---- primary contexts go with the last of those who hold them ---- */

CUresult on_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	int cancel = primary_lock(device);
	CUresult rc = real_get()->cuDevicePrimaryCtxRetain(context, device);

	if (rc == CUDA_SUCCESS && context) {
		primary_retained(device, *context);
	}
	primary_unlock(device, cancel);
	return rc;
}

typedef CUresult(CUDAAPI *end_primary_fn)(CUdevice);

static CUresult end_primary(end_primary_fn end, CUdevice device, CUcontext going) {
	if (!going) {
		return end(device);
	}
	context_goes(going);
	return context_gone(going, end(device));
}

static CUresult release_primary(end_primary_fn release, CUdevice device) {
	int cancel = primary_lock(device);
	CUresult rc = end_primary(release, device, primary_released(device));

	primary_unlock(device, cancel);
	return rc;
}

/* Whoever holds it. */
static CUresult reset_primary(end_primary_fn reset, CUdevice device) {
	int cancel = primary_lock(device);
	CUresult rc = end_primary(reset, device, primary_context(device));

	primary_unlock(device, cancel);
	return rc;
}

CUresult on_cuDevicePrimaryCtxRelease(CUdevice device) {
	return release_primary(real_get()->cuDevicePrimaryCtxRelease, device);
}

CUresult on_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
	return release_primary(real_get()->cuDevicePrimaryCtxRelease_v2, device);
}

CUresult on_cuDevicePrimaryCtxReset(CUdevice device) {
	return reset_primary(real_get()->cuDevicePrimaryCtxReset, device);
}

CUresult on_cuDevicePrimaryCtxReset_v2(CUdevice device) {
	return reset_primary(real_get()->cuDevicePrimaryCtxReset_v2, device);
}
