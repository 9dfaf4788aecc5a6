/*
 * cap.cu: does a launch find the free SMs beside a program that is kept to a part of the GPU, at
 * equal and at different levels?
 *
 * usage: cap busy LEVEL SET SECONDS		endless kernels of 20 waves, blocks of about 0.7 ms
 * usage: cap urgent LEVEL SET SECONDS BLOCKS	each 5 ms a job of 6 dependent kernels of so many
 * blocks SET: all, 64 (the first 64 SMs) or 68 (the others), by a green context. Or keep both to a
 * part by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. Prints busy's blocks per ms; of the jobs p50, p99 and
 * how many took 0.3 ms more than the fastest, which is to say that they waited for a block of the
 * other.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <string.h>

#include "probe.h"

#define BLOCKS_ALL 1056

__global__ void work(float *data, int rounds) {
	float x = data[threadIdx.x], y = threadIdx.x, z = 1, w = 2;

	for (int i = 0; i < rounds; i++) {
		x = fmaf(x, 0.9999f, y), y = fmaf(y, 0.999f, x);
		z = fmaf(z, 0.9999f, w), w = fmaf(w, 0.999f, z);
	}
	if (x + y + z + w == 12345.678f) {
		data[threadIdx.x] = x;
	}
}

static void launch(cudaStream_t stream, int blocks, float *data, int rounds) {
	work<<<blocks, 256, 0, stream>>>(data, rounds);
	CHECK(cudaGetLastError());
}

static void busy(cudaStream_t stream, float *data, double seconds) {
	double begin = now_us();
	cudaEvent_t event[3];
	unsigned long n = 0;

	for (int i = 0; i < 3; i++) {
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
	}
	for (; now_us() < begin + seconds * 1e6; n++) {
		if (n >= 3) {
			CHECK(cudaEventSynchronize(event[n % 3]));
		}
		launch(stream, 20 * BLOCKS_ALL, data, 20000);
		CHECK(cudaEventRecord(event[n % 3], stream));
	}
	CHECK(cudaStreamSynchronize(stream));
	printf(" busy %.0f blocks/ms", (double)n * 20 * BLOCKS_ALL / ((now_us() - begin) * 1e-3));
}

static void urgent(cudaStream_t stream, float *data, double seconds, int blocks) {
	static double response[10000];
	double begin = now_us(), release = begin, best;
	size_t n = 0, waited = 0;

	for (; release < begin + seconds * 1e6 && n < 10000; n++) {
		double start = sleep_until_us(release);

		for (int i = 0; i < 6; i++) {
			launch(stream, blocks, data, 2000);
		}
		CHECK(cudaStreamSynchronize(stream));
		response[n] = now_us() - start;
		release += 5000;
		release = release > now_us() ? release : now_us();
	}
	best = percentile(response, n, 0);
	for (size_t i = 0; i < n; i++) {
		waited += response[i] > best + 300;
	}
	printf(" urgent p50 %.0f p99 %.0f us, %zu of %zu waited", percentile(response, n, 500),
	       percentile(response, n, 990), waited, n);
}

static cudaStream_t make_stream(int level, const char *set) {
	CUdevResource all, group, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream stream;
	cudaStream_t plain;
	unsigned n = 1;

	if (strcmp(set, "all") == 0) {
		CHECK(cudaStreamCreateWithPriority(&plain, cudaStreamNonBlocking, level));
		return plain;
	}
	CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&group, &n, &all, &rest, 0, 64));
	CHECK(cuDevResourceGenerateDesc(&desc, strcmp(set, "64") == 0 ? &group : &rest, 1));
	CHECK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, level));
	return (cudaStream_t)stream;
}

int main(int argc, char **argv) {
	cudaStream_t stream;
	float *data;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: cap busy | urgent LEVEL SET SECONDS [BLOCKS]\n");
		return 2;
	}
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
	CHECK(cudaMalloc((void **)&data, 256 * sizeof(*data)));
	CHECK(cudaMemset(data, 1, 256 * sizeof(*data)));
	stream = make_stream(atoi(argv[2]), argv[3]);
	launch(stream, 1, data, 1);
	CHECK(cudaStreamSynchronize(stream));
	if (argc == 6) {
		urgent(stream, data, atof(argv[4]), atoi(argv[5]));
	} else {
		busy(stream, data, atof(argv[4]));
	}
	return 0;
}
