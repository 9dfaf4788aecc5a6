/*
 * test-interp-control.c: divergence, calls, barriers, warp operations, atomics and faults of the
 * PTX interpreter.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-harness.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

/*
 * A kernel `k` with one parameter, a buffer of u32: %out is the address of this thread's element,
 * %buf that of the first, %t its %tid.x. The body must end by storing and returning.
 */
#define KERNEL(body)                                                                          \
	HEAD ".visible .entry k(.param .u64 k_buf)\n{\n"                                      \
	     ".reg .b32 %t, %x, %r<16>;\n.reg .b64 %buf, %out, %rd<16>;\n.reg .pred %p<8>;\n" \
	     "ld.param.u64 %buf, [k_buf];\nmov.u32 %t, %tid.x;\n"                             \
	     "mad.wide.u32 %out, %t, 4, %buf;\n" body "\n}\n"

#define THREADS_MAX 256u

/* Runs one block of the kernel and gives its buffer's first words. */
static void run_kernel(const char *ptx, uint32_t threads, uint32_t words[THREADS_MAX]) {
	struct harness h;
	uint32_t *host;
	uint64_t buffer;

	harness_init(&h, ptx);
	buffer = harness_alloc(&h, 4 * THREADS_MAX, &host);
	harness_run_simple(&h, "k", threads, buffer);
	memcpy(words, host, 4 * THREADS_MAX);
	harness_deinit(&h);
}

static enum interp_fault_kind run_fault(const char *ptx, uint32_t threads, char text[1024]) {
	struct harness h;
	enum interp_fault_kind kind = INTERP_FAULT_NONE;
	uint64_t buffer;
	enum interp_result r;

	harness_init(&h, ptx);
	buffer = harness_alloc(&h, 4 * THREADS_MAX, NULL);
	r = harness_run(&h,
			&(struct harness_launch){.kernel = "k",
						 .block = {threads},
						 .params = &buffer,
						 .params_size = sizeof(buffer)},
			&kind, text);
	assert_int_equal(r, kind == INTERP_FAULT_HANG ? INTERP_HANG : INTERP_FAULT);
	harness_deinit(&h);
	return kind;
}

static void control_loops_diverge_and_meet(void **state) {
	uint32_t w[THREADS_MAX];

	/* Thread t loops t times; behind the loop all are together again. */
	run_kernel(KERNEL("mov.u32 %x, 0;\nmov.u32 %r1, 0;\n"
			  "L: setp.ge.u32 %p1, %r1, %t;\n@%p1 bra E;\n"
			  "add.u32 %r1, %r1, 1;\nadd.u32 %x, %x, %r1;\nbra L;\n"
			  "E: activemask.b32 %r2;\npopc.b32 %r2, %r2;\n"
			  "mad.lo.u32 %x, %r2, 100000, %x;\nst.global.u32 [%out], %x;\nret;"),
		   50, w);
	for (uint32_t t = 0; t < 50; t++) {
		assert_int_equal(w[t], t * (t + 1) / 2 + (t < 32 ? 32 : 18) * 100000);
	}
}

static void control_branch_table_goes_to_each_target(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("and.b32 %r1, %t, 3;\nT: .branchtargets A, B, C, D;\n"
			  "brx.idx %r1, T;\n"
			  "A: mov.u32 %x, 10; bra E;\nB: mov.u32 %x, 11; bra E;\n"
			  "C: mov.u32 %x, 12; bra E;\nD: mov.u32 %x, 13;\n"
			  "E: st.global.u32 [%out], %x;\nret;"),
		   64, w);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(w[t], 10 + t % 4);
	}
}

