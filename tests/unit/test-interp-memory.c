/*
 * test-interp-memory.c: state spaces, parameters, atomics, asynchronous copies of the PTX
 * interpreter, and what is told of accesses that no program should make.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-kernel.h"

static void memory_memory_spaces_and_generic_addresses(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(
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

static void memory_dynamic_shared_follows_static(void **state) {
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

static void memory_struct_parameters_and_constants_are_read(void **state) {
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

static void memory_atomics_keep_every_update(void **state) {
	uint32_t w[THREADS_MAX];
	float sum;

	kernel_run(KERNEL("atom.global.add.u32 %r1, [%buf], 1;\nred.global.max.s32 [%buf+4], %t;\n"
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
static void memory_async_copies_arrive(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL(".shared .align 16 .b8 s[1024];\nmov.u32 %r1, s;\n"
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

static void memory_atomics_hold_between_host_threads(void **state) {
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

/* Each with kernel, line, instruction, block and thread. */
static void memory_faults_say_where(void **state) {
	static const struct {
		enum interp_fault_kind kind;
		const char *ptx, *place, *thread, *told;
	} cases[] = {
		{INTERP_FAULT_ADDRESS,
		 KERNEL("setp.eq.u32 %p1, %t, 37;\n@%p1 mov.u64 %out, 0;\n"
			"st.global.u32 [%out], %t;\nret;"),
		 "line 14: 'st.global.u32 [%out], %t;'", "(37,0,0)", "write of 4 bytes at 0x0"},
		{INTERP_FAULT_ADDRESS, KERNEL("ld.global.u32 %x, [%buf+1024];\nret;"),
		 "ld.global.u32 %x, [%buf+1024];", "(0,0,0)", "outside of any allocation"},
		{INTERP_FAULT_ADDRESS, KERNEL(".shared .u32 s;\nld.shared.u32 %x, [s+64];\nret;"),
		 "ld.shared.u32 %x, [s+64];", "(0,0,0)", "outside of the block's shared memory"},
		{INTERP_FAULT_ADDRESS,
		 KERNEL(".local .b8 l[16];\nmov.u32 %r1, 131072;\nst.local.u32 [%r1], %t;\nret;"),
		 "st.local.u32", "(0,0,0)", "outside of the thread's local memory"},
		{INTERP_FAULT_ALIGNMENT,
		 KERNEL("setp.eq.u32 %p1, %t, 3;\n@%p1 add.u64 %out, %out, 2;\n"
			"ld.global.u32 %x, [%out];\nret;"),
		 "ld.global.u32 %x, [%out];", "(3,0,0)", "not aligned to 4"},
		{INTERP_FAULT_ALIGNMENT,
		 KERNEL("st.global.v4.u32 [%buf+8], {%t, %t, %t, %t};\nret;"), "st.global.v4",
		 "(0,0,0)", "not aligned to 16"},
		{INTERP_FAULT_ALIGNMENT, KERNEL("atom.global.add.u64 %rd1, [%buf+4], 1;\nret;"),
		 "atom.global.add.u64", "(0,0,0)", "not aligned to 8"},
		/* The barrier between the writer and its readers is missing. */
		{INTERP_FAULT_UNINITIALISED,
		 KERNEL(".shared .u32 s;\nsetp.eq.u32 %p1, %t, 63;\n@!%p1 bra L;\n"
			"st.shared.u32 [s], %t;\nL: ld.shared.u32 %x, [s];\nret;"),
		 "ld.shared.u32 %x, [s];", "(0,0,0)", "that no thread of the block has written"},
		{INTERP_FAULT_UNINITIALISED,
		 KERNEL(".shared .align 16 .b8 s[16];\nst.shared.u64 [s], %buf;\n"
			"ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s];\nret;"),
		 "ld.shared.v4", "(0,0,0)", "read of 16 bytes at 0x0"},
		{INTERP_FAULT_UNINITIALISED,
		 KERNEL(".shared .u32 s;\nred.shared.add.u32 [s], 1;\nret;"), "red.shared",
		 "(0,0,0)", "that no thread of the block has written"},
		{INTERP_FAULT_UNINITIALISED,
		 KERNEL(".shared .u32 s[4];\nmov.u64 %rd1, s;\ncvta.shared.u64 %rd1, "
			"%rd1;\nadd.u64 %rd1, %rd1, 8;\nld.u8 %x, [%rd1];\nret;"),
		 "ld.u8", "(0,0,0)", "read of 1 bytes at 0x8"},
		{INTERP_FAULT_INSTRUCTION, KERNEL("trap;"), "trap;", "(0,0,0)", "trap"},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum interp_fault_kind kind = kernel_fault(cases[i].ptx, 64, text);
		char thread[64];

		snprintf(thread, sizeof(thread), "block (0,0,0), thread %s", cases[i].thread);
		if (kind != cases[i].kind || !strstr(text, "kernel 'k', line ") ||
		    !strstr(text, cases[i].place) || !strstr(text, thread) ||
		    !strstr(text, cases[i].told)) {
			fail_msg("case %zu: %s", i, text);
		}
	}
}

/* Written by anybody of the block, whole or in parts, through whatever address, is written. */
static void memory_shared_is_known_once_written(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(
		KERNEL(".shared .align 16 .b8 s[1024];\nmov.u64 %rd1, s;\n"
		       "mad.wide.u32 %rd1, %t, 4, %rd1;\ncvta.shared.u64 %rd2, %rd1;\n"
		       "shr.u32 %r1, %t, 8;\nst.u8 [%rd2], %t;\nst.shared.u8 [%rd1+1], %r1;\n"
		       "st.u16 [%rd2+2], 0;\nbar.sync 0;\nxor.b32 %r2, %t, 63;\n"
		       "mul.wide.u32 %rd3, %r2, 4;\nmov.u64 %rd4, s;\nadd.u64 %rd3, %rd3, %rd4;\n"
		       "ld.shared.u32 %x, [%rd3];\nbar.sync 0;\natom.shared.exch.b32 %r4, [%rd1], "
		       "5;\n"
		       "st.global.u32 [%out], %x;\nret;"),
		64, w);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(w[t], t ^ 63);
	}
}

#define TEST(name) cmocka_unit_test(name)
int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(memory_memory_spaces_and_generic_addresses),
		TEST(memory_dynamic_shared_follows_static),
		TEST(memory_struct_parameters_and_constants_are_read),
		TEST(memory_atomics_keep_every_update),
		TEST(memory_async_copies_arrive),
		TEST(memory_atomics_hold_between_host_threads),
		TEST(memory_faults_say_where),
		TEST(memory_shared_is_known_once_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
