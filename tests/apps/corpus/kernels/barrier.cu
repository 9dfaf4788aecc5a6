/* barrier.cu: threads that leave while others go on to a barrier. */
#include <cooperative_groups.h>

#include "common.cuh"

/* Behind it nobody of the first leavers comes. */
KERNEL leave_before(u32 *out, const u32 *in, u32 n, u32 *marks) {
	__shared__ u32 s[1024];
	u32 t = thread_number();

	mark(marks);
	s[t] = self();
	if (t >= n % (block_threads() + 1)) {
		return;
	}
	__syncthreads();
	out[self()] = s[n % (block_threads() + 1) - 1 - t] + IN(in, t);
}

KERNEL leave_at_depths(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[1024];
	u32 t = thread_number(), v = IN(in, self());

	mark(marks);
	s[t] = v;
	__syncthreads();
	if (v % 4 == 0) {
		out[self()] = s[0];
		if (v % 8 == 0) {
			return;
		}
		__syncthreads();
		v = s[t / 2];
		if (v % 3) {
			out[self()] += 1;
			return;
		}
	} else {
		__syncthreads();
		if (v % 5 == 0) {
			return;
		}
	}
	__syncthreads();
	out[self()] += s[(t + 1) % block_threads()];
}

/* Each thread has its own number of rounds. */
KERNEL leave_in_loop(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[1024];
	u32 t = thread_number(), rounds = IN(in, self()) % 7, sum = 0;

	mark(marks);
	s[t] = t;
	for (u32 i = 0;; i++) {
		if (i == rounds) {
			out[self()] = sum;
			return;
		}
		__syncthreads();
		sum += s[t] * (i + 1);
		atomicAdd(&s[t], i);
	}
}

KERNEL nested_loops(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 s[1024];
	u32 t = thread_number(), limit = IN(in, self()) % 5, sum = 0;

	s[t] = 1;
	for (u32 i = 0; i < k % 4 + 1; i++) {
		for (u32 j = 0; j < i + 1; j++) {
			if (i * j > limit) {
				out[self()] = sum + i;
				return;
			}
			__syncthreads();
			sum += s[t] + i * j;
		}
	}
	__syncthreads();
	out[self()] = sum * s[t];
}

KERNEL counts(u32 *out, const u32 *in, u32 *marks) {
	u32 v = IN(in, self()), a, b, c;

	mark(marks);
	a = __syncthreads_count(v & 1);
	if (v % 3 == 0) {
		out[self()] = a;
		return;
	}
	b = __syncthreads_and(v % 7 != 1);
	if (v % 5 == 0) {
		out[self()] = a * 2 + b;
		return;
	}
	c = __syncthreads_or(v % 64 == 2);
	out[self()] = a * 4 + b * 2 + c + __syncthreads_count(1) * 16;
}

/* The condition of the loop is the barrier's answer: the same for all. */
KERNEL vote_loop(u32 *out, const u32 *in) {
	u32 v = IN(in, self()) % 9, n = 0;

	while (__syncthreads_or(v > n)) {
		n++;
	}
	out[self()] = n;
}

KERNEL vote_loop_leave(u32 *out, const u32 *in) {
	u32 v = IN(in, self()) % 9, n = 0;

	while (__syncthreads_count(v > n) > 3) {
		if (v == n) {
			break;
		}
		n++;
	}
	out[self()] = n;
}

/* Only some warps are still there. */
KERNEL warps_leave(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 s[1024];
	u32 t = thread_number(), w = t / 32;

	s[t] = IN(in, self());
	if (w % 2 == (k & 1)) {
		return;
	}
	__syncthreads();
	s[t] += 5;
	__syncthreads();
	out[self()] = s[t ^ 1];
}

__device__ __noinline__ u32 meet(u32 *s, u32 t, u32 v) {
	s[t] = v;
	__syncthreads();
	v = s[(t + 1) % block_threads()] + blockIdx.x;
	__syncthreads();
	return v;
}

KERNEL barrier_in_function(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[1024];

	mark(marks);
	out[self()] = meet(s, thread_number(), IN(in, self()));
}

__device__ __noinline__ u32 meet_count(u32 v) {
	return __syncthreads_count(v & 1);
}

KERNEL leave_before_function(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	if (v % 4 == 0) {
		return;
	}
	v = meet_count(v);
	if (v % 2) {
		__syncthreads();
	}
	out[self()] = v;
}

KERNEL group_sync(u32 *out, const u32 *in) {
	__shared__ u32 s[1024];
	auto block = cooperative_groups::this_thread_block();

	s[block.thread_rank()] = IN(in, self());
	block.sync();
	out[self()] = s[block.size() - 1 - block.thread_rank()] + block.group_index().x;
}

/* Half of the warps make, the other half use; in step, by barriers of their own. */
KERNEL __launch_bounds__(128) named(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[128];
	u32 t = threadIdx.x, group = t / 64;

	mark(marks);
	s[t] = IN(in, self());
	asm volatile("bar.sync %0, 64;" ::"r"(1 + group) : "memory");
	out[self()] = s[t ^ 1] + group;
}

KERNEL __launch_bounds__(128) named_constant(u32 *out, const u32 *in, u32 *marks) {
	__shared__ u32 s[128];
	u32 t = threadIdx.x;

	mark(marks);
	s[t] = IN(in, self());
	if (t < 64) {
		asm volatile("bar.sync 1, 64;" ::: "memory");
	} else {
		asm volatile("bar.sync 2, 64;" ::: "memory");
	}
	out[self()] = s[t ^ 3];
	__syncthreads();
	out[self()] += s[127 - t];
}

KERNEL __launch_bounds__(128) named_leave(u32 *out, const u32 *in) {
	__shared__ u32 s[128];
	u32 t = threadIdx.x;

	if (t >= 64) {
		return;
	}
	s[t] = IN(in, self());
	asm volatile("bar.sync 1, 64;" ::: "memory");
	out[self()] = s[63 - t];
}

KERNEL arrive(u32 *out, const u32 *in) {
	__shared__ u32 s[128];
	u32 t = threadIdx.x;

	if (t < 64) {
		s[t] = IN(in, self());
		asm volatile("bar.arrive 1, 128;" ::: "memory");
	} else {
		asm volatile("bar.sync 1, 128;" ::: "memory");
		out[self()] = s[t - 64];
	}
}

KERNEL switched(u32 *out, const u32 *in, u32 k) {
	__shared__ u32 s[1024];
	u32 t = thread_number(), v = IN(in, self());

	s[t] = v;
	__syncthreads();
	switch (k) {
	case 0: v += s[t ^ 1] * 3; break;
	case 1: v ^= s[0]; __syncthreads(); s[t] = v; break;
	case 2: return;
	case 3: v -= s[t / 2]; __syncthreads(); s[t] = v * v; break;
	case 4: v *= 17; __syncthreads(); s[t] += v; break;
	case 5: if (t & 1) { return; } v++; break;
	default: v = ~v; break;
	}
	__syncthreads();
	out[self()] = v + s[t];
}
