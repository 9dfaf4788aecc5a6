/*
 * test-ptx-hazards.c: threads that wait for others, some of which may have ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/transform.h"
#include "tests/unit/transform-harness.h"

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

	assert_occurs(t->ptx,
		      "barrier.red.or.pred \t%sbeet_w, 0, %sbeet_v;\n\tmov.b32 \t%sbeet_n, 1;\n"
		      "\tvote.sync.ballot.b32 \t%sbeet_n, %sbeet_v, -1;\n"
		      "\tsetp.eq.u32 \t%sbeet_w, %sbeet_n, 0;\n\t@%sbeet_w trap;",
		      1);
	/* some of the warp still run, or some of the block */
	assert_occurs(t->ptx,
		      "barrier.red.or.pred \t%sbeet_p1, 0, %sbeet_p0;\n"
		      "\tvote.sync.ballot.b32 \t%sbeet_r0, %sbeet_p0, -1;\n"
		      "\tsetp.ne.u32 \t%sbeet_p0, %sbeet_r0, 0;\n\t@%sbeet_p0 bra \t$sbeet_sync;",
		      1);
	assert_occurs(t->ptx, "@%sbeet_p1 bra \t$sbeet_sync;", 1);
	assert_occurs(t->ptx, "popc", 0);
	assert_occurs(t->ptx, "bar.sync 3", 0);
	transform_free(t);
	/* warps that leave as a whole need not be asked */
	t = transform_body("",
			   "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n"
			   "setp.eq.u32 %p1, %r1, 0; @%p1 ret; bar.sync 0; ret;");
	assert_occurs(t->ptx, "barrier.red.or.pred", 2);
	assert_occurs(t->ptx, "vote.sync", 0);
	transform_free(t);
	/* a function is for all its callers */
	t = transform_body(".func f() { bar.sync 0; ret; }", "call f; ret;");
	assert_occurs(t->ptx, "vote.sync.ballot", 2);
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

/* For some lanes, nobody knows which. */
#define SHFL_SOME "shfl.sync.down.b32 %r3, %r4, 1, 31, %r7;"

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

	/* not all lanes come to where some leave; a table of ways is no branch */
	assert_refused("", DIFFER "@%p1 bra A; @%p2 ret; A: " SHFL_SOME "ret;", SHFL_SOME, "warp");
	assert_refused("", DIFFER "T: .branchtargets A, B; brx.idx %r1, T; A: " SHFL_SOME "B: ret;",
		       SHFL_SOME, "warp");
	/* counted in functions, nobody could tell the caller */
	assert_refused(".func f() { shfl.sync.down.b32 a, b, 1, 31, -1; ret; }",
		       DIFFER "@%p1 ret; " SHFL "call f; ret;", SHFL_TEXT, "warp");
}

static void transform_calls_the_roll_of_warps(void **state) {
#define PARTED DIFFER "@%p1 bra A; @%p2 ret; A: "
#define ASK    "vote.sync.ballot.b32 \t%sbeet_there0, %sbeet_here, -1;"
	struct transform *t = transform_body("", PARTED "@%p3 bar.warp.sync -1; ret;");

	assert_true(t->kernels[0].confinable);
	assert_int_equal(t->kernels[0].block_multiple, 1);
	assert_occurs(t->ptx,
		      "\t@%p3 setp.eq.u32 \t%sbeet_whole, -1, -1;\n"
		      "\tmov.b32 \t%sbeet_there0, -1;\n"
		      "\t@%sbeet_whole " ASK
		      "\n"
		      "\t@%p3 bar.warp.sync \t%sbeet_there0;",
		      1);
	/* those that have ended */
	assert_occurs(t->ptx,
		      "$sbeet_sync:\n\tsetp.ne.u32 \t%sbeet_p0, 0, 0;\n"
		      "\tvote.sync.ballot.b32 \t%sbeet_r0, %sbeet_p0, -1;\n"
		      "\tsetp.ne.u32 \t%sbeet_p1, %sbeet_r0, 0;\n\t@%sbeet_p1 bra \t$sbeet_sync;",
		      1);
	transform_free(t);
	/* masks that may be whole are asked for, too, if they need no proof; nobody has ended there
	 */
	t = transform_body("", "bar.warp.sync %r7; " PARTED SHFL "bar.sync 0; ret;");
	assert_occurs(t->ptx, ASK, 2);
	assert_occurs(t->ptx, "mov.b32 \t%sbeet_there0, %r7;", 1);
	/* in front of a vote: nobody is at a meeting */
	assert_occurs(t->ptx,
		      "vote.sync.ballot.b32 \t%sbeet_n, !%sbeet_v, -1;\n"
		      "\tsetp.eq.u32 \t%sbeet_w, %sbeet_n, 0;\n"
		      "\tbarrier.red.or.pred \t%sbeet_w, 0, %sbeet_w;",
		      1);
	transform_free(t);
	/* where something cheaper will do */
	t = transform_body("", DIFFER "@%p1 ret; " SHFL "ret;");
	assert_occurs(t->ptx, "sbeet_there", 0);
	transform_free(t);
	assert_refused("", PARTED SHFL SHFL_SOME " ret;", SHFL_TEXT, "warp");
	assert_refused(".func f() { bar.warp.sync -1; ret; }", PARTED SHFL "call f; ret;",
		       SHFL_TEXT, "warp");
	assert_refused(".func f() { bar.sync 0; ret; }", PARTED SHFL "call f; ret;", SHFL_TEXT,
		       "warp");
	/* where lanes can't meet at different places */
	t = transform(
		".version 6.3\n.target sm_62\n.address_size 64\n"
		".entry k() { .reg .b32 %r<9>; .reg .pred %p<5>;\n" PARTED
		"bar.warp.sync -1; ret; }");
	assert_false(t->kernels[0].confinable);
	transform_free(t);
#undef PARTED
#undef ASK
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
		cmocka_unit_test(transform_votes_only_where_threads_may_be_missing),
		cmocka_unit_test(transform_gives_votes_their_form),
		cmocka_unit_test(transform_refuses_results_of_votes),
		cmocka_unit_test(transform_keeps_counted_barriers_apart),
		cmocka_unit_test(transform_knows_when_a_warp_is_whole),
		cmocka_unit_test(transform_counts_those_who_stay),
		cmocka_unit_test(transform_calls_the_roll_of_warps),
		cmocka_unit_test(transform_trusts_masks_of_those_who_come),
		cmocka_unit_test(transform_uses_the_block_size_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
