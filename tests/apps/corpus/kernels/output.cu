/* output.cu: what a kernel says to its user. */
#include <assert.h>
#include <stdio.h>

#include "common.cuh"

KERNEL prints(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (v % 16 == 0) {
		printf("block %u of %u, thread %u: %u %s\n", blockIdx.x, gridDim.x, threadIdx.x, v,
		       v & 16 ? "odd" : "even");
	}
	out[self()] = v;
}

KERNEL asserts(u32 *out, const u32 *in) {
	assert(block_number() < gridDim.x * gridDim.y * gridDim.z);
	out[self()] = IN(in, self());
}

KERNEL prints_then_meets(u32 *out, const u32 *in) {
	__shared__ u32 n;

	if (threadIdx.x == 0) {
		n = 0;
		printf("block %u\n", blockIdx.x);
	}
	__syncthreads();
	if (IN(in, self()) & 1) {
		return;
	}
	atomicAdd(&n, 1u);
	__syncthreads();
	out[self()] = n;
}
