/*
 * api-node.c: what a graph consists of: listing nodes, copying graphs, and the parameters of kernel
 * nodes, of which the context can be changed and nothing else.
 *
 * As measured on an H200 with driver 580, a kernel node keeps to the SMs of a green context only if
 * that is both what the parameters name and the current context when they are set.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/driver.h"

EXPORT CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes) {
	size_t n = 0;

	if (!hGraph || hGraph->tag != DRIVER_GRAPH || !numNodes) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (CUgraphNode node = hGraph->nodes; nodes && node && n < *numNodes; node = node->next) {
		nodes[n++] = node;
	}
	*numNodes = nodes ? n : hGraph->n_nodes;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
	if (!hNode || !type) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*type = hNode->type;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph) {
	if (!hGraph || hGraph->tag != DRIVER_GRAPH) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	graph_free(hGraph);
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
	CUgraph g;

	if (!phGraphClone || !originalGraph || originalGraph->tag != DRIVER_GRAPH) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	g->tag = DRIVER_GRAPH;
	g->last = &g->nodes;
	for (CUgraphNode from = originalGraph->nodes; from; from = from->next) {
		CUgraphNode node = malloc(sizeof(*node) + from->size);

		if (!node) {
			graph_free(g);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(node, from, sizeof(*node) + from->size);
		node->next = NULL;
		node->params = NULL;
		*g->last = node;
		g->last = &node->next;
		g->n_nodes++;
	}
	*phGraphClone = g;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph) {
	(void)hNode, (void)phGraph;
	return CUDA_ERROR_INVALID_VALUE; /* no graphs in graphs */
}

static CUmemorytype memory_type(uint32_t place) {
	return place == WIRE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

/* Of copies from the program's own memory the bytes are kept, and not where they were. */
EXPORT CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams) {
	const struct wire_copy *q;

	if (!hNode || hNode->type != CU_GRAPH_NODE_TYPE_MEMCPY || !nodeParams) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	q = (const struct wire_copy *)hNode->packet;
	*nodeParams = (CUDA_MEMCPY3D){
		.srcMemoryType = memory_type(q->from),
		.srcHost = (const void *)(q->from == WIRE_HOST ? q->source : 0),
		.srcDevice = q->from == WIRE_DEVICE ? q->source : 0,
		.srcPitch = q->source_pitch,
		.dstMemoryType = memory_type(q->to),
		.dstHost = (void *)(q->to == WIRE_HOST ? q->target : 0),
		.dstDevice = q->to == WIRE_DEVICE ? q->target : 0,
		.dstPitch = q->target_pitch,
		.WidthInBytes = q->width,
		.Height = q->height,
		.Depth = 1,
	};
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode,
						   CUDA_KERNEL_NODE_PARAMS *nodeParams) {
	struct wire_launch *q;

	if (!hNode || hNode->type != CU_GRAPH_NODE_TYPE_KERNEL || !nodeParams) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	q = (struct wire_launch *)hNode->packet;
	if (!hNode->params) {
		hNode->params = calloc(hNode->function->n_params + 1, sizeof(*hNode->params));
		if (!hNode->params) {
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	for (size_t i = 0; i < hNode->function->n_params; i++) {
		hNode->params[i] = q->params + hNode->function->params[i].offset;
	}
	*nodeParams = (CUDA_KERNEL_NODE_PARAMS){
		.func = hNode->function,
		.gridDimX = q->grid[0],
		.gridDimY = q->grid[1],
		.gridDimZ = q->grid[2],
		.blockDimX = q->block[0],
		.blockDimY = q->block[1],
		.blockDimZ = q->block[2],
		.sharedMemBytes = q->shared_bytes,
		.kernelParams = hNode->params,
		.ctx = hNode->context ? hNode->context : hNode->function->module->context,
	};
	return CUDA_SUCCESS;
}

/* All but the context. */
static bool same_work(const CUDA_KERNEL_NODE_PARAMS *a, const CUDA_KERNEL_NODE_PARAMS *b) {
	return a->func == b->func && a->gridDimX == b->gridDimX && a->gridDimY == b->gridDimY &&
	       a->gridDimZ == b->gridDimZ && a->blockDimX == b->blockDimX &&
	       a->blockDimY == b->blockDimY && a->blockDimZ == b->blockDimZ &&
	       a->sharedMemBytes == b->sharedMemBytes && a->kernelParams == b->kernelParams &&
	       a->extra == b->extra && a->kern == b->kern;
}

EXPORT CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode,
						   const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
	CUDA_KERNEL_NODE_PARAMS now;
	struct wire_launch *q;
	CUcontext current;
	CUresult r = driver_current(&current);

	if (r == CUDA_SUCCESS) {
		r = cuGraphKernelNodeGetParams(hNode, &now);
	}
	if (r != CUDA_SUCCESS || !nodeParams) {
		return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if (!same_work(&now, nodeParams)) {
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	q = (struct wire_launch *)hNode->packet;
	hNode->context = nodeParams->ctx ? nodeParams->ctx : current;
	q->part = hNode->context == current && current->green ? current->green->id : 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
						      CUkernelNodeAttrValue *value_out) {
	if (!hNode || hNode->type != CU_GRAPH_NODE_TYPE_KERNEL || !value_out ||
	    attr != CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	*value_out = (CUkernelNodeAttrValue){.priority = hNode->priority};
	return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
						      const CUkernelNodeAttrValue *value) {
	if (!hNode || hNode->type != CU_GRAPH_NODE_TYPE_KERNEL || !value ||
	    attr != CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	hNode->priority = value->priority > 0 ? 0 : value->priority < -5 ? -5 : value->priority;
	return CUDA_SUCCESS;
}
