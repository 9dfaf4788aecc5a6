/*
 * graphs.c: graphs of each kind: captured in each mode, made node by node, cloned, changed,
 * launched again.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { STEPS = 8 };

/* Steps of @c in @s, without taking account of them: they are only recorded. */
static void record_steps(struct chain *c, CUstream s) {
	struct chain recorded = *c;

	recorded.n_steps = 0;
	for (unsigned i = 0; i < STEPS; i++) {
		chain_step(&recorded, s);
	}
}

/* What a launch of that does to the values. */
static void count_steps(struct chain *c) {
	for (unsigned i = 1; i <= STEPS; i++) {
		c->want = c->want * 3 + i;
	}
	c->n_steps += STEPS;
}

static CUgraphExec instantiated(CUgraph graph) {
	CUgraphExec exec;

	CU(cuGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void run_graph(const char *name, CUgraphExec exec, struct chain *c, CUstream s) {
	for (unsigned i = 0; i < 6; i++) {
		CU(cuGraphLaunch(exec, s));
		count_steps(c);
		chain_step(c, s);
	}
	chain_tell(name, c, s);
}

static void capture_mode(const char *name, CUstreamCaptureMode mode) {
	struct chain c = chain_new(20000);
	CUstream s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CUgraphExec exec;
	CUgraph graph;

	CU(cuStreamBeginCapture(s, mode));
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	run_graph(name, exec, &c, s);
	run_graph(name, exec, &c, gpu_stream(CU_STREAM_DEFAULT));
	run_graph(name, exec, &c, NULL);
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
}

static void captured(void) {
	gpu_open();
	capture_mode("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
	capture_mode("thread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	capture_mode("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* Branches by events, copies and memsets. */
static void forked(void) {
	struct chain c, other;
	CUstream s, t;
	CUevent begin, end;
	CUgraphExec exec;
	CUgraph graph;
	unsigned *host;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate(&begin, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&end, CU_EVENT_DISABLE_TIMING));
	CU(cuMemAllocHost((void **)&host, sizeof(*host)));
	c = chain_new(20000);
	other = chain_new(20000);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CU(cuMemsetD32Async(other.p, 7, other.n, s));
	CU(cuEventRecord(begin, s));
	CU(cuStreamWaitEvent(t, begin, 0));
	record_steps(&other, t);
	record_steps(&c, s);
	CU(cuEventRecord(end, t));
	CU(cuStreamWaitEvent(s, end, 0));
	CU(cuMemcpyDtoHAsync(host, other.p + 400, sizeof(*host), s));
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	CU(cuGraphDestroy(graph));
	for (unsigned i = 0; i < 10; i++) {
		CU(cuGraphLaunch(exec, i % 2 ? s : t));
		count_steps(&c);
		other.want = 7;
		count_steps(&other);
		CU(cuStreamSynchronize(i % 2 ? s : t));
		TELL("%d ", *host == other.want);
	}
	chain_tell("main", &c, s);
	chain_tell("branch", &other, s);
}

static void several_at_once(void) {
	struct chain c[4];
	CUstream s[4];
	CUgraphExec exec[4];
	CUgraph graph;

	gpu_open();
	for (unsigned i = 0; i < 4; i++) {
		s[i] = gpu_stream(CU_STREAM_NON_BLOCKING);
		c[i] = chain_new(20000);
		CU(cuStreamBeginCapture(s[i], CU_STREAM_CAPTURE_MODE_RELAXED));
		record_steps(&c[i], s[i]);
		CU(cuStreamEndCapture(s[i], &graph));
		exec[i] = instantiated(graph);
	}
	for (unsigned k = 0; k < 8; k++) {
		for (unsigned i = 0; i < 4; i++) {
			CU(cuGraphLaunch(exec[i], s[i]));
			count_steps(&c[i]);
			chain_step(&c[i], s[i]);
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		chain_tell("one of four", &c[i], s[i]);
	}
}

/* The same graph in other streams, ordered by events; and destroyed while it runs. */
static void in_turns(void) {
	struct chain c;
	CUstream s[3];
	CUevent e;
	CUgraphExec exec;
	CUgraph graph;

	gpu_open();
	for (unsigned i = 0; i < 3; i++) {
		s[i] = gpu_stream(CU_STREAM_NON_BLOCKING);
	}
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c = chain_new(20000);
	CU(cuStreamBeginCapture(s[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	record_steps(&c, s[0]);
	CU(cuStreamEndCapture(s[0], &graph));
	for (unsigned i = 0; i < 12; i++) {
		exec = instantiated(graph);
		CU(cuGraphLaunch(exec, s[i % 3]));
		CU(cuGraphExecDestroy(exec));
		count_steps(&c);
		CU(cuEventRecord(e, s[i % 3]));
		CU(cuStreamWaitEvent(s[(i + 1) % 3], e, 0));
	}
	chain_tell("in turns", &c, s[0]);
}

/* What must not be done while a stream is captured, and what it is told then. */
static void forbidden(void) {
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	CUstream s, t;
	CUevent e;
	CUgraph graph = NULL;
	CUdeviceptr p;
	struct chain c;

	gpu_open();
	GPU_NEEDS(cuStreamIsCapturing);
	GPU_NEEDS(cuThreadExchangeStreamCaptureMode);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate(&e, 0));
	c = chain_new(CHAIN_N);
#define CAPTURE(forbidden_call)                                     \
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL)); \
	record_steps(&c, s);                                        \
	gpu_tell(#forbidden_call, (forbidden_call));                \
	CU(cuStreamIsCapturing(s, &status));                        \
	TELL("status %d\n", (int)status);                           \
	TELL_RESULT(cuStreamEndCapture(s, &graph));                 \
	TELL("graph %d\n", graph != NULL);                          \
	graph = NULL
	CAPTURE(cuStreamSynchronize(s));
	CAPTURE(cuStreamQuery(s));
	CAPTURE(cuCtxSynchronize());
	CAPTURE(cuMemAlloc(&p, 16));
	CAPTURE(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CAPTURE(cuEventQuery(e));
	CAPTURE(cuStreamEndCapture(t, &graph));
	CAPTURE(cuThreadExchangeStreamCaptureMode(&mode));
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CU(cuThreadExchangeStreamCaptureMode(&mode));
	TELL("mode %d\n", (int)mode);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CU(cuEventRecord(e, s));
	CU(cuStreamWaitEvent(t, e, 0));
	record_steps(&c, t);
	TELL_RESULT(cuStreamEndCapture(s, &graph)); /* unjoined */
	TELL_RESULT(cuStreamWaitEvent(t, e, 0));
	TELL_RESULT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	CU(cuEventRecord(e, s));
	chain_step(&c, s);
	chain_tell("afterwards", &c, s);
}

static void legacy_beside_capture(void) {
	struct chain c, other;
	CUgraphExec exec;
	CUgraph graph;
	CUstream s, blocking;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	blocking = gpu_stream(CU_STREAM_DEFAULT);
	c = chain_new(CHAIN_N);
	other = chain_new(CHAIN_N);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	chain_step(&other, NULL);
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	CU(cuGraphLaunch(exec, s));
	count_steps(&c);
	count_steps(&c);
	chain_tell("captured", &c, s);
	chain_tell("beside it", &other, NULL);
	CU(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, blocking);
	gpu_tell("the default stream", CHAIN_LAUNCH(cuLaunchKernel, &other, NULL));
	TELL_RESULT(cuStreamEndCapture(blocking, &graph));
}

/* Other threads work on, each way of capturing. */
static CUstreamCaptureMode beside_mode;
static struct chain beside;

static void *work_beside(void *data) {
	CUstream s = data;

	gpu_enter();
	for (unsigned i = 0; i < 40; i++) {
		chain_step(&beside, s);
	}
	return NULL;
}

static void capture_beside_thread(void) {
	struct chain c;
	CUgraphExec exec;
	CUgraph graph;
	CUstream s, t;
	pthread_t thread;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (beside_mode = 0; beside_mode < 3; beside_mode++) {
		c = chain_new(CHAIN_N);
		beside = chain_new(CHAIN_N);
		pthread_create(&thread, NULL, work_beside, t);
		CU(cuStreamBeginCapture(s, beside_mode));
		record_steps(&c, s);
		pthread_join(thread, NULL);
		CU(cuStreamEndCapture(s, &graph));
		exec = instantiated(graph);
		run_graph("captured", exec, &c, s);
		chain_tell("beside it", &beside, t);
	}
}

/* ---- nodes ---- */

static void nodes(void) {
	struct chain c;
	CUgraphNode list[STEPS];
	CUgraphNodeType type;
	CUgraph graph, clone;
	CUgraphExec exec;
	CUstream s;
	size_t n = 0;

	gpu_open();
	GPU_NEEDS(cuGraphGetNodes);
	GPU_NEEDS(cuGraphNodeGetType);
	GPU_NEEDS(cuGraphClone);
	GPU_NEEDS_AS(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2");
	GPU_NEEDS_AS(cuGraphKernelNodeSetParams, "cuGraphKernelNodeSetParams_v2");
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &graph));
	CU(cuGraphClone(&clone, graph));
	CU(cuGraphGetNodes(graph, NULL, &n));
	TELL("%zu nodes\n", n);
	n = STEPS;
	CU(cuGraphGetNodes(graph, list, &n));
	for (size_t i = 0; i < n; i++) {
		CUDA_KERNEL_NODE_PARAMS p;

		CU(cuGraphNodeGetType(list[i], &type));
		CU(cuGraphKernelNodeGetParams(list[i], &p));
		TELL("type %d, the kernel %d, %u blocks of %u\n", (int)type, p.func == gpu.step,
		     p.gridDimX, p.blockDimX);
		p.blockDimX = 64;
		p.gridDimX = CHAIN_N / 64;
		TELL_RESULT(cuGraphKernelNodeSetParams(list[i], &p));
	}
	exec = instantiated(graph);
	CU(cuGraphDestroy(graph));
	run_graph("changed", exec, &c, s);
	exec = instantiated(clone);
	run_graph("clone", exec, &c, s);
}

static void uploaded(void) {
	struct chain c;
	CUgraph graph;
	CUgraphExec exec;
	CUstream s;

	gpu_open();
	GPU_NEEDS(cuGraphUpload);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	CU(cuGraphUpload(exec, s));
	run_graph("uploaded", exec, &c, s);
	CU(cuGraphUpload(exec, s));
	run_graph("uploaded again", exec, &c, NULL);
	TELL_RESULT(cuGraphLaunch(NULL, s));
	TELL_RESULT(cuGraphExecDestroy(exec));
}

static void empty(void) {
	CUgraph graph;
	CUgraphExec exec;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	TELL_RESULT(cuGraphLaunch(exec, s));
	TELL_RESULT(cuStreamSynchronize(s));
}

/* Kernels, host functions and memsets, node by node, with a child graph. */
static unsigned n_called;

static void called(void *data) {
	(void)data;
	__atomic_add_fetch(&n_called, 1, __ATOMIC_SEQ_CST);
}

static void node_by_node(void) {
	CUgraphNode last = NULL, node;
	CUgraph graph, child;
	CUgraphExec exec;
	CUstream s;
	struct chain c;

	GPU_NEEDS(cuGraphCreate);
	CUresult (*add_kernel)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			       const CUDA_KERNEL_NODE_PARAMS *) =
		gpu_function("cuGraphAddKernelNode_v2");
	GPU_NEEDS(cuGraphAddHostNode);
	GPU_NEEDS(cuGraphAddChildGraphNode);
	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(20000);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &child));
	CU(cuGraphCreate(&graph, 0));
	for (unsigned i = 0; i < 3; i++) {
		CUDA_HOST_NODE_PARAMS host = {.fn = called};
		unsigned n = c.n, add = 0;
		void *params[] = {&c.p, &n, &add};
		CUDA_KERNEL_NODE_PARAMS kernel = {.func = gpu.step,
						  .gridDimX = (n + 127) / 128,
						  .gridDimY = 1,
						  .gridDimZ = 1,
						  .blockDimX = 128,
						  .blockDimY = 1,
						  .blockDimZ = 1,
						  .kernelParams = params};

		CU(cuGraphAddChildGraphNode(&node, graph, last ? &last : NULL, last != NULL,
					    child));
		CU(cuGraphAddHostNode(&last, graph, &node, 1, &host));
		CU(add_kernel(&node, graph, &last, 1, &kernel));
		last = node;
	}
	CU(cuGraphInstantiate(&exec, graph, 0));
	for (unsigned i = 0; i < 5; i++) {
		CU(cuGraphLaunch(exec, s));
		for (unsigned k = 0; k < 3; k++) {
			count_steps(&c);
			c.want *= 3;
		}
	}
	chain_tell("node by node", &c, s);
	TELL("%u calls\n", n_called);
}

static void host_function_captured(void) {
	CUgraph graph;
	CUgraphExec exec;
	CUstream s;
	CUresult r;
	struct chain c;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	r = cuLaunchHostFunc(s, called, NULL);
	if (r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
		guest_skip("the driver captures no host functions");
	}
	CU(r);
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	run_graph("with a call", exec, &c, s);
	TELL("%u calls\n", n_called);
}

static void updated(void) {
	CUgraphExecUpdateResultInfo info;
	CUgraph graph;
	CUgraphExec exec = NULL;
	CUstream s;
	struct chain c;

	GPU_NEEDS_AS(cuGraphExecUpdate, "cuGraphExecUpdate_v2");
	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (unsigned i = 0; i < 4; i++) {
		c = chain_new(CHAIN_N);
		CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
		record_steps(&c, s);
		CU(cuStreamEndCapture(s, &graph));
		if (exec) {
			TELL_RESULT(cuGraphExecUpdate(exec, graph, &info));
		} else {
			exec = instantiated(graph);
		}
		CU(cuGraphDestroy(graph));
		run_graph("updated", exec, &c, s);
	}
}

/* A graph launched while another stream is captured, and a graph in a graph. */
static void launched_in_capture(void) {
	CUgraph graph, outer;
	CUgraphExec exec;
	CUstream s, t;
	CUresult r;
	struct chain c;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	CU(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	record_steps(&c, s);
	CU(cuStreamEndCapture(s, &graph));
	exec = instantiated(graph);
	CU(cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED));
	run_graph("beside a capture", exec, &c, s);
	r = cuGraphLaunch(exec, t);
	gpu_tell("in a capture", r);
	gpu_tell("end", cuStreamEndCapture(t, &outer));
	if (r == CUDA_SUCCESS) {
		run_graph("in another", instantiated(outer), &c, s);
	}
}

const struct guest guests[] = {
	{"captured", captured},
	{"forked", forked},
	{"several-at-once", several_at_once},
	{"in-turns", in_turns},
	{"forbidden", forbidden},
	{"legacy-beside-capture", legacy_beside_capture},
	{"capture-beside-thread", capture_beside_thread},
	{"nodes", nodes},
	{"uploaded", uploaded},
	{"empty", empty},
	{"node-by-node", node_by_node},
	{"host-function-captured", host_function_captured},
	{"updated", updated},
	{"launched-in-capture", launched_in_capture},
	{NULL, NULL},
};
