/*
 * test-graph-copy.c: graphs copied and made ready for a partition. The driver is the test's.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/enforce/green.h"
#include "shim/graph-copy.h"

#define CONTEXT ((CUcontext)(uintptr_t)0x77)
#define GREEN	((CUcontext)(uintptr_t)0x78)
#define STREAM	((CUstream)(uintptr_t)0x79)
#define EXEC	((CUgraphExec)(uintptr_t)0x80)
#define PART	((struct partition *)(uintptr_t)0x81)

/* ---- the driver ---- */

struct CUgraphNode_st {
	CUgraph child; /* NULL: a host function */
};

struct CUgraph_st {
	CUgraphNode node; /* NULL: none */
	bool uncounted, unlisted;
};

static struct {
	CUcontext current;
	bool whole, no_stream;
	unsigned n_copies, n_uploads, n_streams;
	struct real table;
} driver;

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	return &driver.table;
}

bool __wrap_green_confines(const struct partition *p);
bool __wrap_green_confines(const struct partition *p) {
	assert_ptr_equal(p, PART);
	return !driver.whole;
}

CUcontext __wrap_green_context(struct partition *p);
CUcontext __wrap_green_context(struct partition *p) {
	assert_ptr_equal(p, PART);
	return GREEN;
}

CUstream __wrap_green_stream_new(struct partition *p, int priority);
CUstream __wrap_green_stream_new(struct partition *p, int priority) {
	assert_ptr_equal(p, PART);
	assert_int_equal(priority, 0);
	assert_ptr_equal(driver.current, driver.whole ? CONTEXT : GREEN);
	driver.n_streams += !driver.no_stream;
	return driver.no_stream ? NULL : STREAM;
}

static CUresult clone_graph(CUgraph *ret, CUgraph graph) {
	driver.n_copies++;
	*ret = graph;
	return CUDA_SUCCESS;
}

static CUresult destroy_graph(CUgraph graph) {
	(void)graph;
	driver.n_copies--;
	return CUDA_SUCCESS;
}

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n) {
	if (nodes ? graph->unlisted : graph->uncounted) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*n = graph->node != NULL;
	if (nodes) {
		nodes[0] = graph->node;
	}
	return CUDA_SUCCESS;
}

static CUresult get_type(CUgraphNode node, CUgraphNodeType *ret) {
	*ret = node->child ? CU_GRAPH_NODE_TYPE_GRAPH : CU_GRAPH_NODE_TYPE_HOST;
	return CUDA_SUCCESS;
}

static CUresult get_child(CUgraphNode node, CUgraph *ret) {
	*ret = node->child;
	return CUDA_SUCCESS;
}

static CUresult get_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *ret) {
	(void)node;
	(void)ret;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_params(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
	(void)node;
	(void)params;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph graph, unsigned long long flags) {
	(void)graph;
	(void)flags;
	*ret = EXEC;
	return CUDA_SUCCESS;
}

static CUresult upload(CUgraphExec exec, CUstream stream) {
	assert_ptr_equal(exec, EXEC);
	assert_ptr_equal(stream, STREAM);
	assert_int_equal(driver.n_streams, 1);
	driver.n_uploads++;
	return CUDA_SUCCESS;
}

static CUresult destroy_stream(CUstream stream) {
	assert_ptr_equal(stream, STREAM);
	driver.n_streams--;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context) {
	driver.current = context;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret) {
	*ret = driver.current;
	driver.current = NULL;
	return CUDA_SUCCESS;
}

static int setup(void **state) {
	(void)state;
	driver.current = NULL;
	driver.whole = driver.no_stream = false;
	driver.n_copies = driver.n_uploads = driver.n_streams = 0;
	driver.table = (struct real){
		.cuGraphClone = clone_graph,
		.cuGraphDestroy = destroy_graph,
		.cuGraphGetNodes = get_nodes,
		.cuGraphNodeGetType = get_type,
		.cuGraphChildGraphNodeGetGraph = get_child,
		.cuGraphKernelNodeGetParams_v2 = get_params,
		.cuGraphKernelNodeSetParams_v2 = set_params,
		.cuGraphInstantiateWithFlags = instantiate,
		.cuGraphUpload = upload,
		.cuStreamDestroy_v2 = destroy_stream,
		.cuCtxPushCurrent_v2 = push,
		.cuCtxPopCurrent_v2 = pop,
	};
	return 0;
}

/* ---- copies ---- */

static bool can_move(CUgraph graph) {
	bool plain;
	CUgraph copy = graph_copy_new(graph, 0, &plain);

	assert_int_equal(driver.n_copies, copy != NULL);
	graph_copy_free(copy);
	return copy;
}

static void graphs_that_are_known_can_move(void **state) {
	struct CUgraphNode_st host = {.child = NULL};
	struct CUgraph_st empty = {.node = NULL}, one = {.node = &host};

	(void)state;
	assert_true(can_move(&empty));
	assert_true(can_move(&one));
}

/* Their kernels would run anywhere. */
static void graphs_whose_nodes_cant_be_listed_cant_move(void **state) {
	struct CUgraphNode_st host = {.child = NULL};
	struct CUgraph_st uncounted = {.uncounted = true};
	struct CUgraph_st unlisted = {.node = &host, .unlisted = true};
	struct CUgraphNode_st inner = {.child = &unlisted};
	struct CUgraph_st outer = {.node = &inner};

	(void)state;
	assert_false(can_move(&uncounted));
	assert_false(can_move(&unlisted));
	assert_false(can_move(&outer));
	assert_null(graph_copy_instantiate(&unlisted, 0, PART, CONTEXT));
	assert_null(driver.current);
}

/* ---- uploads ---- */

static void uploads_go_through_a_stream_of_the_partition(void **state) {
	(void)state;
	graph_copy_upload(EXEC, PART, CONTEXT);
	driver.whole = true;
	graph_copy_upload(EXEC, PART, CONTEXT);
	assert_int_equal(driver.n_uploads, 2);
	assert_int_equal(driver.n_streams, 0);
	assert_null(driver.current);
}

static void what_cant_be_uploaded_is_left_to_the_launch(void **state) {
	(void)state;
	driver.no_stream = true;
	graph_copy_upload(EXEC, PART, CONTEXT);
	driver.no_stream = false;
	driver.table.cuGraphUpload = NULL; /* an older driver */
	graph_copy_upload(EXEC, PART, CONTEXT);
	assert_int_equal(driver.n_uploads, 0);
	assert_int_equal(driver.n_streams, 0);
	assert_null(driver.current);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(graphs_that_are_known_can_move, setup),
		cmocka_unit_test_setup(graphs_whose_nodes_cant_be_listed_cant_move, setup),
		cmocka_unit_test_setup(uploads_go_through_a_stream_of_the_partition, setup),
		cmocka_unit_test_setup(what_cant_be_uploaded_is_left_to_the_launch, setup),
	};

	return cmocka_run_group_tests_name("graph-copy", tests, NULL, NULL);
}
