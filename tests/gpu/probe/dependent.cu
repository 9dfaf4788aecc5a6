/*
 * dependent.cu: does a kernel that is launched as a dependent one, and waits first of all, see all
 * that came before it on its stream? By loads through each cache, behind a kernel, copies, memsets,
 * events, waits for a value and host functions, in each kind of stream; behind a kernel in clusters,
 * too.
 *
 * usage: dependent
 *
 * A line for each: how many of ROUNDS results were wrong, and how many without the wait. Behind a
 * kernel these must be some, or the two did not overlap and nothing is shown; behind all else there
 * are none if the driver does not let the kernel begin early there. Exit 1 if one was wrong with the
 * wait.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include "probe.h"

#define N	    (132 * 256)
#define N_CONSTANTS 16000
#define ROUNDS	    200
#define BIG	    (64 << 20) /* bytes */
#define CYCLES	    60000      /* longer than the host takes for the next launch */
#define CYCLES_LONG 200000

enum load { PLAIN, NC, TEXTURE, CONSTANT, LOADS };
enum before { KERNEL, COPY, COPY_TO_GPU, MEMSET, EVENT, VALUE, HOST_FUNCTION, OTHER_STREAM, BEFORES };
enum stream { OWN, URGENT, DEFAULT, BLOCKING, STREAMS };

static const char *const load_names[] = {"ld", "ld.nc", "tex", "ld.const"};
static const char *const before_names[] = {"a kernel",	       "a copy",
					   "a copy to the GPU", "a memset",
					   "an event",	       "a wait for a value",
					   "a host function",  "a kernel of another stream"};
static const char *const stream_names[] = {"a stream", "an urgent one", "the default one",
					   "a blocking one"};

__constant__ unsigned constants[N_CONSTANTS];

static unsigned *in, *out, *big, *host, *constants_on_gpu;
static cudaTextureObject_t texture;
static volatile unsigned *word;
static cudaStream_t aside, streams[STREAMS]; /* the default one is NULL */

/* Lets the next kernel begin as early as can be, and writes late. */
__global__ void write(unsigned *to, unsigned *constants, unsigned value, unsigned cycles) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	long long from = clock64();

	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
	while (clock64() - from < cycles) {
	}
	to[i] = value;
	if (i < N_CONSTANTS) {
		constants[i] = value;
	}
}

template <bool WAITS>
__global__ void read(const unsigned *from, unsigned *to, int load, cudaTextureObject_t texture) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x;

	if (WAITS) {
		WAIT_FIRST();
	}
	switch (load) {
	case NC:
		asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(from + i));
		break;
	case TEXTURE:
		x = tex1Dfetch<unsigned>(texture, (int)i);
		break;
	case CONSTANT:
		x = constants[i % N_CONSTANTS / 32 * 32];
		break;
	default:
		x = *(volatile const unsigned *)(from + i);
	}
	to[i] = x;
}

static void launch_write(unsigned *to, unsigned value, unsigned cycles, cudaStream_t stream) {
	write<<<N / 256, 256, 0, stream>>>(to, constants_on_gpu, value, cycles);
	CHECK(cudaGetLastError());
}

static void launch_read(bool waits, int load, bool clusters, cudaStream_t stream) {
	cudaLaunchAttribute attributes[2];
	cudaLaunchConfig_t config = {};

	attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attributes[0].val.programmaticStreamSerializationAllowed = 1;
	attributes[1].id = cudaLaunchAttributeClusterDimension;
	attributes[1].val.clusterDim.x = 2;
	attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
	config.attrs = attributes;
	config.numAttrs = clusters ? 2 : 1;
	config.stream = stream;
	config.gridDim = N / 256;
	config.blockDim = 256;
	CHECK(cudaLaunchKernelEx(&config, waits ? read<true> : read<false>, (const unsigned *)in,
				 out, load, texture));
}

static void CUDART_CB sleep_a_little(void *) {
	usleep(50);
}

/* Writes @value to `in`, on @stream or so that it waits for it. In front of what does so there is
 * always a kernel. */
