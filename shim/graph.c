/*
 * graph.c: see graph.h.
 */
#include "shim/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/terms.h"
#include "shim/base/table.h"
#include "shim/enforce/green.h"
#include "shim/place.h"
#include "shim/state.h"

/* Of graphs in graphs. Deeper ones stay where they are. */
#define DEPTH_MAX 8

/* What runs in one partition. */
struct part {
	struct partition *partition; /* or the one that stands for its set, see green_owner() */
	CUgraphExec exec;
	struct part *next;
};

struct graph {
	CUgraphExec exec; /* the program's; 0: the entry is free */
	CUgraph copy;	  /* owned; NULL: can't move */
	unsigned long long flags;
	struct part *parts; /* owned */
	_Atomic bool can_move;
	struct graph *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table execs; /* by the program's exec; changed under the lock, as is all below */
static struct graph *graphs;

/* ---- copies; with the lock held, inside state_enter() ---- */

static bool driver_can(const struct real *real) {
	return real->cuGraphClone && real->cuGraphDestroy && real->cuGraphGetNodes &&
	       real->cuGraphNodeGetType && real->cuGraphChildGraphNodeGetGraph &&
	       real->cuGraphKernelNodeGetParams_v2 && real->cuGraphKernelNodeSetParams_v2 &&
	       real->cuGraphInstantiateWithFlags;
}

/* Owned by the caller. NULL: none, or an error. */
static CUgraphNode *list_nodes(CUgraph graph, size_t *ret_n) {
	const struct real *real = real_get();
	CUgraphNode *nodes;
	size_t n = 0;

	if (real->cuGraphGetNodes(graph, NULL, &n) != CUDA_SUCCESS || n == 0) {
		return NULL;
	}
	nodes = calloc(n, sizeof(*nodes));
	if (nodes && real->cuGraphGetNodes(graph, nodes, &n) != CUDA_SUCCESS) {
		free(nodes);
		return NULL;
	}
	*ret_n = n;
	return nodes;
}

static bool move_graph(CUgraph graph, CUcontext to, unsigned depth);

/* @to, which is current, or NULL: only say whether the node can move. */
static bool move_node(CUgraphNode node, CUcontext to, unsigned depth) {
	const struct real *real = real_get();
	CUDA_KERNEL_NODE_PARAMS params = {0};
	CUgraphNodeType type;
	CUgraph child;

	if (real->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
		return false;
	}
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (!to) {
			return true;
		}
		if (real->cuGraphKernelNodeGetParams_v2(node, &params) != CUDA_SUCCESS) {
			return false;
		}
		params.ctx = to;
		return real->cuGraphKernelNodeSetParams_v2(node, &params) == CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return real->cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
		       move_graph(child, to, depth + 1);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_HOST:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return true;
	default:
		return false;
	}
}

static bool move_graph(CUgraph graph, CUcontext to, unsigned depth) {
	CUgraphNode *nodes;
	size_t n = 0;
	bool ok = true;

	if (depth >= DEPTH_MAX) {
		return false;
	}
	nodes = list_nodes(graph, &n);
	for (size_t i = 0; ok && nodes && i < n; i++) {
		ok = move_node(nodes[i], to, depth);
	}
	free(nodes);
	return ok;
}

/* Raises the priorities of all kernel nodes by @level, as far as the GPU goes. */
static bool raise_graph(CUgraph graph, int level, unsigned depth) {
	const struct real *real = real_get();
	CUgraphNode *nodes;
	size_t n = 0;
	bool ok = depth < DEPTH_MAX;

	nodes = ok ? list_nodes(graph, &n) : NULL;
	for (size_t i = 0; ok && nodes && i < n; i++) {
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

static void drop_parts(struct graph *g) {
	struct part *p, *next;

	for (p = g->parts; p; p = next) {
		next = p->next;
		real_get()->cuGraphExecDestroy(p->exec);
		free(p);
	}
	g->parts = NULL;
}

static void drop_copy(struct graph *g) {
	atomic_store(&g->can_move, false);
	drop_parts(g);
	if (g->copy) {
		real_get()->cuGraphDestroy(g->copy);
	}
	g->copy = NULL;
}

static void take_copy(struct graph *g, CUgraph graph) {
	const struct real *real = real_get();

	if (!driver_can(real) || g->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ||
	    real->cuGraphClone(&g->copy, graph) != CUDA_SUCCESS) {
		g->copy = NULL;
		return;
	}
	if (!move_graph(g->copy, NULL, 0)) {
		drop_copy(g);
		return;
	}
	atomic_store(&g->can_move, true);
}

/* ---- what the program does ---- */

static struct graph *find_free(void) {
	struct graph *g = graphs;

	while (g && g->exec) {
		g = g->next;
	}
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g) {
			g->next = graphs;
			graphs = g;
		}
	}
	return g;
}

