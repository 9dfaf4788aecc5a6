/*
 * test-api.c: the simulated driver, as one process sees it. Needs SIMGPU, SIMGPU_DIR and two GPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

struct fixture {
	CUcontext context;
	CUmodule module;
	CUfunction add, poke, wait, count;
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f) {
		return -1;
	}
	OK(cuInit(0));
	OK(cuCtxCreate_v4(&f->context, NULL, 0, 0));
	OK(cuModuleLoadData(&f->module, kernels_ptx));
	OK(cuModuleGetFunction(&f->add, f->module, "add"));
	OK(cuModuleGetFunction(&f->poke, f->module, "poke"));
	OK(cuModuleGetFunction(&f->wait, f->module, "wait"));
	OK(cuModuleGetFunction(&f->count, f->module, "count"));
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;

	OK(cuCtxDestroy(f->context));
	free(f);
	return 0;
}

/* A kernel that stays until its gate is opened: how the tests hold a stream. */
struct gate {
	volatile uint32_t *words; /* pinned: gate, arrived, smids... */
};

static void gate_close(struct gate *g) {
	OK(cuMemHostAlloc((void **)&g->words, 4096, 0));
	memset((void *)g->words, 0, 4096);
}

static void gate_launch(struct gate *g, CUfunction wait, CUstream stream, unsigned blocks) {
	uint64_t gate = (uintptr_t)g->words, arrived = gate + 4, smids = gate + 8;
	void *params[] = {&gate, &arrived, &smids};

	OK(cuLaunchKernel(wait, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static void gate_open(struct gate *g) {
	__atomic_store_n(g->words, 1, __ATOMIC_SEQ_CST);
}

static void poke(struct fixture *f, CUstream stream, CUdeviceptr where, unsigned value) {
	void *params[] = {&where, &value};

	OK(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* ---- launches and copies ---- */

static void run_add(CUfunction add, CUstream stream, unsigned n, unsigned seed) {
	unsigned *a = malloc(n * 4), *b = malloc(n * 4), *c = calloc(n, 4);
	CUdeviceptr da, db, dc;
	void *params[] = {&da, &db, &dc, &n};

	for (unsigned i = 0; i < n; i++) {
		a[i] = i * 2654435761u + seed;
		b[i] = ~i;
	}
	OK(cuMemAlloc(&da, n * 4));
	OK(cuMemAlloc(&db, n * 4));
	OK(cuMemAlloc(&dc, n * 4));
	OK(cuMemcpyHtoDAsync(da, a, n * 4, stream));
	OK(cuMemcpyHtoDAsync(db, b, n * 4, stream));
	memset(b, 0, n * 4); /* its bytes have been taken at the call */
	OK(cuLaunchKernel(add, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
	OK(cuMemcpyDtoHAsync(c, dc, n * 4, stream)); /* pageable: complete when it returns */
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(c[i], a[i] + ~i);
	}
	OK(cuMemFree(da));
	OK(cuMemFree(db));
	OK(cuMemFree(dc));
	free(a);
	free(b);
	free(c);
}

static void api_adds_small_and_large_vectors(void **state) {
	struct fixture *f = *state;

	run_add(f->add, NULL, 100, 1);
	run_add(f->add, NULL, 300000, 2); /* beyond what a packet carries */
	run_add(f->add, CU_STREAM_PER_THREAD, 1000, 3);
}

static void api_takes_parameters_in_a_buffer(void **state) {
	struct fixture *f = *state;
	struct {
		CUdeviceptr where;
		uint32_t value;
	} packed = {.value = 77};
	size_t size = sizeof(packed);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};
	unsigned got = 0;
	size_t offset, param_size;

	OK(cuMemAlloc(&packed.where, 4));
	OK(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	OK(cuMemcpyDtoH(&got, packed.where, 4));
	assert_int_equal(got, 77);
	OK(cuFuncGetParamInfo(f->poke, 1, &offset, &param_size));
	assert_int_equal(offset, 8);
	assert_int_equal(param_size, 4);
	assert_int_equal(cuFuncGetParamInfo(f->poke, 2, &offset, &param_size),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(packed.where));
}

static void api_copies_rectangles(void **state) {
	unsigned char from[8][16], to[8][16] = {{0}};
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = from,
			    .srcPitch = 16,
			    .srcXInBytes = 3,
			    .srcY = 2,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .WidthInBytes = 5,
			    .Height = 4};
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = to,
			     .dstPitch = 16,
			     .dstXInBytes = 1,
			     .dstY = 3,
			     .WidthInBytes = 5,
			     .Height = 4};
	CUdeviceptr d;
	size_t pitch;

	for (int i = 0; i < 128; i++) {
		from[i / 16][i % 16] = (unsigned char)i;
	}
	OK(cuMemAllocPitch(&d, &pitch, 5, 4, 4));
	in.dstDevice = out.srcDevice = d;
	in.dstPitch = out.srcPitch = pitch;
	OK(cuMemcpy2D(&in));
	OK(cuMemcpy2D(&out));
	for (int y = 0; y < 8; y++) {
		for (int x = 0; x < 16; x++) {
			int inside = x >= 1 && x < 6 && y >= 3 && y < 7;

			assert_int_equal(to[y][x], inside ? from[y - 1][x + 2] : 0);
		}
	}
	OK(cuMemFree(d));
}

static void api_sets_memory(void **state) {
	unsigned words[8], expected[8] = {0x07070707, 0x1234, 0xabcdef01, 0xabcdef01};
	CUdeviceptr d;

	OK(cuMemAlloc(&d, 32));
	OK(cuMemsetD8(d, 0, 32));
	OK(cuMemsetD8(d, 7, 4));
	OK(cuMemsetD16(d + 4, 0x1234, 1));
	OK(cuMemsetD32Async(d + 8, 0xabcdef01, 2, NULL));
	OK(cuMemcpyDtoH(words, d, 32));
	assert_memory_equal(words, expected, 32);
	assert_int_equal(cuMemsetD8(d, 1, 33), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD32(d + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(d));
}

static void api_refuses_copies_out_of_bounds(void **state) {
	char bytes[128] = {0};
	CUdeviceptr d;

	OK(cuMemAlloc(&d, 100));
	assert_int_equal(cuMemcpyHtoD(d, bytes, 101), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH(bytes, d + 100, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)bytes, bytes, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFree(d + 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(d));
	assert_int_equal(cuMemFree(d), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(0));
}

static void api_copies_pinned_memory_in_its_turn(void **state) {
	struct fixture *f = *state;
	struct gate g;
	volatile uint32_t *host;
	CUdeviceptr d, alias;
	CUstream s;

	gate_close(&g);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocHost((void **)&host, 4));
	OK(cuMemHostGetDevicePointer(&alias, (void *)host, 0));
	OK(cuMemAlloc(&d, 4));
	*host = 1;
	gate_launch(&g, f->wait, s, 1);
	OK(cuMemcpyHtoDAsync(d, (void *)host, 4, s));
	*host = 2; /* the copy has not happened yet */
	gate_open(&g);
	OK(cuStreamSynchronize(s));
	*host = 3;
	OK(cuMemcpyDtoH((void *)host, d, 4));
	assert_int_equal(*host, 2);
	poke(f, s, alias, 5); /* kernels reach it too */
	OK(cuStreamSynchronize(s));
	assert_int_equal(*host, 5);
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)host));
	OK(cuMemFreeHost((void *)g.words));
}

static void api_tells_what_a_pointer_is(void **state) {
	struct fixture *f = *state;
	CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
	unsigned type = 77;
	void *data[] = {&type};
	CUdeviceptr d, start;
	CUcontext context;
	size_t size;
	int local;

	OK(cuMemAlloc(&d, 1000));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 10));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, d));
	assert_ptr_equal(context, f->context);
	OK(cuMemGetAddressRange(&start, &size, d + 999));
	assert_int_equal(start, d);
	assert_int_equal(size, 1000);
	assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					       (CUdeviceptr)(uintptr_t)&local),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttributes(1, what, data, (CUdeviceptr)(uintptr_t)&local));
	assert_int_equal(type, 0);
	OK(cuMemFree(d));
}

