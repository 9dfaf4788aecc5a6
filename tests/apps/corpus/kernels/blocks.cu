/* blocks.cu: blocks that wait for blocks with lower numbers, or that know who is the last. */
#include "common.cuh"

/* Decoupled look-back: each block publishes its sum, then its prefix, and waits for those before. */
KERNEL __launch_bounds__(64) look_back(u32 *out, const u32 *in, u32 *state, u32 *marks) {
	__shared__ u32 s[64], before;
	u32 t = threadIdx.x, b = blockIdx.x;
	volatile u32 *flag = state, *sum = state + 512, *prefix = state + 1024;

	mark(marks);
	s[t] = IN(in, self()) & 0xffff;
	__syncthreads();
	for (u32 step = 1; step < 64; step *= 2) {
		u32 v = t >= step ? s[t - step] : 0;

		__syncthreads();
		s[t] += v;
		__syncthreads();
	}
	if (t == 0) {
		u32 total = 0;

		sum[b] = s[63];
		__threadfence();
		flag[b] = 1;
		for (int p = (int)b - 1; p >= 0; p--) {
			u32 f;

			do {
				f = flag[p];
			} while (f == 0);
			__threadfence();
			if (f == 2) {
				total += prefix[p];
				break;
			}
			total += sum[p];
		}
		prefix[b] = total + s[63];
		__threadfence();
		flag[b] = 2;
		before = total;
	}
	__syncthreads();
	out[self()] = s[t] + before;
}

/* Split-K: blocks add to one result in the order of their numbers. */
KERNEL ordered(u32 *out, const u32 *in, u32 *count, u32 *marks) {
	u32 t = thread_number(), b = block_number();
	volatile u32 *turn = count;

	mark(marks);
	if (t == 0) {
		while (*turn != b) {
			__nanosleep(20);
		}
	}
	__syncthreads();
	out[t] = ((volatile u32 *)out)[t] * 3 + IN(in, self());
	__threadfence();
	__syncthreads();
	if (t == 0) {
		*turn = b + 1 < gridDim.x * gridDim.y * gridDim.z ? b + 1 : 0;
	}
}

KERNEL last_block(u32 *out, const u32 *in, u32 *count) {
	__shared__ bool last;
	u32 t = thread_number(), n = gridDim.x * gridDim.y * gridDim.z, sum = 0;

	if (t == 0) {
		((volatile u32 *)out)[1 + block_number()] = IN(in, self());
		__threadfence();
		last = atomicAdd(count, 1u) == n - 1;
	}
	__syncthreads();
	if (!last) {
		return;
	}
	__threadfence();
	if (t == 0) {
		for (u32 i = 0; i < n; i++) {
			sum += ((volatile u32 *)out)[1 + i];
		}
		out[0] = sum;
		*count = 0;
	}
}

/* Work is taken from a counter, whoever comes. */
KERNEL tickets(u32 *out, const u32 *in, u32 *count, u32 total) {
	__shared__ u32 base;
	u32 t = thread_number();

	for (;;) {
		if (t == 0) {
			base = atomicAdd(count + 1, block_threads());
		}
		__syncthreads();
		u32 first = base, i = first + t;

		__syncthreads();
		if (first >= total) {
			break;
		}
		if (i < total) {
			out[i] = mix(IN(in, i));
		}
	}
	if (t == 0) {
		atomicAdd(count + 2, 1u);
		count[1] = 0xffff0000u;
	}
}
