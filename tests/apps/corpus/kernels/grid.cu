/* grid.cu: kernels that must run as they are. */
#include <cooperative_groups.h>

#include "common.cuh"

namespace cg = cooperative_groups;

KERNEL grid_sync(u32 *out, u32 *count) {
	atomicAdd(count, 1u);
	cg::this_grid().sync();
	out[self()] = *count;
}

KERNEL texture(float *out, cudaTextureObject_t t) {
	out[self()] = tex1Dfetch<float>(t, self());
}

KERNEL stack_memory(u32 *out, u32 k) {
	u32 *p = (u32 *)__builtin_alloca(16 + 16 * k);

	p[self() % 4] = k;
	out[self()] = p[self() % 4];
}
