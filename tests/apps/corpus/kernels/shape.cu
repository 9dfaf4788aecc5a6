/* shape.cu: grids and blocks of any shape, parameters of any kind. */
#include "common.cuh"

__device__ u32 shape_sum[64];

KERNEL no_params() {
	atomicAdd(&shape_sum[block_number() % 64], self() * 2654435761u + 1);
}

KERNEL empty() {
}

KERNEL ids(u32 *out, u32 *marks) {
	u32 *o = out + 4 * self();

	mark(marks);
	o[0] = blockIdx.x | blockIdx.y << 10 | blockIdx.z << 20;
	o[1] = gridDim.x | gridDim.y << 10 | gridDim.z << 20;
	o[2] = threadIdx.x | threadIdx.y << 10 | threadIdx.z << 20;
	o[3] = blockDim.x | blockDim.y << 10 | blockDim.z << 20;
}

/* No id at all: blocks can't be told apart, but each must run once. */
KERNEL nameless(u32 *count) {
	atomicAdd(&count[threadIdx.x], 1u);
}

KERNEL only_y(u32 *count) {
	atomicAdd(&count[blockIdx.y % 1024], threadIdx.x + 1);
}

KERNEL only_sizes(u32 *count) {
	atomicAdd(&count[0], gridDim.z * 100 + gridDim.y * 10 + gridDim.x);
}

struct small {
	char c;
	short s;
	double d;
	u32 w[3];
};

KERNEL small_struct(struct small v, u32 *out, u32 *marks) {
	mark(marks);
	out[self()] = v.c + v.s + v.w[threadIdx.x % 3] + (u32)__double_as_longlong(v.d);
}

struct large {
	u32 w[900];
};

/* Indexed by the thread: the compiler must take the parameter's address. */
KERNEL large_struct(struct large v, u32 *out, u32 *marks) {
	mark(marks);
	out[self()] = v.w[self() % 900];
}

KERNEL large_constant(const __grid_constant__ struct large v, u32 *out) {
	const u32 *p = v.w;

	out[self()] = p[mix(self()) % 900] + p[block_number() % 900];
}

/* A parameter that the kernel changes for itself must be fresh in each block. */
KERNEL changed_params(struct large v, u32 *out, u32 n) {
	for (u32 i = 0; i < 4; i++) {
		v.w[(self() + i) % 900] += n;
		n = n * 5 + v.w[n % 900];
	}
	out[self()] = n + v.w[self() % 900];
}

KERNEL narrow_params(unsigned char a, u64 b, short c, double d, u32 *out) {
	out[self()] = a + (u32)(b >> 7) + c + (u32)__double_as_longlong(d);
}

KERNEL __launch_bounds__(128, 4) bounded(u32 *out, const u32 *in, u32 *marks) {
	mark(marks);
	out[self()] = IN(in, self()) * 3;
}

KERNEL grid_stride(u32 *out, const u32 *in, u32 total) {
	for (u32 i = self(); i < total; i += gridDim.x * gridDim.y * gridDim.z * block_threads()) {
		out[i] = IN(in, i) ^ i;
	}
}

KERNEL guarded(u32 *out, const u32 *in, u32 total) {
	u32 i = self();

	if (i < total) {
		out[i] = mix(IN(in, i));
	}
}