static void control_calls_recurse_and_return(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(HEAD
		   ".func (.param .b32 r) fib(.param .b32 n);\n"
		   ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .b32 %r<8>;\n"
		   ".reg .pred %p;\nld.param.u32 %r1, [n];\nsetp.lt.u32 %p, %r1, 2;\n"
		   "mov.u32 %r2, %r1;\n@%p bra E;\n"
		   "{ .param .b32 a; .param .b32 v; sub.u32 %r3, %r1, 1; st.param.b32 [a], %r3;\n"
		   "call.uni (v), fib, (a); ld.param.b32 %r4, [v]; }\n"
		   "{ .param .b32 a; .param .b32 v; sub.u32 %r3, %r1, 2; st.param.b32 [a], %r3;\n"
		   "call (v), fib, (a); ld.param.b32 %r5, [v]; }\n"
		   "add.u32 %r2, %r4, %r5;\nE: st.param.b32 [r], %r2;\nret;\n}\n"
		   ".visible .entry k(.param .u64 k_buf)\n{\n.reg .b32 %r<4>;\n"
		   ".reg .b64 %rd<3>;\nld.param.u64 %rd1, [k_buf];\nmov.u32 %r1, %tid.x;\n"
		   "{ .param .b32 a; .param .b32 v; st.param.b32 [a], %r1;\n"
		   "call.uni (v), fib, (a); ld.param.b32 %r2, [v]; }\n"
		   "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r2;\nret;\n}\n",
		   16, w);
	for (uint32_t t = 0, a = 0, b = 1; t < 16; t++) {
		uint32_t next = a + b;

		assert_int_equal(w[t], a);
		a = b;
		b = next;
	}
}

#define TWO_FUNCS                                                            \
	".func (.reg .b32 r) twice(.reg .b32 v) { add.u32 r, v, v; ret; }\n" \
	".func (.reg .b32 r) square(.reg .b32 v) { mul.lo.u32 r, v, v; ret; }\n"
static void control_calls_through_registers_reach_their_functions(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(HEAD TWO_FUNCS
		   ".global .u64 table[2] = {twice, square};\n"
		   ".visible .entry k(.param .u64 k_buf)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<9>;\n"
		   "ld.param.u64 %rd1, [k_buf];\nmov.u32 %r1, %tid.x;\n"
		   "and.b32 %r2, %r1, 1;\nmov.u64 %rd2, table;\nmad.wide.u32 %rd2, %r2, 8, %rd2;\n"
		   "ld.global.u64 %rd3, [%rd2];\n"
		   "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
		   "call (%r3), %rd3, (%r1), P;\n"
		   "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r3;\nret;\n}\n",
		   64, w);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(w[t], t & 1 ? t * t : 2 * t);
	}
}

static void control_endless_recursion_faults(void **state) {
	char text[1024];

	assert_int_equal(run_fault(HEAD
				   ".func f()\n{\n.local .b8 big[256];\ncall.uni f;\nret;\n}\n"
				   ".visible .entry k(.param .u64 b)\n{\ncall.uni f;\nret;\n}\n",
				   32, text),
			 INTERP_FAULT_INSTRUCTION);
	assert_non_null(strstr(text, "call stack overflow"));
}

/* Threads of one warp take a lock in turn; without fair scheduling the holder never runs. */
static void control_spin_lock_inside_a_warp_goes_on(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("L: atom.global.cas.b32 %r1, [%buf], 0, 1;\n"
			  "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra L;\n"
			  "ld.volatile.global.u32 %r2, [%buf+4];\nadd.u32 %r2, %r2, 1;\n"
			  "st.volatile.global.u32 [%buf+4], %r2;\nmembar.gl;\n"
			  "atom.global.exch.b32 %r3, [%buf], 0;\nret;"),
		   96, w);
	assert_int_equal(w[0], 0);
	assert_int_equal(w[1], 96);
}

/* The lower half waits for what the upper half of the same warp does later in the text. */
static void control_waiting_loop_lets_others_run(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("setp.ge.u32 %p1, %t, 16;\n@%p1 bra S;\n"
			  "L: ld.acquire.gpu.global.u32 %r1, [%buf+128];\n"
			  "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra L;\nbra E;\n"
			  "S: mov.u32 %r1, 5;\nst.release.gpu.global.u32 [%buf+128], %r1;\n"
			  "E: st.global.u32 [%out], %r1;\nret;"),
		   32, w);
	for (uint32_t t = 0; t < 32; t++) {
		assert_int_equal(w[t], 5);
	}
}