static void api_finds_variables_and_keeps_their_values(void **state) {
	struct fixture *f = *state;
	CUdeviceptr d;
	unsigned value;
	size_t size;

	OK(cuModuleGetGlobal(&d, &size, f->module, "counter"));
	assert_int_equal(size, 4);
	OK(cuLaunchKernel(f->count, 3, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	OK(cuMemcpyDtoH(&value, d, 4));
	assert_int_equal(value, 41 + 96);
	assert_int_equal(cuModuleGetGlobal(&d, &size, f->module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

/* ---- streams and events ---- */

static void api_keeps_streams_apart_and_null_stream_between(void **state) {
	struct fixture *f = *state;
	CUstream held, free_one, blocking;
	struct gate g;
	CUdeviceptr d;
	unsigned value;

	gate_close(&g);
	OK(cuMemAlloc(&d, 4));
	OK(cuMemsetD32(d, 0, 1));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&held, 0));
	OK(cuStreamCreate(&blocking, 0));
	OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	gate_launch(&g, f->wait, held, 1);
	assert_int_equal(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
	poke(f, free_one, d, 1);
	OK(cuStreamSynchronize(free_one)); /* runs beside it */
	poke(f, NULL, d, 2);		   /* after held */
	poke(f, blocking, d, 3);	   /* after the NULL stream */
	assert_int_equal(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync(&value, d, 4, free_one));
	assert_int_equal(value, 1);
	gate_open(&g);
	OK(cuStreamSynchronize(blocking));
	OK(cuStreamQuery(held));
	OK(cuMemcpyDtoH(&value, d, 4));
	assert_int_equal(value, 3);
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(free_one));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)g.words));
}

