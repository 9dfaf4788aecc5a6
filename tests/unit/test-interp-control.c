/*
 * test-interp-control.c: divergence, calls, special registers and budgets of the PTX interpreter.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-kernel.h"

static void control_loops_diverge_and_meet(void **state) {
	uint32_t w[THREADS_MAX];

	/* Thread t loops t times; behind the loop all are together again. */
	kernel_run(KERNEL("mov.u32 %x, 0;\nmov.u32 %r1, 0;\n"
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

	kernel_run(KERNEL("and.b32 %r1, %t, 3;\nT: .branchtargets A, B, C, D;\n"
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

	kernel_run(HEAD
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

	kernel_run(HEAD TWO_FUNCS
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

	assert_int_equal(kernel_fault(HEAD
				      ".func f()\n{\n.local .b8 big[256];\ncall.uni f;\nret;\n}\n"
				      ".visible .entry k(.param .u64 b)\n{\ncall.uni f;\nret;\n}\n",
				      32, text),
			 INTERP_FAULT_INSTRUCTION);
	assert_non_null(strstr(text, "call stack overflow"));
}

/* Threads of one warp take a lock in turn; without fair scheduling the holder never runs. */
static void control_spin_lock_inside_a_warp_goes_on(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("L: atom.global.cas.b32 %r1, [%buf], 0, 1;\n"
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

	kernel_run(KERNEL("setp.ge.u32 %p1, %t, 16;\n@%p1 bra S;\n"
			  "L: ld.acquire.gpu.global.u32 %r1, [%buf+128];\n"
			  "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra L;\nbra E;\n"
			  "S: mov.u32 %r1, 5;\nst.release.gpu.global.u32 [%buf+128], %r1;\n"
			  "E: st.global.u32 [%out], %r1;\nret;"),
		   32, w);
	for (uint32_t t = 0; t < 32; t++) {
		assert_int_equal(w[t], 5);
	}
}

static void control_special_registers_say_where(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("mov.u32 %r1, %laneid;\nmov.u32 %r2, %warpid;\nmov.u32 %r3, %ntid.x;\n"
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

static void control_clock_never_goes_back(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("mov.u32 %x, 0;\nmov.u64 %rd1, %clock64;\nmov.u32 %r1, 0;\n"
			  "L: mov.u64 %rd2, %clock64;\nsetp.le.u64 %p1, %rd2, %rd1;\n"
			  "@%p1 add.u32 %x, %x, 1;\nmov.u64 %rd1, %rd2;\nadd.u32 %r1, %r1, 1;\n"
			  "setp.lt.u32 %p2, %r1, 3000;\n@%p2 bra L;\n"
			  "st.global.u32 [%out], %x;\nret;"),
		   96, w);
	for (uint32_t t = 0; t < 96; t++) {
		assert_int_equal(w[t], 0);
	}
}

static void control_instruction_not_simulated_keeps_the_kernel(void **state) {
	struct interp_kernel_info info;
	struct interp_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params_size = 8};
	struct interp_block *b = NULL;
	uint32_t zero[3] = {0};
	struct harness h;

	harness_init(&h, KERNEL("ret;\nsetmaxnreg.inc.sync.aligned.u32 64;\nret;"));
	l.kernel = interp_module_find(h.module, "k");
	interp_kernel_get_info(l.kernel, &info);
	assert_non_null(info.unsupported);
	assert_non_null(strstr(info.unsupported, "setmaxnreg"));
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
		TEST(control_special_registers_say_where),
		TEST(control_clock_never_goes_back),
		TEST(control_instruction_not_simulated_keeps_the_kernel),
		TEST(control_blocks_resume_at_every_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
