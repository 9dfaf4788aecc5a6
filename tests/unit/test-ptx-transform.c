/*
 * test-ptx-transform.c: what the rewriter makes of kernels, what it refuses and how it says so.
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

#define HEAD ".version 8.3\n.target sm_75\n.address_size 64\n"

static struct transform *transform(const char *text) {
	struct transform *t = NULL;
	char error[200] = "";

	if (transform_new(&t, text, strlen(text), error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
	return t;
}

/* The transform of one entry "k" with @body, after @before. */
static struct transform *transform_body(const char *before, const char *body) {
	char text[8192];
	int n = snprintf(text, sizeof(text),
			 HEAD
			 "%s\n.visible .entry k(.param .u64 p)\n{\n"
			 ".reg .b32 %%r<9>; .reg .b64 %%rd<5>; .reg .pred %%p<5>; "
			 ".reg .f32 %%f<5>;\n%s\n}\n",
			 before, body);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	return transform(text);
}

static void assert_twin(const char *before, const char *body, bool votes) {
	struct transform *t = transform_body(before, body);

	assert_int_equal(t->n_kernels, 1);
	if (!t->kernels[0].confinable) {
		fail_msg("refused: %s (%s)", t->kernels[0].reason, t->kernels[0].instruction);
	}
	assert_null(t->kernels[0].reason);
	assert_non_null(t->ptx);
	assert_int_equal(t->kernels[0].uses_barriers, votes);
	transform_free(t);
}

static void assert_refused(const char *before, const char *body, const char *instruction,
			   const char *reason) {
	struct transform *t = transform_body(before, body);

	assert_int_equal(t->n_kernels, 1);
	assert_false(t->kernels[0].confinable);
	assert_non_null(t->kernels[0].reason);
	if (!strstr(t->kernels[0].reason, reason)) {
		fail_msg("refused because %s, not because %s", t->kernels[0].reason, reason);
	}
	if (instruction) {
		assert_non_null(t->kernels[0].instruction);
		assert_string_equal(t->kernels[0].instruction, instruction);
		assert_true(t->kernels[0].line > 3);
	}
	assert_null(t->ptx);
	transform_free(t);
}

/* Every @what, or none if @n is 0. */
static void assert_occurs(const char *text, const char *what, unsigned n) {
	unsigned found = 0;

	for (const char *at = text; (at = strstr(at, what)); at++) {
		found++;
	}
	if (found != n) {
		fail_msg("'%s' stands %u times, not %u, in:\n%s", what, found, n, text);
	}
}

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

/* What the body of a kernel may do between %p1, which differs from thread to thread, and %p2, which
 * does not. */
#define DIFFER "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;\n"
#define SAME   "ld.param.u32 %r2, [p]; setp.lt.u32 %p2, %r2, 5;\n"