static void api_orders_and_times_by_events(void **state) {
	struct fixture *f = *state;
	CUevent start, end, untimed;
	CUstream a, b;
	struct gate g;
	float ms = -1;

	gate_close(&g);
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(start)); /* never recorded: complete */
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(start, a));
	gate_launch(&g, f->wait, a, 1);
	OK(cuEventRecord(end, a));
	OK(cuStreamWaitEvent(b, end, 0));
	OK(cuEventRecord(untimed, b));
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(untimed), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	gate_open(&g);
	OK(cuEventSynchronize(untimed));
	OK(cuEventQuery(end));
	OK(cuEventElapsedTime(&ms, start, end));
	assert_true(ms > 0);
	assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy(start));
	OK(cuEventDestroy(end));
	OK(cuEventDestroy(untimed));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFreeHost((void *)g.words));
}

struct called {
	int n;
	int order[2];
};

static void CUDA_CB call_first(void *data) {
	struct called *c = data;

	c->order[c->n++] = 1;
}

static void CUDA_CB call_second(CUstream stream, CUresult status, void *data) {
	struct called *c = data;

	c->order[c->n++] = status == CUDA_SUCCESS ? 2 : -1;
}

static void api_calls_host_functions_in_the_order_of_the_stream(void **state) {
	struct called called = {0};
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, call_first, &called));
	OK(cuStreamAddCallback(s, call_second, &called, 0));
	OK(cuStreamSynchronize(s));
	assert_int_equal(called.n, 2);
	assert_int_equal(called.order[0], 1);
	assert_int_equal(called.order[1], 2);
	OK(cuStreamDestroy(s));
}

static void *thread_adds(void *arg) {
	struct fixture *f = arg;
	CUstream s;

	OK(cuCtxSetCurrent(f->context));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 8; i++) {
		run_add(f->add, s, 2000 + i, i);
	}
	OK(cuStreamDestroy(s));
	return NULL;
}

static void api_serves_many_threads(void **state) {
	struct fixture *f = *state;
	pthread_t threads[6];
	struct gate g;
	CUstream s;

	/* One of them waits for long: the others get their answers meanwhile. */
	gate_close(&g);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, thread_adds, f), 0);
	}
	gate_launch(&g, f->wait, s, 1);
	gate_open(&g);
	OK(cuStreamSynchronize(s));
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
	}
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost((void *)g.words));
}

/* ---- graphs ---- */

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

/* Each of these spoils a capture or is refused in it. */
static void api_spoils_captures_as_cuda_does(void **state) {
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
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

static void api_runs_kernels_of_libraries(void **state) {
	struct fixture *f = *state;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr d, counter;
	unsigned n, value = 9, got;
	void *params[] = {&d, &value};
	CUlaunchConfig config = {.gridDimX = 1,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1};
	const char *name;

	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&n, library));
	assert_int_equal(n, 5);
	OK(cuLibraryGetKernel(&kernel, library, "poke"));
	OK(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "poke");
	OK(cuKernelGetFunction(&function, kernel));
	assert_ptr_not_equal(function, f->poke);
	OK(cuMemAlloc(&d, 4));
	OK(cuLaunchKernelEx(&config, (CUfunction)kernel, params, NULL));
	OK(cuMemcpyDtoH(&got, d, 4));
	assert_int_equal(got, 9);
	OK(cuLibraryGetGlobal(&counter, NULL, library, "counter"));
	OK(cuMemcpyDtoH(&got, counter, 4));
	assert_int_equal(got, 41);
	assert_int_equal(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	OK(cuLibraryUnload(library));
	OK(cuMemFree(d));
}

