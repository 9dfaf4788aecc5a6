/*
 * uniform.cu: what looks the same in all threads, and what only seems to. Behind each condition the
 * threads that stay wait for each other: a twin that took it for the same in all would hang.
 */
#include "common.cuh"

/* They leave by @condition; the others wait for their warp. */
#define LEAVE_WARP(name, condition)                                                                \
	KERNEL name(u32 *out, const u32 *__restrict__ in, u32 k, u32 n) {                          \
		u32 x = threadIdx.x, v = 0;                                                        \
                                                                                                   \
		if (condition) {                                                                   \
			return;                                                                    \
		}                                                                                  \
		for (int i = 16; i > 0; i /= 2) {                                                  \
			v += __shfl_xor_sync(0xffffffffu, x + blockIdx.x, i);                      \
		}                                                                                  \
		out[self()] = v + n;                                                               \
	}

LEAVE_WARP(warp_by_index, x / 32 == k)
LEAVE_WARP(warp_by_limit, (x & ~31u) >= n % 160)
LEAVE_WARP(warp_by_bound, x >= 64)
LEAVE_WARP(warp_by_last, x > 95)
LEAVE_WARP(warp_by_param, k > 3)
LEAVE_WARP(warp_by_block, blockIdx.x % 3 == k)
LEAVE_WARP(warp_by_load, IN(in, blockIdx.x * 5 + x / 32) & 1)
LEAVE_WARP(warp_by_row, blockIdx.x * (blockDim.x / 32) + (x >> 5) >= n % 64)
LEAVE_WARP(warp_by_thread, blockIdx.x * blockDim.x + x >= n / 32 * 32)
LEAVE_WARP(warp_by_signed, (int)x / 32 == (int)k)
LEAVE_WARP(lane_by_signed, ((int)x - 64) / 32 == 0)
LEAVE_WARP(lane_by_limit, x >= n % 160)
LEAVE_WARP(lane_by_bound, x >= 65)
LEAVE_WARP(lane_by_last, x > 94)
LEAVE_WARP(lane_shifted, x + 1 >= 64)
LEAVE_WARP(lane_doubled, x * 2 >= 64)
LEAVE_WARP(lane_reversed, 64 - x < 32)
LEAVE_WARP(lane_halves, x >> 4 == k)
LEAVE_WARP(lane_masked, (x & 48) == 16)
LEAVE_WARP(lane_xored, (x ^ 16) >= 32 + k)
LEAVE_WARP(lane_by_load, IN(in, x) & 1)
LEAVE_WARP(lane_byte, (unsigned char)(x * 8) >= 64)

/* Packed into one word and taken apart again: the upper half of a multiple of 32 need not be one. */
KERNEL lane_by_half_word(u32 *out, const u32 *in, u32 k, u32 n) {
	unsigned short low, high;
	u32 x = threadIdx.x, v = 0;

	asm volatile("{\n\t.reg .b32 w;\n\tmov.b32 w, 65536;\n\tmov.b32 {%0, %1}, w;\n\t}"
		     : "=h"(low), "=h"(high));
	if (x + high >= 32 + low) {
		return;
	}
	for (int i = 16; i > 0; i /= 2) {
		v += __shfl_xor_sync(0xffffffffu, x + blockIdx.x, i);
	}
	out[self()] = v + n + k;
}

/* A register is used again for something that is not the same in all: that counts where it may be. */
KERNEL warp_by_early_register(u32 *out, const u32 *in, u32 k, u32 n) {
	u32 v = 0, x;

	asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
	if (x / 32 == k) {
		return;
	}
	for (int i = 16; i > 0; i /= 2) {
		v += __shfl_xor_sync(0xffffffffu, v + x, i);
	}
	for (; x < n; x += 1 + IN(in, x) % 64) {
		v += x;
	}
	out[self()] = v;
}

/* The same, for the block: those that stay wait at a barrier. */
#define LEAVE_BLOCK(name, ...)                                                                     \
	KERNEL name(u32 *out, const u32 *__restrict__ in, u32 k, u32 n) {                          \
		__shared__ u32 all[1024];                                                          \
		u32 x = threadIdx.x, leave;                                                        \
                                                                                                   \
		all[x] = x + k;                                                                    \
		__VA_ARGS__;                                                                       \
		if (leave) {                                                                       \
			return;                                                                    \
		}                                                                                  \
		__syncthreads();                                                                   \
		out[self()] = all[blockDim.x - 1 - x];                                             \
	}

__constant__ u32 table[8] = {0, 1, 1, 0, 1, 0, 0, 1};

__device__ __noinline__ u32 opinion(u32 v) {
	return v * 7 & 8;
}

LEAVE_BLOCK(block_by_param, leave = k < 4)
LEAVE_BLOCK(block_by_block, leave = blockIdx.x % 3 == k % 3)
LEAVE_BLOCK(block_by_constant, leave = table[blockIdx.x % 8])
LEAVE_BLOCK(block_by_load, leave = __ldg(&in[blockIdx.x]) & 1)
LEAVE_BLOCK(thread_by_constant, leave = table[x % 8])
LEAVE_BLOCK(thread_by_load, leave = __ldg(&in[x]) & 1)
LEAVE_BLOCK(thread_by_function, leave = opinion(x))
LEAVE_BLOCK(block_by_function, leave = opinion(k))
LEAVE_BLOCK(thread_by_trips, u32 i = 0; volatile u32 t = 0; while (t < in[x] % 4) {
	t++;
	i++;
} leave = i == 2)
LEAVE_BLOCK(thread_by_path, asm volatile("{\n\t.reg .pred p;\n\tmov.u32 %0, 0;\n\tsetp.lt.u32 p, %1, "
					 "%2;\n\t@p bra set;\n\tbra over;\nset:\n\tmov.u32 %0, "
					 "1;\nover:\n\t}"
					 : "=r"(leave)
					 : "r"(x), "r"(n % 64)))
LEAVE_BLOCK(thread_by_guard, asm volatile("{\n\t.reg .pred p;\n\tmov.u32 %0, 0;\n\tsetp.lt.u32 p, %1, "
					  "%2;\n\t@p mov.u32 %0, 1;\n\t}"
					  : "=r"(leave)
					  : "r"(x), "r"(n % 64)))
LEAVE_BLOCK(thread_by_shared, __shared__ u32 s[1024]; s[x] = x; __syncthreads(); leave = s[x / 2] > n % 64)
LEAVE_BLOCK(thread_by_carry, asm volatile("{\n\t.reg .u32 t;\n\tadd.cc.u32 t, %1, %2;\n\taddc.u32 %0, "
					  "0, 0;\n\t}"
					  : "=r"(leave)
					  : "r"(x), "r"(0xffffff00u | n)))
LEAVE_BLOCK(thread_by_clock, leave = (clock() & 0) + (x < k))
LEAVE_BLOCK(thread_by_local, u32 a[4] = {x, k, n, 1}; leave = a[(k + x / 32) % 4] & 2)
