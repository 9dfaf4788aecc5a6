/*
 * test-api-green.c: the simulated driver, as one process sees it: parts of a GPU.
 */
#include "api.h"
#include "kernels.h"

/* Two of the GPU's four SMs each. */
struct halves {
	CUgreenCtx green[2];
	CUstream stream[2];
	unsigned sms[2]; /* as bits */
};

/* The SMs, as bits, that blocks run on which @launch starts; there is time enough for all. */
static unsigned sms_of(const struct fixture *f,
		       void (*launch)(const struct fixture *f, void *data, struct gate *g),
		       void *data) {
	unsigned n = 0, sms = 0;
	struct gate g;

	gate_close(&g);
	launch(f, data, &g);
	gate_open(&g);
	OK(cuCtxSynchronize());
	n = g.words[1];
	assert_int_equal(n, 8);
	for (unsigned i = 0; i < n; i++) {
		sms |= 1u << g.words[2 + i];
	}
	OK(cuMemFreeHost((void *)g.words));
	return sms;
}

static void launch_into(const struct fixture *f, void *stream, struct gate *g) {
	gate_launch(g, f->wait, stream, 8);
}

static CUgreenCtx green_of(CUdevResource *groups, unsigned n) {
	CUdevResourceDesc desc;
	CUgreenCtx green;

	OK(cuDevResourceGenerateDesc(&desc, groups, n));
	OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

static void make_halves(struct halves *h, const struct fixture *f) {
	CUdevResource all, rest, groups[4];
	unsigned n = 4;

	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	assert_int_equal(all.sm.smCount, 4);
	OK(cuDevSmResourceSplitByCount(groups, &n, &all, &rest,
				       CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 1));
	assert_int_equal(n, 2);
	assert_int_equal(groups[0].sm.smCount, 2);
	assert_int_equal(rest.sm.smCount, 0);
	for (unsigned i = 0; i < 2; i++) {
		h->green[i] = green_of(&groups[i], 1);
		OK(cuGreenCtxStreamCreate(&h->stream[i], h->green[i], CU_STREAM_NON_BLOCKING, 0));
		h->sms[i] = sms_of(f, launch_into, h->stream[i]);
		assert_int_equal(__builtin_popcount(h->sms[i]), 2);
	}
	assert_int_equal(h->sms[0] | h->sms[1], 15);
}

static void free_halves(struct halves *h) {
	for (unsigned i = 0; i < 2; i++) {
		OK(cuStreamDestroy(h->stream[i]));
		OK(cuGreenCtxDestroy(h->green[i]));
	}
}

static void api_keeps_kernels_in_their_green_context(void **state) {
	const struct fixture *f = *state;
	CUdevResource all, rest, groups[4];
	CUgreenCtx whole, of;
	struct halves h;
	unsigned n = 4;
	CUstream s;

	make_halves(&h, f);
	assert_int_equal(sms_of(f, launch_into, NULL), 15);
	OK(cuStreamGetGreenCtx(h.stream[1], &of));
	assert_ptr_equal(of, h.green[1]);
	OK(cuStreamGetGreenCtx(NULL, &of));
	assert_null(of);

	/* Groups can be put together, each once. */
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(groups, &n, &all, &rest,
				       CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 2));
	whole = green_of(groups, 2);
	OK(cuGreenCtxStreamCreate(&s, whole, CU_STREAM_NON_BLOCKING, -1));
	assert_int_equal(sms_of(f, launch_into, s), 15);
	OK(cuStreamDestroy(s));
	OK(cuGreenCtxDestroy(whole));
	free_halves(&h);
}