static void write_by(int before, unsigned value, cudaStream_t stream) {
	static cudaEvent_t event;

	if (!event) {
		CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	}
	CHECK(cudaStreamSynchronize(stream)); /* for what the host and the other stream write */
	*word = 0;
	for (int i = 0; i < N; i++) {
		host[i] = value;
	}
	if (before == EVENT || before == VALUE || before == HOST_FUNCTION) {
		launch_write(in, value, before == HOST_FUNCTION ? CYCLES : CYCLES_LONG, aside);
	}
	launch_write(before == KERNEL ? in : big, value, CYCLES, stream);
	switch (before) {
	case COPY: /* behind a long one */
		CHECK(cudaMemcpyAsync(big + BIG / 8, big, BIG / 2, cudaMemcpyDefault, stream));
		CHECK(cudaMemcpyAsync(in, big, N * sizeof(*in), cudaMemcpyDefault, stream));
		break;
	case COPY_TO_GPU:
		CHECK(cudaMemcpyAsync(big + N, host, BIG / 4, cudaMemcpyDefault, stream));
		CHECK(cudaMemcpyAsync(in, host, N * sizeof(*in), cudaMemcpyDefault, stream));
		break;
	case MEMSET:
		CHECK(cudaMemsetAsync(big + BIG / 8, 1, BIG / 2, stream));
		CHECK(cuMemsetD32Async((CUdeviceptr)in, value, N, stream));
		break;
	case EVENT:
		CHECK(cudaEventRecord(event, aside));
		CHECK(cudaStreamWaitEvent(stream, event, 0));
		break;
	case VALUE:
		CHECK(cuStreamWriteValue32(aside, (CUdeviceptr)word, 1, 0));
		CHECK(cuStreamWaitValue32(stream, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
		break;
	case HOST_FUNCTION:
		CHECK(cudaLaunchHostFunc(stream, sleep_a_little, NULL));
		break;
	case OTHER_STREAM: /* the default stream and blocking ones wait for each other */
		launch_write(in, value, CYCLES_LONG,
			     streams[stream == streams[DEFAULT] ? BLOCKING : DEFAULT]);
		break;
	default:
		break;
	}
}

/* How many results were wrong. */
static int count_wrong(bool waits, int before, int load, bool clusters, cudaStream_t stream) {
	static unsigned value = 1000;
	int n = 0;

	for (int r = 0; r < ROUNDS; r++) {
		bool wrong = false;

		value++;
		launch_read(waits, load, clusters, stream); /* the caches have the old value */
		write_by(before, value, stream);
		launch_read(waits, load, clusters, stream);
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaStreamSynchronize(aside));
		CHECK(cudaMemcpy(host, out, N * sizeof(*out), cudaMemcpyDefault));
		for (int i = 0; i < N; i++) {
			wrong |= host[i] != value;
		}
		n += wrong;
	}
	return n;
}

static void open_gpu(void) {
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};

	CHECK(cudaMalloc((void **)&in, N * sizeof(*in)));
	CHECK(cudaMalloc((void **)&out, N * sizeof(*out)));
	CHECK(cudaMalloc((void **)&big, BIG));
	CHECK(cudaMallocHost((void **)&host, BIG));
	CHECK(cudaMallocHost((void **)&word, sizeof(*word)));
	CHECK(cudaMemset(in, 0, N * sizeof(*in)));
	CHECK(cudaGetSymbolAddress((void **)&constants_on_gpu, constants));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = in;
	resource.res.linear.desc = cudaCreateChannelDesc<unsigned>();
	resource.res.linear.sizeInBytes = N * sizeof(*in);
	desc.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	CHECK(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
}

/* Whether @stream waits for a kernel of another one without being told. */
static bool is_to_measure(int stream, int before, int load) {
	bool by_kernel = before == KERNEL; /* only these write the constants */

	return (load != CONSTANT || by_kernel) &&
	       (before != OTHER_STREAM || stream == DEFAULT || stream == BLOCKING);
}

static int measure(int stream, int before, int load, bool clusters) {
	int wrong = count_wrong(true, before, load, clusters, streams[stream]);

	printf("%s, behind %s, %s%s: %d wrong, without the wait %d\n", stream_names[stream],
	       before_names[before], load_names[load], clusters ? ", in clusters" : "", wrong,
	       count_wrong(false, before, load, clusters, streams[stream]));
	fflush(stdout);
	return wrong;
}

int main(void) {
	int wrong = 0;

	open_gpu();
	CHECK(cudaStreamCreateWithFlags(&streams[OWN], cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithPriority(&streams[URGENT], cudaStreamNonBlocking, -5));
	CHECK(cudaStreamCreate(&streams[BLOCKING]));
	for (int s = 0; s < STREAMS; s++) {
		for (int b = 0; b < BEFORES; b++) {
			for (int l = 0; l < LOADS; l++) {
				wrong += is_to_measure(s, b, l) ? measure(s, b, l, false) : 0;
				wrong += b == KERNEL ? measure(s, b, l, true) : 0;
			}
		}
	}
	return wrong > 0;
}
