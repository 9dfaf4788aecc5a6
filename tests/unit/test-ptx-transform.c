/*
 * test-ptx-transform.c: what the rewriter makes of kernels, what it refuses and how it says so.
 * What it knows of threads that wait for each other is in test-ptx-hazards.c and
 * test-ptx-uniform.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/transform.h"
#include "shim/ptx/twin.h"
#include "tests/unit/transform-harness.h"

/* Every form of white space that ptxas takes; see also tests/ptx/blanks.ptx. */
static void transform_takes_every_form_of_blanks(void **state) {
	static const struct {
		const char *before, *body, *occurs;
	} cases[] = {
		{".global.u32 g;", "ld.global.u32 %r1, [g];", "[%sbeet_a0]"},
		{"", ".reg.u64 t; .shared.align 8 .b8 s[64]; mov.u64 t, %rd1;", ".reg.u64 t;"},
		{"", "mov .u32 %r1, %ctaid .x;", "mov.u32 \t%r1, %sbeet_id0;"},
		{"", "mov/**/.u32 %r1 , %nctaid // x\n.y;", "mov.u32 \t%r1, %sbeet_id4;"},
		{"", "st.global.u64 [%rd1], %rd2 + 1;", "st.global.u64 \t[%rd1], %rd2+1;"},
		{"", ".reg .u64 t; st.global.u64 [t], t + 1;", "st.global.u64 \t[t], t+1;"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body(cases[i].before, cases[i].body);

		if (!t->kernels[0].confinable) {
			fail_msg("%s: %s", cases[i].body, t->kernels[0].reason);
		}
		assert_non_null(strstr(t->ptx, cases[i].occurs));
		transform_free(t);
	}
	assert_refused("", "st.global.u32 [%rd1], %ctaid.x + 1;",
		       "st.global.u32 [%rd1], %ctaid.x + 1;", "form");
	assert_refused(".const .u32 c[4];", "mov.u64 %rd1, c; st.global.u64 [%rd2], %rd1 + 4;",
		       "st.global.u64 [%rd2], %rd1 + 4;", "constant's address");
}

static void transform_adds_one_parameter(void **state) {
	struct transform *t = transform(
		HEAD
		".visible .entry a() { ret; }\n"
		".visible .entry b(.param .u32 x, .param .align 16 .b8 y[20], .param .u8 z) "
		".maxntid 128 { ret; }\n");

	assert_int_equal(t->n_kernels, 2);
	assert_string_equal(t->kernels[0].name, "a");
	assert_int_equal(t->kernels[0].n_params, 0);
	assert_int_equal(t->kernels[0].params_size, 0);
	assert_int_equal(t->kernels[0].arg_offset, 0);
	assert_int_equal(t->kernels[0].block_multiple, 1);
	assert_int_equal(t->kernels[1].n_params, 3);
	assert_int_equal(t->kernels[1].param_offsets[1], 16);
	assert_int_equal(t->kernels[1].param_offsets[2], 36);
	assert_int_equal(t->kernels[1].params_size, 37);
	assert_int_equal(t->kernels[1].arg_offset, 40);
	assert_occurs(t->ptx, ".visible .entry " TWIN_PREFIX "a(", 1);
	assert_occurs(t->ptx, ".visible .entry " TWIN_PREFIX "b(", 1);
	assert_occurs(t->ptx, ".param .align 8 .b8 sbeet_twin_arg[48]", 2);
	assert_occurs(t->ptx, ".maxntid 128", 1);
	assert_int_equal(strlen(t->ptx), t->ptx_size);
	transform_free(t);
}

static void transform_replaces_block_ids(void **state) {
	struct transform *t = transform_body("",
					     "mov.u32 %r1, %ctaid.y;\n"
					     "mad.lo.u32 %r2, %nctaid.z, %ntid.x, %tid.x; ret;");

	assert_occurs(t->ptx, "mov.u32 \t%r1, %sbeet_id1;", 1);
	assert_occurs(t->ptx, "mad.lo.u32 \t%r2, %sbeet_id5, %ntid.x, %tid.x;", 1);
	assert_occurs(t->ptx, "%sbeet_id0,", 0);
	assert_occurs(t->ptx, "%nctaid", 0);
	transform_free(t);
}

static void transform_turns_every_end_into_a_branch(void **state) {
	struct transform *t = transform_body("", "@%p1 ret;\n@!%p2 exit;\nret.uni;\n");

	assert_occurs(t->ptx, "@%p1 bra \t$sbeet_end;", 1);
	assert_occurs(t->ptx, "@!%p2 bra \t$sbeet_end;", 1);
	assert_occurs(t->ptx, "ret;", 1); /* of who leaves */
	assert_occurs(t->ptx, "exit", 0);
	transform_free(t);
}

static void transform_leaves_variables_where_they_are(void **state) {
	struct transform *t = transform_body(
		".global .align 4 .u32 g = 7; .const .align 4 .b8 c[64];\n"
		".global .align 1 .b8 $str[3] = {104, 105};\n.shared .align 4 .b8 s[16];",
		"ld.global.u32 %r1, [g+4];\nst.global.u32 [g], %r1;\nld.const.u32 %r2, [c+8];\n"
		"mov.u64 %rd1, g+12;\nmov.u64 %rd2, $str;\nst.shared.u32 [s], %r1;\nret;");

	assert_int_equal(t->n_vars, 2);
	assert_string_equal(t->vars[0], "g");
	assert_string_equal(t->vars[1], "c");
	assert_int_equal(t->kernels[0].n_vars, 2);
	assert_occurs(t->ptx, ".visible .const .align 8 .u64 " TWIN_VARS_NAME "[2];", 1);
	assert_occurs(t->ptx, "ld.const.u64 \t%sbeet_a0, [" TWIN_VARS_NAME "+0];", 3);
	assert_occurs(t->ptx, "ld.const.u64 \t%sbeet_a0, [" TWIN_VARS_NAME "+8];", 1);
	assert_occurs(t->ptx, "ld.global.u32 \t%r1, [%sbeet_a0+4];", 1);
	assert_occurs(t->ptx, "ld.global.u32 \t%r2, [%sbeet_a0+8];", 1);
	assert_occurs(t->ptx, "add.s64 \t%sbeet_a0, %sbeet_a0, 12;", 1);
	assert_occurs(t->ptx, ".global .align 1 .b8 $str[3]", 1);
	assert_occurs(t->ptx, ".shared .align 4 .b8 s[16];", 1);
	assert_occurs(t->ptx, ".u32 g", 0);
	transform_free(t);
}

static void transform_hands_ids_to_functions(void **state) {
	struct transform *t = transform_body(
		".func inner(.param .b32 x);\n"
		".func (.param .b32 r) outer() { .reg .b32 %r<2>; .param .b32 a; call inner, (a); "
		"mov.u32 %r1, %nctaid.x; ret; }\n"
		".func inner(.param .b32 x) { .reg .b32 %r<2>; mov.u32 %r1, %ctaid.z; ret; }\n"
		".func other() { ret; }\n.func unused() { .reg .b32 %r<2>; mov.u32 %r1, %ctaid.y; "
		"}\n",
		"{ .param .b32 v; call.uni (v), outer; call other; } ret;");

	assert_occurs(t->ptx, "call.uni \t(v), outer, (sbeet_id2, sbeet_id3);", 1);
	assert_occurs(t->ptx, "call \tinner, (a, sbeet_id2, sbeet_id3);", 1);
	assert_occurs(t->ptx, "call \tother;", 1);
	assert_occurs(t->ptx, ".param .b32 sbeet_given2", 4);
	assert_occurs(t->ptx, "unused", 0);
	assert_occurs(t->ptx, "mov.u32 \t%r1, %sbeet_id2;", 1);
	transform_free(t);
}

static void transform_leaves_other_grids_out(void **state) {
	struct transform *t = transform_body("",
					     "griddepcontrol.wait;\n"
					     "@%p1 griddepcontrol.launch_dependents;\n"
					     "mov.u32 %r1, %r2; ret;");

	assert_true(t->kernels[0].confinable);
	assert_occurs(t->ptx, "griddepcontrol", 0);
	assert_occurs(t->ptx, "\tmov.u32 \t%r1, %r2;", 1);
	assert_occurs(t->ptx, "%p1", 0);
	transform_free(t);
}

static void transform_drains_copies(void **state) {
	struct transform *t = transform_body(
		"", "cp.async.ca.shared.global [%r1], [%rd1], 16;\ncp.async.commit_group;\nret;");

	assert_occurs(t->ptx, "$sbeet_end:\n\tcp.async.wait_all;", 1);
	transform_free(t);
}

static void transform_refuses_what_it_does_not_know(void **state) {
	static const struct {
		const char *before, *body, *instruction, *reason;
	} cases[] = {
		{"", "frobnicate.u32 %r1;", "frobnicate.u32 %r1;", "not an instruction known"},
		{"", "mov.u32 %r1, %gridid;", "mov.u32 %r1, %gridid;", "one launch from another"},
		{"", "mov.b32 %r1, %envreg2;", "mov.b32 %r1, %envreg2;", "whole grid"},
		{"", "mov.u32 %r1, %clusterid.x;", "mov.u32 %r1, %clusterid.x;", "cluster"},
		{"", "mov.u32 %r1, %newreg;", "mov.u32 %r1, %newreg;", "special register"},
		{"", "mov.u16 %r1, %ctaid.x;", "mov.u16 %r1, %ctaid.x;", "16-bit"},
		{"", "mov.v4.u32 %r1, %ctaid;", "mov.v4.u32 %r1, %ctaid;", "vector"},
		{"", "barrier.cluster.arrive;", "barrier.cluster.arrive;", "cluster"},
		{"", "ld.shared::cluster.u32 %r1, [%r2];", "ld.shared::cluster.u32 %r1, [%r2];",
		 "cluster"},
		{"", "mbarrier.init.shared.b64 [%r1], %r2;", "mbarrier.init.shared.b64 [%r1], %r2;",
		 "memory barriers"},
		{"", "cp.async.bulk.commit_group;", "cp.async.bulk.commit_group;",
		 "memory barriers"},
		{"", "setmaxnreg.inc.sync.aligned.u32 64;", "setmaxnreg.inc.sync.aligned.u32 64;",
		 "number of registers"},
		{"", "bar.arrive 1, 64;", "bar.arrive 1, 64;", "left over"},
		{"", "alloca.u64 %r1, %r2;", "alloca.u64 %r1, %r2;", "stack"},
		{"", "isspacep.const %p1, %r1;", "isspacep.const %p1, %r1;", "other things"},
		{"", "call (a), %r1, (b), proto;", "call (a), %r1, (b), proto;", "pointer"},
		{".func f() { exit; }", "call f;", "exit;", "inside a function"},
		{".func f() { call g; } .func g() { exit; call f; }", "call f;", "exit;",
		 "inside a function"},
		{".extern .func cudaLaunchDeviceV2();", "call cudaLaunchDeviceV2;",
		 "call cudaLaunchDeviceV2;", "not in this module"},
		{"", "call nobody;", "call nobody;", "not a function"},
		{".func f() { ret; }", "mov.u64 %rd1, f;", "mov.u64 %rd1, f;",
		 "address of a function"},
		{".global .texref t;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}];",
		 "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}];", "form"},
		{".local .b32 l;", "ld.local.u32 %r1, [l];", "ld.local.u32 %r1, [l];",
		 "for itself"},
		{".func f(.param .b32 a) { ret; }", "call f, (%ctaid.x);", "call f, (%ctaid.x);",
		 "argument"},
		{".func f(.reg .b32 a) { ret; }", "call f, (%r1);", "call f, (%r1);", "registers"},
		{".global .b32 g;", "mov.v2.u64 {%rd1, %rd2}, {g, %rd3};",
		 "mov.v2.u64 {%rd1, %rd2}, {g, %rd3};", "form"},
		{".global .b32 g;", "st.global.u64 [%rd1], g;", "st.global.u64 [%rd1], g;", "form"},
		{"", "bra 0 L;", "bra 0 L;", "not a label"},
		{"", "@%p9 ret;", "@%p9 ret;", "guard"},
		{"", "mov.u32 %r1 %r2;", "mov.u32 %r1 %r2;", "form"},
		{"", ".global .u32 inside;", ".global .u32 inside;", "inside a function"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_refused(cases[i].before, cases[i].body, cases[i].instruction,
			       cases[i].reason);
	}
}

static void transform_follows_addresses_of_constants(void **state) {
	static const char c[] = ".const .align 4 .b8 c[64];";
	struct transform *t = transform_body(
		c, "mov.u64 %rd1, c+4; add.s64 %rd2, %rd1, 8; ld.const.u32 %r1, [%rd2+4]; ret;");

	assert_occurs(t->ptx, "ld.global.u32 \t%r1, [%rd2+4];", 1);
	transform_free(t);
	/* around a loop */
	assert_twin(c,
		    "mov.u64 %rd1, c; L: ld.const.u32 %r1, [%rd1]; add.s64 %rd2, %rd1, 4; "
		    "mov.u64 %rd1, %rd2; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;",
		    false);
	assert_refused(c, "ld.const.u32 %r1, [%rd1]; ret;", "ld.const.u32 %r1, [%rd1];",
		       "followed");
	assert_refused(c, "ld.const.u32 %r1, [16]; ret;", "ld.const.u32 %r1, [16];", "followed");
	assert_refused(c,
		       "mov.u64 %rd1, c; @%p1 mov.u64 %rd1, %rd2; ld.const.u32 %r1, [%rd1]; ret;",
		       "ld.const.u32 %r1, [%rd1];", "followed");
	assert_refused(c, "mov.u64 %rd1, c; st.global.u64 [%rd2], %rd1; ret;",
		       "st.global.u64 [%rd2], %rd1;", "followed");
	assert_refused(c, "mov.u64 %rd1, c; ld.u32 %r1, [%rd1]; ret;", "ld.u32 %r1, [%rd1];",
		       "followed");
	assert_refused(c, "{ .reg .b64 %rd1; mov.u64 %rd1, c; } ld.const.u32 %r1, [%rd1]; ret;",
		       "ld.const.u32 %r1, [%rd1];", "followed");
	assert_refused(c, "mov.u64 %rd1, c; cvta.const.u64 %rd2, %rd1; ret;",
		       "cvta.const.u64 %rd2, %rd1;", "other kernels");
	/* another kernel may leave such an address in memory */
	assert_refused(".const .b32 c; .global .u64 g = generic(c);", "ld.u32 %r1, [%rd1]; ret;",
		       NULL, "may meet");
	assert_twin(".const .b32 c; .global .u64 g = generic(c);",
		    "ld.global.u32 %r1, [%rd1]; ret;", false);
}

/* Found by the fuzzer: a blank where the text is cut. */
static void transform_cuts_long_instructions(void **state) {
	for (size_t n = 100; n < 400; n++) {
		char body[500];
		struct transform *t;

		snprintf(body, sizeof(body), "unknown %%%0*d, %%r1 , %%r2 ,%%r3;", (int)n, 0);
		t = transform_body("", body);
		assert_non_null(t->kernels[0].instruction);
		assert_true(strlen(t->kernels[0].instruction) <= 164);
		assert_memory_equal(t->kernels[0].instruction, "unknown %00", 11);
		transform_free(t);
	}
}

static void transform_refuses_whole_modules(void **state) {
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{".version 8.0\n.target sm_61\n.address_size 64\n.entry k() {}", "before sm_70"},
		{".version 8.0\n.target sm_75\n.address_size 32\n.entry k() {}", "64 bits"},
		{".version 6.2\n.target sm_70\n.address_size 64\n.entry k() {}", "below 6.3"},
		{HEAD ".entry k() { .reg .b32 %sbeet_x; }", "sbeet_"},
		{HEAD ".entry k() .reqnctapercluster 2 {}", "directive"},
		{HEAD ".entry k(.param .b8 x[32740]) {}", "no room"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform(cases[i].text);

		assert_int_equal(t->n_kernels, 1);
		assert_false(t->kernels[0].confinable);
		assert_non_null(strstr(t->kernels[0].reason, cases[i].reason));
		transform_free(t);
	}
}

static void transform_says_why_text_does_not_parse(void **state) {
	/* they would be written without their quotes */
	static const char *const strings[] = {
		"ld.para \"a b\nc\";",
		"mov.u32 %r1, \"1; exit\";",
		"mov.v2.u32 {%r1, \"x y\"}, %r2;",
		"add.u32 %r1, %r2\";\", %r2;",
	};
	struct transform *t = NULL;
	char error[100] = "";

	assert_int_equal(transform_new(&t, "hello", 5, error, sizeof(error)), -EINVAL);
	assert_null(t);
	assert_string_equal(error, "line 1: expected .version, not 'hello'");
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		char text[200];
		int n = snprintf(text, sizeof(text),
				 HEAD ".entry k() {\n.reg .b32 %%r<3>;\n%s\nret; }\n", strings[i]);

		assert_int_equal(transform_new(&t, text, (size_t)n, error, sizeof(error)), -EINVAL);
		assert_null(t);
		assert_string_equal(error, "line 6: expected an operand, not a string");
	}
}

/* Cooperative groups without tiles wider than a warp only take the address. */
static void transform_takes_reserved_shared_memory(void **state) {
	assert_twin("", "mov.u32 %r1, %reserved_smem_offset_1; ret;", false);
	assert_refused("", "mov.u32 %r1, %reserved_smem_offset_2; ret;",
		       "mov.u32 %r1, %reserved_smem_offset_2;", "special register");
}

/* Textures and surfaces can't meet a constant's address; loads by generic addresses can. */
static void transform_keeps_textures_from_constants(void **state) {
	static const char escape[] =
		".const .u32 c[4]; .visible .entry e() { .reg .u64 a; mov.u64 a, c; cvta.const.u64 "
		"a, a; ret; }";
	static const struct {
		const char *insn;
		bool twin;
	} cases[] = {
		{"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];", true},
		{"tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", true},
		{"suld.b.2d.b32.trap %r3, [%rd1, {%r1, %r2}];", true},
		{"txq.width.b32 %r3, [%rd1];", true},
		{"suq.width.b32 %r3, [%rd1];", true},
		{"ld.u32 %r3, [%rd1];", false},
		{"ld.global.u32 %r3, [%rd1];", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body(escape, cases[i].insn);

		assert_int_equal(t->n_kernels, 2);
		assert_false(t->kernels[0].confinable);
		if (t->kernels[1].confinable != cases[i].twin) {
			fail_msg("%s: %s", cases[i].insn, t->kernels[1].reason);
		}
		transform_free(t);
	}
}

/* Loops that do nothing but look at memory again, until another block has written there. */
static void transform_finds_waits_for_other_blocks(void **state) {
#define POLL(load) "A: " load " setp.eq.s32 %p1, %r1, 0; @%p1 bra A; ret;"
	static const struct {
		const char *before, *body;
		bool waits;
	} cases[] = {
		{"", POLL("ld.volatile.global.u32 %r1, [%rd1];"), true},
		{"", POLL("ld.relaxed.gpu.global.u32 %r1, [%rd1];"), true},
		{"", POLL("ld.acquire.sys.u32 %r1, [%rd1];"), true},
		{"", POLL("atom.global.cas.b32 %r1, [%rd1], 0, 1;"), true},
		{"", POLL("atom.global.add.u32 %r1, [%rd1], 0;"), true},
		{"", POLL("ld.global.u32 %r1, [%rd1]; membar.gl;"), true},
		{"",
		 POLL("ld.volatile.global.u32 %r1, [%rd1]; nanosleep.u32 20; bar.warp.sync -1;"),
		 true},
		{"", POLL("ld.volatile.global.u32 %r2, [%rd1]; add.s32 %r1, %r2, 1;"), true},
		/* passed on through shared memory */
		{".shared .u32 s;",
		 POLL("ld.volatile.global.u32 %r2, [%rd1]; st.shared.u32 [s], %r2; bar.sync 0;"
		      "ld.shared.u32 %r1, [s];"),
		 true},
		/* what is written only sometimes, and by generic addresses, perhaps to local memory
		 */
		{"", POLL("ld.volatile.global.u32 %r1, [%rd1]; @%p2 st.global.u32 [%rd2], %r1;"),
		 true},
		{"", POLL("ld.volatile.global.u32 %r1, [%rd1]; st.u32 [%rd2], %r1;"), true},
		{".func (.param .b32 r) f() { .reg .u32 v; .reg .u64 a; ld.volatile.global.u32 v, "
		 "[a];"
		 "st.param.b32 [r], v; ret; }",
		 POLL("{ .param .b32 q; call (q), f; ld.param.b32 %r1, [q]; }"), true},
		{".func f() { .reg .u32 v; .reg .u64 a; .reg .pred p; A: ld.volatile.global.u32 v, "
		 "[a];"
		 "setp.eq.u32 p, v, 0; @p bra A; ret; }",
		 "call f; ret;", true},
		/* no loop, no new look, no other block's memory, no branch by it, progress in each
		   round */
		{"", "ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 ret; ret;",
		 false},
		{"", POLL("ld.global.u32 %r1, [%rd1];"), false},
		{".shared .u32 s;", POLL("ld.volatile.shared.u32 %r1, [s];"), false},
		{"", POLL("atom.shared.add.u32 %r1, [%rd1], 1;"), false},
		{"", POLL("ld.volatile.global.u32 %r2, [%rd1]; add.s32 %r1, %r1, 1;"), false},
		{"", POLL("ld.volatile.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;"), false},
		{"", POLL("ld.volatile.global.u32 %r1, [%rd1]; red.global.add.u32 [%rd2], 1;"),
		 false},
		{"",
		 "A: add.s32 %r3, %r2, 1; atom.global.cas.b32 %r1, [%rd1], %r2, %r3; setp.ne.s32 "
		 "%p1, %r1, %r2;"
		 "mov.u32 %r2, %r1; @%p1 bra A; ret;",
		 false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body(cases[i].before, cases[i].body);

		if (t->kernels[0].waits != cases[i].waits) {
			fail_msg("case %zu: %s: %d", i, cases[i].body, t->kernels[0].waits);
		}
		transform_free(t);
	}
#undef POLL
}

/* The assembler keeps in registers of the warp what is made of ids only if it sees that all lanes
 * have the same ones. */
static void transform_shares_ids_within_the_warp(void **state) {
	static const struct {
		const char *body;
		unsigned shared;
	} cases[] = {
		{"ret;", 0},
		{"mov.u32 %r1, %nctaid.y; ret;", 0},
		{"mov.u32 %r1, %ctaid.x; ret;", 1},
		{"mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z; ret;", 1},
		{"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.z; ret;", 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body("", cases[i].body);

		assert_occurs(t->ptx, "shfl.sync.idx.b32", cases[i].shared);
		transform_free(t);
	}
}

/* Where a kernel's own shared memory leaves room in a unit of 128 bytes, and nowhere else: no
 * kernel takes more of an SM than its original. */
static void transform_keeps_slots_in_shared_memory_where_they_are_free(void **state) {
#define SLOT ".shared .align 8 .b8 \tsbeet_slot[16];"
#define USE  "mov.u32 %r2, s; mov.u32 %r1, %ctaid.x; ret;"
	static const struct {
		const char *before, *body;
		unsigned slots;
	} cases[] = {
		{"", "mov.u32 %r1, %ctaid.x; ret;", 0},
		{"", "st.shared.u32 [16], %r1; mov.u32 %r1, %ctaid.x; ret;", 0},
		{"", ".shared .b32 s; " USE, 1},
		{"", ".shared .align 8 .b8 s[112]; " USE, 1},
		{"", ".shared .align 8 .b8 s[113]; " USE, 0},
		{"", ".shared .align 8 .b8 s[128]; " USE, 0},
		{"", ".shared .align 8 .b8 s[48960]; " USE, 1},
		{"", ".shared .align 8 .b8 s[49152]; " USE, 0},
		{"", ".shared .align 8 .b8 s[112]; ret;", 0},
		{".shared .align 4 .b8 s[44];", USE, 1},
		{".shared .align 4 .b8 s[44]; .shared .b8 unused[84];", USE, 1},
		{".shared .align 4 .b8 s[44]; .shared .align 64 .b8 t[64];", "mov.u32 %r2, t; " USE,
		 0},
		{".extern .shared .align 16 .b8 s[];", USE, 0},
		{".extern .shared .align 16 .b8 d[]; .shared .b32 s;", "mov.u32 %r2, d; " USE, 0},
		{".shared .b32 s;", "mov.u32 %r2, %total_smem_size; " USE, 0},
		{".shared .b32 s; .shared .align 4 .b8 t[120]; .func f() { .reg .u32 %r<2>; "
		 "mov.u32 "
		 "%r1, t; ret; }",
		 "call f; " USE, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body(cases[i].before, cases[i].body);

		if (!t->kernels[0].confinable) {
			fail_msg("case %zu: %s", i, t->kernels[0].reason);
		}
		assert_occurs(t->ptx, SLOT, cases[i].slots);
		transform_free(t);
	}
#undef SLOT
#undef USE
}

/* Of an immediate the assembler adds up what the lanes of a warp want, in a dozen instructions. */
static void transform_claims_without_an_immediate(void **state) {
	struct transform *t = transform_body("", "mov.u32 %r1, %ctaid.x; ret;");

	assert_occurs(t->ptx,
		      "atom.relaxed.gpu.global.add.u64 \t%sbeet_d2, [%sbeet_d0+0], %sbeet_d2;", 1);
	assert_occurs(t->ptx, "[%sbeet_d0+0], 1;", 0);
	transform_free(t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transform_takes_every_form_of_blanks),
		cmocka_unit_test(transform_adds_one_parameter),
		cmocka_unit_test(transform_replaces_block_ids),
		cmocka_unit_test(transform_turns_every_end_into_a_branch),
		cmocka_unit_test(transform_leaves_variables_where_they_are),
		cmocka_unit_test(transform_hands_ids_to_functions),
		cmocka_unit_test(transform_leaves_other_grids_out),
		cmocka_unit_test(transform_drains_copies),
		cmocka_unit_test(transform_refuses_what_it_does_not_know),
		cmocka_unit_test(transform_follows_addresses_of_constants),
		cmocka_unit_test(transform_cuts_long_instructions),
		cmocka_unit_test(transform_refuses_whole_modules),
		cmocka_unit_test(transform_says_why_text_does_not_parse),
		cmocka_unit_test(transform_takes_reserved_shared_memory),
		cmocka_unit_test(transform_keeps_textures_from_constants),
		cmocka_unit_test(transform_finds_waits_for_other_blocks),
		cmocka_unit_test(transform_shares_ids_within_the_warp),
		cmocka_unit_test(transform_keeps_slots_in_shared_memory_where_they_are_free),
		cmocka_unit_test(transform_claims_without_an_immediate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
