/* warp.cu: lanes that wait for each other. */
#include <cooperative_groups.h>

#include "common.cuh"

#define FULL 0xffffffffu

namespace cg = cooperative_groups;

__device__ static inline u32 warp_sum(u32 v) {
	for (int i = 16; i > 0; i /= 2) {
		v += __shfl_down_sync(FULL, v, i);
	}
	return v;
}

KERNEL shuffles(u32 *out, const u32 *in, u32 *marks) {
	u32 v = IN(in, self());

	mark(marks);
	out[4 * self()] = __shfl_sync(FULL, v, v % 32);
	out[4 * self() + 1] = __shfl_up_sync(FULL, v, 3);
	out[4 * self() + 2] = __shfl_xor_sync(FULL, v, 9, 16);
	out[4 * self() + 3] = __shfl_down_sync(FULL, v, 5, 8);
}

KERNEL votes(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	out[4 * self()] = __ballot_sync(FULL, v & 1);
	out[4 * self() + 1] = __any_sync(FULL, v % 64 == 5);
	out[4 * self() + 2] = __all_sync(FULL, v % 64 != 5);
	out[4 * self() + 3] = __match_any_sync(FULL, v % 3);
}

/* The words of the opcode in the order of an earlier manual, as libraries write them. */
KERNEL old_votes(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), all;

	asm volatile("{\n\t.reg .pred p, q;\n\tsetp.gt.u32 p, %1, 9;\n\t"
		     "vote.ballot.sync.b32 %0, p, 0xffffffff;\n\t"
		     "vote.any.sync.pred q, p, 0xffffffff;\n\t"
		     "@q add.u32 %0, %0, 1;\n\t}"
		     : "=r"(all)
		     : "r"(v % 40));
	out[self()] = all;
}

KERNEL block_sum(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 sums[32];
	u32 t = threadIdx.x, v;

	mark(marks);
	v = warp_sum(IN(in, self()));
	if (t % 32 == 0) {
		sums[t / 32] = v;
	}
	__syncthreads();
	if (t < 32) {
		v = warp_sum(t < blockDim.x / 32 ? sums[t] : 0);
		if (t == 0) {
			out[block_number()] = v;
		}
	}
}

/* As most programs have it: the guard around the load, not around the shuffle. */
KERNEL guarded_sum(u32 *out, const u32 *in, u32 total) {
	u32 v = self() < total ? IN(in, self()) : 0;

	v = warp_sum(v);
	if (threadIdx.x % 32 == 0) {
		out[self()] = v;
	}
}

KERNEL strided_sum(u32 *out, const u32 *in, u32 total) {
	u32 v = 0;

	for (u32 i = self(); i < total; i += gridDim.x * blockDim.x) {
		v += IN(in, i);
	}
	v = warp_sum(v);
	if (threadIdx.x % 32 == 0) {
		out[self()] = v;
	}
}

/* Whole warps leave, the others wait for all their lanes. */
KERNEL warps_leave_then_shuffle(u32 *out, const u32 *in, u32 k) {
	if (threadIdx.x / 32 % 2 == (k & 1)) {
		return;
	}
	out[self()] = warp_sum(IN(in, self()));
}

KERNEL row_per_warp(u32 *out, const u32 *in, u32 n) {
	u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, v = 0;

	if (row >= n % 64) {
		return;
	}
	for (u32 i = lane; i < 100; i += 32) {
		v += IN(in, row * 100 + i);
	}
	v = warp_sum(v);
	if (lane == 0) {
		out[row] = v;
	}
}

/* A warp's vote is the same in all its lanes: they leave together. */
KERNEL leave_by_vote(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (__any_sync(FULL, v % 64 == 7)) {
		return;
	}
	out[self()] = warp_sum(v);
}

/* Lanes leave, and the others name them in their mask. */
KERNEL lanes_leave_then_shuffle(u32 *out, const u32 *in, u32 total) {
	if (self() >= total) {
		return;
	}
	out[self()] = __shfl_xor_sync(FULL, IN(in, self()), 1);
}

KERNEL shuffle_in_guard(u32 *out, const u32 *in, u32 total) {
	if (self() < total) {
		out[self()] = __shfl_xor_sync(__activemask(), IN(in, self()), 0);
	}
}

KERNEL ballot_mask(u32 *out, const u32 *in, u32 total) {
	u32 i = self(), mask = __ballot_sync(FULL, i < total);

	if (i < total) {
		out[i] = __shfl_sync(mask, IN(in, i), __ffs(mask) - 1);
	}
}

/* Where the lanes meet again before they end, masks may be of any kind. */
KERNEL meet_again(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (threadIdx.x & 1) {
		v += __shfl_xor_sync(0xaaaaaaaau, v, 2);
	} else {
		v -= __shfl_xor_sync(0x55555555u, v, 4);
	}
	__syncwarp();
	out[self()] = v;
}

KERNEL meet_at_barrier(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (threadIdx.x % 32 < 8) {
		v += __shfl_xor_sync(0xffu, v, 2);
	}
	__syncthreads();
	out[self()] = v;
}

