/*
 * launches.cu: how much longer a launch of one program takes while other programs launch as well,
 * under MPS, by how it is launched: at once, with all others queued before the first begins, as a
 * CUDA graph, or as a dependent kernel (programmatic dependent launch) that waits first of all.
 *
 * usage: launches
 *
 * A (priority -5) does jobs of LAUNCHES kernels; others (priority 0) launch without a pause. "tiny"
 * is one empty block, "wide" 132 blocks of 3 us, "add" adds vectors of 4 MB. A line for each work of
 * the others and each of A: us for each of A's launches on the GPU (p50 and p90 of its jobs), of A's
 * host for the call, and between two launches of the others.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/wait.h>

#include "probe.h"

#define LAUNCHES 400
#define JOBS	 30
#define OTHERS	 3
#define BATCH	 64
#define IN_GRAPH 8 /* of the others */
#define ELEMENTS 1000000
#define CYCLES	 5000

enum kernel { TINY, WIDE, ADD, KERNELS };
enum mode { STREAM, QUEUED, GRAPH, DEPENDENT, MODES };

static const char *const kernel_names[] = {"tiny", "wide", "add"};
static const char *const mode_names[] = {"stream", "queued", "graph", "dependent"};

/* What the others do, in memory that all processes share. */
static volatile struct page {
	int n_ready, n_others, kernel, mode, run, busy[OTHERS], end;
	long launched[OTHERS];
} *page;

static float *a, *b, *c;
static volatile int *gate;
static int *gate_on_gpu;
static cudaGraphExec_t graphs[KERNELS][2]; /* of IN_GRAPH kernels, of LAUNCHES */

template <bool DEPENDS> __device__ void begin(void) {
	if (DEPENDS) {
		WAIT_FIRST();
	}
}

template <bool DEPENDS> __global__ void tiny(void) {
	begin<DEPENDS>();
}

template <bool DEPENDS> __global__ void wide(void) {
	long long from;

	begin<DEPENDS>();
	from = clock64();
	while (clock64() - from < CYCLES) {
	}
}

template <bool DEPENDS>
__global__ void add(const float *a, const float *b, float *c, unsigned n) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	begin<DEPENDS>();
	if (i < n) {
		c[i] = a[i] + b[i];
	}
}

__global__ void wait_for(volatile int *gate) {
	while (!*gate) {
	}
}

template <bool DEPENDS> static void launch(int kernel, cudaStream_t stream) {
	cudaLaunchAttribute attribute;
	cudaLaunchConfig_t config = {};

	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.attrs = &attribute;
	config.numAttrs = DEPENDS;
	config.stream = stream;
	config.blockDim = kernel == TINY ? 1 : 256;
	config.gridDim = kernel == TINY ? 1 : kernel == WIDE ? 132 : (ELEMENTS + 255) / 256;
	switch (kernel) {
	case TINY:
		CHECK(cudaLaunchKernelEx(&config, tiny<DEPENDS>));
		break;
	case WIDE:
		CHECK(cudaLaunchKernelEx(&config, wide<DEPENDS>));
		break;
	default:
		CHECK(cudaLaunchKernelEx(&config, add<DEPENDS>, (const float *)a, (const float *)b,
					 c, (unsigned)ELEMENTS));
	}
}

static void launch_by(int mode, int kernel, cudaStream_t stream) {
	if (mode == DEPENDENT) {
		launch<true>(kernel, stream);
	} else {
		launch<false>(kernel, stream);
	}
}

static cudaGraphExec_t make_graph(int kernel, int n, cudaStream_t stream) {
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < n; i++) {
		launch<false>(kernel, stream);
	}
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

static cudaStream_t open_gpu(int priority) {
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
	CHECK(cudaMalloc((void **)&a, ELEMENTS * sizeof(*a)));
	CHECK(cudaMalloc((void **)&b, ELEMENTS * sizeof(*b)));
	CHECK(cudaMalloc((void **)&c, ELEMENTS * sizeof(*c)));
	CHECK(cudaHostAlloc((void **)&gate, sizeof(*gate), cudaHostAllocMapped));
	CHECK(cudaHostGetDevicePointer((void **)&gate_on_gpu, (void *)gate, 0));
	for (int k = 0; k < KERNELS; k++) {
		graphs[k][0] = make_graph(k, IN_GRAPH, stream);
		graphs[k][1] = make_graph(k, LAUNCHES, stream);
		CHECK(cudaGraphLaunch(graphs[k][0], stream));
		CHECK(cudaGraphLaunch(graphs[k][1], stream));
		launch<true>(k, stream);
	}
	CHECK(cudaStreamSynchronize(stream));
	return stream;
}

