/*
 * kernels.h: the PTX that the simulated GPU's tests run.
 */
#pragma once

static const char kernels_ptx[] =
	".version 7.5\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 counter = 41;\n"

	/* c[i] = a[i] + b[i] for i < n */
	".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n"
	".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
	"ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"
	"ld.param.u32 %r1, [n];\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"setp.ge.u32 %p, %r5, %r1;\n"
	"@%p bra done;\n"
	"mul.wide.u32 %rd4, %r5, 4;\n"
	"add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
	"ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd6];\n"
	"add.s32 %r6, %r6, %r7;\n"
	"st.global.u32 [%rd7], %r6;\n"
	"done: ret;\n"
	"}\n"

	/* Each block tells its SM in smids[block], counts itself into *arrived, and stays until
	 * *gate is not 0. */
	".visible .entry wait(.param .u64 gate, .param .u64 arrived, .param .u64 smids) {\n"
	".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<6>;\n"
	"ld.param.u64 %rd1, [gate]; ld.param.u64 %rd2, [arrived]; ld.param.u64 %rd3, [smids];\n"
	"mov.u32 %r1, %tid.x;\n"
	"setp.ne.u32 %p, %r1, 0;\n"
	"@%p bra join;\n"
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %smid;\n"
	"mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd3, %rd4;\n"
	"st.global.u32 [%rd5], %r3;\n"
	"atom.global.add.u32 %r4, [%rd2], 1;\n"
	"again: ld.volatile.global.u32 %r5, [%rd1];\n"
	"setp.eq.u32 %p, %r5, 0;\n"
	"@%p bra again;\n"
	"join: bar.sync 0;\n"
	"ret;\n"
	"}\n"

	/* out[thread] = something that takes block n longer than block n - 1 */
	".visible .entry churn(.param .u64 out) {\n"
	".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [out];\n"
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
	"mad.lo.s32 %r3, %r1, %r2, %r3; mad.lo.s32 %r1, %r1, 50, 300; mov.u32 %r4, %r3;\n"
	"again: mad.lo.u32 %r4, %r4, 1664525, 1013904223; bar.sync 0;\n"
	"sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0;\n"
	"@%p bra again;\n"
	"mad.wide.u32 %rd2, %r3, 4, %rd1; st.global.u32 [%rd2], %r4;\n"
	"ret;\n"
	"}\n"

	/* *where = value */
	".visible .entry poke(.param .u64 where, .param .u32 value) {\n"
	".reg .b32 %r1; .reg .b64 %rd1;\n"
	"ld.param.u64 %rd1, [where]; ld.param.u32 %r1, [value];\n"
	"st.global.u32 [%rd1], %r1;\n"
	"ret;\n"
	"}\n"

	/* counter += 1 */
	".visible .entry count() {\n"
	".reg .b32 %r1; .reg .b64 %rd1;\n"
	"mov.u64 %rd1, counter;\n"
	"atom.global.add.u32 %r1, [%rd1], 1;\n"
	"ret;\n"
	"}\n";