/* Exited threads no longer count: whole warps and parts of them. */
static void control_barrier_does_not_wait_for_exited_threads(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL(".shared .u32 s;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [s], 42;\n"
			  "setp.gt.u32 %p1, %t, 70;\n@%p1 exit;\n"
			  "setp.eq.u32 %p1, %t, 5;\n@%p1 ret;\n"
			  "bar.sync 0;\nld.shared.u32 %x, [s];\nst.global.u32 [%out], %x;\nret;"),
		   160, w);
	for (uint32_t t = 0; t < 160; t++) {
		assert_int_equal(w[t], t == 5 || t > 70 ? 0 : 42);
	}
}

static void control_barrier_completes_when_the_last_exits(void **state) {
	uint32_t w[THREADS_MAX];

	/* Warp 0 waits before warp 1 exits, which it does after a long loop. */
	run_kernel(
		KERNEL("setp.ge.u32 %p1, %t, 32;\n@%p1 bra X;\nbar.sync 0;\n"
		       "st.global.u32 [%out], 1;\nret;\n"
		       "X: mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 20000;\n"
		       "@%p2 bra L;\nexit;"),
		64, w);
	assert_int_equal(w[0], 1);
	assert_int_equal(w[31], 1);
	assert_int_equal(w[32], 0);
}

/* One reduction from two places of one warp: what finished threads vote in a persistent loop. */
static void control_reducing_barrier_meets_from_two_places(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("setp.ge.u32 %p1, %t, 40;\n@%p1 bra B;\n"
			  "setp.eq.u32 %p2, %t, 7;\n"
			  "barrier.red.or.pred %p3, 1, %p2;\nselp.u32 %x, 100, 200, %p3;\nbra E;\n"
			  "B: setp.ne.u32 %p4, %t, %t;\n"
			  "barrier.red.or.pred %p5, 1, %p4;\nselp.u32 %x, 300, 400, %p5;\n"
			  "E: barrier.red.popc.u32 %r3, 2, %p3;\nadd.u32 %x, %x, %r3;\n"
			  "barrier.red.and.pred %p6, 0, !%p3;\n@%p6 add.u32 %x, %x, 1000;\n"
			  "st.global.u32 [%out], %x;\nret;"),
		   64, w);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(w[t], (t < 40 ? 100 : 300) + 40);
	}
}

static void control_named_barriers_count_warps(void **state) {
	uint32_t w[THREADS_MAX];

	/* Warps 2 and 3 produce and go on, warps 0 and 1 wait for them; 5 takes no part at all. */
	run_kernel(KERNEL(".shared .u32 s[4];\nsetp.ge.u32 %p1, %t, 128;\n@%p1 bra X;\n"
			  "shr.u32 %r1, %t, 5;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, s;\n"
			  "add.u32 %r3, %r3, %r2;\nsetp.ge.u32 %p2, %t, 64;\n@%p2 bra P;\n"
			  "barrier.sync 3, 128;\nld.shared.u32 %r4, [s+8];\nld.shared.u32 %r5, "
			  "[s+12];\n"
			  "add.u32 %x, %r4, %r5;\nst.global.u32 [%out], %x;\nret;\n"
			  "P: st.shared.u32 [%r3], %r1;\nbarrier.arrive 3, 128;\n"
			  "st.global.u32 [%out], 1;\nX: ret;"),
		   160, w);
	for (uint32_t t = 0; t < 160; t++) {
		assert_int_equal(w[t], t < 64 ? 5 : t < 128 ? 1 : 0);
	}
}

static void control_missing_thread_is_a_hang(void **state) {
	char text[1024];

	assert_int_equal(
		run_fault(KERNEL("setp.ge.u32 %p1, %t, 32;\n@%p1 bra B;\nbar.sync 0;\nret;\n"
				 "B: bar.sync 1;\nret;"),
			  64, text),
		INTERP_FAULT_HANG);
	assert_non_null(strstr(text, "kernel 'k', line"));
	assert_non_null(strstr(text, "bar.sync 0"));
}

