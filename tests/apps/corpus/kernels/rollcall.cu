/*
 * rollcall.cu: lanes that wait for their whole warp at different places of the text, and others that end
 * where not all of their warp are, so that neither a proof nor counting the leavers helps.
 */
#include "common.cuh"

#define FULL 0xffffffffu

/* As in products of sparse matrices: eight lanes a row, four rows a warp. Rows that have ended go on
 * meeting the longest of the four, elsewhere. */
KERNEL rows_of_groups(u32 *out, const u32 *in, u32 k, u32 n) {
	__shared__ u32 words[2][1024];
	u32 x = threadIdx.x, row = x / 8, first = row / 4 * 4, longest = 0, v = n, i = 0;
	u32 own = IN(in, blockIdx.x + row) % 11;

	for (u32 r = first; r < first + 4; r++) {
		longest = max(longest, IN(in, blockIdx.x + r) % 11);
	}
#pragma unroll 1
	for (; i < own; i++) {
		words[i & 1][x] = mix(v + i);
		__syncwarp();
		v += words[i & 1][x ^ 3] + k;
	}
#pragma unroll 1
	for (u32 rest = i; rest < longest; rest++) {
		__syncwarp();
	}
	out[self()] = v;
}

/* They give each other values at two places at once. */
KERNEL meet_apart(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), x = threadIdx.x;

#pragma unroll 1
	for (u32 i = 0; i < 5; i++) {
		if ((v ^ x) & 1) {
			asm volatile("shfl.sync.bfly.b32 %0, %0, 5, 31, -1;" : "+r"(v));
			v = v * 5 + 1;
		} else {
			asm volatile("shfl.sync.bfly.b32 %0, %0, 5, 31, -1;" : "+r"(v));
			v ^= v >> 3;
		}
	}
	out[self()] = v;
}

/* A lane may end in a part that others don't run, while they wait for each other before and behind it. */
KERNEL end_in_part(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), n = 0;

#pragma unroll 1
	for (u32 i = 0; i < 7; i++) {
		u32 here = __ballot_sync(FULL, v & 4);

		n = n * 3 + here;
		if (v >> i & 1) {
			out[4 * self()] = n;
			if (v >> i & 2) {
				n += i;
				if (n % 3 == 0) {
					return;
				}
			}
			out[4 * self() + 1] = __popc(n);
		}
		n += __match_any_sync(FULL, v >> i & 3) + __all_sync(FULL, v % 16);
		out[4 * self() + 2] = n;
	}
	__syncwarp();
	out[4 * self() + 3] = n;
}

/* The same, but the block has barriers, which those that have ended do not keep from going on. */
KERNEL end_between_barriers(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 words[1024];
	u32 x = thread_number(), v = IN(in, self()), n = 0;

#pragma unroll 1
	for (u32 i = 0; i < 5; i++) {
		words[x] = v + i;
		__syncthreads();
		n += words[(x + k) % block_threads()] & 0xff;
		__syncthreads();
		if (v >> i & 1) {
			out[2 * self()] = n + i;
			if (v >> i & 2) {
				words[x] = i;
				return;
			}
			n++;
		}
		n = n * 3 + __ballot_sync(FULL, n & 1);
		__syncwarp();
		out[2 * self() + 1] = n;
	}
}

/* A warp's barriers and meetings, while other warps have ended or are behind. */
KERNEL end_by_warps(u32 *out, const u32 *in) {
	u32 x = thread_number(), v = IN(in, self()), n = 0;
	u32 rounds = IN(in, block_number() + x / 32) % 6;

#pragma unroll 1
	for (u32 i = 0; i < rounds; i++) {
		n += __ballot_sync(FULL, v >> i & 1);
		if (v % 9 == i) {
			if (n & 1) {
				break;
			}
			n += 7;
		}
		__syncthreads();
		n = n * 5 + __any_sync(FULL, n % 4 == 0);
	}
	out[self()] = n;
}

/* The mask of the whole warp in a register; what meets it elsewhere has it in its text. */
KERNEL mask_in_register(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 words[1024];
	u32 x = threadIdx.x, v = IN(in, self()), all = ~(k >> 3);

#pragma unroll 1
	for (u32 i = 0; i < 6; i++) {
		if (x % 32 == i) {
			words[x] = v;
			asm volatile("bar.warp.sync -1;" ::: "memory");
		}
		__syncwarp(all);
		if (x % 32 != i) {
			asm volatile("bar.warp.sync -1;" ::: "memory");
			v += words[x / 32 * 32 + i];
		}
	}
	if (v & 1) {
		out[self()] = v;
		if (v & 2) {
			return;
		}
	}
	__syncwarp();
	out[self()] = v * 3;
}

/* Lanes that skip a meeting by its guard have ended before the next one. */
KERNEL guarded_meeting(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), n = 0;

	if (v & 1) {
		out[self()] = 1;
		if (v & 6) {
			return;
		}
	}
	asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\t"
		     "@p vote.sync.ballot.b32 %0, p, -1;\n\t}"
		     : "+r"(n)
		     : "r"(v % 5));
	if (v % 5 == 0) {
		return;
	}
	out[self()] = n + __ballot_sync(FULL, v & 8);
}

/* Masks of parts of a warp need a proof. */
KERNEL half_of_warp(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), n = 0;

	if (threadIdx.x % 32 < 16) {
		if (v & 1) {
			out[self()] = 1;
			if (v & 2) {
				return;
			}
			n++;
		}
		n += __ballot_sync(0xffffu, v & 4);
	}
	out[self()] = n;
}

/* So do those that may be one. */
KERNEL mask_that_may_be_less(u32 *out, const u32 *in, u32 k) {
	u32 v = IN(in, self()), n = 0, all = ~(k >> 3);

	if (v & 1) {
		out[self()] = 1;
		if (v & 2) {
			return;
		}
		n++;
	}
	out[self()] = n + __ballot_sync(all, v & 4);
}

/* Nobody asks in functions. */
__device__ __noinline__ u32 meet(u32 v) {
	return __ballot_sync(FULL, v & 4);
}

KERNEL meeting_in_function(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), n = 0;

	if (v & 1) {
		out[self()] = 1;
		if (v & 2) {
			return;
		}
		n++;
	}
	out[self()] = n + meet(v);
}
