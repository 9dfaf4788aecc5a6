/*
 * graph-levels.cu: which level and which SMs do the kernels of a CUDA graph get, those of the
 * stream that it is launched into or those of their nodes? What do two executable graphs cost, one
 * for each set?
 *
 * usage: graph-levels levels | sets | cost
 *
 * Levels: endless kernels of 20 waves run in a stream of priority -2, and a chain of 20 small
 * kernels is launched above (-5) or below (0) it. Sets: green contexts A (64 SMs) and B (the
 * others); each kernel notes %smid. Without MPS, one process.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <string.h>

#include "probe.h"

#define CHAIN  20
#define ABOVE  (-5)
#define MIDDLE (-2)
#define BELOW  0

static float *buffer;
static unsigned *seen; /* bits of the SMs that kernels ran on */
static int sms;
static volatile int stop;

__global__ void multiply(float *buffer, int n, unsigned *seen) {
	float x = buffer[threadIdx.x], y = buffer[blockIdx.x & 255];
	unsigned sm;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	if (seen && threadIdx.x == 0) {
		atomicOr(&seen[sm / 32], 1u << sm % 32);
	}
	for (int i = 0; i < n; i++) {
		x = fmaf(x, 1.0001f, y), y = fmaf(y, 0.999f, x);
	}
	if (x == 12345.678f) {
		buffer[0] = y;
	}
}

static void launch(int blocks, int n, cudaStream_t stream) {
	multiply<<<blocks, 256, 0, stream>>>(buffer, n, blocks > 2 * sms * 8 ? NULL : seen);
	CHECK(cudaGetLastError());
}

static cudaStream_t new_stream(int priority) {
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
	return stream;
}

static void *run_endless(void *userdata) {
	cudaStream_t stream = new_stream(MIDDLE);
	cudaEvent_t event[2];

	(void)userdata;
	for (int i = 0; i < 2; i++) {
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
		CHECK(cudaEventRecord(event[i], stream));
	}
	for (unsigned k = 0; !stop; k++) {
		CHECK(cudaEventSynchronize(event[k & 1]));
		launch(20 * 8 * sms, 4000, stream);
		CHECK(cudaEventRecord(event[k & 1], stream));
	}
	CHECK(cudaStreamSynchronize(stream));
	return NULL;
}

