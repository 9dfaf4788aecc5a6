/*
 * compute.cu: a chosen amount of arithmetic per thread and next to no memory traffic, for rates.
 *
 * Each thread iterates x = x * mul + add; the result after any number of rounds is known in closed
 * form, so it can be checked at any size. mul and add are parameters so that no compiler shortens
 * the loop. Each block also counts itself in module-scope and caller-given memory: a block lost or
 * run twice shows, as does the SM that it ran on.
 */
#include "shapes.h"

__device__ unsigned long long compute_blocks;

extern "C" __global__ void compute(unsigned *out, unsigned first, unsigned rounds, unsigned mul,
				   unsigned add, unsigned *sm_blocks) {
	unsigned i = blockIdx.x * COMPUTE_BLOCK + threadIdx.x;
	unsigned x = first + i;

	if (threadIdx.x == 0) {
		unsigned sm;

		asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
		if (sm < COMPUTE_SMS_MAX) {
			atomicAdd(&sm_blocks[sm], 1u);
		}
		atomicAdd(&compute_blocks, 1ull);
	}
	for (unsigned r = 0; r < rounds; r++) {
		x = x * mul + add;
	}
	out[i] += x;
}
