/* func.cu: calls. */
#include "common.cuh"

__device__ __noinline__ u32 where() {
	return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

KERNEL ids_in_function(u32 *out, u32 *marks) {
	mark(marks);
	out[self()] = where() * 3 + threadIdx.x;
}

__device__ __noinline__ u32 deeper(u32 n) {
	return n == 0 ? blockIdx.x : deeper(n - 1) + n * blockIdx.y + 1;
}

KERNEL recursive(u32 *out, const u32 *in) {
	out[self()] = deeper(IN(in, self()) % 12);
}

__device__ u32 odd(u32 n);
__device__ __noinline__ u32 even(u32 n) {
	return n == 0 ? gridDim.x : odd(n - 1) * 3;
}
__device__ __noinline__ u32 odd(u32 n) {
	return n == 0 ? blockIdx.x : even(n - 1) + 7;
}

KERNEL mutual(u32 *out, const u32 *in) {
	out[self()] = even(IN(in, self()) % 12);
}

struct pair {
	u32 a, b;
	double c;
};

__device__ __noinline__ struct pair make_pair_of(u32 v, struct pair p) {
	if (v % 3 == 0) {
		return p;
	}
	p.a += v + blockIdx.x;
	p.b ^= v;
	p.c = p.c * 2 + v;
	return p;
}

KERNEL structs(u32 *out, const u32 *in) {
	struct pair p = {self(), 5, 1.5};

	for (u32 i = 0; i < 4; i++) {
		p = make_pair_of(IN(in, self() + i), p);
	}
	out[self()] = p.a + p.b + (u32)__double_as_longlong(p.c);
}

KERNEL local_arrays(u32 *out, const u32 *in, u32 *marks) {
	u32 a[16];

	mark(marks);
	for (u32 i = 0; i < 16; i++) {
		a[i] = IN(in, self() + i);
	}
	for (u32 i = 0; i < 16; i++) {
		a[a[i] % 16] += a[(i + 1) % 16];
	}
	out[self()] = a[IN(in, self()) % 16];
}

__device__ __noinline__ void fill(u32 *a, u32 n) {
	for (u32 i = 0; i < n; i++) {
		a[i] = blockIdx.x * i + threadIdx.x;
	}
}

KERNEL local_by_pointer(u32 *out, const u32 *in) {
	u32 a[8];

	fill(a, 8);
	out[self()] = a[IN(in, self()) % 8];
}

typedef u32 (*worker)(u32);

__device__ __noinline__ u32 plain(u32 v) {
	return v * 3;
}

__device__ __noinline__ u32 knowing(u32 v) {
	return v + blockIdx.x;
}

KERNEL indirect(u32 *out, u32 k) {
	worker f = k & 1 ? plain : knowing;

	out[self()] = f(self());
}

struct base {
	__device__ virtual u32 value(u32 v) const = 0;
};

struct derived : base {
	u32 k;
	__device__ derived(u32 k) : k(k) {
	}
	__device__ __noinline__ u32 value(u32 v) const override {
		return v * k + blockIdx.x;
	}
};

__device__ __noinline__ u32 ask(const base *b, u32 v) {
	return b->value(v);
}

KERNEL virtual_call(u32 *out, u32 k) {
	derived d(k);

	out[self()] = ask(&d, self());
}

__device__ __noinline__ void leave_if(u32 v) {
	if (v & 1) {
		asm volatile("exit;");
	}
}

KERNEL exit_in_function(u32 *out, const u32 *in) {
	leave_if(IN(in, self()));
	out[self()] = 1;
}

KERNEL exit_in_kernel(u32 *out, const u32 *in) {
	out[self()] = 1;
	if (IN(in, self()) & 1) {
		asm volatile("exit;");
	}
	__syncthreads();
	out[self()] = 2;
}

KERNEL exit_guarded(u32 *out, const u32 *in) {
	u32 v = IN(in, self());

	out[self()] = v;
	asm volatile("{\n\t.reg .pred p;\n\tsetp.gt.u32 p, %0, 1000000;\n\t@!p exit;\n\t}" ::"r"(v));
	out[self()] = ~v;
}
