/*
 * network.cu: what the Python probes need in C (libnetwork.so).
 *
 * sleeper_*: sleeper.h.
 * graph_*: executable graphs of one captured graph, their kernels in a set of SMs.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <string.h>

#include "sleeper.h"

#define NODES_MAX 8192

static size_t kernel_nodes(CUgraph graph, CUgraphNode *kernels, size_t *ret_others) {
	static CUgraphNode nodes[NODES_MAX];
	size_t n = NODES_MAX, found = 0;
	CUgraphNodeType type;

	CHECK(cuGraphGetNodes(graph, nodes, &n));
	for (size_t i = 0; i < n; i++) {
		CHECK(cuGraphNodeGetType(nodes[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
			kernels[found++] = nodes[i];
		}
	}
	*ret_others = n - found;
	return found;
}

static CUcontext make_set(unsigned n_sms) {
	CUdevResource all, group, rest;
	CUdevResourceDesc desc;
	CUcontext context;
	CUgreenCtx green;
	CUdevice device;
	unsigned n = 1;

	CHECK(cuCtxGetDevice(&device));
	CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&group, &n, &all, &rest, 0, n_sms));
	CHECK(cuDevResourceGenerateDesc(&desc, &group, 1));
	CHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(cuCtxFromGreenCtx(&context, green));
	return context;
}

static size_t free_bytes(void) {
	size_t free_now, total;

	CHECK(cuMemGetInfo(&free_now, &total));
	return free_now;
}

/* An executable graph of @graph on @n_sms (0: as captured), uploaded; prints what it cost. */
extern "C" CUgraphExec graph_exec(CUgraph graph, unsigned n_sms) {
	static CUgraphNode nodes[NODES_MAX];
	CUcontext context = n_sms ? make_set(n_sms) : NULL;
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraph clone;
	CUgraphExec exec;
	size_t before = free_bytes(), n, others, refused = 0;
	int error = 0;
	double begin = now_us(), named;
	cudaStream_t stream;

	CHECK(cuGraphClone(&clone, graph));
	n = kernel_nodes(clone, nodes, &others);
	if (context) {
		CHECK(cuCtxPushCurrent(context));
		for (size_t i = 0; i < n; i++) {
			CUresult r;

			CHECK(cuGraphKernelNodeGetParams(nodes[i], &params));
			params.ctx = context;
			r = cuGraphKernelNodeSetParams(nodes[i], &params);
			if (r != CUDA_SUCCESS) {
				refused++, error = (int)r;
			}
		}
		CHECK(cuCtxPopCurrent(NULL));
	}
	named = now_us();
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cuGraphInstantiate(&exec, clone, 0));
	CHECK(cuGraphUpload(exec, (CUstream)stream));
	CHECK(cudaStreamSynchronize(stream));
	printf("%3u SMs: %zu kernels, %zu other nodes; %zu refused (error %d); clone and name %.2f "
	       "ms, "
	       "instantiate %.2f ms, %.2f MiB\n",
	       n_sms, n, others, refused, error, (named - begin) / 1e3, (now_us() - named) / 1e3,
	       ((double)before - (double)free_bytes()) / (1 << 20));
	fflush(stdout);
	return exec;
}

/* Replays @times; the median in microseconds. */
extern "C" double graph_replay(CUgraphExec exec, int times) {
	static cudaStream_t stream;
	double took[1000];

	if (!stream) {
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	}
	for (int i = 0; i < times && i < 1000; i++) {
		double begin = now_us();

		CHECK(cuGraphLaunch(exec, (CUstream)stream));
		CHECK(cudaStreamSynchronize(stream));
		took[i] = now_us() - begin;
	}
	return percentile(took, (size_t)times, 500);
}
