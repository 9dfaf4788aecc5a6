/*
 * options.cu: a program compiled to PTX alone, with options that stand beside the PTX in its file: -maxrregcount=40
 * and -Xptxas -dlcm=cg. And what it asks of its kernels.
 */
#include "cuda-guest.h"

enum { VALUES = 96, THREADS = 1024 };

/* Wants more registers than its blocks can have. */
static __global__ void many(float *a, int n) {
	float v[VALUES];

#pragma unroll
	for (int i = 0; i < VALUES; i++) {
		v[i] = a[(i * THREADS + threadIdx.x) % n];
	}
	for (int r = 0; r < 20; r++) {
#pragma unroll
		for (int i = 0; i < VALUES; i++) {
			v[i] = v[i] * v[(i + 37) % VALUES] + v[(i + 1) % VALUES];
		}
	}
#pragma unroll
	for (int i = 0; i < VALUES; i++) {
		a[i * THREADS + threadIdx.x] = v[i];
	}
}

static __global__ void __launch_bounds__(256, 4) bounded(int *x) {
	atomicAdd(x, 1);
}

template <int... known> static bool is_one_of(int version) {
	const int list[] = {known...};
	bool found = false;

	for (int k : list) {
		found = found || k == version;
	}
	return found;
}

static void registers(void) {
	cudaFuncAttributes f;
	float *a, sum;
	int n = VALUES * THREADS;

	RT(cudaFuncGetAttributes(&f, many));
	TELL("%d registers, at most %d threads\n", f.numRegs, f.maxThreadsPerBlock);
	if (f.numRegs > 64) {
		guest_fail("the option is lost");
	}
	RT(cudaMalloc(&a, n * sizeof(*a)));
	RT(cudaMemset(a, 0, n * sizeof(*a)));
	for (int i = 0; i < 30; i++) {
		many<<<2, THREADS>>>(a, n);
		RT(cudaGetLastError());
	}
	RT(cudaDeviceSynchronize());
	RT(cudaMemcpy(&sum, a, sizeof(sum), cudaMemcpyDefault));
	TELL("%f\n", sum);
}

static void versions(void) {
	cudaFuncAttributes f;

	RT(cudaFuncGetAttributes(&f, bounded));
	TELL("PTX %d, machine code %d, known %d\n", f.ptxVersion, f.binaryVersion,
	     is_one_of<__CUDA_ARCH_LIST__>(f.ptxVersion * 10));
}

static void answers(void) {
	const void *kernels[] = {(const void *)many, (const void *)bounded};

	for (const void *k : kernels) {
		cudaFuncAttributes f;
		int grid, block, blocks;

		RT(cudaFuncGetAttributes(&f, k));
		TELL("registers %d, shared %zu, constant %zu, local %zu, threads %d\n", f.numRegs, f.sharedSizeBytes,
		     f.constSizeBytes, f.localSizeBytes, f.maxThreadsPerBlock);
		RT(cudaOccupancyMaxPotentialBlockSize(&grid, &block, k, 0, 0));
		TELL("best: %d blocks of %d\n", grid, block);
		for (int threads = 32; threads <= 1024; threads *= 2) {
			RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, threads, 1024));
			TELL("%d blocks of %d\n", blocks, threads);
		}
	}
}

extern "C" const struct guest guests[] = {
	{"registers", registers},
	{"versions", versions},
	{"answers", answers},
	{NULL, NULL},
};