static void control_shuffles_move_values(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("add.u32 %r1, %t, 100;\n"
			  "shfl.sync.down.b32 %r2|%p1, %r1, 3, 31, -1;\n"
			  "shfl.sync.up.b32 %r3|%p2, %r1, 4, 0, -1;\n"
			  "shfl.sync.bfly.b32 %r4, %r1, 5, 31, -1;\n"
			  "shfl.sync.idx.b32 %r5, %r1, 2, 0x181f, -1;\n" /* segments of 8 */
			  "selp.u32 %r6, 1, 0, %p1;\nselp.u32 %r7, 2, 0, %p2;\n"
			  "shl.b32 %r3, %r3, 8;\nshl.b32 %r4, %r4, 16;\nshl.b32 %r5, %r5, 24;\n"
			  "add.u32 %x, %r2, %r3;\nadd.u32 %x, %x, %r4;\nadd.u32 %x, %x, %r5;\n"
			  "st.global.u32 [%out], %x;\nadd.u32 %r6, %r6, %r7;\n"
			  "st.global.u32 [%out+256], %r6;\nret;"),
		   32, w);
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t down = t + 3 < 32 ? t + 3 : t, up = t >= 4 ? t - 4 : t;

		assert_int_equal(w[t], 100 + down + ((100 + up) << 8) + ((100 + (t ^ 5)) << 16) +
					       ((100u + (t & 24) + 2) << 24));
		assert_int_equal(w[64 + t], (t + 3 < 32 ? 1 : 0) + (t >= 4 ? 2 : 0));
	}
}

/* Halves of a warp at different places shuffle among themselves, then all together. */
static void control_shuffle_waits_for_its_members(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(
		KERNEL("setp.ge.u32 %p1, %t, 16;\n@%p1 bra B;\n"
		       "shfl.sync.bfly.b32 %r1, %t, 1, 31, 0x0000ffff;\nadd.u32 %r1, %r1, 100;\n"
		       "shfl.sync.idx.b32 %r2, %r1, 20, 31, 0xffffffff;\nbra E;\n"
		       "B: shfl.sync.bfly.b32 %r1, %t, 2, 31, 0xffff0000;\nadd.u32 %r1, %r1, 200;\n"
		       "shfl.sync.idx.b32 %r2, %r1, 3, 31, 0xffffffff;\n"
		       "E: bar.warp.sync 0xffffffff;\nmad.lo.u32 %x, %r1, 1000, %r2;\n"
		       "st.global.u32 [%out], %x;\nret;"),
		32, w);
	for (uint32_t t = 0; t < 32; t++) {
		uint32_t own = t < 16 ? 100 + (t ^ 1) : 200 + (t ^ 2);
		uint32_t other = t < 16 ? 200 + (20 ^ 2) : 100 + (3 ^ 1);

		assert_int_equal(w[t], own * 1000 + other);
	}
}

static void control_votes_matches_and_reductions(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(
		KERNEL("setp.lt.u32 %p1, %t, 5;\nvote.sync.ballot.b32 %r1, %p1, -1;\n"
		       "vote.sync.any.pred %p2, %p1, -1;\nvote.sync.all.pred %p3, %p1, -1;\n"
		       "vote.sync.uni.pred %p4, !%p1, -1;\n"
		       "selp.u32 %r2, 0x100, 0, %p2;\nselp.u32 %r3, 0x200, 0, %p3;\n"
		       "selp.u32 %r4, 0x400, 0, %p4;\nadd.u32 %x, %r1, %r2;\nadd.u32 %x, %x, %r3;\n"
		       "add.u32 %x, %x, %r4;\nst.global.u32 [%out], %x;\n"
		       "and.b32 %r5, %t, 3;\nmatch.any.sync.b32 %r6, %r5, -1;\n"
		       "st.global.u32 [%out+128], %r6;\n"
		       "match.all.sync.b32 %r7|%p5, 9, -1;\nselp.u32 %r8, %r7, 0, %p5;\n"
		       "st.global.u32 [%out+256], %r8;\n"
		       "sub.s32 %r9, %t, 7;\nredux.sync.min.s32 %r10, %r9, -1;\n"
		       "redux.sync.add.u32 %r11, %t, -1;\nadd.u32 %r10, %r10, %r11;\n"
		       "st.global.u32 [%out+384], %r10;\nret;"),
		32, w);
	for (uint32_t t = 0; t < 32; t++) {
		assert_int_equal(w[t], 0x1f + 0x100);
		assert_int_equal(w[32 + t], 0x11111111u << (t & 3));
		assert_int_equal(w[64 + t], 0xffffffff);
		assert_int_equal(w[96 + t], 496 - 7);
	}
}