static void api_refuses_parts_that_cannot_be(void **state) {
	CUdevResource all, rest, groups[4], twice[2];
	CUdevResourceDesc desc;
	unsigned n = 4;
	CUgreenCtx g;
	CUstream s;

	(void)state;
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	/* Eight SMs at least, for clusters, and there are four. */
	assert_int_equal(cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, 1),
			 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	OK(cuDevSmResourceSplitByCount(groups, &n, &all, &rest,
				       CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 2));
	twice[0] = twice[1] = groups[0];
	assert_int_equal(cuDevResourceGenerateDesc(&desc, twice, 2),
			 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	OK(cuDevResourceGenerateDesc(&desc, groups, 1));
	assert_int_equal(cuGreenCtxCreate(&g, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGreenCtxCreate(&g, desc, 1, CU_GREEN_CTX_DEFAULT_STREAM),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuGreenCtxCreate(&g, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	assert_int_equal(cuGreenCtxStreamCreate(&s, g, CU_STREAM_DEFAULT, 0),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuGreenCtxDestroy(g));
}

struct replay {
	CUgraph graph;
	CUstream stream;
	volatile uint32_t *words;
};

static void launch_graph(const struct fixture *f, void *data, struct gate *g) {
	struct replay *replay = data;
	CUgraphExec exec;

	(void)f;
	g->words[0] = 1; /* the graph's kernel has a gate of its own, open for ever */
	OK(cuGraphInstantiateWithFlags(&exec, replay->graph, 0));
	OK(cuGraphLaunch(exec, replay->stream));
	OK(cuCtxSynchronize());
	OK(cuGraphExecDestroy(exec));
	for (unsigned i = 0; i < 9; i++) {
		g->words[1 + i] = replay->words[1 + i];
	}
	replay->words[1] = 0;
}

static CUgraphNode first_node(CUgraph graph) {
	CUgraphNode node;
	size_t n = 1;

	OK(cuGraphGetNodes(graph, &node, &n));
	return node;
}

/* A kernel node has the SMs of the context that it names, if that is current when it is told. */
static void api_keeps_nodes_in_the_context_they_name(void **state) {
	const struct fixture *f = *state;
	CUDA_KERNEL_NODE_PARAMS params;
	CUcontext context, popped;
	struct replay replay;
	struct halves h;
	struct gate g;
	CUgraph copy;
	CUstream s;

	make_halves(&h, f);
	gate_close(&g);
	gate_open(&g);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gate_launch(&g, f->wait, s, 8);
	OK(cuStreamEndCapture(s, &replay.graph));
	replay.words = g.words;
	replay.stream = h.stream[0];
	assert_int_equal(sms_of(f, launch_graph, &replay), 15);

	OK(cuGraphClone(&copy, replay.graph));
	OK(cuGraphDestroy(replay.graph));
	replay.graph = copy;
	OK(cuCtxFromGreenCtx(&context, h.green[1]));
	OK(cuGraphKernelNodeGetParams(first_node(copy), &params));
	assert_ptr_equal(params.func, f->wait);
	params.ctx = context;
	OK(cuGraphKernelNodeSetParams(first_node(copy), &params));
	assert_int_equal(sms_of(f, launch_graph, &replay), 15);
	OK(cuCtxPushCurrent(context));
	OK(cuGraphKernelNodeSetParams(first_node(copy), &params));
	OK(cuCtxPopCurrent(&popped));
	assert_int_equal(sms_of(f, launch_graph, &replay), h.sms[1]);
	replay.stream = s;
	assert_int_equal(sms_of(f, launch_graph, &replay), h.sms[1]);

	OK(cuGraphDestroy(copy));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost((void *)g.words));
	free_halves(&h);
}

/* Behind the streams of one green context, by either of its names, or of the primary one's all. */
static void api_records_events_behind_a_green_context(void **state) {
	const struct fixture *f = *state;
	CUevent of[2], all, alias;
	CUcontext context;
	struct halves h;
	struct gate g;

	make_halves(&h, f);
	OK(cuCtxFromGreenCtx(&context, h.green[1]));
	OK(cuEventCreate(&of[0], CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&of[1], CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&all, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&alias, CU_EVENT_DISABLE_TIMING));
	gate_close(&g);
	gate_launch(&g, f->wait, h.stream[1], 1);
	OK(cuGreenCtxRecordEvent(h.green[0], of[0]));
	OK(cuGreenCtxRecordEvent(h.green[1], of[1]));
	OK(cuCtxRecordEvent(context, alias));
	OK(cuCtxRecordEvent(f->context, all));
	OK(cuEventSynchronize(of[0]));
	assert_int_equal(cuEventQuery(of[1]), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(alias), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(all), CUDA_ERROR_NOT_READY);
	gate_open(&g);
	OK(cuEventSynchronize(all));
	OK(cuEventSynchronize(alias));
	OK(cuEventSynchronize(of[1]));
	OK(cuEventDestroy(of[0]));
	OK(cuEventDestroy(of[1]));
	OK(cuEventDestroy(all));
	OK(cuEventDestroy(alias));
	OK(cuMemFreeHost((void *)g.words));
	free_halves(&h);
}

/* Green contexts are parts of the primary one. */
static int setup(void **state) {
	static struct fixture f;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&f.context, 0));
	OK(cuCtxSetCurrent(f.context));
	OK(cuModuleLoadData(&f.module, kernels_ptx));
	OK(cuModuleGetFunction(&f.wait, f.module, "wait"));
	*state = &f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;

	OK(cuModuleUnload(f->module));
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_keeps_kernels_in_their_green_context),
		api_test(api_refuses_parts_that_cannot_be),
		api_test(api_records_events_behind_a_green_context),
		api_test(api_keeps_nodes_in_the_context_they_name),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
