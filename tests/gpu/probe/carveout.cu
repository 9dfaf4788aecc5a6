/*
 * carveout.cu: does a kernel begin beside another one that has divided the SMs' memory into shared
 * memory and L1 in another way?
 *
 * usage: carveout
 *	One process. A: two blocks of 256 threads on each SM, 5 ms each, at the lowest priority. B: a
 *	block on each, 0.1 ms, at the highest, launched 1 ms later. A line for each of some sizes of
 *	dynamic shared memory and carve-outs (-1: the driver's choice): when B begins.
 * usage: carveout a KIB CARVEOUT SECONDS | b KIB CARVEOUT
 *	For two processes under MPS. a: A's with four blocks on each SM, over and over; b: B each 20
 *	to 27 ms, and percentiles of its response.
 */
#include <cuda_runtime.h>
#include <string.h>

#include "probe.h"

#define THREADS 256
#define A_NS	5000000
#define B_NS	100000
#define TIMES	60

struct block {
	unsigned long long begin, end; /* globaltimer */
};

__device__ static unsigned long long timer(void) {
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__device__ static void spin(unsigned long long ns, struct block *blocks) {
	unsigned long long begin = timer();

	while (timer() < begin + ns) {
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		blocks[blockIdx.x] = {begin, timer()};
	}
}

/* Two, for the carve-out is the function's. */
__global__ void kernel_a(struct block *blocks) {
	spin(A_NS, blocks);
}

__global__ void kernel_b(struct block *blocks) {
	spin(B_NS, blocks);
}

typedef void kernel(struct block *);

static int n_sms;
static struct block *a, *b;
static cudaStream_t low, high;

static void prepare(kernel *f, int kib, int carveout) {
	CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, kib << 10));
	CHECK(cudaFuncSetAttribute(f, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
}

static void launch(kernel *f, int blocks, int kib, cudaStream_t stream, struct block *result) {
	f<<<blocks, THREADS, kib << 10, stream>>>(result);
	CHECK(cudaGetLastError());
}

static void one_case(const int c[4]) {
	unsigned long long begin = ~0ull, end = 0, first = ~0ull;

	prepare(kernel_a, c[0], c[1]);
	prepare(kernel_b, c[2], c[3]);
	for (int i = 0; i < 2; i++) { /* the first one warms up */
		launch(kernel_a, 2 * n_sms, c[0], low, a);
		sleep_until_us(now_us() + 1000);
		launch(kernel_b, n_sms, c[2], high, b);
		CHECK(cudaDeviceSynchronize());
	}
	for (int i = 0; i < 2 * n_sms; i++) {
		begin = a[i].begin < begin ? a[i].begin : begin;
		end = a[i].end > end ? a[i].end : end;
	}
	for (int i = 0; i < n_sms; i++) {
		first = b[i].begin < first ? b[i].begin : first;
	}
	printf("A %3d KiB, carve-out %3d; B %3d KiB, carve-out %3d: B begins after %.2f ms, A ends after "
	       "%.2f\n",
	       c[0], c[1], c[2], c[3], (first - begin) * 1e-6, (end - begin) * 1e-6);
}

static int compare(const void *x, const void *y) {
	double d = *(const double *)x - *(const double *)y;

	return (d > 0) - (d < 0);
}

static void respond(int kib) {
	double us[TIMES];

	for (int i = 0; i < TIMES; i++) {
		double from = sleep_until_us(now_us() + 20000 + rand() % 7000);

		launch(kernel_b, n_sms, kib, high, b);
		CHECK(cudaStreamSynchronize(high));
		us[i] = now_us() - from;
	}
	qsort(us, TIMES, sizeof(us[0]), compare);
	printf("%.0f / %.0f us\n", us[TIMES / 2], us[TIMES * 99 / 100]);
}

int main(int argc, char **argv) {
	static const int cases[][4] = {{0, -1, 0, -1},	 {0, -1, 4, -1},   {0, -1, 48, -1},
				       {16, -1, 48, -1}, {48, -1, 0, -1},  {0, 100, 48, -1},
				       {0, 50, 48, -1},	 {0, 44, 48, 44},  {0, 100, 100, 100},
				       {48, 100, 0, -1}, {100, -1, 0, 100}};
	int least, greatest;

	CHECK(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
	CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
	CHECK(cudaMallocHost((void **)&a, 4 * n_sms * sizeof(*a)));
	CHECK(cudaMallocHost((void **)&b, n_sms * sizeof(*b)));
	if (argc == 1) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			one_case(cases[i]);
		}
	} else if (argc == 5 && strcmp(argv[1], "a") == 0) {
		double end = now_us() + atof(argv[4]) * 1e6;

		prepare(kernel_a, atoi(argv[2]), atoi(argv[3]));
		while (now_us() < end) {
			launch(kernel_a, 4 * n_sms, atoi(argv[2]), low, a);
			CHECK(cudaStreamSynchronize(low));
		}
	} else if (argc == 4 && strcmp(argv[1], "b") == 0) {
		prepare(kernel_b, atoi(argv[2]), atoi(argv[3]));
		respond(atoi(argv[2]));
	} else {
		fprintf(stderr, "usage: carveout [a KIB CARVEOUT SECONDS | b KIB CARVEOUT]\n");
		return 2;
	}
	return 0;
}
