/*
 * graph-copy.c: see graph-copy.h.
 */
#include "shim/graph-copy.h"

#include <stdlib.h>

#include "proto/terms.h"
#include "shim/enforce/green.h"

/* Of graphs in graphs. Deeper ones stay where they are. */
#define DEPTH_MAX 8

/* ---- nodes ---- */

static bool driver_can(const struct real *real) {
	return real->cuGraphClone && real->cuGraphDestroy && real->cuGraphGetNodes &&
	       real->cuGraphNodeGetType && real->cuGraphChildGraphNodeGetGraph &&
	       real->cuGraphKernelNodeGetParams_v2 && real->cuGraphKernelNodeSetParams_v2 &&
	       real->cuGraphInstantiateWithFlags;
}

/* Return: whether they are known. @ret: owned by the caller. */
static bool list_nodes(CUgraph graph, CUgraphNode **ret, size_t *ret_n) {
	const struct real *real = real_get();
	CUgraphNode *nodes;
	size_t n = 0;

	if (real->cuGraphGetNodes(graph, NULL, &n) != CUDA_SUCCESS) {
		return false;
	}
	nodes = calloc(n + 1, sizeof(*nodes));
	if (!nodes || (n > 0 && real->cuGraphGetNodes(graph, nodes, &n) != CUDA_SUCCESS)) {
		free(nodes);
		return false;
	}
	*ret = nodes;
	*ret_n = n;
	return true;
}

/* A way through the nodes of a graph. */
struct walk {
	CUcontext to; /* current, or NULL: only look whether the nodes can move */
	bool plain;   /* all so far: see graph_copy_new() */
};

static bool walk_graph(CUgraph graph, struct walk *walk, unsigned depth);

/* An array can be gone while the graph is still there. */
static bool is_linear_copy(CUgraphNode node) {
	const struct real *real = real_get();
	CUDA_MEMCPY3D params = {0};

	return real->cuGraphMemcpyNodeGetParams &&
	       real->cuGraphMemcpyNodeGetParams(node, &params) == CUDA_SUCCESS &&
	       params.srcMemoryType != CU_MEMORYTYPE_ARRAY &&
	       params.dstMemoryType != CU_MEMORYTYPE_ARRAY;
}

static bool move_kernel(CUgraphNode node, CUcontext to) {
	const struct real *real = real_get();
	CUDA_KERNEL_NODE_PARAMS params = {0};

	if (real->cuGraphKernelNodeGetParams_v2(node, &params) != CUDA_SUCCESS) {
		return false;
	}
	params.ctx = to;
	return real->cuGraphKernelNodeSetParams_v2(node, &params) == CUDA_SUCCESS;
}

/* Return: whether it can move, and has. */
static bool walk_node(CUgraphNode node, struct walk *walk, unsigned depth) {
	const struct real *real = real_get();
	CUgraphNodeType type;
	CUgraph child;

	if (real->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
		return false;
	}
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return !walk->to || move_kernel(node, walk->to);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return real->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
		       walk_graph(child, walk, depth + 1);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		walk->plain = walk->plain && is_linear_copy(node);
		return true;
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_HOST:
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return true;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		walk->plain = false;
		return true;
	default:
		return false;
	}
}

static bool walk_graph(CUgraph graph, struct walk *walk, unsigned depth) {
	CUgraphNode *nodes = NULL;
	size_t n = 0;
	bool ok = depth < DEPTH_MAX && list_nodes(graph, &nodes, &n);

	for (size_t i = 0; ok && i < n; i++) {
		ok = walk_node(nodes[i], walk, depth);
	}
	free(nodes);
	return ok;
}

