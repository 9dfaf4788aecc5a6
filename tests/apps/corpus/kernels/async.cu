/* async.cu: copies that go on while the thread does. nvcc: -arch=compute_80 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "common.cuh"

__device__ static inline void copy16(void *to, const void *from) {
	u32 s = (u32)__cvta_generic_to_shared(to);

	asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
}

KERNEL __launch_bounds__(128) copies(u32 *out, const u32 *in) {
	__shared__ uint4 s[128];
	u32 t = threadIdx.x;

	copy16(&s[t], in + 4 * (self() % (IN_WORDS / 4)));
	asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
	__syncthreads();
	out[self()] = s[blockDim.x - 1 - t].y;
}

/* It ends with copies under way: they must not hit the next block. */
KERNEL __launch_bounds__(128) copies_left(u32 *out, const u32 *in, u32 k) {
	__shared__ uint4 s[128];
	u32 t = threadIdx.x;

	s[t] = make_uint4(t, blockIdx.x, k, 1);
	__syncthreads();
	out[self()] = s[blockDim.x - 1 - t].x;
	__syncthreads();
	copy16(&s[t], in + 4 * (self() % (IN_WORDS / 4)));
	if (k & 1) {
		return;
	}
	asm volatile("cp.async.commit_group;" ::: "memory");
}

KERNEL redux(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	out[self()] = __reduce_add_sync(0xffffffffu, v) ^ __reduce_max_sync(0xffffffffu, v);
}

KERNEL redux_leave(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (__reduce_max_sync(0xffffffffu, v) % 2) {
		return;
	}
	out[self()] = __shfl_xor_sync(0xffffffffu, v, 3);
}

KERNEL group_reduce(u32 *out, const u32 *in) {
	auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());

	out[self()] = cooperative_groups::reduce(tile, IN(in, self()),
						 cooperative_groups::plus<u32>());
}
