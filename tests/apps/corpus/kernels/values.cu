/* values.cu: numbers, memory and registers of every kind. */
#include <cuda_fp16.h>

#include "common.cuh"

KERNEL halves(u32 *out, const u32 *in) {
	__half2 h = __floats2half2_rn((float)(IN(in, self()) % 100), 0.5f);

	h = __hadd2(__hmul2(h, h), __float2half2_rn(0.25f));
	out[self()] = *(u32 *)&h;
}

KERNEL doubles(u32 *out, const u32 *in) {
	double d = IN(in, self()) / 7.0 + sqrt((double)self());

	for (int i = 0; i < 5; i++) {
		d = d * 0.75 + 1.0 / (d + 1);
	}
	out[2 * self()] = (u32)__double_as_longlong(d);
	out[2 * self() + 1] = (u32)(__double_as_longlong(d) >> 32);
}

KERNEL floats(u32 *out, const u32 *in) {
	float f = (float)(IN(in, self()) % 1000) * 0.125f;

	f = fmaf(f, 1.5f, -2.0f) + fminf(f, 30.0f) / 3.0f + truncf(f * 0.3f);
	out[self()] = __float_as_uint(f);
}

KERNEL wide(uint4 *out, const uint4 *in) {
	uint4 v = in[self() % (IN_WORDS / 4)];

	out[self()] = make_uint4(v.w, v.x ^ blockIdx.x, v.y, v.z);
}

KERNEL atomics64(u64 *count, const u32 *in) {
	u32 v = IN(in, self());

	atomicAdd(&count[v % 16], (u64)v << 20);
	atomicMax(&count[16 + v % 16], (u64)v << 31);
	atomicXor(&count[32 + v % 16], (u64)v * v);
	atomicMin((long long *)&count[48 + v % 16], -(long long)v);
}

KERNEL atomics(u32 *count, const u32 *in) {
	u32 v = IN(in, self());

	atomicAdd(&count[v % 16], v);
	atomicMin((int *)&count[16 + v % 16], (int)v);
	atomicMax(&count[32 + v % 16], v);
	atomicAnd(&count[48 + v % 16], ~(v & 255));
	atomicOr(&count[64 + v % 16], v & 255);
	atomicInc(&count[80 + v % 16], 1u << 30);
}

/* Whole numbers below 2^24: any order gives the same sum. */
KERNEL atomics_float(float *count, const u32 *in) {
	atomicAdd(&count[self() % 64], (float)(IN(in, self()) % 1000));
}

KERNEL compare_and_swap(u32 *count, const u32 *in) {
	u32 *p = &count[self() % 7], old = *p, seen;

	do {
		seen = old;
		old = atomicCAS(p, seen, seen + IN(in, self()) % 9);
	} while (old != seen);
}

KERNEL spin_lock(u32 *count, const u32 *in) {
	bool done = false;

	while (!done) {
		if (atomicCAS(&count[0], 0, 1) == 0) {
			((volatile u32 *)count)[1] += IN(in, self()) % 100;
			__threadfence();
			atomicExch(&count[0], 0);
			done = true;
		}
	}
}

KERNEL volatiles(volatile u32 *out, const volatile u32 *in) {
	out[self()] = in[self() % IN_WORDS];
	out[self()] += in[(self() + 1) % IN_WORDS];
}

KERNEL sleeps(u32 *out, u32 k) {
	__nanosleep(10 * k);
	out[self()] = k;
}

KERNEL clocks(u32 *out, u32 *varies) {
	long long a = clock64();
	u32 b = clock();

	varies[self()] = (u32)(clock64() - a) + b;
	out[self()] = 1;
}

KERNEL places(u32 *out, u32 *varies, u32 *marks) {
	u32 sm, warp, n;

	mark(marks);
	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
	asm volatile("mov.u32 %0, %%nsmid;" : "=r"(n));
	varies[self()] = warp;
	out[self()] = sm < n;
}

KERNEL lanes(u32 *out) {
	u32 a, b, c;

	asm("mov.u32 %0, %%laneid;" : "=r"(a));
	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(b));
	asm("mov.u32 %0, %%lanemask_ge;" : "=r"(c));
	out[self()] = a + (b ^ c) + 1;
}