static int other(int index) {
	cudaStream_t stream = open_gpu(0);
	cudaEvent_t event[2];

	for (int i = 0; i < 2; i++) {
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
		CHECK(cudaEventRecord(event[i], stream));
	}
	__atomic_add_fetch(&page->n_ready, 1, __ATOMIC_SEQ_CST);
	for (unsigned k = 0; !page->end; k++) {
		if (!page->run || page->n_others <= index) {
			CHECK(cudaStreamSynchronize(stream));
			page->busy[index] = 0;
			usleep(50);
			continue;
		}
		page->busy[index] = 1;
		CHECK(cudaEventSynchronize(event[k & 1]));
		for (int i = 0; i < BATCH; i += page->mode == GRAPH ? IN_GRAPH : 1) {
			if (page->mode == GRAPH) {
				CHECK(cudaGraphLaunch(graphs[page->kernel][0], stream));
			} else {
				launch_by(page->mode, page->kernel, stream);
			}
		}
		CHECK(cudaEventRecord(event[k & 1], stream));
		page->launched[index] += BATCH;
	}
	CHECK(cudaStreamSynchronize(stream));
	return 0;
}

static long launched_by_others(void) {
	long n = 0;

	for (int i = 0; i < OTHERS; i++) {
		n += page->launched[i];
	}
	return n;
}

/* us of the host for each call. */
static double launch_job(int kernel, int mode, cudaStream_t stream) {
	double from = now_us();

	if (mode == GRAPH) {
		CHECK(cudaGraphLaunch(graphs[kernel][1], stream));
	}
	for (int i = 0; i < LAUNCHES && mode != GRAPH; i++) {
		launch_by(mode, kernel, stream);
	}
	return (now_us() - from) / LAUNCHES;
}

static void measure(int kernel, int mode, cudaStream_t stream, const char *beside) {
	static cudaEvent_t mark[2];
	double gpu[JOBS], host[JOBS], begin = now_us();
	long before = launched_by_others(), launched;
	float ms;

	for (int i = 0; i < 2 && !mark[i]; i++) {
		CHECK(cudaEventCreate(&mark[i]));
	}
	for (int j = 0; j < JOBS; j++) {
		usleep(500);
		/* In the other modes, too, a kernel stands before the first mark. */
		*gate = mode != QUEUED;
		wait_for<<<1, 1, 0, stream>>>(gate_on_gpu);
		CHECK(cudaEventRecord(mark[0], stream));
		host[j] = launch_job(kernel, mode, stream);
		CHECK(cudaEventRecord(mark[1], stream));
		*gate = 1;
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaEventElapsedTime(&ms, mark[0], mark[1]));
		gpu[j] = (double)ms * 1e3 / LAUNCHES;
	}
	launched = launched_by_others() - before;
	printf("%s | %s, %s | %.2f / %.2f | %.2f | %.2f\n", beside, kernel_names[kernel],
	       mode_names[mode], percentile(gpu, JOBS, 500), percentile(gpu, JOBS, 900),
	       percentile(host, JOBS, 500),
	       launched ? (now_us() - begin) / (double)launched : 0);
	fflush(stdout);
}

int main(void) {
	static const struct {
		int n, kernel, mode;
	} others[] = {
		{0, TINY, STREAM}, {1, ADD, STREAM}, {3, TINY, STREAM},	  {3, WIDE, STREAM},
		{3, ADD, STREAM},  {3, ADD, GRAPH},  {3, ADD, DEPENDENT},
	};
	cudaStream_t stream;
	char beside[64];

	page = (volatile struct page *)mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < OTHERS; i++) {
		if (fork() == 0) {
			exit(other(i));
		}
	}
	stream = open_gpu(-5);
	while (page->n_ready < OTHERS) {
		usleep(1000);
	}
	printf("others | A | GPU, p50 / p90 | host | others\n");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		page->n_others = others[i].n;
		page->kernel = others[i].kernel;
		page->mode = others[i].mode;
		page->run = 1;
		usleep(30000);
		snprintf(beside, sizeof(beside), "%d %s, %s", others[i].n,
			 kernel_names[others[i].kernel], mode_names[others[i].mode]);
		for (int k = 0; k < KERNELS; k++) {
			for (int m = 0; m < MODES; m++) {
				measure(k, m, stream, others[i].n ? beside : "nobody");
			}
		}
		page->run = 0;
		for (int o = 0; o < OTHERS; o++) {
			while (page->busy[o]) {
				usleep(100);
			}
		}
	}
	page->end = 1;
	while (wait(NULL) > 0) {
	}
	return 0;
}
