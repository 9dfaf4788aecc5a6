/*
 * kernels.h: what runs on the GPU. Each block writes down when it began and ended (%globaltimer,
 * nanoseconds) and where it ran (%smid), as struct experiment_block.
 *
 * One thread waits or writes, the others wait for it at a barrier: so a block holds its SM as long
 * as it should, and takes next to nothing of it.
 */
#pragma once

#define KERNELS_HEAD                                                                               \
	".version 6.0\n"                                                                           \
	".target sm_50\n"                                                                          \
	".address_size 64\n"

/* %rd9: the block's record; %rd1: when it began. */
#define KERNELS_BEGIN(name)                                                                        \
	".visible .entry " name "(.param .u64 p_records, .param .u64 p_work,\n"                    \
	"	.param .u64 p_data, .param .u64 p_elements)\n"                                         \
	"{\n"                                                                                      \
	"	.reg .pred %p<8>;\n"                                                                    \
	"	.reg .b32 %r<16>;\n"                                                                    \
	"	.reg .f32 %f<4>;\n"                                                                     \
	"	.reg .b64 %rd<24>;\n"                                                                   \
	"	ld.param.u64 %rd2, [p_work];\n"                                                         \
	"	ld.param.u64 %rd8, [p_records];\n"                                                      \
	"	cvta.to.global.u64 %rd8, %rd8;\n"                                                       \
	"	mov.u32 %r3, %ctaid.x;\n"                                                               \
	"	mul.wide.u32 %rd9, %r3, 24;\n"                                                          \
	"	add.s64 %rd9, %rd8, %rd9;\n"                                                            \
	"	mov.u32 %r1, %tid.x;\n"                                                                 \
	"	setp.ne.u32 %p1, %r1, 0;\n"                                                             \
	"	mov.u64 %rd1, %globaltimer;\n"

#define KERNELS_END                                                                                \
	"	mov.u32 %r2, %smid;\n"                                                                  \
	"	mov.u64 %rd3, %globaltimer;\n"                                                          \
	"	st.global.u64 [%rd9], %rd1;\n"                                                          \
	"	st.global.u64 [%rd9+8], %rd3;\n"                                                        \
	"	st.global.u32 [%rd9+16], %r2;\n"

static const char kernels_ptx[] =
	KERNELS_HEAD
	/* Waits for p_work nanoseconds. */
	KERNELS_BEGIN("spin")
	"	@%p1 bra JOIN;\n"
	"LOOP:\n"
	"	mov.u64 %rd3, %globaltimer;\n"
	"	sub.u64 %rd4, %rd3, %rd1;\n"
	"	setp.lt.u64 %p2, %rd4, %rd2;\n"
	"	@%p2 bra LOOP;\n"
	KERNELS_END
	"JOIN:\n"
	"	bar.sync 0;\n"
	"	ret;\n"
	"}\n"
	/* All threads compute for p_work rounds. */
	KERNELS_BEGIN("count")
	"	cvt.rn.f32.u32 %f1, %r1;\n"
	"	mov.u64 %rd4, 0;\n"
	"	bar.sync 0;\n"
	"LOOP:\n"
	"	fma.rn.f32 %f1, %f1, %f1, %f1;\n"
	"	fma.rn.f32 %f1, %f1, %f1, %f1;\n"
	"	fma.rn.f32 %f1, %f1, %f1, %f1;\n"
	"	fma.rn.f32 %f1, %f1, %f1, %f1;\n"
	"	add.u64 %rd4, %rd4, 1;\n"
	"	setp.lt.u64 %p2, %rd4, %rd2;\n"
	"	@%p2 bra LOOP;\n"
	"	bar.sync 0;\n"
	"	setp.eq.f32 %p3, %f1, 0f3F9E0652;\n" /* so that the rounds are not left out */
	"	@%p3 bra WRITE;\n"
	"	@%p1 bra DONE;\n"
	"WRITE:\n"
	KERNELS_END
	"DONE:\n"
	"	ret;\n"
	"}\n"
	/* Each thread follows p_work links through p_data, from its own part of p_elements. */
	KERNELS_BEGIN("walk")
	"	ld.param.u64 %rd10, [p_data];\n"
	"	cvta.to.global.u64 %rd10, %rd10;\n"
	"	ld.param.u64 %rd11, [p_elements];\n"
	"	mov.u32 %r4, %ntid.x;\n"
	"	mov.u32 %r5, %nctaid.x;\n"
	"	mad.lo.u32 %r6, %r3, %r4, %r1;\n"
	"	mul.lo.u32 %r7, %r4, %r5;\n"
	"	cvt.u64.u32 %rd12, %r6;\n"
	"	cvt.u64.u32 %rd13, %r7;\n"
	"	div.u64 %rd14, %rd11, %rd13;\n"
	"	mul.lo.u64 %rd14, %rd14, %rd12;\n"
	"	cvt.u32.u64 %r8, %rd14;\n"
	"	mov.u64 %rd4, 0;\n"
	"	bar.sync 0;\n"
	"	mov.u64 %rd1, %globaltimer;\n"
	"LOOP:\n"
	"	mul.wide.u32 %rd15, %r8, 4;\n"
	"	add.s64 %rd15, %rd10, %rd15;\n"
	"	ld.global.u32 %r8, [%rd15];\n"
	"	add.u64 %rd4, %rd4, 1;\n"
	"	setp.lt.u64 %p2, %rd4, %rd2;\n"
	"	@%p2 bra LOOP;\n"
	"	bar.sync 0;\n"
	"	setp.eq.u32 %p3, %r8, 0xffffffff;\n" /* no link: so that the walk is not left out */
	"	@%p3 bra WRITE;\n"
	"	@%p1 bra DONE;\n"
	"WRITE:\n"
	KERNELS_END
	"DONE:\n"
	"	ret;\n"
	"}\n";