/* @n kernels one after the other, or in four branches. */
static cudaGraph_t capture(cudaStream_t stream, int n, int branches, int blocks) {
	static cudaStream_t side[3];
	cudaEvent_t fork_event, join_event[3];
	cudaGraph_t graph;

	CHECK(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	if (branches > 1) {
		CHECK(cudaEventRecord(fork_event, stream));
	}
	for (int b = 1; b < branches; b++) {
		if (!side[b - 1]) {
			side[b - 1] = new_stream(BELOW);
		}
		CHECK(cudaEventCreateWithFlags(&join_event[b - 1], cudaEventDisableTiming));
		CHECK(cudaStreamWaitEvent(side[b - 1], fork_event, 0));
		for (int i = 0; i < n / branches; i++) {
			launch(blocks, 400, side[b - 1]);
		}
		CHECK(cudaEventRecord(join_event[b - 1], side[b - 1]));
	}
	for (int i = 0; i < n / branches; i++) {
		launch(blocks, 400, stream);
	}
	for (int b = 1; b < branches; b++) {
		CHECK(cudaStreamWaitEvent(stream, join_event[b - 1], 0));
	}
	CHECK(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static size_t kernel_nodes(cudaGraph_t graph, CUgraphNode *kernels) {
	static CUgraphNode nodes[4096];
	size_t n = 4096, found = 0;
	CUgraphNodeType type;

	CHECK(cuGraphGetNodes((CUgraph)graph, nodes, &n));
	for (size_t i = 0; i < n; i++) {
		CHECK(cuGraphNodeGetType(nodes[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
			kernels[found++] = nodes[i];
		}
	}
	return found;
}

static int node_priority(cudaGraph_t graph) {
	static CUgraphNode nodes[4096];
	CUlaunchAttributeValue value;

	kernel_nodes(graph, nodes);
	memset(&value, 0, sizeof(value));
	CHECK(cuGraphKernelNodeGetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

static void set_node_priority(cudaGraph_t graph, int priority) {
	static CUgraphNode nodes[4096];
	CUlaunchAttributeValue value;
	size_t n = kernel_nodes(graph, nodes);

	memset(&value, 0, sizeof(value));
	value.priority = priority;
	for (size_t i = 0; i < n; i++) {
		CHECK(cuGraphKernelNodeSetAttribute(nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY,
						    &value));
	}
}

static double replay_ms(cudaGraphExec_t exec, cudaStream_t stream, int times) {
	double took[100];

	for (int i = 0; i < times; i++) {
		double begin = now_us();

		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		took[i] = (now_us() - begin) / 1e3;
	}
	return percentile(took, (size_t)times, 500);
}

/* --- sets --- */

struct set {
	CUgreenCtx green;
	CUcontext context;
	cudaStream_t stream;
	unsigned n;
};

static struct set sets[2]; /* A, B */

static void make_sets(void) {
	CUdevResource all, group, rest;
	CUdevResourceDesc desc;
	CUdevice device;
	unsigned n = 1;

	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&group, &n, &all, &rest, 0, 64));
	for (int i = 0; i < 2; i++) {
		CHECK(cuDevResourceGenerateDesc(&desc, i == 0 ? &group : &rest, 1));
		CHECK(cuGreenCtxCreate(&sets[i].green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
		CHECK(cuCtxFromGreenCtx(&sets[i].context, sets[i].green));
		CHECK(cuGreenCtxStreamCreate((CUstream *)&sets[i].stream, sets[i].green,
					     CU_STREAM_NON_BLOCKING, ABOVE));
		sets[i].n = i == 0 ? group.sm.smCount : rest.sm.smCount;
	}
}

/* Names @context in all kernel nodes of @graph. Return: nodes refused, and the last error. */
static size_t name_context(cudaGraph_t graph, CUcontext context, int *error) {
	static CUgraphNode nodes[4096];
	CUDA_KERNEL_NODE_PARAMS params;
	size_t n = kernel_nodes(graph, nodes), refused = 0;

	CHECK(cuCtxPushCurrent(context));
	for (size_t i = 0; i < n; i++) {
		CUresult r;

		CHECK(cuGraphKernelNodeGetParams(nodes[i], &params));
		params.ctx = context;
		r = cuGraphKernelNodeSetParams(nodes[i], &params);
		if (r != CUDA_SUCCESS) {
			refused++, *error = (int)r;
		}
	}
	CHECK(cuCtxPopCurrent(NULL));
	return refused;
}

/* --- levels --- */

static void level_row(int captured, int node, bool by_node, int branches, CUcontext set,
		      cudaStream_t below, cudaStream_t above) {
	cudaStream_t stream = captured == BELOW ? below : above;
	cudaGraph_t graph = capture(stream, CHAIN, branches, 132);
	cudaGraphExec_t exec;

	if (node != captured) {
		set_node_priority(graph, node);
	}
	if (set) {
		int error;

		CHECK(name_context(graph, set, &error));
	}
	CHECK(cudaGraphInstantiate(&exec, graph,
				   by_node ? cudaGraphInstantiateFlagUseNodePriority : 0));
	printf("captured at %2d, nodes say %2d, %-17s, %d branch%s%s | launched at 0: %6.2f ms | "
	       "at -5: "
	       "%6.2f ms\n",
	       captured, node_priority(graph), by_node ? "UseNodePriority" : "no flag", branches,
	       branches > 1 ? "es" : "", set ? ", nodes name A" : "", replay_ms(exec, below, 12),
	       replay_ms(exec, above, 12));
	fflush(stdout);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void levels(void) {
	cudaStream_t below = new_stream(BELOW), above = new_stream(ABOVE);
	cudaGraph_t graph = capture(below, CHAIN, 1, 132);
	cudaGraphExec_t exec;
	pthread_t thread;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	printf("levels: chain of %d kernels alone: %.2f ms\n", CHAIN, replay_ms(exec, below, 50));
	CHECK(pthread_create(&thread, NULL, run_endless, NULL));
	usleep(100000);
	level_row(BELOW, BELOW, false, 1, NULL, below, above);
	level_row(ABOVE, ABOVE, false, 1, NULL, below, above);
	level_row(BELOW, ABOVE, false, 1, NULL, below, above);
	level_row(BELOW, BELOW, true, 1, NULL, below, above);
	level_row(ABOVE, ABOVE, true, 1, NULL, below, above);
	level_row(BELOW, ABOVE, true, 1, NULL, below, above);
	level_row(ABOVE, BELOW, true, 1, NULL, below, above);
	level_row(BELOW, BELOW, false, 4, NULL, below, above);
	level_row(ABOVE, ABOVE, true, 4, NULL, below, above);
	level_row(BELOW, BELOW, false, 1, sets[0].context, below, above);
	level_row(BELOW, ABOVE, true, 1, sets[0].context, below, above);
	stop = 1;
	pthread_join(thread, NULL);
}

/* --- where kernels of a graph run --- */

/* How many SMs of A, of B. */
static void print_seen(const char *what, cudaGraphExec_t exec, cudaStream_t stream) {
	static unsigned a_mask[8], known;
	unsigned mask[8];
	int of[2] = {0, 0};

	if (!known) {
		CHECK(cudaMemset(seen, 0, sizeof(mask)));
		launch(8 * sms, 2000, sets[0].stream);
		CHECK(cudaStreamSynchronize(sets[0].stream));
		CHECK(cudaMemcpy(a_mask, seen, sizeof(mask), cudaMemcpyDeviceToHost));
		known = 1;
	}
	CHECK(cudaMemset(seen, 0, sizeof(mask)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(mask, seen, sizeof(mask), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++) {
		if (mask[i / 32] >> i % 32 & 1) {
			of[!(a_mask[i / 32] >> i % 32 & 1)]++;
		}
	}
	printf("%-70s | %3d of A, %3d of B\n", what, of[0], of[1]);
	fflush(stdout);
}

/* The same in an executable graph made of @graph. */
static size_t name_context_exec(cudaGraphExec_t exec, cudaGraph_t graph, CUcontext context,
				int *error) {
	static CUgraphNode nodes[4096];
	CUDA_KERNEL_NODE_PARAMS params;
	size_t n = kernel_nodes(graph, nodes), refused = 0;

	CHECK(cuCtxPushCurrent(context));
	for (size_t i = 0; i < n; i++) {
		CUresult r;

		CHECK(cuGraphKernelNodeGetParams(nodes[i], &params));
		params.ctx = context;
		r = cuGraphExecKernelNodeSetParams((CUgraphExec)exec, nodes[i], &params);
		if (r != CUDA_SUCCESS) {
			refused++, *error = (int)r;
		}
	}
	CHECK(cuCtxPopCurrent(NULL));
	return refused;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void set_rows(void) {
	cudaStream_t plain = new_stream(BELOW);
	int blocks = 8 * sms, error = 0;
	cudaGraph_t of_plain = capture(plain, 4, 1, blocks),
		    of_a = capture(sets[0].stream, 4, 1, blocks);
	cudaGraph_t named = capture(plain, 4, 1, blocks), named_b;
	cudaGraphExec_t exec = instantiate(of_plain), exec_a = instantiate(of_a);
	CUgraphExecUpdateResultInfo info;
	size_t refused;
	int r;

	printf("sets: A %u SMs, B %u\n", sets[0].n, sets[1].n);
	print_seen("captured in a plain stream, launched there", exec, plain);
	print_seen("captured in a plain stream, launched in A's", exec, sets[0].stream);
	print_seen("captured in A's stream, launched in a plain one", exec_a, plain);
	print_seen("captured in A's stream, launched in B's", exec_a, sets[1].stream);
	refused = name_context(named, sets[0].context, &error);
	printf("nodes told A's context: %zu refused, error %d\n", refused, error);
	print_seen("captured in a plain stream, nodes name A, launched in a plain one",
		   instantiate(named), plain);
	print_seen("the same, launched in B's", instantiate(named), sets[1].stream);
	CHECK(cudaGraphClone(&named_b, of_plain));
	error = 0;
	refused = name_context(named_b, sets[1].context, &error);
	printf("a clone's nodes told B's context: %zu refused, error %d\n", refused, error);
	print_seen("the clone", instantiate(named_b), plain);
	error = 0;
	refused = name_context_exec(exec, of_plain, sets[1].context, &error);
	printf("nodes of an executable graph told B's context: %zu refused, error %d\n", refused,
	       error);
	print_seen("that one", exec, plain);
	memset(&info, 0, sizeof(info));
	r = (int)cuGraphExecUpdate((CUgraphExec)exec_a, (CUgraph)named_b, &info);
	printf("an executable graph of A updated by one that names B: error %d, result %d\n", r,
	       (int)info.result);
	cudaGetLastError();
	print_seen("that one", exec_a, plain);
	CHECK(cudaDeviceSynchronize());
}

/* --- cost --- */

static size_t free_bytes(void) {
	size_t free_now, total;

	CHECK(cudaMemGetInfo(&free_now, &total));
	return free_now;
}

static long resident_kib(void) {
	long pages = 0, all;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2) {
		pages = 0;
	}
	if (f) {
		fclose(f);
	}
	return pages * 4;
}

static void cost_row(int n) {
	cudaStream_t plain = new_stream(BELOW);
	cudaGraph_t graph = capture(plain, n, 1, 132), clone[2];
	cudaGraphExec_t exec[3];
	double begin, ms[5];
	size_t memory[4];
	long host[2];
	int error = 0;

	memory[0] = free_bytes();
	begin = now_us();
	exec[0] = instantiate(graph);
	CHECK(cudaGraphUpload(exec[0], plain));
	CHECK(cudaStreamSynchronize(plain));
	ms[0] = (now_us() - begin) / 1e3;
	memory[1] = free_bytes();
	host[0] = resident_kib();
	for (int i = 0; i < 2; i++) {
		begin = now_us();
		CHECK(cudaGraphClone(&clone[i], graph));
		if (name_context(clone[i], sets[i].context, &error) != 0) {
			printf("refused: %d\n", error);
		}
		ms[1 + 2 * i] = (now_us() - begin) / 1e3;
		begin = now_us();
		exec[1 + i] = instantiate(clone[i]);
		CHECK(cudaGraphUpload(exec[1 + i], plain));
		CHECK(cudaStreamSynchronize(plain));
		ms[2 + 2 * i] = (now_us() - begin) / 1e3;
		memory[2 + i] = free_bytes();
	}
	host[1] = resident_kib();
	printf("%4d kernels | instantiate %6.2f ms, %5.2f MiB | A: clone+name %5.2f, instantiate "
	       "%5.2f "
	       "ms, %5.2f MiB | B: %5.2f, %5.2f ms, %5.2f MiB | host %ld KiB for both | replay "
	       "%.3f, "
	       "A %.3f, B %.3f ms\n",
	       n, ms[0], (double)(memory[0] - memory[1]) / (1 << 20), ms[1], ms[2],
	       (double)(memory[1] - memory[2]) / (1 << 20), ms[3], ms[4],
	       (double)(memory[2] - memory[3]) / (1 << 20), host[1] - host[0],
	       replay_ms(exec[0], plain, 50), replay_ms(exec[1], plain, 50),
	       replay_ms(exec[2], plain, 50));
	fflush(stdout);
}

int main(int argc, char **argv) {
	float values[256];

	if (argc < 2) {
		return 2;
	}
	srand48(getpid());
	for (int i = 0; i < 256; i++) {
		values[i] = (float)drand48();
	}
	CHECK(cudaFree(0));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaMalloc((void **)&buffer, sizeof(values)));
	CHECK(cudaMemcpy(buffer, values, sizeof(values), cudaMemcpyHostToDevice));
	CHECK(cudaMalloc((void **)&seen, 8 * sizeof(unsigned)));
	make_sets();
	if (strcmp(argv[1], "levels") == 0) {
		levels();
	} else if (strcmp(argv[1], "sets") == 0) {
		set_rows();
	} else {
		for (int n = 20; n <= 1280; n *= 4) {
			cost_row(n);
		}
		cost_row(320);
	}
	return 0;
}