void graph_instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
	struct graph *g;
	int token;

	if (!place_active()) {
		return;
	}
	token = state_enter_locked(&lock);
	g = find_free();
	if (g && table_put(&execs, (uintptr_t)exec, g) == 0) {
		g->exec = exec;
		g->flags = flags;
		take_copy(g, graph);
	}
	state_leave_locked(&lock, token);
}

void graph_updated(CUgraphExec exec, CUgraph graph) {
	struct graph *g = table_get(&execs, (uintptr_t)exec);
	int token;

	if (!g) {
		return;
	}
	token = state_enter_locked(&lock);
	drop_copy(g);
	if (graph) {
		take_copy(g, graph);
	}
	state_leave_locked(&lock, token);
}

void graph_exec_destroying(CUgraphExec exec) {
	struct graph *g = table_get(&execs, (uintptr_t)exec);
	int token;

	if (!g) {
		return;
	}
	token = state_enter_locked(&lock);
	table_take(&execs, (uintptr_t)exec);
	drop_copy(g);
	g->exec = NULL;
	state_leave_locked(&lock, token);
}

bool graph_can_move(CUgraphExec exec) {
	const struct graph *g = table_get(&execs, (uintptr_t)exec);

	return g && atomic_load(&g->can_move);
}

/* ---- partitions ---- */

/* Whether the level of its streams is not enough: its nodes have priorities of their own. */
static bool has_node_priorities(const struct graph *g) {
	const struct real *real = real_get();

	return g->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
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
	if (!raise_graph(raised, (int)level, 0)) {
		real->cuGraphDestroy(raised);
		raised = NULL;
	}
	return raised;
}

/* What can't be raised runs at its own level. Return: instantiated, or NULL. */
static CUgraphExec instantiate_at(const struct graph *g, unsigned level) {
	unsigned long long upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	CUgraph raised = level > 0 ? raised_copy(g->copy, level) : NULL;
	const struct real *real = real_get();
	CUgraphExec exec;
	CUresult rc;

	rc = real->cuGraphInstantiateWithFlags(&exec, raised ? raised : g->copy,
					       g->flags & ~upload);
	if (raised) {
		real->cuGraphDestroy(raised);
	}
	return rc == CUDA_SUCCESS ? exec : NULL;
}

/* Return: the graph instantiated for @p, or NULL. */
static CUgraphExec instantiate(struct graph *g, struct partition *p) {
	unsigned level = has_node_priorities(g) ? green_level(p) : 0;
	const struct real *real = real_get();
	CUcontext context = NULL, popped;
	CUgraphExec exec = NULL;

	if (green_confines(p)) {
		context = green_context(p);
	} else {
		real->cuCtxGetCurrent(&context);
	}
	if (!context || real->cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) {
		return NULL;
	}
	if (move_graph(g->copy, context, 0)) {
		exec = instantiate_at(g, level);
	}
	real->cuCtxPopCurrent_v2(&popped);
	return exec;
}

static CUgraphExec find_part(struct graph *g, struct partition *p) {
	struct part *part = g->parts;

	while (part && part->partition != p) {
		part = part->next;
	}
	if (part || !g->copy) {
		return part ? part->exec : NULL;
	}
	part = calloc(1, sizeof(*part));
	if (!part) {
		return NULL;
	}
	part->partition = p;
	part->exec = instantiate(g, p);
	if (!part->exec) {
		free(part);
		drop_copy(g); /* what can't be had once is not tried at each launch */
		return NULL;
	}
	part->next = g->parts;
	g->parts = part;
	return part->exec;
}

bool graph_needs_partition(CUgraphExec exec, struct partition *p) {
	const struct graph *g = table_get(&execs, (uintptr_t)exec);

	return g && atomic_load(&g->can_move) &&
	       (green_confines(p) || (green_level(p) > 0 && has_node_priorities(g)));
}

CUgraphExec graph_in_partition(CUgraphExec exec, struct partition *p) {
	struct graph *g = table_get(&execs, (uintptr_t)exec);
	CUgraphExec ret;
	int token;

	if (!g) {
		return NULL;
	}
	token = state_enter_locked(&lock);
	/* Where nodes have no priorities the level is the stream's. */
	ret = find_part(g, has_node_priorities(g) ? p : green_owner(p));
	state_leave_locked(&lock, token);
	return ret;
}

void graph_context_destroying(void) {
	int token;

	token = state_enter_locked(&lock);
	for (struct graph *g = graphs; g; g = g->next) {
		if (g->parts) {
			drop_parts(g);
		}
	}
	state_leave_locked(&lock, token);
}

void graph_after_fork(void) {
	/* What the parent knows is left where it is. */
	pthread_mutex_init(&lock, NULL);
	execs = TABLE_NULL;
	graphs = NULL;
}
