/* vars.cu: variables of the module. */
#include "common.cuh"

__device__ u32 written[64];
__device__ u32 initialised[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ u32 *pointer_to = &initialised[2];
__device__ u32 *pointers[3] = {initialised, written, &initialised[5]};
__device__ double number = 2.5;
__constant__ u32 constants[64] = {10, 20, 30, 40, 50, 60, 70, 80};
__constant__ struct {
	char c;
	double d;
	u32 w[5];
} settings = {7, 0.5, {1, 2, 3, 4, 5}};
__constant__ u32 *const_pointer = initialised;
__constant__ u32 escaping[4] = {1, 2, 3, 4};
__managed__ u32 managed[4];

KERNEL global_write(const u32 *in) {
	atomicAdd(&written[IN(in, self()) % 64], 1u + blockIdx.x);
}

KERNEL global_read(u32 *out) {
	out[self()] = initialised[self() % 8] + initialised[1] + (u32)number;
}

KERNEL by_pointer(u32 *out) {
	out[self()] = pointer_to[self() % 6] + pointers[self() % 3][1 + self() % 2];
}

__device__ __noinline__ u32 *choose(u32 k) {
	return k & 1 ? written : initialised;
}

KERNEL address_taken(u32 *out, u32 k) {
	u32 *p = choose(k);

	atomicMax(&p[7], 100 + blockIdx.x);
	out[self()] = p == written;
}

KERNEL constant_fixed(u32 *out) {
	out[self()] = constants[3] + settings.w[2] + (u32)(settings.d * 8) + settings.c;
}

KERNEL constant_indexed(u32 *out, const u32 *in) {
	out[self()] = constants[IN(in, self()) % 64] * settings.w[self() % 5];
}

KERNEL constant_loop(u32 *out, u32 n) {
	u32 sum = 0;

	for (u32 i = 0; i < n % 64; i++) {
		sum = sum * 3 + constants[i];
	}
	out[self()] = sum;
}

KERNEL pointer_in_constant(u32 *out) {
	out[self()] = const_pointer[self() % 8];
}

__device__ __noinline__ u32 through(const u32 *p, u32 i) {
	return p[i];
}

KERNEL constant_escapes(u32 *out, const u32 *in, u32 k) {
	out[self()] = through(k & 1 ? escaping : in, self() % 4);
}

KERNEL managed_variable(u32 *out) {
	atomicAdd(&managed[0], 1u);
	out[self()] = 1;
}

KERNEL static_in_kernel(u32 *out) {
	static __device__ u32 calls;
	static __shared__ u32 mine;

	if (thread_number() == 0) {
		mine = blockIdx.x;
		atomicAdd(&calls, 1u);
	}
	__syncthreads();
	out[self()] = mine;
}
