/*
 * attention.cu: warps that wait where data decides which all of their lanes read at one address, as in
 * FlashAttention's kernels with sequences of different lengths, one-sweep sorts and segmented sorts.
 * A twin that took other data for the same in all would hang.
 */
#include "common.cuh"

#define FULL 0xffffffffu

__device__ static inline u32 warp_max(u32 v) {
	for (int i = 16; i > 0; i /= 2) {
		u32 other = __shfl_xor_sync(FULL, v, i);

		v = other > v ? other : v;
	}
	return v;
}

__device__ static inline u32 warp_sum(u32 v) {
	for (int i = 16; i > 0; i /= 2) {
		v += __shfl_xor_sync(FULL, v, i);
	}
	return v;
}

/* Four blocks of queries a sequence; those beyond its end leave, and so do those with nothing to see. */
KERNEL attention_lengths(u32 *out, const u32 *lengths, u32 causal, u32 n) {
	__shared__ u32 keys[1024];
	u32 x = threadIdx.x, sequence = blockIdx.x / 4, query = blockIdx.x % 4;
	u32 first = IN(lengths, sequence), length = IN(lengths, sequence + 1) % 7, best = 0, sum = 0, end;

	if (query >= length) {
		return;
	}
	end = causal > 3 && query + 1 < length ? query + 1 : length;
	for (u32 block = 0; block < end; block++) {
		u32 score;

		keys[x] = mix(first + block * n + x);
		__syncthreads();
		score = keys[blockDim.x - 1 - x] ^ query;
		best = warp_max(best > score ? best : score);
		sum += score == best ? 1 : score % 17;
		__syncthreads();
	}
	out[self()] = best + warp_sum(sum);
}

/* Blocks of keys are left out by a list in memory; the last one ends it. */
KERNEL attention_sparse(u32 *out, const u32 *blocks, u32 k, u32 n) {
	__shared__ u32 keys[1024];
	u32 x = threadIdx.x, sum = 0;

	for (u32 i = 0; i < 12; i++) {
		u32 block = IN(blocks, blockIdx.x * 12 + i);

		if (block % 11 == k) {
			break;
		}
		if (block & 1) {
			continue;
		}
		__syncthreads();
		keys[x] = mix(block + x + n);
		__syncthreads();
		sum += warp_sum(keys[x ^ 33 % blockDim.x & 31]);
	}
	out[self()] = sum;
}

/* Parts of a sequence's keys are other blocks'; the length comes by a struct of parameters. */
struct places {
	u32 word[8];
};

KERNEL attention_split(const __grid_constant__ struct places p, u32 *out, const u32 *in, u32 n) {
	u32 part = p.word[blockIdx.x % 8] % 5, from = part * (in[blockIdx.x / 8 % IN_WORDS] % 9), to = from + part;
	u32 v = threadIdx.x;

	if (from >= 20) {
		out[self()] = 1;
		return;
	}
	for (; from < to; from++) {
		v = warp_max(mix(v + from)) + v;
	}
	out[self()] = v + n;
}

/* One lane takes a ticket for its warp; the others read it behind a meeting of the warp. */
KERNEL ticket_of_warp(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ u32 tickets[32], next;
	u32 x = threadIdx.x, v = 0;

	if (x == 0) {
		next = 0;
	}
	__syncthreads();
	for (u32 round = 0; round < 5; round++) {
		u32 ticket;

		if (x % 32 == 0) {
			tickets[x / 32] = atomicAdd(&next, 1);
		}
		__syncwarp();
		ticket = tickets[x / 32];
		if (ticket >= k * blockDim.x / 32) {
			break;
		}
		v += warp_sum(x & 1) + n;
		__syncwarp();
	}
	/* how many rounds a warp gets is not told, only that all lanes of it got as many */
	out[self()] = v % (16 + n) == 0;
}

/* Behind a barrier each block goes by what thread 0 has read for it. */
KERNEL segment_of_block(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ u32 length, words[1024];
	u32 x = threadIdx.x, v = 0;

	if (x == 0) {
		length = IN(in, blockIdx.x) % 5;
	}
	__syncthreads();
	if (length <= k % 4) {
		return;
	}
	for (u32 i = 0; i < length; i++) {
		words[x] = mix(x + i + n);
		if (__syncthreads_and(words[x] % 16)) {
			v++;
		}
		v += warp_sum(words[x]);
		__syncthreads();
	}
	out[self()] = v;
}

/* The same from global memory, all at the start. */
KERNEL segment_by_load(u32 *out, const u32 *in, u32 k, u32 n) {
	u32 begin = IN(in, blockIdx.x) % 9, end = IN(in, blockIdx.x + 1) % 13, v = 0;

	if (begin >= end) {
		return;
	}
	for (; begin < end; begin++) {
		v += __syncthreads_count(mix(threadIdx.x + begin + n) & 1);
	}
	out[self()] = v + k;
}
