/*
 * capture-beside.c: which calls of another thread spoil a capture. The tracker of libsbeet.so makes
 * green contexts and streams, and reads attributes, while the program may be capturing.
 *
 * The main thread captures a stream of either kind, in global mode. Meanwhile another one, in
 * relaxed mode, makes a call. Then a second stream joins the capture by an event, and the capture
 * ends.
 *
 * usage: capture-beside
 *	For each call: what it says, and what the event, the wait for it and the end say. 0 is
 *	success, 906 means that the legacy stream may not be used now, 901 that the capture was
 *	spoiled.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "probe.h"

static CUcontext context;
static CUgreenCtx green;
static CUstream own, other, beside; /* of free order, but for own, which is of the kind asked for */
static CUevent fork_event, join_event;
static CUdevResource half;

static CUresult nothing(void) {
	return CUDA_SUCCESS;
}

static CUresult attribute_of(CUstream stream) {
	CUstreamAttrValue value;

	return cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

static CUresult attribute_of_legacy(void) {
	return attribute_of(CU_STREAM_LEGACY);
}

static CUresult attribute_of_threads_own(void) {
	return attribute_of(CU_STREAM_PER_THREAD);
}

static CUresult attribute_of_captured(void) {
	return attribute_of(own);
}

#define QUESTION(name, type, ask)                      \
	static CUresult name(void) {                   \
		type answer;                           \
                                                       \
		return ask(CU_STREAM_LEGACY, &answer); \
	}
QUESTION(flags_of_legacy, unsigned, cuStreamGetFlags)
QUESTION(priority_of_legacy, int, cuStreamGetPriority)
QUESTION(context_of_legacy, CUcontext, cuStreamGetCtx)
QUESTION(green_of_legacy, CUgreenCtx, cuStreamGetGreenCtx)
QUESTION(id_of_legacy, unsigned long long, cuStreamGetId)
QUESTION(device_of_legacy, CUdevice, cuStreamGetDevice)
QUESTION(legacy_is_capturing, CUstreamCaptureStatus, cuStreamIsCapturing)
#undef QUESTION

static CUresult query_legacy(void) {
	return cuStreamQuery(CU_STREAM_LEGACY);
}

static CUresult set_attribute_of(CUstream stream) {
	CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_AUTO};

	return cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

static CUresult set_attribute_of_legacy(void) {
	return set_attribute_of(CU_STREAM_LEGACY);
}

static CUresult set_attribute_of_captured(void) {
	return set_attribute_of(own);
}

static CUresult copy_attributes_of_legacy(void) {
	return cuStreamCopyAttributes(beside, CU_STREAM_LEGACY);
}

static CUresult copy_graph(void) {
	CUgraph graph, copy;
	CUgraphExec exec;
	CUresult rc = cuGraphCreate(&graph, 0);
	CUgraphNode node;

	rc = rc ? rc : cuGraphAddEmptyNode(&node, graph, NULL, 0);
	rc = rc ? rc : cuGraphClone(&copy, graph);
	rc = rc ? rc : cuGraphInstantiate(&exec, copy, 0);
	return rc ? rc : cuGraphUpload(exec, beside);
}

static CUresult launch_graph_in_legacy(void) {
	CUgraph graph;
	CUgraphExec exec;
	CUresult rc = cuGraphCreate(&graph, 0);

	rc = rc ? rc : cuGraphInstantiate(&exec, graph, 0);
	return rc ? rc : cuGraphLaunch(exec, CU_STREAM_LEGACY);
}

static CUresult make_green(void) {
	CUdevResourceDesc description;
	CUresult rc = cuDevResourceGenerateDesc(&description, &half, 1);

	return rc ? rc : cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

static CUresult make_green_stream(void) {
	CUstream s;

	return cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0);
}

static CUresult make_stream(void) {
	CUstream s;

	return cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
}

static CUresult make_event(void) {
	CUevent e;

	return cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
}

static CUresult record_beside(void) {
	return cuEventRecord(fork_event, beside);
}

static CUresult wait_beside(void) {
	CUevent e;
	CUresult rc = cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);

	rc = rc ? rc : cuEventRecord(e, beside);
	return rc ? rc : cuStreamWaitEvent(other, e, 0);
}

static const struct call {
	const char *name;
	CUresult (*make)(void);
	int before; /* it is made before the event is recorded, else between that and the wait */
} calls[] = {
	{"nothing", nothing, 0},
	{"attribute of the legacy stream", attribute_of_legacy, 0},
	{"the same, before the event", attribute_of_legacy, 1},
	{"attribute of the thread's own", attribute_of_threads_own, 0},
	{"attribute of the captured one", attribute_of_captured, 0},
	{"flags of the legacy stream", flags_of_legacy, 0},
	{"priority of the legacy stream", priority_of_legacy, 0},
	{"context of the legacy stream", context_of_legacy, 0},
	{"green context of the legacy stream", green_of_legacy, 0},
	{"number of the legacy stream", id_of_legacy, 0},
	{"device of the legacy stream", device_of_legacy, 0},
	{"whether the legacy stream captures", legacy_is_capturing, 0},
	{"whether the legacy stream is done", query_legacy, 0},
	{"an attribute of the legacy one is set", set_attribute_of_legacy, 0},
	{"an attribute of the captured is set", set_attribute_of_captured, 0},
	{"the legacy one's attributes are copied", copy_attributes_of_legacy, 0},
	{"a graph is copied", copy_graph, 0},
	{"a graph is launched in the legacy one", launch_graph_in_legacy, 0},
	{"a green context is made", make_green, 0},
	{"a stream of it is made", make_green_stream, 0},
	{"a stream is made", make_stream, 0},
	{"an event is made", make_event, 0},
	{"the event is recorded elsewhere", record_beside, 0},
	{"the second stream waits for a third", wait_beside, 0},
};

static void *run(void *data) {
	const struct call *call = (const struct call *)data;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult rc;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuThreadExchangeStreamCaptureMode(&mode));
	rc = call->make();
	printf(" %8d", (int)rc);
	return NULL;
}

static void make_call(const struct call *call) {
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, (void *)call) != 0) {
		exit(1);
	}
	pthread_join(thread, NULL);
}

static void try_call(const struct call *call, unsigned flags) {
	CUresult recorded, waited, ended;
	CUgraph graph;

	CHECK(cuStreamCreate(&own, flags));
	CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	printf("%-38s %8s", call->name, flags ? "free" : "blocking");
	CHECK(cuStreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_GLOBAL));
	if (call->before) {
		make_call(call);
	}
	recorded = cuEventRecord(fork_event, own);
	if (!call->before) {
		make_call(call);
	}
	waited = cuStreamWaitEvent(other, fork_event, 0);
	if (waited == CUDA_SUCCESS && cuEventRecord(join_event, other) == CUDA_SUCCESS) {
		cuStreamWaitEvent(own, join_event, 0);
	}
	ended = cuStreamEndCapture(own, &graph);
	printf(" %8d %8d %8d\n", (int)recorded, (int)waited, (int)ended);
	CHECK(cuStreamDestroy(own));
	CHECK(cuStreamDestroy(other));
}

int main(void) {
	CUdevResource whole, rest;
	unsigned n = 1;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&half, &n, &whole, &rest, 0, whole.sm.smCount / 2));
	CHECK(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
	printf("%-38s %8s %8s %8s %8s %8s\n", "beside the capture", "captured", "says", "event",
	       "wait", "end");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		try_call(&calls[i], CU_STREAM_DEFAULT);
		try_call(&calls[i], CU_STREAM_NON_BLOCKING);
	}
	return 0;
}