static void control_special_registers_say_where(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("mov.u32 %r1, %laneid;\nmov.u32 %r2, %warpid;\nmov.u32 %r3, %ntid.x;\n"
			  "mov.u32 %r4, %nsmid;\nmov.u64 %rd1, %gridid;\ncvt.u32.u64 %r5, %rd1;\n"
			  "mov.u32 %r6, %lanemask_lt;\npopc.b32 %r6, %r6;\n"
			  "add.u32 %x, %r1, %r6;\nmad.lo.u32 %x, %r2, 100, %x;\n"
			  "mad.lo.u32 %x, %r3, 1000, %x;\nmad.lo.u32 %x, %r4, 1000000, %x;\n"
			  "mad.lo.u32 %x, %r5, 100000000, %x;\n"
			  "mad.lo.u32 %x, %ctaid.x, 5, %x;\n" /* as a plain operand */
			  "st.global.u32 [%out], %x;\nret;"),
		   96, w);
	for (uint32_t t = 0; t < 96; t++) {
		assert_int_equal(w[t], 2 * (t % 32) + t / 32 * 100 + 96000 + 8000000 + 700000000);
	}
}

static void control_memory_spaces_and_generic_addresses(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(
		KERNEL(".shared .align 16 .b8 s[1024];\n.local .align 8 .b8 l[32];\n"
		       /* shared through a generic address, and back */
		       "mov.u64 %rd1, s;\nmad.wide.u32 %rd1, %t, 4, %rd1;\n"
		       "cvta.shared.u64 %rd2, %rd1;\nmul.lo.u32 %r1, %t, 3;\n"
		       "st.u32 [%rd2], %r1;\nld.shared.u32 %r2, [%rd1];\n"
		       "isspacep.shared %p1, %rd2;\nisspacep.global %p2, %rd2;\n"
		       "cvta.to.shared.u64 %rd5, %rd2;\nsub.u64 %rd5, %rd5, %rd1;\n"
		       /* local likewise, with vectors */
		       "mov.u64 %rd3, l;\ncvta.local.u64 %rd4, %rd3;\n"
		       "st.local.v2.u32 [l+8], {%t, %r2};\nld.v2.u32 {%r3, %r4}, [%rd4+8];\n"
		       "add.u32 %x, %r3, %r4;\nselp.u32 %r5, 1000, 0, %p1;\n"
		       "selp.u32 %r6, 5000, 0, %p2;\nadd.u32 %x, %x, %r5;\nadd.u32 %x, %x, %r6;\n"
		       "cvt.u32.u64 %r7, %rd5;\nadd.u32 %x, %x, %r7;\n"
		       "st.u32 [%out], %x;\nret;"),
		64, w);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(w[t], 4 * t + 1000);
	}
}

static void control_dynamic_shared_follows_static(void **state) {
	struct harness h;
	uint32_t *host;
	uint64_t buffer;

	harness_init(&h, HEAD
		     ".extern .shared .align 16 .b8 dyn[];\n"
		     ".visible .entry k(.param .u64 b)\n{\n.shared .u32 fixed[5];\n"
		     ".reg .b32 %r<5>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [b];\n"
		     "mov.u32 %r1, %tid.x;\nmov.u32 %r2, dyn;\nmad.lo.u32 %r2, %r1, 4, %r2;\n"
		     "st.shared.u32 [%r2], %r1;\nst.shared.u32 [fixed+16], 77;\nbar.sync 0;\n"
		     "ld.shared.u32 %r3, [dyn+8];\nmov.u32 %r4, %dynamic_smem_size;\n"
		     "add.u32 %r3, %r3, %r4;\nld.shared.u32 %r4, [%r2];\n"
		     "add.u32 %r3, %r3, %r4;\nmad.wide.u32 %rd2, %r1, 4, %rd1;\n"
		     "st.global.u32 [%rd2], %r3;\nret;\n}\n");
	buffer = harness_alloc(&h, 256, &host);
	harness_run_ok(&h, &(struct harness_launch){.kernel = "k",
						    .block = {64},
						    .shared = 256,
						    .params = &buffer,
						    .params_size = 8});
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(host[t], 2 + 256 + t);
	}
	harness_deinit(&h);
}

