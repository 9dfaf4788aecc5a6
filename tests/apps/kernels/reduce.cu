/*
 * reduce.cu: sum of an array by warp shuffles, in a fixed order. Launched with REDUCE_GRID blocks it
 * leaves a partial sum a block; launched again on those with one block it gives the sum.
 */
#include "shapes.h"

template <typename T>
static __device__ T warp_sum(T v) {
	for (int delta = REDUCE_WARP / 2; delta > 0; delta /= 2) {
		v += __shfl_down_sync(0xffffffffu, v, delta);
	}
	return v;
}

template <typename T>
__global__ void reduce(const T *in, T *out, unsigned n) {
	__shared__ T warps[REDUCE_BLOCK / REDUCE_WARP];
	unsigned lane = threadIdx.x % REDUCE_WARP;
	unsigned warp = threadIdx.x / REDUCE_WARP;
	T sum = 0;

	for (unsigned i = blockIdx.x * REDUCE_BLOCK + threadIdx.x; i < n;
	     i += gridDim.x * REDUCE_BLOCK) {
		sum += in[i];
	}
	sum = warp_sum(sum);
	if (lane == 0) {
		warps[warp] = sum;
	}
	__syncthreads();
	if (warp == 0) {
		sum = warp_sum(lane < REDUCE_BLOCK / REDUCE_WARP ? warps[lane] : T(0));
		if (lane == 0) {
			out[blockIdx.x] = sum;
		}
	}
}

template __global__ void reduce<float>(const float *, float *, unsigned);
template __global__ void reduce<unsigned long long>(const unsigned long long *, unsigned long long *,
						    unsigned);
