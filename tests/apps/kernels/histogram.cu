/*
 * histogram.cu: how often each byte value occurs. A block counts in (dynamic) shared memory and adds
 * its counts to the result at the end.
 */
#include "shapes.h"

extern __shared__ unsigned block_bins[];

extern "C" __global__ void histogram(const unsigned char *data, unsigned n, unsigned *bins) {
	for (unsigned b = threadIdx.x; b < HISTOGRAM_BINS; b += blockDim.x) {
		block_bins[b] = 0;
	}
	__syncthreads();
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		atomicAdd(&block_bins[data[i]], 1u);
	}
	__syncthreads();
	for (unsigned b = threadIdx.x; b < HISTOGRAM_BINS; b += blockDim.x) {
		if (block_bins[b] > 0) {
			atomicAdd(&bins[b], block_bins[b]);
		}
	}
}