static void control_struct_parameters_and_constants_are_read(void **state) {
	struct {
		uint64_t buffer;
		uint32_t small;
		uint32_t pad;
		uint64_t arg[6];
	} params = {.small = 5, .arg = {11, 22, 33, 44, 55, 66}};
	struct harness h;
	uint64_t *host;

	harness_init(&h, HEAD
		     ".const .align 8 .u64 numbers[3] = {7, 8, 9};\n"
		     ".global .align 4 .f32 half = 0f3F000000;\n"
		     ".global .align 8 .u64 pointers[2] = {numbers, generic(half)+4};\n"
		     ".global .align 1 .b8 text[4] = {72, 105, 33};\n"
		     ".visible .entry k(.param .u64 b, .param .u32 small,"
		     " .param .align 8 .b8 arg[48])\n{\n"
		     ".reg .b64 %rd<9>;\n.reg .b32 %r<4>;\n"
		     "ld.param.u64 %rd1, [b];\nld.param.u64 %rd2, [arg+40];\n"
		     "ld.param.v2.u32 {%r1, %r2}, [arg+8];\nld.param.u32 %r3, [small];\n"
		     "ld.const.u64 %rd3, [numbers+16];\nadd.u64 %rd2, %rd2, %rd3;\n"
		     "cvt.u64.u32 %rd4, %r1;\nadd.u64 %rd2, %rd2, %rd4;\n"
		     "cvt.u64.u32 %rd4, %r3;\nadd.u64 %rd2, %rd2, %rd4;\n"
		     "st.global.u64 [%rd1], %rd2;\nret;\n}\n");
	params.buffer = harness_alloc(&h, 64, &host);
	harness_run_ok(&h, &(struct harness_launch){.kernel = "k",
						    .params = &params,
						    .params_size = sizeof(params)});
	assert_int_equal(host[0], 66 + 9 + 22 + 5);
	{
		uint64_t numbers, half, *pointers = harness_var(&h, "pointers", NULL);

		harness_var(&h, "numbers", &numbers);
		assert_true(*(float *)harness_var(&h, "half", &half) == 0.5f);
		assert_int_equal(pointers[0], numbers);
		assert_int_equal(pointers[1], half + 4);
		assert_memory_equal(harness_var(&h, "text", NULL), "Hi!", 4);
	}
	harness_deinit(&h);
}

static void control_atomics_keep_every_update(void **state) {
	uint32_t w[THREADS_MAX];
	float sum;

	run_kernel(KERNEL("atom.global.add.u32 %r1, [%buf], 1;\nred.global.max.s32 [%buf+4], %t;\n"
			  "atom.global.inc.u32 %r2, [%buf+8], 9;\natom.global.dec.u32 %r2, "
			  "[%buf+12], 4;\n"
			  "shl.b32 %r3, 1, %t;\nred.global.or.b32 [%buf+16], %r3;\n"
			  "red.global.add.f32 [%buf+20], 0f3F000000;\n"
			  "red.global.xor.b32 [%buf+24], %t;\n"
			  "cvt.u64.u32 %rd1, %t;\natom.acq_rel.gpu.global.add.u64 %rd2, [%buf+32], "
			  "%rd1;\n"
			  "atom.global.min.u32 %r4, [%buf+40], %t;\n"
			  "atom.global.exch.b32 _, [%buf+44], 6;\n"
			  "add.u64 %rd3, %buf, 512;\nmad.wide.u32 %rd3, %r1, 4, %rd3;\n"
			  "st.global.u32 [%rd3], 1;\nret;"),
		   96, w);
	assert_int_equal(w[0], 96);
	assert_int_equal(w[1], 95);
	assert_int_equal(w[2], 96 % 10);
	assert_int_equal(w[3],
			 4); /* 0 wraps to 4, ..., back to 4 after each 5 more: 96 = 1 + 19 * 5 */
	assert_int_equal(w[4], 0xffffffff);
	memcpy(&sum, &w[5], sizeof(sum));
	assert_true(sum == 48.0f);
	assert_int_equal(w[6], 0); /* 0 ^ 1 ^ ... ^ 95 */
	assert_int_equal(w[8], 95 * 96 / 2);
	assert_int_equal(w[10], 0);
	assert_int_equal(w[11], 6);
	for (uint32_t t = 0; t < 96; t++) {
		assert_int_equal(w[128 + t], 1);
	}
}

