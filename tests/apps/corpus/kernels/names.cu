/* names.cu: templates, namespaces and letters of any alphabet. */
#include "common.cuh"

template <typename T, int N> __global__ void scaled(T *out, const u32 *in) {
	T sum = 0;

#pragma unroll
	for (int i = 0; i < N; i++) {
		sum += (T)IN(in, self() + i);
	}
	out[self()] = sum;
}

template __global__ void scaled<u32, 3>(u32 *, const u32 *);
template __global__ void scaled<u64, 5>(u64 *, const u32 *);

namespace größe {
__global__ void area(u32 *out, u32 *marks) {
	mark(marks);
	out[self()] = blockIdx.x;
}
}

template <typename F> __device__ u32 apply(F f, u32 v) {
	return f(v);
}

KERNEL lambda(u32 *out, const u32 *in, u32 k) {
	auto f = [=](u32 v) { return v * k + blockIdx.x; };

	out[self()] = apply(f, IN(in, self()));
}
