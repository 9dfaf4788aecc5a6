/*
 * test-api-graph.c: the simulated driver, as one process sees it: capture and graphs.
 */
#include "api.h"

#include <string.h>

static void api_replays_what_it_captured(void **state) {
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	struct fixture *f = *state;
	unsigned *words, n = 100;
	CUdeviceptr a, b, c;
	void *params[] = {&a, &b, &c, &n};
	CUstream s, side;
	CUevent fork, join;
	CUgraphExec exec;
	CUgraph graph;
	size_t n_nodes = 0;

	OK(cuMemHostAlloc((void **)&words, 2 * n * 4, 0));
	OK(cuMemAlloc(&a, n * 4));
	OK(cuMemAlloc(&b, n * 4));
	OK(cuMemAlloc(&c, n * 4));
	OK(cuMemsetD32(c, 77, n));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamSynchronize(NULL));

	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemcpyHtoDAsync(a, words, n * 4, s));
	OK(cuEventRecord(fork, s));
	OK(cuStreamWaitEvent(side, fork, 0));
	OK(cuMemsetD32Async(b, 5, n, side));
	OK(cuEventRecord(join, side));
	OK(cuStreamWaitEvent(s, join, 0));
	OK(cuStreamIsCapturing(side, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuLaunchKernel(f->add, 1, 1, 1, 128, 1, 1, 0, s, params, NULL));
	OK(cuMemcpyDtoHAsync(words + n, c, n * 4, s));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamIsCapturing(side, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphGetNodes(graph, NULL, &n_nodes));
	assert_int_equal(n_nodes, 4);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphUpload(exec, s));
	assert_int_equal(cuGraphUpload(NULL, s), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(words + n, c, n * 4));
	assert_int_equal(words[n], 77); /* nothing has run yet */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < n; i++) {
			words[i] = 1000 * round + i;
		}
		OK(cuGraphLaunch(exec, s));
		OK(cuStreamSynchronize(s));
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(words[n + i], 1000 * round + i + 5);
		}
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(join));
	OK(cuStreamDestroy(side));
	OK(cuStreamDestroy(s));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuMemFree(c));
	OK(cuMemFreeHost(words));
}

static void api_keeps_a_graph_in_its_stream(void **state) {
	struct fixture *f = *state;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr d;
	struct gate g;
	unsigned value;
	CUstream s;

	gate_close(&g);
	OK(cuMemAlloc(&d, 4));
	OK(cuMemsetD32(d, 1, 1));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	poke(f, s, d, 2);
	poke(f, s, d, 3);
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gate_launch(&g, f->wait, s, 1);
	OK(cuGraphLaunch(exec, s));
	assert_int_equal(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync(&value, d, 4, CU_STREAM_PER_THREAD));
	assert_int_equal(value, 1);
	gate_open(&g);
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(&value, d, 4));
	assert_int_equal(value, 3);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)g.words));
}

#define QUESTION(name, type, ask)          \
	static CUresult name(CUstream s) { \
		type answer;               \
                                           \
		return ask(s, &answer);    \
	}
QUESTION(flags_of, unsigned, cuStreamGetFlags)
QUESTION(priority_of, int, cuStreamGetPriority)
QUESTION(context_of, CUcontext, cuStreamGetCtx)
QUESTION(green_context_of, CUgreenCtx, cuStreamGetGreenCtx)
QUESTION(number_of, unsigned long long, cuStreamGetId)
#undef QUESTION

static CUresult get_attribute_of(CUstream s) {
	CUstreamAttrValue value;

	return cuStreamGetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

static CUresult set_attribute_of(CUstream s) {
	const CUstreamAttrValue value = {.pad = {1}};

	return cuStreamSetAttribute(s, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
}

static CUresult copy_attributes_of(CUstream s) {
	return cuStreamCopyAttributes(s, s);
}

/* Even a question about the legacy stream spoils the capture of a blocking one (an H200,
 * tests/gpu/HARDWARE.md, 15), but for whether it captures. None about the captured one does. */
static void api_spoils_captures_by_questions(void **state) {
	static CUresult (*const ask[])(CUstream) = {
		flags_of,	  priority_of,	      context_of,
		cuStreamQuery,	  green_context_of,   get_attribute_of,
		set_attribute_of, copy_attributes_of, number_of,
	};
	CUstreamCaptureStatus status;
	CUstream s, side;
	CUgraph graph;
	CUevent e;

	(void)state;
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
		OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuEventRecord(e, s));
		assert_int_equal(cuStreamIsCapturing(CU_STREAM_LEGACY, &status),
				 CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		if (ask[i] != cuStreamQuery) { /* which waits, so it is refused in a capture */
			OK(ask[i](s));
		}
		OK(cuStreamEndCapture(s, &graph));
		OK(cuGraphDestroy(graph));

		OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuEventRecord(e, s));
		assert_int_equal(ask[i](CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		assert_int_equal(cuStreamWaitEvent(side, e, 0), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(cuStreamEndCapture(s, &graph),
				 CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

		OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(ask[i](CU_STREAM_LEGACY));
		OK(cuStreamEndCapture(side, &graph));
		OK(cuGraphDestroy(graph));
	}
	OK(cuEventDestroy(e));
	OK(cuStreamDestroy(side));
	OK(cuStreamDestroy(s));
}

/* Each of these spoils a capture or is refused in it. */
static void api_spoils_captures_as_cuda_does(void **state) {
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	struct fixture *f = *state;
	CUstream s, side;
	CUgraph graph;
	CUdeviceptr d, other;
	CUevent e;

	OK(cuMemAlloc(&d, 4));
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);

	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(cuMemAlloc(&other, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc(&other, 4));
	OK(cuMemFree(other));
	assert_int_equal(cuMemsetD32(d, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	/* The legacy stream is free to use until a blocking one joins. */
	OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32Async(d, 1, 1, CU_STREAM_LEGACY));
	OK(cuEventRecord(e, side));
	OK(cuStreamWaitEvent(s, e, 0));
	assert_int_equal(cuStreamIsCapturing(CU_STREAM_LEGACY, &status),
			 CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(cuEventRecord(e, CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(e, side));
	OK(cuStreamWaitEvent(s, e, 0));
	poke(f, s, d, 1);
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	assert_int_equal(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	assert_int_equal(cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT);

	OK(cuEventRecord(e, s));
	OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(cuStreamWaitEvent(side, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	assert_int_equal(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	OK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuStreamSynchronize(s)); /* this thread is relaxed now */
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamEndCapture(side, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(e));
	OK(cuStreamDestroy(side));
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_replays_what_it_captured),
		api_test(api_keeps_a_graph_in_its_stream),
		api_test(api_spoils_captures_by_questions),
		api_test(api_spoils_captures_as_cuda_does),
	};

	return cmocka_run_group_tests(tests, api_setup, api_teardown);
}