/* As the copies that kernels make through cp.async: whole, cut by a size, ignored. */
static void control_async_copies_arrive(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL(".shared .align 16 .b8 s[1024];\nmov.u32 %r1, s;\n"
			  "mad.lo.u32 %r1, %t, 16, %r1;\nadd.u32 %r2, %t, 7;\n"
			  "mad.wide.u32 %rd1, %t, 16, %buf;\n"
			  "st.global.v4.u32 [%rd1], {%r2, %r2, %r2, %r2};\n"
			  "mov.u32 %r3, 8;\nst.shared.u32 [%r1+12], %r3;\n"
			  "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r3;\n"
			  "cp.async.commit_group;\ncp.async.wait_group 0;\n"
			  "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];\n"
			  "add.u32 %x, %r4, %r5;\nadd.u32 %x, %x, %r6;\nadd.u32 %x, %x, %r7;\n"
			  "bar.sync 0;\nst.global.u32 [%out], %x;\nret;"),
		   32, w);
	for (uint32_t t = 0; t < 32; t++) {
		assert_int_equal(w[t], 2 * (t + 7)); /* 8 of 16 bytes, the rest zeros */
	}
}

static void control_clock_never_goes_back(void **state) {
	uint32_t w[THREADS_MAX];

	run_kernel(KERNEL("mov.u32 %x, 0;\nmov.u64 %rd1, %clock64;\nmov.u32 %r1, 0;\n"
			  "L: mov.u64 %rd2, %clock64;\nsetp.le.u64 %p1, %rd2, %rd1;\n"
			  "@%p1 add.u32 %x, %x, 1;\nmov.u64 %rd1, %rd2;\nadd.u32 %r1, %r1, 1;\n"
			  "setp.lt.u32 %p2, %r1, 3000;\n@%p2 bra L;\n"
			  "st.global.u32 [%out], %x;\nret;"),
		   96, w);
	for (uint32_t t = 0; t < 96; t++) {
		assert_int_equal(w[t], 0);
	}
}

/* Blocks in host threads of their own, on the same memory. */
struct parallel {
	struct harness *h;
	uint64_t buffer;
	enum interp_result result;
};

static void *parallel_run(void *userdata) {
	struct parallel *p = userdata;
	struct interp_launch l = {.kernel = interp_module_find(p->h->module, "k"),
				  .grid = {1, 1, 1},
				  .block = {64, 1, 1},
				  .params = &p->buffer,
				  .params_size = 8};
	const uint32_t zero[3] = {0};
	struct interp_block *b = NULL;
	uint64_t instructions, cycles;

	p->result = INTERP_FAULT;
	if (interp_block_new(&b, &l, zero, (struct interp_place){0, 1}, &p->h->machine) == 0) {
		do {
			p->result = interp_block_run(b, 1000, &instructions, &cycles);
		} while (p->result == INTERP_MORE);
	}
	interp_block_free(b);
	return NULL;
}