/* Raises the priorities of all kernel nodes by @level, as far as the GPU goes. */
static bool raise_graph(CUgraph graph, int level, unsigned depth) {
	const struct real *real = real_get();
	CUgraphNode *nodes = NULL;
	size_t n = 0;
	bool ok = depth < DEPTH_MAX && list_nodes(graph, &nodes, &n);

	for (size_t i = 0; ok && i < n; i++) {
		CUkernelNodeAttrValue value = {{0}};
		CUgraphNodeType type;
		CUgraph child;

		ok = real->cuGraphNodeGetType(nodes[i], &type) == CUDA_SUCCESS;
		if (ok && type == CU_GRAPH_NODE_TYPE_KERNEL) {
			ok = real->cuGraphKernelNodeGetAttribute(nodes[i],
								 CU_LAUNCH_ATTRIBUTE_PRIORITY,
								 &value) == CUDA_SUCCESS;
			value.priority -= level;
			if (value.priority < -PROTO_TERMS_LEVEL_MAX) {
				value.priority = -PROTO_TERMS_LEVEL_MAX;
			}
			ok = ok && real->cuGraphKernelNodeSetAttribute(nodes[i],
								       CU_LAUNCH_ATTRIBUTE_PRIORITY,
								       &value) == CUDA_SUCCESS;
		} else if (ok && type == CU_GRAPH_NODE_TYPE_GRAPH) {
			ok = real->cuGraphChildGraphNodeGetGraph(nodes[i], &child) ==
				     CUDA_SUCCESS &&
			     raise_graph(child, level, depth + 1);
		}
	}
	free(nodes);
	return ok;
}

/* ---- copies ---- */

CUgraph graph_copy_new(CUgraph graph, unsigned long long flags, bool *ret_plain) {
	const struct real *real = real_get();
	struct walk walk = {.plain = true};
	CUgraph copy;

	if (!driver_can(real) || flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ||
	    real->cuGraphClone(&copy, graph) != CUDA_SUCCESS) {
		return NULL;
	}
	if (!walk_graph(copy, &walk, 0)) {
		return graph_copy_free(copy);
	}
	*ret_plain = walk.plain;
	return copy;
}

CUgraph graph_copy_free(CUgraph copy) {
	if (copy) {
		real_get()->cuGraphDestroy(copy);
	}
	return NULL;
}

bool graph_copy_has_priorities(unsigned long long flags) {
	const struct real *real = real_get();

	return flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
	       real->cuGraphKernelNodeGetAttribute && real->cuGraphKernelNodeSetAttribute;
}

/* Owned by the caller: a copy of @graph with its nodes at @level above their priorities. NULL: the
 * driver does not do it. */
static CUgraph raised_copy(CUgraph graph, unsigned level) {
	const struct real *real = real_get();
	CUgraph raised;

	if (real->cuGraphClone(&raised, graph) != CUDA_SUCCESS) {
		return NULL;
	}
	return raise_graph(raised, (int)level, 0) ? raised : graph_copy_free(raised);
}

/* What can't be raised runs at its own level. Return: instantiated, or NULL. */
static CUgraphExec instantiate_at(CUgraph copy, unsigned long long flags, unsigned level) {
	unsigned long long upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	CUgraph raised = level > 0 ? raised_copy(copy, level) : NULL;
	CUgraphExec exec;
	CUresult rc;

	rc = real_get()->cuGraphInstantiateWithFlags(&exec, raised ? raised : copy,
						     flags & ~upload);
	graph_copy_free(raised);
	return rc == CUDA_SUCCESS ? exec : NULL;
}

/* Makes the context of @p, a partition of @context, current. NULL: it can't be had. */
static CUcontext push_context(struct partition *p, CUcontext context) {
	CUcontext to = green_confines(p) ? green_context(p) : context;

	return to && real_get()->cuCtxPushCurrent_v2(to) == CUDA_SUCCESS ? to : NULL;
}

CUgraphExec graph_copy_instantiate(CUgraph copy, unsigned long long flags, struct partition *p,
				   CUcontext context) {
	struct walk walk = {.to = push_context(p, context)};
	CUgraphExec exec = NULL;
	CUcontext popped;

	if (!walk.to) {
		return NULL;
	}
	if (walk_graph(copy, &walk, 0)) {
		exec = instantiate_at(copy, flags,
				      graph_copy_has_priorities(flags) ? green_level(p) : 0);
	}
	real_get()->cuCtxPopCurrent_v2(&popped);
	return exec;
}

void graph_copy_upload(CUgraphExec exec, struct partition *p, CUcontext context) {
	const struct real *real = real_get();
	CUcontext popped;
	CUstream stream;

	if (!real->cuGraphUpload || !push_context(p, context)) {
		return;
	}
	/* One of its own: no capture can go on there, and the program waits for none. */
	stream = green_stream_new(p, 0);
	if (stream) {
		real->cuGraphUpload(exec, stream);
		real->cuStreamDestroy_v2(stream);
	}
	real->cuCtxPopCurrent_v2(&popped);
}
