/*
 * quiet.cu: words of shared memory that one thread writes for its block, behind barriers, though they are
 * volatile; and others that may change while they are read. The lanes of a warp go by them to one place
 * where they wait for each other or to another, so that only a proof gives a kernel its twin.
 */
#include "common.cuh"

/* All lanes: k is below 8. The text does not show it, so the lanes can't be counted where they meet. */
#define ALL ~(k >> 3)

__device__ static inline u32 split(u32 which, u32 v, u32 mask) {
	if (which & 1) {
		v += __shfl_xor_sync(mask, v, 1) * 3;
	} else {
		v ^= __shfl_down_sync(mask, v, 5);
	}
	return v;
}

/* As in triangular solves: which row is the block's, or 0. */
KERNEL quiet_row(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 row;
	u32 x = threadIdx.x;

	if (x == 0) {
		row = IN(in, blockIdx.x) % 5 + k;
	}
	__syncthreads();
	if (row == 3) {
		return;
	}
	out[self()] = split(row, x + n, ALL);
}

/* A round for each row; a barrier before the next one is written, too. */
KERNEL quiet_rounds(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 row;
	__shared__ u32 words[1024];
	u32 x = threadIdx.x, v = 0;

	for (u32 i = 0; i < 6; i++) {
		if (x == i) {
			row = IN(in, blockIdx.x * 6 + i);
		}
		words[x] = mix(x + i + n);
		__syncthreads();
		v += words[blockDim.x - 1 - x];
		__syncthreads();
		v = split(row + k, v, ALL);
		__syncthreads();
	}
	out[self()] = v;
}

/* The next row may be written while others still read this one. */
KERNEL loud_rounds(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 row;
	u32 x = threadIdx.x, v = x + n;

	for (u32 i = 0; i < 6; i++) {
		if (x == 0) {
			row = IN(in, blockIdx.x * 6 + i);
		}
		__syncthreads();
		v = split(row + k, v, ALL);
	}
	out[self()] = v;
}

/* A barrier that stands on one way only. */
KERNEL loud_way(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 row;
	u32 x = threadIdx.x;

	if (x == 0) {
		row = IN(in, blockIdx.x);
	}
	if (k > 3) {
		__syncthreads();
	}
	out[self()] = split(row, x + n, ALL);
}

/* A barrier that stands for each warp in another place. */
KERNEL loud_warps(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 row;
	u32 x = threadIdx.x, v = x + n;

	if (x >= 32) {
		__syncthreads();
		v = split(row, v, ALL);
	} else {
		__syncthreads();
		if (x == 0) {
			row = IN(in, blockIdx.x);
		}
	}
	out[self()] = v;
}

/* Two words, of which any may be written by its number. */
KERNEL loud_index(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ volatile u32 rows[2];
	u32 x = threadIdx.x;

	if (x == 0) {
		rows[0] = IN(in, blockIdx.x);
	}
	__syncthreads();
	if (x == 33) {
		rows[k & 1] = n;
	}
	out[self()] = split(rows[0], x + n, ALL);
}