static void control_atomics_hold_between_host_threads(void **state) {
	struct parallel p[4];
	pthread_t threads[4];
	struct harness h;
	uint32_t *host;
	uint64_t buffer;

	harness_init(&h,
		     KERNEL("mov.u32 %r1, 0;\nL: red.global.add.u32 [%buf], 1;\n"
			    "atom.global.add.f32 %r2, [%buf+4], 0f3F800000;\n"
			    "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 500;\n@%p1 bra L;\nret;"));
	buffer = harness_alloc(&h, 64, &host);
	for (unsigned i = 0; i < 4; i++) {
		p[i] = (struct parallel){.h = &h, .buffer = buffer};
		assert_int_equal(pthread_create(&threads[i], NULL, parallel_run, &p[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(p[i].result, INTERP_DONE);
	}
	assert_int_equal(host[0], 4 * 64 * 500);
	assert_true(*(float *)(void *)(host + 1) == 4 * 64 * 500);
	harness_deinit(&h);
}

static void control_faults_say_where(void **state) {
	char text[1024];

	assert_int_equal(run_fault(KERNEL("setp.eq.u32 %p1, %t, 37;\n@%p1 mov.u64 %out, 0;\n"
					  "st.global.u32 [%out], %t;\nret;"),
				   64, text),
			 INTERP_FAULT_ADDRESS);
	assert_non_null(strstr(text, "kernel 'k', line 14: 'st"));
	assert_non_null(strstr(text, "st.global.u32 [%out], %t;"));
	assert_non_null(strstr(text, "block (0,0,0), thread (37,0,0)"));
	assert_int_equal(run_fault(KERNEL("ld.global.u32 %x, [%out+2];\nret;"), 1, text),
			 INTERP_FAULT_ALIGNMENT);
	assert_int_equal(run_fault(KERNEL("ld.global.u32 %x, [%buf+1024];\nret;"), 1, text),
			 INTERP_FAULT_ADDRESS);
	assert_int_equal(
		run_fault(KERNEL(".shared .u32 s;\nld.shared.u32 %x, [s+64];\nret;"), 1, text),
		INTERP_FAULT_ADDRESS);
	assert_int_equal(run_fault(KERNEL("trap;"), 1, text), INTERP_FAULT_INSTRUCTION);
}

static void control_instruction_not_simulated_keeps_the_kernel(void **state) {
	struct interp_kernel_info info;
	struct interp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params_size = 8};
	struct interp_block *b = NULL;
	uint32_t zero[3] = {0};
	struct harness h;

	harness_init(&h, KERNEL("ret;\ngriddepcontrol.wait;\nret;"));
	l.kernel = interp_module_find(h.module, "k");
	interp_kernel_get_info(l.kernel, &info);
	assert_non_null(info.unsupported);
	assert_non_null(strstr(info.unsupported, "griddepcontrol.wait"));
	l.params = zero;
	assert_int_equal(interp_block_new(&b, &l, zero, (struct interp_place){0, 1}, &h.machine),
			 -ENOTSUP);
	assert_null(b);
	harness_deinit(&h);
}

static void control_blocks_resume_at_every_instruction(void **state) {
	struct harness h;
	uint32_t *host;
	uint64_t buffer;

	harness_init(&h, KERNEL("mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nbar.sync 0;\n"
				"setp.lt.u32 %p1, %r1, 20;\n@%p1 bra L;\n"
				"add.u32 %r1, %r1, %t;\nst.global.u32 [%out], %r1;\nret;"));
	buffer = harness_alloc(&h, 1024, &host);
	for (uint64_t budget = 1; budget < 8; budget++) {
		harness_run_ok(&h, &(struct harness_launch){.kernel = "k",
							    .block = {100},
							    .params = &buffer,
							    .params_size = 8,
							    .budget = budget});
		for (uint32_t t = 0; t < 100; t++) {
			assert_int_equal(host[t], 20 + t);
			host[t] = 0;
		}
	}
	harness_deinit(&h);
}

#define TEST(name) cmocka_unit_test(name)
int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(control_loops_diverge_and_meet),
		TEST(control_branch_table_goes_to_each_target),
		TEST(control_calls_recurse_and_return),
		TEST(control_calls_through_registers_reach_their_functions),
		TEST(control_endless_recursion_faults),
		TEST(control_spin_lock_inside_a_warp_goes_on),
		TEST(control_waiting_loop_lets_others_run),
		TEST(control_barrier_does_not_wait_for_exited_threads),
		TEST(control_barrier_completes_when_the_last_exits),
		TEST(control_reducing_barrier_meets_from_two_places),
		TEST(control_named_barriers_count_warps),
		TEST(control_missing_thread_is_a_hang),
		TEST(control_shuffles_move_values),
		TEST(control_shuffle_waits_for_its_members),
		TEST(control_votes_matches_and_reductions),
		TEST(control_special_registers_say_where),
		TEST(control_memory_spaces_and_generic_addresses),
		TEST(control_dynamic_shared_follows_static),
		TEST(control_struct_parameters_and_constants_are_read),
		TEST(control_atomics_keep_every_update),
		TEST(control_async_copies_arrive),
		TEST(control_clock_never_goes_back),
		TEST(control_atomics_hold_between_host_threads),
		TEST(control_faults_say_where),
		TEST(control_instruction_not_simulated_keeps_the_kernel),
		TEST(control_blocks_resume_at_every_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