static void api_refuses_bad_images_with_a_log(void **state) {
	static const struct {
		const char *text, *told;
	} bodies[] = {
		{"add.u32 %r0, %r1, %r2;", "%r2"}, /* one beyond the range */
		{"add.u32 %x, %r1, %r1;", "%x"},
		{"@%q add.u32 %r0, %r1, %r1;", "%q"},
		{"setp.eq.u32 %p|%q, %r0, %r1;", "%q"},
		{"st.global.v2.u32 [%rd1], {%r0, %r1};", "%rd1"},
		{"st.shared.v2.u32 [0], {%r0, %y};", "%y"},
		{"mov.u32 %r0, %nobody.x;", "%nobody"},
		{"mov.u32 %r0, nowhere;", "nowhere"},
		{"bra nowhere;", "nowhere"},
		{"frobnicate.u32 %r0, %r1;", "frobnicate"},
	};
	char log[256] = "", ptx[512];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule m;

	assert_int_equal(cuModuleLoadDataEx(&m,
					    ".version 7.5\n.target sm_75\n.address_size 64\n"
					    ".entry x() { add.u32 ",
					    2, options, values),
			 CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "4"));
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		snprintf(ptx, sizeof(ptx),
			 ".version 7.5\n.target sm_75\n.address_size 64\n.entry x() {\n"
			 ".reg .b32 %%r<2>; .reg .pred %%p;\n%s\nret;\n}\n",
			 bodies[i].text);
		log[0] = '\0';
		assert_int_equal(cuModuleLoadDataEx(&m, ptx, 2, options, values),
				 CUDA_ERROR_INVALID_PTX);
		assert_non_null(strstr(log, "line 6"));
		assert_non_null(strstr(log, bodies[i].told));
	}
	assert_int_equal(cuModuleLoad(&m, "/nowhere"), CUDA_ERROR_FILE_NOT_FOUND);
	assert_int_equal(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void api_checks_launches(void **state) {
	struct fixture *f = *state;
	CUdeviceptr d = 0;
	unsigned v = 0;
	void *params[] = {&d, &v}, *missing[] = {&d, NULL};
	int n;

	assert_int_equal(cuLaunchKernel(f->poke, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(
		cuLaunchCooperativeKernel(f->count, 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f->poke, 1024, 0));
	assert_int_equal(n, 2);
	OK(cuFuncSetAttribute(f->poke, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f->poke, 32, 100000));
	assert_int_equal(n, 2);
	OK(cuFuncSetAttribute(f->poke, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152));
}

/* What the shim rests on: a function found by name is the exported one. */
static void api_finds_exactly_the_exported_functions(void **state) {
	static const struct {
		const char *name;
		int version;
		cuuint64_t flags;
		const char *symbol;
	} cases[] = {
		{"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
		{"cuCtxCreate", 3020, 0, "cuCtxCreate_v2"},
		{"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
		{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
		{"cuLaunchKernel", 13000, 0, "cuLaunchKernel"},
		{"cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz"},
		{"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
		{"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
		{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
	};
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *p = &p;
	CUdriverProcAddressQueryResult status;

	assert_non_null(libcuda);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		OK(cuGetProcAddress(cases[i].name, &p, cases[i].version, cases[i].flags, &status));
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
		assert_ptr_equal(p, dlsym(libcuda, cases[i].symbol));
	}
	OK(cuGetProcAddress("cuMemAlloc", &p, 1000, 0, &status));
	assert_null(p);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress("cuNothing", &p, 13000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	dlclose(libcuda);
}

/* ---- contexts ---- */

static void api_keeps_a_stack_of_contexts(void **state) {
	struct fixture *f = *state;
	CUcontext second, got;
	CUdevice device;
	CUdeviceptr d;
	unsigned char uuid[2][16];
	unsigned flags;
	int active;

	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxPushCurrent(second));
	OK(cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	OK(cuMemAlloc(&d, 4));
	OK(cuCtxPopCurrent(&got));
	assert_ptr_equal(got, second);
	OK(cuCtxGetCurrent(&got));
	assert_ptr_equal(got, f->context);
	/* Memory belongs to its context. */
	assert_int_equal(cuMemcpyDtoH(&flags, d, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 1);
	OK(cuDevicePrimaryCtxRelease(1));
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDeviceGetUuid((CUuuid *)uuid[0], 0));
	OK(cuDeviceGetUuid((CUuuid *)uuid[1], 1));
	assert_memory_not_equal(uuid[0], uuid[1], 16);
}

static void api_gives_memory_back(void **state) {
	struct fixture *f = *state;
	size_t before, during, after, total;
	CUcontext other;
	CUdeviceptr d;

	OK(cuMemGetInfo(&before, &total));
	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuMemAlloc(&d, 1 << 20));
	OK(cuMemGetInfo(&during, &total));
	assert_int_equal(during, before - (1 << 20));
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context));
	OK(cuMemGetInfo(&after, &total));
	assert_int_equal(after, before);
	assert_int_equal(cuMemAlloc(&d, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc(&d, 0), CUDA_ERROR_INVALID_VALUE);
}

static void api_remembers_a_fault(void **state) {
	struct fixture *f = *state;
	CUcontext other;
	CUmodule m;
	CUdeviceptr d;
	struct fixture g = {0};
	unsigned value;

	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuModuleLoadData(&m, kernels_ptx));
	OK(cuModuleGetFunction(&g.poke, m, "poke"));
	OK(cuMemAlloc(&d, 4));
	poke(&g, NULL, d + 4096, 1);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemcpyDtoH(&value, d, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemAlloc(&d, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context)); /* the other context is well */
	run_add(f->add, NULL, 100, 1);
}

static void api_tells_misaligned_accesses(void **state) {
	struct fixture *f = *state, g = {0};
	CUcontext other;
	CUmodule m;
	CUdeviceptr d;

	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuModuleLoadData(&m, kernels_ptx));
	OK(cuModuleGetFunction(&g.poke, m, "poke"));
	OK(cuMemAlloc(&d, 16));
	poke(&g, NULL, d + 2, 1);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_MISALIGNED_ADDRESS);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context));
}

static void api_does_not_work_after_fork(void **state) {
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		CUdevice device;
		CUdeviceptr d;

		_exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuMemAlloc(&d, 4) == CUDA_ERROR_NOT_INITIALIZED
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(cuCtxSynchronize()); /* the parent goes on */
}

/* As measured on a real driver: what was retained before a reset has to be released after it. */
static void api_counts_holders_of_a_context_through_a_reset(void **state) {
	CUcontext context;
	unsigned flags;
	int active;

	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuDevicePrimaryCtxReset(1));
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 0);
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	for (int i = 2; i >= 0; i--) {
		OK(cuDevicePrimaryCtxRelease(1));
		OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
		assert_int_equal(active, i > 0);
	}
	assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(api_adds_small_and_large_vectors),
		cmocka_unit_test(api_counts_holders_of_a_context_through_a_reset),
		cmocka_unit_test(api_takes_parameters_in_a_buffer),
		cmocka_unit_test(api_copies_rectangles),
		cmocka_unit_test(api_sets_memory),
		cmocka_unit_test(api_refuses_copies_out_of_bounds),
		cmocka_unit_test(api_copies_pinned_memory_in_its_turn),
		cmocka_unit_test(api_tells_what_a_pointer_is),
		cmocka_unit_test(api_finds_variables_and_keeps_their_values),
		cmocka_unit_test(api_keeps_streams_apart_and_null_stream_between),
		cmocka_unit_test(api_orders_and_times_by_events),
		cmocka_unit_test(api_calls_host_functions_in_the_order_of_the_stream),
		cmocka_unit_test(api_serves_many_threads),
		cmocka_unit_test(api_replays_what_it_captured),
		cmocka_unit_test(api_keeps_a_graph_in_its_stream),
		cmocka_unit_test(api_spoils_captures_as_cuda_does),
		cmocka_unit_test(api_runs_kernels_of_libraries),
		cmocka_unit_test(api_refuses_bad_images_with_a_log),
		cmocka_unit_test(api_checks_launches),
		cmocka_unit_test(api_finds_exactly_the_exported_functions),
		cmocka_unit_test(api_keeps_a_stack_of_contexts),
		cmocka_unit_test(api_gives_memory_back),
		cmocka_unit_test(api_remembers_a_fault),
		cmocka_unit_test(api_tells_misaligned_accesses),
		cmocka_unit_test(api_does_not_work_after_fork),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
