/*
 * test-partition.c: the shim's partitions on the simulated driver: a set and a level each.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "shim/enforce/green.h"
#include "shim/graph.h"
#include "shim/place.h"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

static const struct smset whole;

static struct green *setup(void) {
	CUcontext context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	assert_non_null(green_get(context));
	return green_get(context);
}

static struct partition *make(struct green *g, const struct smset *set, unsigned level) {
	assert_int_equal(green_make(g, set, level, green_sms(g)), 0);
	assert_non_null(green_find(g, set, level));
	return green_find(g, set, level);
}

static int priority_in(struct partition *p, int own, CUgreenCtx *ret_green) {
	CUstream s = green_stream_new(p, own);
	int priority = 1;

	assert_non_null(s);
	OK(cuStreamGetPriority(s, &priority));
	OK(cuStreamGetGreenCtx(s, ret_green));
	OK(cuStreamDestroy_v2(s));
	return priority;
}

static void levels_of_a_set_share_its_green_context(void **state) {
	struct green *g = setup();
	struct smset set = smset_range(0, 2 * green_step(g));
	struct partition *low, *high;
	CUgreenCtx at_low, at_high;

	low = make(g, &set, 0);
	assert_null(green_find(g, &set, 3));
	high = make(g, &set, 3);
	assert_ptr_not_equal(low, high);
	assert_ptr_equal(green_find(g, &set, 0), low);
	assert_ptr_equal(green_owner(high), low);
	assert_true(green_confines(high));
	assert_ptr_equal(green_context(high), green_context(low));
	assert_int_equal(priority_in(low, 0, &at_low), 0);
	assert_int_equal(priority_in(high, 0, &at_high), -3);
	assert_non_null(at_low);
	assert_ptr_equal(at_low, at_high);
}

static void own_priorities_add_to_the_level(void **state) {
	struct green *g = setup();
	struct smset set = smset_range(0, green_step(g));
	struct partition *p = make(g, &set, 3);
	CUgreenCtx green;

	assert_int_equal(priority_in(p, -1, &green), -4);
	assert_int_equal(priority_in(p, -2, &green), -5);
	assert_int_equal(priority_in(p, -4, &green), -5); /* there is none beyond */
}

static void the_whole_gpu_has_levels(void **state) {
	struct green *g = setup();
	struct partition *p = make(g, &whole, 2);
	CUgreenCtx green;

	assert_false(green_confines(p));
	assert_null(green_context(p));
	assert_int_equal(priority_in(p, 0, &green), -2);
	assert_null(green);
}

/* ---- graphs ---- */

/* Priority of all nodes of the graph that was instantiated last. */
static int seen_priority;
static CUresult(CUDAAPI *instantiate)(CUgraphExec *, CUgraph, unsigned long long);

static CUresult CUDAAPI watch_instantiate(CUgraphExec *exec, CUgraph graph,
					  unsigned long long flags) {
	CUkernelNodeAttrValue value;
	CUgraphNode nodes[4];
	size_t n = 4;

	OK(cuGraphGetNodes(graph, nodes, &n));
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		OK(cuGraphKernelNodeGetAttribute(nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
		assert_true(i == 0 || value.priority == seen_priority);
		seen_priority = value.priority;
	}
	return instantiate(exec, graph, flags);
}

/* Two kernels of one block. */
static CUgraph capture(void) {
	CUfunction function;
	CUmodule module;
	CUgraph graph;
	CUstream s;

	OK(cuModuleLoadData(&module,
			    ".version 7.0\n.target sm_75\n.address_size 64\n"
			    ".visible .entry nothing() { ret; }\n"));
	OK(cuModuleGetFunction(&function, module, "nothing"));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned i = 0; i < 2; i++) {
		OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	}
	OK(cuStreamEndCapture(s, &graph));
	OK(cuStreamDestroy_v2(s));
	return graph;
}

static CUgraphExec make_exec(CUgraph graph, unsigned long long flags) {
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags(&exec, graph, flags));
	graph_instantiated(exec, graph, flags);
	assert_true(graph_can_move(graph_find(exec)));
	return exec;
}

static void run(CUgraphExec exec, struct partition *p) {
	CUstream s = green_stream_new(p, 0);

	assert_non_null(exec);
	OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	OK(cuStreamDestroy_v2(s));
}

/* The variant of @exec for @p. */
static CUgraphExec variant(CUgraphExec exec, struct partition *p) {
	struct graph_use use;
	CUcontext context;

	OK(cuCtxGetCurrent(&context));
	use = graph_use_begin(graph_find(exec), p, context, false);
	graph_use_end(&use);
	return use.exec;
}

/* Else the level of the stream that such a graph is launched into means nothing. */
static void levels_reach_nodes_with_priorities(void **state) {
	struct real *real = (struct real *)(uintptr_t)real_get();
	struct green *g = setup();
	struct smset set = smset_range(0, green_step(g));
	struct partition *first = make(g, &whole, 5), *second = make(g, &whole, 2),
			 *none = make(g, &whole, 0), *confined = make(g, &set, 3);
	CUgraphExec plain, nodes;
	CUgraph graph;

	place_activate();
	graph = capture();
	plain = make_exec(graph, 0);
	nodes = make_exec(graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	instantiate = real->cuGraphInstantiateWithFlags;
	real->cuGraphInstantiateWithFlags = watch_instantiate;
	assert_false(graph_needs_partition(graph_find(plain), first));
	assert_true(graph_needs_partition(graph_find(plain), confined));
	assert_false(graph_needs_partition(graph_find(nodes), none));
	assert_true(graph_needs_partition(graph_find(nodes), first));
	run(variant(plain, confined), confined);
	assert_int_equal(seen_priority, 0);
	run(variant(nodes, first), first);
	assert_int_equal(seen_priority, -5);
	run(variant(nodes, second), second);
	assert_int_equal(seen_priority, -2);
	run(variant(nodes, confined), confined);
	assert_int_equal(seen_priority, -3);
	/* What was made is kept. */
	seen_priority = 1;
	run(variant(nodes, first), first);
	assert_int_equal(seen_priority, 1);
	assert_ptr_not_equal(variant(nodes, first), variant(nodes, second));
	real->cuGraphInstantiateWithFlags = instantiate;
	graph_exec_destroying(plain);
	graph_exec_destroying(nodes);
	OK(cuGraphExecDestroy(plain));
	OK(cuGraphExecDestroy(nodes));
	OK(cuGraphDestroy(graph));
}

/* ---- sets ---- */

/* Sets may overlap; what is no row of whole groups, or of another GPU, is refused. */
static void sets_may_overlap(void **state) {
	struct green *g = setup();
	struct smset a = smset_range(0, 2 * green_step(g)),
		     b = smset_range(green_step(g), 2 * green_step(g)), odd = smset_range(1, 2);

	assert_ptr_not_equal(green_owner(make(g, &a, 1)), green_owner(make(g, &b, 1)));
	assert_int_equal(green_make(g, &odd, 1, green_sms(g)), -EINVAL);
	assert_null(green_find(g, &odd, 1));
	assert_int_equal(green_make(g, &a, 0, green_sms(g) + 1), -EINVAL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_of_a_set_share_its_green_context),
		cmocka_unit_test(own_priorities_add_to_the_level),
		cmocka_unit_test(the_whole_gpu_has_levels),
		cmocka_unit_test(levels_reach_nodes_with_priorities),
		cmocka_unit_test(sets_may_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
