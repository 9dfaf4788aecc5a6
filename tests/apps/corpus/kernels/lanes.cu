/*
 * lanes.cu: what the lanes of a warp agree on because they ask one lane, or take the lane's number off
 * again, and what only looks like it. Behind each condition those that stay call a function in which
 * they wait for each other; nobody can count them there, so only a proof gives a kernel its twin.
 */
#include "common.cuh"

#define FULL 0xffffffffu

__device__ __noinline__ u32 meet(u32 v) {
	for (int i = 16; i > 0; i /= 2) {
		v += __shfl_xor_sync(FULL, v, i);
	}
	return v;
}

#define LEAVE(name, ...)                                                                           \
	KERNEL name(u32 *out, const u32 *__restrict__ in, u32 k, u32 n) {                          \
		u32 x = threadIdx.x, lane = x & 31, v = IN(in, blockIdx.x * 7 + x), leave;         \
                                                                                                   \
		__VA_ARGS__;                                                                       \
		if (leave) {                                                                       \
			return;                                                                    \
		}                                                                                  \
		out[self()] = meet(v + n + k + lane);                                              \
	}

LEAVE(asked_param, leave = __shfl_sync(FULL, v, k) & 1)
LEAVE(asked_load, leave = __shfl_sync(FULL, v, IN(in, blockIdx.x)) & 1)
LEAVE(asked_warp, leave = __shfl_sync(FULL, v, x / 32) & 1)
LEAVE(asked_thread, leave = __shfl_sync(FULL, v, x / 3) & 1)
LEAVE(asked_tiles, leave = __shfl_sync(FULL, v, k, 16) & 1)
LEAVE(asked_other, leave = __shfl_xor_sync(FULL, v, k + 1) & 1)
LEAVE(asked_below, leave = __shfl_up_sync(FULL, v, k + 1) & 1)
LEAVE(asked_some, leave = 0; if (lane < 16) leave = __shfl_sync(0xffffu, v, k) & 1)

/* Keys that lie in a row, 32 at a time, as in products of sparse matrices: a round for each, until one
 * ends the row. */
KERNEL rows_of_keys(u32 *out, const u32 *__restrict__ in, u32 k, u32 n) {
	u32 lane = threadIdx.x & 31, v = 0, keys = 0, key;

	for (u32 i = 0; i < 70; i++) {
		if (i % 32 == 0) {
			keys = IN(in, blockIdx.x * 64 + threadIdx.x / 32 + i + lane);
		}
		key = __shfl_sync(FULL, keys, i % 32);
		if (key % 23 == k) {
			break;
		}
		v = meet(v + key + lane);
	}
	out[self()] = v + n;
}

LEAVE(number_off, leave = blockIdx.x * blockDim.x + x - lane >= n)
LEAVE(number_added, leave = x + (lane ^ 31) + n % 7 >= 80)
LEAVE(number_filled, leave = (x | 31) + n % 7 >= 80)
LEAVE(number_off_again, leave = (x + n - lane) % 3 == 0)
LEAVE(number_below, leave = (n - lane + x) % 3 == 0)
LEAVE(number_twice, leave = (x + lane) % 3 == 0)
LEAVE(number_of_half, leave = x - (x & 15) >= n % 160)
LEAVE(number_widened, leave = (u64)(x - n % 160) - lane > 1u << 20)
LEAVE(number_narrow, leave = (((unsigned char)(x * 9) - lane) & 64) != 0)

/* Steps of any length; a warp goes on as long as its last lane has something to do. */
KERNEL steps_of_warps(u32 *out, const u32 *__restrict__ in, u32 k, u32 n) {
	u32 lane = threadIdx.x & 31, v = 0;

	for (u32 i = threadIdx.x; i + (lane ^ 31) < n / 8; i += 37 + k) {
		v = meet(v + IN(in, i));
	}
	out[self()] = v;
}
