/* shared.cu: memory that a block has for itself. */
#include "common.cuh"

KERNEL __launch_bounds__(256) static_shared(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[256];
	u32 t = thread_number(), n = block_threads();

	mark(marks);
	s[t] = IN(in, self());
	__syncthreads();
	out[self()] = s[n - 1 - t] + s[(t + 1) % n];
}

KERNEL dynamic_shared(u32 *out, const u32 *in, u32 *marks) {
	extern __shared__ u32 d[];
	u32 t = thread_number(), n = block_threads();

	mark(marks);
	d[t] = IN(in, self());
	__syncthreads();
	for (u32 step = 1; step < n; step *= 2) {
		u32 v = t >= step ? d[t - step] : 0;

		__syncthreads();
		d[t] += v;
		__syncthreads();
	}
	out[self()] = d[t];
}

/* All that a kernel may have without asking: nothing is left for a twin. */
KERNEL full_shared(u32 *out, const u32 *in) {
	__shared__ u32 s[12 * 1024];
	u32 t = thread_number(), n = block_threads();

	for (u32 i = t; i < 12 * 1024; i += n) {
		s[i] = IN(in, i + blockIdx.x);
	}
	__syncthreads();
	out[self()] = s[mix(self()) % (12 * 1024)];
}

KERNEL both_shared(u32 *out, const u32 *in) {
	__shared__ double s[128];
	extern __shared__ u32 d[];
	u32 t = thread_number(), n = block_threads();

	s[t % 128] = 0;
	d[t] = IN(in, self());
	__syncthreads();
	if (t < 128) {
		s[t] = d[(t + 7) % n] * 0.5;
	}
	__syncthreads();
	out[self()] = (u32)s[(t + 3) % (n < 128 ? n : 128)] + d[n - 1 - t];
}

/* Counters that the block itself must clear: one that begins before the last has been read finds
 * them wrong. */
KERNEL shared_atomics(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 bins[32];
	u32 t = thread_number();

	mark(marks);
	if (t < 32) {
		bins[t] = 0;
	}
	__syncthreads();
	atomicAdd(&bins[IN(in, self()) % 32], 1u);
	__syncthreads();
	if (t < 32) {
		out[block_number() * block_threads() + t] = bins[t];
	}
}

/* The last block's slow reader against the next one's fast writer. */
KERNEL late_reader(u32 *out, const u32 *in) {
	__shared__ u32 s;
	u32 t = thread_number(), v = 0;

	if (t == 0) {
		s = IN(in, blockIdx.x) | 1;
	}
	__syncthreads();
	for (u32 i = 0; i < t % 37; i++) {
		v += ((volatile u32 *)&s)[0] >> (i & 7);
	}
	out[self()] = v + ((volatile u32 *)&s)[0];
}

KERNEL shared_pointer(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 a[64], b[64];
	u32 *p = k & 1 ? a : b, *q = k & 2 ? p : (u32 *)in;
	u32 t = thread_number();

	a[t % 64] = 0;
	b[t % 64] = 0;
	__syncthreads();
	atomicAdd(&p[t % 64], t + 1);
	__syncthreads();
	out[self()] = q[t % 64] + a[0] + b[1];
}
