/*
 * urgent.cu: how fast does another program leave a set of SMs, and what does an urgent job gain by
 *it?
 *
 * usage: urgent SECONDS PERIOD_US < ROWS
 *	A row: NAME LEVEL SET LEAVE BOUND_US. For each, so many seconds of a job each period beside
 *the program that leave.c is preloaded into (load.py), or alone: LEVEL, this job's stream priority
 *(0 to -5); SET 1: on 64 SMs, 0: on all; LEAVE and BOUND_US as in leave.h.
 *
 * A job: a kernel that takes an SM whole (all of its shared memory) on each SM of the set, which
 * so begins when the last block of others has left; then twenty small dependent kernels. Prints
 *when that first kernel had ended (p50, p99 from the wake-up on) and its SMs begun (half of them;
 *by globaltimer, back from its end), the whole job's p50 and p99, and the other's steps per second.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <string.h>

#include "leave.h"
#include "probe.h"

#define JOBS_MAX 20000
#define CHAIN	 20
#define SHARED	 (227 << 10) /* with the 1 KiB that each block takes besides, all of an SM (cc 9.0) \
			      */

static struct leave_page *page;

__global__ void __launch_bounds__(1024, 1) whole_sm(uint64_t *began) {
	extern __shared__ int whole[];

	whole[threadIdx.x] = threadIdx.x;
	if (threadIdx.x == 0) {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began[blockIdx.x]));
	}
}

__global__ void step(float *data, int rounds) {
	float x = data[blockIdx.x * blockDim.x + threadIdx.x], y = threadIdx.x;

	for (int i = 0; i < rounds; i++) {
		x = fmaf(x, 0.9999f, y), y = fmaf(y, 0.999f, x);
	}
	data[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static cudaStream_t make_stream(int level, bool set) {
	CUdevResource all, group;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream stream;
	cudaStream_t plain;
	unsigned n = 1;

	if (!set) {
		CHECK(cudaStreamCreateWithPriority(&plain, cudaStreamNonBlocking, level));
		return plain;
	}
	CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&group, &n, &all, NULL, 0, LEAVE_SMS));
	CHECK(cuDevResourceGenerateDesc(&desc, &group, 1));
	CHECK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, level));
	return (cudaStream_t)stream;
}

struct result {
	double clear[JOBS_MAX], half[JOBS_MAX], response[JOBS_MAX];
	size_t n;
};

static void measure(struct result *r, cudaStream_t stream, int sms, double seconds, double period,
		    uint64_t *began, float *data) {
	double begin = now_us(), release = begin;

	for (r->n = 0; release < begin + seconds * 1e6 && r->n < JOBS_MAX; r->n++) {
		double start = sleep_until_us(release), sorted[132];

		page->open = 1;
		whole_sm<<<sms, 1024, SHARED, stream>>>(began);
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(stream));
		r->clear[r->n] = now_us() - start;
		for (int i = 0; i < CHAIN; i++) {
			step<<<2 * sms, 256, 0, stream>>>(data, 2000);
		}
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(stream));
		r->response[r->n] = now_us() - start;
		page->open = 0;
		for (int i = 0; i < sms; i++) {
			sorted[i] = (double)(began[i] % 1000000000000ull) * 1e-3;
		}
		/* Before the end of the kernel, when half of the SMs had begun. */
		r->half[r->n] = r->clear[r->n] -
				(percentile(sorted, sms, 1000) - percentile(sorted, sms, 500));
		release += period;
		release = release > now_us() ? release : now_us();
	}
}

int main(int argc, char **argv) {
	static struct result r;
	char name[64];
	int level, set, leave, bound;
	uint64_t *began;
	float *data;

	if (argc != 3) {
		fprintf(stderr, "usage: urgent SECONDS PERIOD_US < ROWS\n");
		return 2;
	}
	page = (struct leave_page *)shared_page(sizeof(*page));
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
	CHECK(cudaFree(NULL));
	CHECK(cudaFuncSetAttribute(whole_sm, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
	CHECK(cudaMallocHost((void **)&began, 132 * sizeof(*began)));
	CHECK(cudaMalloc((void **)&data, 2 * 132 * 256 * sizeof(*data)));
	CHECK(cudaMemset(data, 1, 2 * 132 * 256 * sizeof(*data)));
	printf("%-16s %6s %10s %10s %10s %10s %10s %9s\n", "row", "jobs", "half p50", "clear p50",
	       "clear p99", "job p50", "job p99", "steps/s");
	while (scanf("%63s %d %d %d %d", name, &level, &set, &leave, &bound) == 5) {
		cudaStream_t stream = make_stream(level, set);
		double seconds = atof(argv[1]), began_us;
		uint64_t steps;

		page->leave = leave;
		page->bound_us = bound;
		measure(&r, stream, LEAVE_SMS, 0.4, atof(argv[2]), began, data);
		steps = page->steps;
		began_us = now_us();
		measure(&r, stream, LEAVE_SMS, seconds, atof(argv[2]), began, data);
		printf("%-16s %6zu %10.0f %10.0f %10.0f %10.0f %10.0f %9.2f\n", name, r.n,
		       percentile(r.half, r.n, 500), percentile(r.clear, r.n, 500),
		       percentile(r.clear, r.n, 990), percentile(r.response, r.n, 500),
		       percentile(r.response, r.n, 990),
		       (double)(page->steps - steps) * 1e6 / (now_us() - began_us));
		fflush(stdout);
		CHECK(cudaStreamDestroy(stream));
	}
	page->stop = 1;
	return 0;
}
