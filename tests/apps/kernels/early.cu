/*
 * early.cu: sums rows of different lengths, one block a row. Threads without an element return
 * before the first barrier, and in each round the upper half returns while the rest goes on to the
 * next barrier: exited threads do not count at a barrier.
 */
#include "shapes.h"

extern "C" __global__ void early(const unsigned *data, const unsigned *lengths, unsigned stride,
				 unsigned *sums) {
	__shared__ unsigned row[EARLY_BLOCK];
	unsigned t = threadIdx.x;
	unsigned width = lengths[blockIdx.x];

	if (t >= width) {
		return;
	}
	row[t] = data[blockIdx.x * stride + t];
	while (width > 1) {
		unsigned half = (width + 1) / 2;

		__syncthreads();
		if (t >= half) {
			return;
		}
		if (t + half < width) {
			row[t] += row[t + half];
		}
		width = half;
	}
	sums[blockIdx.x] = row[0];
}