static void transform_votes_only_where_threads_may_be_missing(void **state) {
	static const struct {
		const char *body;
		bool votes;
	} cases[] = {
		{"ret;", false},
		{"bar.sync 0; ret;", false},
		{DIFFER "@%p1 ret; bar.sync 0; ret;", true},
		{SAME "@%p2 ret; bar.sync 0; ret;", false},
		{"@%p3 ret; bar.sync 0; ret;", true}, /* %p3 holds anything */
		{DIFFER "@%p1 bra A; st.u32 [%rd1], %r1; A: bar.sync 0; @%p1 ret; ret;", false},
		{DIFFER "@%p1 bra A; bar.sync 0; A: ret;", true},
		{DIFFER "@%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B: ret;", true},
		{DIFFER "@%p1 barrier.sync 0; ret;", true},
		{SAME "@%p2 bar.sync 0; ret;", false},
		/* a loop that all threads leave together, and one that they do not */
		{"mov.u32 %r1, 0; L: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; "
		 "@%p1 bra L; ret;",
		 false},
		{"mov.u32 %r1, %tid.x; L: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, "
		 "9; "
		 "@%p1 bra L; ret;",
		 true},
		/* a counter that some threads raised more often than others */
		{DIFFER "mov.u32 %r3, 0; A: add.u32 %r3, %r3, 1; add.u32 %r1, %r1, 1; "
			"setp.lt.u32 %p1, %r1, 9; @%p1 bra A; setp.lt.u32 %p3, %r3, 2; @%p3 ret; "
			"bar.sync 0; ret;",
		 true},
		{"bar.red.or.pred %p1, 0, %p2; @%p1 ret; bar.sync 0; ret;", false},
		{"ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 ret; bar.sync 0; ret;",
		 true},
		/* no way out: the rest is never reached */
		{DIFFER "@%p1 bra A; L: bra L; A: bar.sync 0; ret;", true},
		/* the same label in two pairs of braces */
		{"{ mov.u32 %r1, 0; W: setp.ne.u32 %p1, %r1, 0; @%p1 bra W; }\n"
		 "{ mov.u32 %r1, 0; W: setp.ne.u32 %p1, %r1, 0; @%p1 bra W; } bar.sync 0; ret;",
		 false},
		{SAME "mov.u32 %r3, %r2; T: .branchtargets A, B; brx.idx %r3, T; A: bar.sync 0; "
		      "B: ret;",
		 false},
		{"mov.u32 %r3, %tid.y; T: .branchtargets A, B; brx.idx %r3, T; A: bar.sync 0; "
		 "B: ret;",
		 true},
		{"mov.u32 %r3, %laneid; setp.ge.u32 %p1, %r3, 0; @%p1 ret; bar.sync 0;", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_twin("", cases[i].body, cases[i].votes);
	}
	assert_twin(".func f() { bar.sync 0; ret; }", "call f; ret;", true);
}

static void transform_gives_votes_their_form(void **state) {
	struct transform *t = transform_body("", DIFFER "@%p1 ret; bar.sync 3; ret;");

	assert_occurs(t->ptx, "barrier.red.or.pred \t%sbeet_w, 0, %sbeet_v;", 1);
	assert_occurs(t->ptx, "@%sbeet_p1 bra \t$sbeet_sync;", 1);
	assert_occurs(t->ptx, "popc", 0);
	assert_occurs(t->ptx, "bar.sync 3", 0);
	transform_free(t);
}

static void transform_refuses_results_of_votes(void **state) {
	struct transform *t = transform_body(
		"", DIFFER "@%p1 ret; bar.sync 0; bar.red.and.pred %p2, 0, !%p3; ret;");

	assert_false(t->kernels[0].confinable);
	assert_non_null(strstr(t->kernels[0].reason, "asks all threads of its block"));
	assert_string_equal(t->kernels[0].instruction, "bar.red.and.pred %p2, 0, !%p3;");
	transform_free(t);
}

static void transform_keeps_counted_barriers_apart(void **state) {
	struct transform *t =
		transform_body("", "bar.sync 0, 64; bar.sync 1, 64; bar.sync 2; ret;");

	assert_true(t->kernels[0].confinable);
	assert_occurs(t->ptx, "bar.sync \t0, 64;", 1);
	assert_occurs(t->ptx, "bar.sync \t2;", 1); /* the kernel's */
	assert_occurs(t->ptx, "bar.red.or.pred \t%sbeet_p0, 2,", 1);
	transform_free(t);
	assert_refused("", DIFFER "@%p1 ret; bar.sync 1, 64; ret;", "bar.sync 1, 64;", "number of");
	assert_twin("", DIFFER "@%p1 bra A; bar.sync 1, 64; A: bar.sync 0; ret;", false);
	/* the same, but the barrier at A lets a thread pass if the others vote at the next one */
	assert_refused(
		"", DIFFER "@%p1 bra A; bar.sync 1, 64; A: bar.sync 0; @%p1 ret; bar.sync 0; ret;",
		"bar.sync 1, 64;", "number of");
	assert_refused("",
		       "bar.sync 0, 32; bar.sync 1, 32; bar.sync 2, 32; bar.sync 3, 32;\n"
		       "bar.sync 4, 32; bar.sync 5, 32; bar.sync 6, 32; bar.sync 7, 32;\n"
		       "bar.sync 8, 32; bar.sync 9, 32; bar.sync 10, 32; bar.sync 11, 32;\n"
		       "bar.sync 12, 32; bar.sync 13, 32; bar.sync 14, 32; bar.sync 15, 32; ret;",
		       NULL, "no barrier");
	assert_refused("", "bar.sync %r1, 64; ret;", "bar.sync %r1, 64;", "not constant");
}

#define SHFL_TEXT "shfl.sync.down.b32 %r3|%p4, %r4, 1, 31, -1;"
#define SHFL	  "shfl.sync.down.b32 %r3|%p4, %r4, 1, 31, -1;\n"

static void transform_knows_when_a_warp_is_whole(void **state) {
	static const struct {
		const char *body;
		unsigned block_multiple;
		unsigned leaves; /* branches at which those who stay are counted */
	} cases[] = {
		{SHFL "ret;", 1},
		{DIFFER "@%p1 ret; " SHFL "ret;", 1, 1},
		{SAME "@%p2 ret; " SHFL "ret;", 1},
		/* the usual reduction: the first warp goes on alone */
		{"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 31; @%p1 ret; " SHFL "ret;", 32},
		{"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 64; @!%p1 ret; " SHFL "ret;", 32},
		{"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 32; @%p1 ret; " SHFL "ret;", 1, 1},
		{"mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 3; @%p1 "
		 "ret; " SHFL "ret;",
		 32},
		{"mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 4; setp.eq.u32 %p1, %r2, 3; @%p1 "
		 "ret; " SHFL "ret;",
		 1, 1},
		/* one warp a row of a matrix: block index * block size + thread, over 32 */
		{"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
		 "mad.lo.s32 %r4, %r1, %r2, %r3; shr.s32 %r5, %r4, 5; ld.param.u32 %r6, [p];\n"
		 "setp.ge.s32 %p1, %r5, %r6; @%p1 ret; shfl.sync.bfly.b32 %r7, %r8, 1, 31, -1; "
		 "ret;",
		 32},
		{"mov.u32 %r1, %tid.y; setp.eq.u32 %p1, %r1, 3; @%p1 ret; " SHFL "ret;", 32},
		/* all meet again behind it */
		{DIFFER "@%p1 bra A; shfl.sync.down.b32 %r3, %r4, 1, 31, %r2; A: bar.sync 0; ret;",
		 1},
		{DIFFER "@%p1 bra A; shfl.sync.down.b32 %r3, %r4, 1, 31, %r2; A: " SHFL "ret;", 1},
		{DIFFER "@%p1 bra A; " SHFL "A: ret;", 1, 1},
		{DIFFER "@%p1 bra A; activemask.b32 %r2; A: ret;", 1},
		{DIFFER "@%p1 ret; mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 "
			"{%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r1,%r2}, {%r1,%r2,%r3,%r4}; ret;",
		 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body("", cases[i].body);

		if (!t->kernels[0].confinable ||
		    t->kernels[0].block_multiple != cases[i].block_multiple) {
			fail_msg("case %zu: confinable %d, block multiple %u: %s", i,
				 t->kernels[0].confinable, t->kernels[0].block_multiple,
				 cases[i].body);
		}
		assert_occurs(t->ptx, "vote.sync.ballot", cases[i].leaves);
		transform_free(t);
	}
	assert_twin(".func f() { shfl.sync.down.b32 a, b, 1, 31, -1; ret; }", "call f; ret;",
		    false);
	assert_refused(".func f() { shfl.sync.down.b32 a, b, 1, 31, -1; ret; }",
		       DIFFER "@%p1 ret; call f; ret;", "call f;", "warp");
	assert_refused(
		".func f() { .reg .pred p; @p bra A; shfl.sync.down.b32 a, b, 1, 31, -1; A: ret; }",
		"call f; ret;", "shfl.sync.down.b32 a, b, 1, 31, -1;", "warp");
}

/* A required block size needs no condition at launch. */
static void transform_counts_those_who_stay(void **state) {
	struct transform *t = transform_body(
		"", DIFFER
		"@%p1 ret; @!%p3 bra A; bra B; A: vote.sync.any.pred %p4, %p2, %r7;\n"
		"@%p2 bra C; B: ret; C: bar.warp.sync 255; bra B;");

	assert_true(t->kernels[0].confinable);
	assert_occurs(t->ptx, "mov.b32 \t%sbeet_live, -1;", 1);
	assert_occurs(t->ptx, "vote.sync.ballot.b32 \t%sbeet_live, !%p1, %sbeet_live;\n\t@%p1 bra ",
		      1);
	assert_occurs(t->ptx,
		      "vote.sync.ballot.b32 \t%sbeet_live, !%p3, %sbeet_live;\n\t@!%p3 bra ", 1);
	assert_occurs(t->ptx, "vote.sync.ballot.b32 \t%sbeet_live, %p2, %sbeet_live;\n\t@%p2 bra ",
		      1);
	assert_occurs(t->ptx,
		      "and.b32 \t%sbeet_m0, %r7, %sbeet_live;\n\tvote.sync.any.pred "
		      "\t%p4, %p2, %sbeet_m0;",
		      1);
	assert_occurs(t->ptx,
		      "and.b32 \t%sbeet_m0, 255, %sbeet_live;\n\tbar.warp.sync \t%sbeet_m0;", 1);
	transform_free(t);

	/* not all lanes come to where some leave */
	assert_refused("", DIFFER "@%p1 bra A; @%p2 ret; A: " SHFL "ret;", SHFL_TEXT, "warp");
	/* a table of ways is no branch */
	assert_refused("", DIFFER "T: .branchtargets A, B; brx.idx %r1, T; A: " SHFL "B: ret;",
		       SHFL_TEXT, "warp");
	/* counted in functions, nobody could tell the caller */
	assert_refused(".func f() { shfl.sync.down.b32 a, b, 1, 31, -1; ret; }",
		       DIFFER "@%p1 ret; " SHFL "call f; ret;", SHFL_TEXT, "warp");
}

static void transform_trusts_masks_of_those_who_come(void **state) {
#define OWN "vote.sync.any.pred %p4, %p2, %r2;"
	assert_twin("", DIFFER "A: @%p1 bra B; activemask.b32 %r2; " OWN " B: @%p3 bra A; ret;",
		    false);
	assert_twin("",
		    DIFFER
		    "A: @%p1 bra B; activemask.b32 %r2; @%p2 bra C; add.u32 %r3, %r3, 1;\n"
		    "C: " OWN " B: @%p3 bra A; ret;",
		    false);
	assert_twin("",
		    DIFFER
		    "A: @%p1 bra B; activemask.b32 %r7; match.any.sync.b32 %r2, %r3, %r7;\n" OWN
		    " B: @%p3 bra A; ret;",
		    false);
	assert_refused("",
		       DIFFER
		       "A: @%p1 bra B; activemask.b32 %r7; match.all.sync.b32 %r2, %r3, %r7;\n" OWN
		       " B: @%p3 bra A; ret;",
		       OWN, "warp");
	/* passed by, waited at twice, or of another origin too */
	assert_refused("",
		       DIFFER "A: @%p1 bra B; activemask.b32 %r2; @%p2 bra B; " OWN
			      " B: @%p3 bra A; ret;",
		       OWN, "warp");
	assert_refused("",
		       DIFFER "A: @%p1 bra B; activemask.b32 %r2; C: " OWN
			      " @%p2 bra C;\n"
			      "B: @%p3 bra A; ret;",
		       OWN, "warp");
	assert_refused("",
		       DIFFER "A: @%p1 bra B; activemask.b32 %r2; @%p2 mov.b32 %r2, -1; " OWN
			      " B: @%p3 bra A; ret;",
		       OWN, "warp");
	assert_refused("",
		       DIFFER "A: @%p1 bra B; @%p2 activemask.b32 %r2; " OWN " B: @%p3 bra A; ret;",
		       OWN, "warp");
	assert_refused("",
		       DIFFER "A: @%p1 bra B; activemask.b32 %r2; @%p2 " OWN " B: @%p3 bra A; ret;",
		       "@%p2 " OWN, "warp");
#undef OWN
}

/*
 * A warp's lanes load one value from one address where no synchronising instruction stands between
 * the kernel's start, or a meeting of all, and the load. The branch comes out of a part of the code
 * that not all lanes run, so that leavers can't be counted: only a proof helps.
 */
static void transform_trusts_memory_behind_meetings(void **state) {
#define LATER	" setp.eq.s32 %p4, %r5, 7; @%p4 ret; shfl.sync.down.b32 %r3, %r4, 1, 31, -1; ret;"
#define LOAD	"ld.global.u32 %r5, [%rd1];" LATER
#define ADDRESS "ld.param.u64 %rd1, [p];\n"
	static const struct {
		const char *body;
		bool proved;
	} cases[] = {
		{ADDRESS LOAD, true},
		{ADDRESS "ld.global.v2.u32 {%r5, %r6}, [%rd1];" LATER, true},
		{ADDRESS "ld.weak.global.u32 %r5, [%rd1+4];" LATER, true},
		{".shared .u32 s; ld.shared.u32 %r5, [s];" LATER, true},
		{".shared .u32 s; ld.shared::cta.u32 %r5, [s];" LATER, true},
		/* strong, of any memory, of an address that differs, of another memory */
		{ADDRESS "ld.volatile.global.u32 %r5, [%rd1];" LATER, false},
		{ADDRESS "ld.relaxed.gpu.global.u32 %r5, [%rd1];" LATER, false},
		{ADDRESS "ld.acquire.gpu.global.u32 %r5, [%rd1];" LATER, false},
		{ADDRESS "ld.u32 %r5, [%rd1];" LATER, false},
		{".local .u32 s; ld.local.u32 %r5, [s];" LATER, false},
		{ADDRESS
		 "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd2, %r1; ld.global.u32 %r5, [%rd2];" LATER,
		 false},
		/* behind what synchronises, or stores there */
		{ADDRESS "ld.volatile.global.u32 %r1, [%rd1+4]; " LOAD, false},
		{ADDRESS "ld.acquire.gpu.global.u32 %r1, [%rd1+4]; " LOAD, false},
		{ADDRESS "atom.global.add.u32 %r1, [%rd1+4], 1; " LOAD, false},
		{ADDRESS "fence.acq_rel.gpu; " LOAD, false},
		{ADDRESS "membar.gl; " LOAD, false},
		{ADDRESS "bar.sync 1, 64; " LOAD, false},
		{ADDRESS "griddepcontrol.wait; " LOAD, false},
		{ADDRESS "griddepcontrol.launch_dependents; " LOAD, true},
		{ADDRESS "st.global.u32 [%rd1], %r1; " LOAD, false},
		{ADDRESS "st.u32 [%rd1], %r1; " LOAD, false},
		{ADDRESS "red.global.add.u32 [%rd1], 1; " LOAD, false},
		{ADDRESS ".shared .u32 s; st.shared.u32 [s], %r1; " LOAD, true},
		{ADDRESS "prefetch.global.L2 [%rd1]; " LOAD, true},
		{ADDRESS "cp.async.wait_all; " LOAD, true},
		{".shared .u32 s; cp.async.wait_all; ld.shared.u32 %r5, [s];" LATER, false},
		/* a meeting of all puts an end to that; one of some does not */
		{ADDRESS "atom.global.add.u32 %r1, [%rd1+4], 1; bar.sync 0; " LOAD, true},
		{ADDRESS "atom.global.add.u32 %r1, [%rd1+4], 1; bar.warp.sync -1; " LOAD, true},
		{ADDRESS "atom.global.add.u32 %r1, [%rd1+4], 1; bar.warp.sync 255; " LOAD, false},
		{ADDRESS "atom.global.add.u32 %r1, [%rd1+4], 1; " SHFL LOAD, false},
		{ADDRESS SHFL LOAD, true},
		{ADDRESS "shfl.sync.down.b32 %r6, %r7, 1, 31, 255; " LOAD, false},
		{ADDRESS DIFFER "atom.global.add.u32 %r1, [%rd1+4], 1; @%p2 bar.sync 0; " LOAD,
		 false},
		/* on each way to it */
		{ADDRESS DIFFER "@%p1 bra A; membar.gl; A: " LOAD, false},
		{ADDRESS DIFFER "@%p1 bra A; membar.gl; A: bar.sync 0; " LOAD, true},
		{ADDRESS
		 "ld.param.u32 %r2, [p]; A: " DIFFER
		 "add.u32 %r2, %r2, -1; setp.ne.u32 %p3, %r2, 0;"
		 "ld.global.u32 %r5, [%rd1]; @%p3 bra B; bra C; B: membar.gl; bra A; C: " LATER,
		 false},
		{ADDRESS "ld.param.u32 %r2, [p]; A: add.u32 %r2, %r2, -1; setp.ne.u32 %p3, %r2, 0;"
			 "ld.global.u32 %r5, [%rd1]; @%p3 bra B; bra C; B: membar.gl; bar.sync 0; "
			 "bra A; C: " LATER,
		 true},
		/* parameters, by an address that is the same for all */
		{"mov.b64 %rd1, p; ld.param.u32 %r5, [%rd1+4];" LATER, true},
		{"mov.b64 %rd1, p; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, "
		 "%rd2;"
		 "ld.param.u32 %r5, [%rd1];" LATER,
		 false},
		{".param .b32 q; st.param.b32 [q], %r3; mov.b64 %rd1, q; ld.param.u32 %r5, "
		 "[%rd1];" LATER,
		 false},
		/* what the first lane says */
		{"mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;" LATER, true},
		{"mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r5, %r1, 1, 31, -1;" LATER, false},
		{"mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r5, %r1, 0, 6175, -1;" LATER, false},
		{"mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r5, %r1, 0, 31, 255;" LATER, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct transform *t = transform_body("", cases[i].body);

		bool proved = t->kernels[0].confinable && !strstr(t->ptx, "vote.sync.ballot");

		if (proved != cases[i].proved) {
			fail_msg("case %zu, %s: %s", i, cases[i].body,
				 t->kernels[0].confinable ? t->ptx : t->kernels[0].reason);
		}
		transform_free(t);
	}
	/* warps may come at different times, so a block agrees on nothing that is not constant */
	assert_twin(
		"",
		ADDRESS
		"ld.global.u32 %r5, [%rd1]; setp.eq.s32 %p4, %r5, 7; @%p4 ret; bar.sync 0; ret;",
		true);
	/* but where no vote helps */
	assert_twin("",
		    ADDRESS
		    "ld.global.u32 %r5, [%rd1]; setp.eq.s32 %p4, %r5, 7; @%p4 ret;"
		    "bar.red.popc.u32 %r6, 0, %p2; ret;",
		    false);
	assert_refused("",
		       ADDRESS
		       "ld.volatile.global.u32 %r5, [%rd1]; setp.eq.s32 %p4, %r5, 7; @%p4 ret;"
		       "bar.red.popc.u32 %r6, 0, %p2; ret;",
		       "bar.red.popc.u32 %r6, 0, %p2;", "asks all threads");
	/* a function begins where its caller is */
	assert_refused(
		".shared .u32 s; .func f() { .reg .b32 v, w; .reg .pred q; ld.shared.u32 v, [s];"
		"setp.eq.s32 q, v, 7; @q bra A; shfl.sync.down.b32 v, w, 1, 31, -1; A: ret; }",
		"call f; ret;", "shfl.sync.down.b32 v, w, 1, 31, -1;", "warp");
	assert_twin(
		".shared .u32 s; .func f() { .reg .b32 v, w; .reg .pred q; bar.warp.sync -1;"
		"ld.shared.u32 v, [s]; setp.eq.s32 q, v, 7; @q bra A;"
		"shfl.sync.down.b32 v, w, 1, 31, -1; A: ret; }",
		"call f; ret;", false);
#undef LATER
#undef LOAD
#undef ADDRESS
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

static void transform_uses_the_block_size_given(void **state) {
	struct transform *t =
		transform(HEAD
			  ".entry k() .reqntid 64 { .reg .b32 %r<5>; .reg .pred %p<3>;\n"
			  "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 31; @%p1 ret;\n"
			  "shfl.sync.down.b32 %r3, %r4, 1, 31, -1; ret; }");

	assert_true(t->kernels[0].confinable);
	assert_int_equal(t->kernels[0].block_multiple, 1);
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
		cmocka_unit_test(transform_votes_only_where_threads_may_be_missing),
		cmocka_unit_test(transform_gives_votes_their_form),
		cmocka_unit_test(transform_refuses_results_of_votes),
		cmocka_unit_test(transform_keeps_counted_barriers_apart),
		cmocka_unit_test(transform_knows_when_a_warp_is_whole),
		cmocka_unit_test(transform_counts_those_who_stay),
		cmocka_unit_test(transform_trusts_masks_of_those_who_come),
		cmocka_unit_test(transform_trusts_memory_behind_meetings),
		cmocka_unit_test(transform_takes_reserved_shared_memory),
		cmocka_unit_test(transform_keeps_textures_from_constants),
		cmocka_unit_test(transform_finds_waits_for_other_blocks),
		cmocka_unit_test(transform_shares_ids_within_the_warp),
		cmocka_unit_test(transform_uses_the_block_size_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