KERNEL tiles(u32 *out, const u32 *in) {
	auto block = cg::this_thread_block();
	auto t32 = cg::tiled_partition<32>(block);
	u32 v = IN(in, self());

	v += t32.shfl_xor(v, 1);
	v ^= t32.ballot(v & 1);
	t32.sync();
	out[self()] = v + t32.meta_group_rank();
}

KERNEL small_tiles(u32 *out, const u32 *in) {
	auto tile = cg::tiled_partition<4>(cg::this_thread_block());
	u32 v = IN(in, self());

	for (u32 i = tile.size() / 2; i > 0; i /= 2) {
		v += tile.shfl_down(v, i);
	}
	out[self()] = v + tile.any(v % 16 == 3);
}

KERNEL coalesced(u32 *out, const u32 *in, u32 *count) {
	u32 v = IN(in, self());

	if (v & 1) {
		auto g = cg::coalesced_threads();
		u32 first = 0;

		if (g.thread_rank() == 0) {
			first = atomicAdd(count, g.size());
		}
		g.shfl(first, 0);
	}
}

__device__ __noinline__ u32 sum_in_function(u32 v) {
	return warp_sum(v) + blockIdx.x;
}

KERNEL shuffle_in_function(u32 *out, const u32 *in) {
	out[self()] = sum_in_function(IN(in, self()));
}

/* Leavers in several steps; who is left must be known at each. */
KERNEL leave_twice(u32 *out, const u32 *in, u32 total) {
	u32 i = self(), v = IN(in, i), b;

	if (i >= total) {
		return;
	}
	b = __ballot_sync(FULL, v & 1);
	if (v % 5 == 0) {
		out[4 * i] = b;
		return;
	}
	b += __ballot_sync(FULL, v & 2);
	if (v % 7 != 1) {
		out[4 * i + 1] = b + __any_sync(FULL, v % 3 == 0);
	}
}

/* Each lane has its own number of rounds, and ends with the loop. */
KERNEL leave_by_rounds(u32 *out, const u32 *in) {
	u32 rounds = IN(in, self()) % 6, v = 0;

#pragma unroll 1
	for (u32 i = 0; i < rounds; i++) {
		u32 left = __ballot_sync(FULL, 1);

		v = v * 5 + __popc(left) + __shfl_sync(FULL, threadIdx.x, __ffs(left) - 1);
		out[self()] = v;
	}
}

/* Those behind the branch go, those who take it stay. */
KERNEL leave_by_going_on(u32 *out, const u32 *in) {
	u32 i = self(), v = IN(in, i);

	if (v % 4) {
		v = __match_any_sync(FULL, v % 3) + __all_sync(FULL, v % 8 != 1);
		__syncwarp();
		out[i] = v;
	} else {
		out[i] = 7;
	}
}

/* Here and there are different lanes: those who leave can be counted only where the others meet. */
KERNEL leave_in_part(u32 *out, const u32 *in) {
	u32 i = self(), v = IN(in, i);

	if (v & 1) {
		out[i] = v;
		if (v & 2) {
			return;
		}
		out[i] = 2 * v;
	}
	v = __ballot_sync(FULL, v & 4);
	out[i] += v;
}

/* The function's masks can't be cut. */
KERNEL leave_then_call(u32 *out, const u32 *in, u32 total) {
	u32 i = self();

	if (i >= total) {
		return;
	}
	out[i] = sum_in_function(IN(in, i)) & 0;
}

/* The same mask in several rounds, some of which not all of its lanes run. */
KERNEL own_mask_in_loop(u32 *out, const u32 *in) {
	u32 i = self(), v = IN(in, i), n = 0;

#pragma unroll 1
	for (u32 rounds = v % 8; rounds > 0; rounds--, v = v * 5 + 1) {
		if (v & 1) {
			u32 mask = __activemask();

#pragma unroll 1
			for (u32 k = 0; k < v % 4; k++) {
				n += __any_sync(mask, v > k);
			}
		}
	}
	out[i] = n;
}

/* Lanes may pass by where the others wait. */
KERNEL own_mask_passed_by(u32 *out, const u32 *in) {
	u32 i = self(), v = IN(in, i), n = 0;

#pragma unroll 1
	for (u32 rounds = v % 8; rounds > 0; rounds--, v = v * 5 + 1) {
		if (v & 1) {
			u32 mask = __activemask();

			if (v & 2) {
				n += __any_sync(mask, v > 9);
			}
		}
	}
	out[i] = n;
}

/* Groups of the lanes that happen to be there, in loops and behind leavers. */
KERNEL filter(u32 *out, const u32 *in, u32 *count, u32 total) {
	for (u32 i = self(); i < total; i += gridDim.x * blockDim.x) {
		u32 v = IN(in, i);

		if (v % 3) {
			auto g = cg::coalesced_threads();

			if (g.thread_rank() == 0) {
				atomicAdd(count, g.size());
			}
			atomicAdd(&count[1], g.shfl(v, g.thread_rank()) == v);
			if (i < 4 * gridDim.x * blockDim.x) {
				out[i] = v;
			}
		}
	}
}