KERNEL bits(u32 *out, const u32 *in) {
	u32 v = IN(in, self()), w = IN(in, self() + 1);

	out[4 * self()] = __brev(v) + __popc(w) + __clz(v) * 64 + __ffs(w);
	out[4 * self() + 1] = __byte_perm(v, w, 0x5140) ^ __funnelshift_l(v, w, v & 31);
	out[4 * self() + 2] = __umulhi(v, w) + __usad(v, w, 7) + __dp4a(v, w, 3u);
	out[4 * self() + 3] = (u32)(((u64)v * w) / (w | 1)) + v % (w | 1);
}

/* A sum of 96 bits by a chain of carries. */
KERNEL carries(u32 *out, const u32 *in) {
	u32 a = IN(in, self()), b = IN(in, self() + 1), c = 0, d = 0, e = 0;

	asm("add.cc.u32 %0, %3, %4;\n\taddc.cc.u32 %1, %3, %5;\n\taddc.u32 %2, %4, 0;"
	    : "=r"(c), "=r"(d), "=r"(e)
	    : "r"(a), "r"(b), "r"(~b));
	out[self()] = c ^ d * 3 ^ e * 5;
}

/* Block ids inside inline PTX: in braces, guarded, twice. */
KERNEL inline_ids(u32 *out) {
	u32 a, b, c;

	asm volatile("{\n\t.reg .u32 x, y;\n\tmov.u32 x, %%ctaid.x;\n\tmov.b32 y, %%nctaid.x;\n\t"
		     "mad.lo.u32 %0, x, y, 1;\n\t}"
		     : "=r"(a));
	asm volatile("{\n\t.reg .pred p;\n\t.reg .u32 x;\n\tmov.u32 x, %%ctaid.y;\n\tsetp.gt.u32 p, "
		     "x, 2;\n\tmov.u32 %0, 5;\n\t@p mov.u32 %0, %%nctaid.y;\n\t@!p mov.s32 %0, "
		     "%%ctaid.x;\n\t}"
		     : "=r"(b));
	asm volatile("mov.u32 %0, %%ctaid.z;\n\tcvt.u32.u32 %0, %0;" : "=r"(c));
	out[self()] = a + b * 7 + c * 31;
}

KERNEL inline_vector_ids(u32 *out) {
	u32 a, b;

	asm volatile("{\n\t.reg .v4 .u32 v;\n\tmov.v4.u32 v, %%ctaid;\n\tadd.u32 %0, v.x, v.y;\n\tmov.u32 "
		     "%1, v.z;\n\t}"
		     : "=r"(a), "=r"(b));
	out[self()] = a * 3 + b;
}

KERNEL inline_narrow_ids(u32 *out) {
	unsigned short a;

	asm volatile("mov.u16 %0, %%ctaid.x;" : "=h"(a));
	out[self()] = a;
}

KERNEL inline_labels(u32 *out, const u32 *in) {
	u32 v = IN(in, self()) % 50, n = 0;

	asm volatile("{\n\t.reg .pred p;\n\tbra done;\nagain:\n\tadd.u32 %0, %0, 3;\n\tsub.u32 %1, %1, "
		     "1;\ndone:\n\tsetp.gt.u32 p, %1, 0;\n\t@p bra again;\n\t}"
		     : "+r"(n), "+r"(v));
	asm volatile("{\n\t.reg .pred p;\n\tbra done;\nagain:\n\tadd.u32 %0, %0, 2;\ndone:\n\t"
		     "setp.lt.u32 p, %0, 20;\n\t@p bra more;\n\tbra last;\nmore:\n\tadd.u32 %0, %0, 1;\n\t"
		     "bra again;\nlast:\n\t}"
		     : "+r"(n));
	out[self()] = n;
}

KERNEL grid_id(u32 *out) {
	u64 g;

	asm volatile("mov.u64 %0, %%gridid;" : "=l"(g));
	out[self()] = g != 0;
}
