/*
 * power.cu: keeps a GPU busy in one of two ways, frame after frame, for the measurement of power:
 *
 *	power compute [SECONDS]   arithmetic in registers
 *	power memory [SECONDS]    copies in device memory, 2 GiB each way
 *
 * Without SECONDS until SIGTERM, which is heeded between frames: under MPS a process that dies with a
 * kernel under way takes its neighbours, and for a while the server, with it. With it, it prints the watts that NVML's energy counter
 * tells for that time, so several at once tell of all of them. Ends with exit code 1 on any error.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

#define BLOCKS	(132 * 32)
#define THREADS 256

#define CHECK(call)                                                                                  \
	do {                                                                                         \
		cudaError_t e_ = (call);                                                             \
		if (e_ != cudaSuccess) {                                                             \
			fprintf(stderr, "power: %s: %s\n", #call, cudaGetErrorString(e_));           \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

__global__ void compute(float *out, float mul, float add, unsigned rounds)
{
	float a = threadIdx.x, b = blockIdx.x, c = a + b, d = a - b;

	for (unsigned i = 0; i < rounds; i++) {
		a = a * mul + add;
		b = b * mul + add;
		c = c * mul + add;
		d = d * mul + add;
	}
	if (a + b + c + d == 0.12345f) {
		out[0] = a; /* hardly ever, but the compiler can't know */
	}
}

__global__ void copy(uint4 *to, const uint4 *from, size_t n)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		to[i] = from[i];
	}
}

__global__ void fill(uint4 *to, size_t n, unsigned seed)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		unsigned x = (unsigned)i * 2654435761u ^ seed;

		to[i] = make_uint4(x, x * 747796405u, x ^ x << 13, x * 2891336453u);
	}
}

static volatile sig_atomic_t ending;

static void on_signal(int signal)
{
	(void)signal;
	ending = 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The counter, in joules. */
static double energy(void)
{
	static int (*read)(void *device, unsigned long long *mj);
	static void *device;
	unsigned long long mj = 0;

	if (!read) {
		void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
		int (*init)(void) = nvml ? (int (*)(void))dlsym(nvml, "nvmlInit_v2") : NULL;
		int (*get)(unsigned, void **) =
			nvml ? (int (*)(unsigned, void **))dlsym(nvml,
								 "nvmlDeviceGetHandleByIndex_v2")
			     : NULL;

		read = nvml ? (int (*)(void *, unsigned long long *))dlsym(
				      nvml, "nvmlDeviceGetTotalEnergyConsumption")
			    : NULL;
		if (!init || !get || !read || init() != 0 || get(0, &device) != 0) {
			fprintf(stderr, "power: no NVML\n");
			exit(1);
		}
	}
	if (read(device, &mj) != 0) {
		fprintf(stderr, "power: no energy counter\n");
		exit(1);
	}
	return mj / 1e3;
}

int main(int argc, char **argv)
{
	bool memory = argc > 1 && strcmp(argv[1], "memory") == 0;
	double seconds = argc > 2 ? atof(argv[2]) : 0, begin, first;
	size_t n = (2ull << 30) / sizeof(uint4);
	uint4 *a = NULL, *b = NULL;
	float *out;

	if (argc < 2 || (!memory && strcmp(argv[1], "compute") != 0)) {
		fprintf(stderr, "usage: power compute|memory [SECONDS]\n");
		return 2;
	}
	CHECK(cudaMalloc(&out, sizeof(*out)));
	if (memory) {
		CHECK(cudaMalloc(&a, n * sizeof(*a)));
		CHECK(cudaMalloc(&b, n * sizeof(*b)));
		fill<<<BLOCKS, THREADS>>>(a, n, 1);
		CHECK(cudaDeviceSynchronize());
	}
	begin = now();
	first = seconds > 0 ? energy() : 0;
	signal(SIGTERM, on_signal);
	while (!ending && (seconds == 0 || now() - begin < seconds)) {
		for (int i = 0; i < 20; i++) {
			if (memory) {
				copy<<<BLOCKS, THREADS>>>(b, a, n);
			} else {
				compute<<<BLOCKS, THREADS>>>(out, 1.0000001f, 1e-7f, 40000);
			}
		}
		CHECK(cudaDeviceSynchronize());
	}
	if (seconds > 0) {
		printf("%.1f W\n", (energy() - first) / (now() - begin));
	}
	return 0;
}
