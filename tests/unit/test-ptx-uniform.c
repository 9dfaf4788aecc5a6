/*
 * test-ptx-uniform.c: what the rewriter takes to be the same in all threads that wait for each
 * other.
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
		{".shared .u32 s; mov.u32 %r1, s; cp.async.wait_all; ld.shared.u32 %r5, [s];" LATER,
		 false},
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

/* The branch comes out of a part of the code that not all lanes run, so only a proof helps. */
#define LATER " setp.eq.s32 %p4, %r5, 7; @%p4 ret; shfl.sync.down.b32 %r8, %r8, 1, 31, -1; ret;"

struct proof {
	const char *body;
	unsigned block_multiple; /* 0: none */
};

static void assert_proofs(const struct proof *proofs, size_t n, const char *module,
			  const char *before, const char *after) {
	for (size_t i = 0; i < n; i++) {
		char body[2048];
		struct transform *t;
		bool proved;

		snprintf(body, sizeof(body), "%s%s%s", before, proofs[i].body, after);
		t = transform_body(module, body);
		proved = t->kernels[0].confinable && !strstr(t->ptx, "vote.sync.ballot");
		if (proved != (proofs[i].block_multiple > 0) ||
		    (proved && t->kernels[0].block_multiple != proofs[i].block_multiple)) {
			fail_msg("case %zu, %s: %s, multiple of %u", i, body,
				 t->kernels[0].confinable ? t->ptx : t->kernels[0].reason,
				 t->kernels[0].block_multiple);
		}
		transform_free(t);
	}
}

/* What all lanes ask one lane is the same for all of them. */
static void transform_trusts_what_one_lane_says(void **state) {
	static const struct proof proofs[] = {
		/* every warp has a first lane, but only whole ones have the others */
		{"shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", 1},
		{"shfl.sync.idx.b32 %r5|%p1, %r1, 0, 31, -1;", 1},
		{"mov.u32 %r6, 0; shfl.sync.idx.b32 %r5, %r1, %r6, 31, -1;", 1},
		{"shfl.sync.idx.b32 %r5, %r1, 1, 31, -1;", 32},
		{"shfl.sync.idx.b32 %r5, %r1, %r2, 31, -1;", 32},
		{"shr.u32 %r6, %r1, 5; shfl.sync.idx.b32 %r5, %r1, %r6, 31, -1;", 32},
		{"mov.u32 %r6, 31; mov.u32 %r7, -1; shfl.sync.idx.b32 %r5, %r1, 0, %r6, %r7;", 1},
		{"shfl.sync.idx.b32 %r6|%p1, %r1, %r2, 31, -1; selp.u32 %r5, 1, 0, %p1;", 32},
		/* another one each, parts of a warp, not all lanes, another constant */
		{"shfl.sync.idx.b32 %r5, %r1, %r1, 31, -1;", 0},
		{"shfl.sync.bfly.b32 %r5, %r1, 0, 31, -1;", 0},
		{"shfl.sync.up.b32 %r5, %r1, 0, 31, -1;", 0},
		{"shfl.sync.down.b32 %r5, %r1, 0, 31, -1;", 0},
		{"shfl.sync.idx.b32 %r5, %r1, 0, 6175, -1;", 0},
		{"shfl.sync.idx.b32 %r5, %r1, 0, 31, 255;", 0},
		{"shfl.sync.idx.b32 %r5, %r1, 0, %r6, -1;", 0},
		{"mov.u32 %r6, 31; @%p3 mov.u32 %r6, 15; shfl.sync.idx.b32 %r5, %r1, 0, %r6, -1;",
		 0},
		{"mov.u32 %r6, -1; shfl.sync.idx.b32 %r5, %r1, 0, %r6, -1;", 0},
		{"mov.u32 %r7, 31; shfl.sync.idx.b32 %r5, %r1, 0, 31, %r7;", 0},
	};

	assert_proofs(proofs, sizeof(proofs) / sizeof(proofs[0]), "",
		      "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [p];\n", LATER);
	/* a function may be called in blocks of any size */
#define FUNCTION(lane)                                                            \
	".func f() { .reg .b32 v, w; .reg .pred q; shfl.sync.idx.b32 v, w, " lane \
	", 31, -1;"                                                               \
	"setp.eq.s32 q, v, 7; @q bra A; bar.warp.sync -1; A: ret; }"
	assert_twin(FUNCTION("0"), "call f; ret;", false);
	assert_refused(FUNCTION("1"), "call f; ret;", "bar.warp.sync -1;", "warp");
#undef FUNCTION
}

/* %r1 is the thread's number, %r2 the lane's, %r3 something uniform. */
static void transform_takes_the_lanes_number_off(void **state) {
	static const struct proof proofs[] = {
		{"sub.s32 %r5, %r1, %r2;", 32},
		{"mov.u32 %r4, %laneid; sub.s32 %r5, %r1, %r4;", 32},
		{"sub.s32 %r5, %r2, %r1;", 32},
		{"sub.s32 %r4, %r1, %r2; add.s32 %r4, %r4, %r2; shr.u32 %r5, %r4, 5;", 32},
		{"xor.b32 %r4, %r2, 31; add.s32 %r5, %r1, %r4;", 32},
		{"xor.b32 %r4, %r1, 31; add.s32 %r5, %r4, %r1;", 32},
		{"not.b32 %r4, %r1; and.b32 %r4, %r4, 31; add.s32 %r5, %r1, %r4;", 32},
		{"not.b32 %r4, %r2; not.b32 %r4, %r4; sub.s32 %r5, %r4, %r2;", 32},
		{"add.s32 %r4, %r1, %r3; sub.s32 %r5, %r4, %r2;", 32},
		{"add.s32 %r4, %r3, %r1; sub.s32 %r5, %r2, %r4;", 32},
		{"sub.s32 %r4, %r3, %r1; add.s32 %r5, %r4, %r2;", 32},
		{"sub.s32 %r4, %r3, %r1; sub.s32 %r6, %r3, %r2; sub.s32 %r5, %r4, %r6;", 32},
		{"sub.s32 %r4, %r3, %r1; sub.s32 %r4, %r3, %r4; sub.s32 %r5, %r4, %r2;", 32},
		{"mad.lo.s32 %r4, %r3, 7, %r1; sub.s32 %r5, %r4, %r2;", 32},
		{"shl.b32 %r4, %r3, 5; or.b32 %r4, %r4, %r1; shr.u32 %r5, %r4, 5;", 32},
		{"or.b32 %r5, %r1, 31;", 32},
		{"or.b32 %r5, %r1, 63;", 32},
		{"xor.b32 %r4, %r1, 63; shr.u32 %r5, %r4, 5;", 32},
		{"and.b32 %r4, %r1, 127; sub.s32 %r5, %r4, %r2;", 32},
		{"cvt.u64.u32 %rd2, %r1; cvt.u64.u32 %rd3, %r2; sub.s64 %rd2, %rd2, %rd3; "
		 "cvt.u32.u64 %r5, %rd2;",
		 32},
		{"A: add.s32 %r1, %r1, %r3; sub.s32 %r4, %r1, %r2; setp.lt.s32 %p3, %r4, 99; @%p3 "
		 "bra A; mov.u32 %r5, %r4;",
		 32},
		/* twice, of half a warp, of other bits */
		{"add.s32 %r5, %r1, %r2;", 0},
		{"sub.s32 %r4, %r3, %r1; sub.s32 %r5, %r4, %r2;", 0},
		{"xor.b32 %r4, %r2, 31; sub.s32 %r5, %r1, %r4;", 0},
		{"add.s32 %r4, %r2, %r2; sub.s32 %r5, %r1, %r4;", 0},
		{"and.b32 %r4, %r1, 15; sub.s32 %r5, %r1, %r4;", 0},
		{"xor.b32 %r4, %r2, 15; add.s32 %r5, %r1, %r4;", 0},
		{"or.b32 %r5, %r1, 15;", 0},
		{"min.u32 %r4, %r1, 31; add.s32 %r5, %r1, %r4;", 0},
		{"neg.s32 %r4, %r1; shr.u32 %r5, %r4, 5;", 0},
		{"or.b32 %r4, %r1, %r3; sub.s32 %r5, %r4, %r2;", 0},
		{"add.s32 %r4, %r1, %r3; or.b32 %r5, %r4, 31;", 0},
		{"add.s32 %r4, %r1, %r3; shr.u32 %r5, %r4, 5;", 0},
		{"add.s32 %r4, %r1, %r3; and.b32 %r5, %r4, -32;", 0},
		{"add.s32 %r4, %r1, %r3; and.b32 %r4, %r4, 31; sub.s32 %r5, %r1, %r4;", 0},
		{"add.s32 %r4, %r1, %r3; xor.b32 %r4, %r4, 31; add.s32 %r5, %r1, %r4;", 0},
		{"not.b32 %r4, %r1; and.b32 %r4, %r4, 31; sub.s32 %r5, %r1, %r4;", 0},
		/* it wraps round in 32 bits, not in 64; in each half; or not at all */
		{"add.s32 %r4, %r1, %r3; cvt.u64.u32 %rd2, %r4; cvt.u64.u32 %rd3, %r2; sub.s64 "
		 "%rd2, %rd2, %rd3; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r5, %rd2;",
		 0},
		{"add.u16x2 %r4, %r1, %r3; sub.s32 %r5, %r4, %r2;", 0},
		{"add.sat.s32 %r4, %r1, %r3; sub.s32 %r5, %r4, %r2;", 0},
		{"add.s32 %r4, %r1, %r3; mov.b32 {h, l}, %r4; mov.b32 %r5, {l, l};", 0},
		/* on one way only, or by a carry */
		{"setp.lt.u32 %p2, %r3, 5; mov.u32 %r4, %r1; @%p2 sub.s32 %r4, %r3, %r1; sub.s32 "
		 "%r5, %r4, %r2;",
		 0},
		{"setp.lt.u32 %p2, %r3, 5; mov.u32 %r4, %r1; @%p2 add.s32 %r4, %r1, %r3; shr.u32 "
		 "%r5, %r4, 5;",
		 0},
		{"mov.u32 %r4, %r2; @%p3 mov.u32 %r4, 0; sub.s32 %r5, %r1, %r4;", 0},
		{"add.cc.u32 %r4, %r1, %r3; addc.u32 %r5, 0, 0;", 0},
		{"mul.lo.s32 %r4, %r1, 3; sub.s32 %r5, %r4, %r2;", 0},
	};

	assert_proofs(proofs, sizeof(proofs) / sizeof(proofs[0]), "",
		      ".reg .b16 h, l; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; "
		      "ld.param.u32 %r3, [p];\n",
		      LATER);
}

/* Both ways lead to a meeting and to the end, so nobody leaves who could be counted; nor where they
 * meet, as the masks may be those of parts of the warp. */
#define SPLIT                                                                                 \
	" setp.eq.s32 %p4, %r5, 7; @%p4 bra Y; shfl.sync.down.b32 %r3, %r4, 1, 31, %r7; ret;" \
	" Y: bar.warp.sync %r7; ret;"
#define WRITE "@%p1 st.volatile.shared.u32 [s], %r1; "
#define READ  "ld.volatile.shared.u32 %r5, [s]; "
#define MEET  "bar.sync 0; "

/* A stretch between barriers has a variable's loads, or what else it is used for. */
static void transform_trusts_variables_that_are_quiet(void **state) {
	static const struct proof proofs[] = {
		{WRITE MEET READ, 1},
		{WRITE MEET "ld.shared.u32 %r5, [s];", 1},
		{WRITE MEET "ld.volatile.shared.v2.u32 {%r5, %r6}, [s+8];", 1},
		{READ MEET WRITE, 1},
		{WRITE MEET "ld.volatile.shared.u32 %r6, [s]; ld.param.u64 %rd1, [p]; "
			    "ld.global.u32 %r5, [%rd1];",
		 1},
		{WRITE "bar.red.or.pred %p3, 0, %p2; " READ, 1},
		{WRITE MEET READ MEET WRITE, 1},
		{"L: " WRITE MEET READ MEET "@%p2 bra L;", 1},
		{"atom.shared.add.u32 %r6, [s], 1; " MEET READ, 1},
		{WRITE "mov.u32 %r6, t; " MEET READ "st.shared.u32 [%r6], %r1;", 1},
		{WRITE "@%p2 bra L; " MEET READ "bra M; L: " MEET READ "M:", 1},
		/* both in one, on some way */
		{WRITE READ, 0},
		{READ WRITE, 0},
		{WRITE MEET READ WRITE, 0},
		{"L: " WRITE MEET READ "@%p2 bra L;", 0},
		{"L: " WRITE MEET READ "@%p2 bra L; " MEET, 0},
		{WRITE "@%p2 bra L; " MEET "L: " READ, 0},
		{WRITE MEET "atom.shared.add.u32 %r6, [s], 1; " READ, 0},
		/* a barrier of some, or of a number of threads, or for each in another place */
		{WRITE "@%p1 bar.sync 0; " READ, 0},
		{WRITE "@%p2 bar.sync 0; " READ, 0},
		{WRITE "bar.sync 1, 64; " READ, 0},
		{WRITE "bar.warp.sync -1; " READ, 0},
		{"shr.u32 %r6, %r1, 5; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; " MEET WRITE
		 "bra M; L: " MEET READ "M:",
		 0},
		{"shr.u32 %r6, %r1, 5; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; " MEET
		 "L: " READ MEET WRITE,
		 0},
		{WRITE MEET "@%p1 bra L; bar.sync 1, 64; L: " MEET READ, 0},
		/* reached by other ways, or later */
		{WRITE "mov.u32 %r6, s; " MEET READ "st.shared.u32 [%r6], %r1;", 0},
		{WRITE "mov.u64 %rd2, s; " MEET READ, 0},
		{WRITE "st.shared.u32 [t], s; " MEET READ, 0},
		{"cp.async.ca.shared.global [s], [%rd1], 4; " MEET READ, 0},
		{"st.volatile.shared.u32 [e], %r1; " MEET "ld.volatile.shared.u32 %r5, [e];", 0},
		/* of another memory */
		{MEET "ld.volatile.global.u32 %r5, [%rd1];", 0},
	};

	assert_proofs(proofs, sizeof(proofs) / sizeof(proofs[0]), ".extern .shared .u32 e[];",
		      ".shared .align 8 .b8 s[64]; .shared .u32 t;\n" SAME
		      "mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 0;\n",
		      SPLIT);
	/* then a whole block goes the same way, also to its barriers */
	assert_twin("",
		    ".shared .u32 s; " DIFFER WRITE MEET READ
		    "setp.eq.s32 %p4, %r5, 7; @%p4 ret; bar.sync 0; ret;",
		    false);
	assert_twin("",
		    ".shared .u32 s; L: " DIFFER WRITE MEET READ MEET
		    "setp.ne.s32 %p4, %r5, 7; @%p4 bra L; ret;",
		    false);
	assert_twin("",
		    ".shared .u32 s; L: " DIFFER WRITE MEET READ
		    "setp.ne.s32 %p4, %r5, 7; @%p4 bra L; ret;",
		    true);
	/* or in a function */
	assert_refused(".shared .u32 s; .func f() { st.shared.u32 [s], 1; ret; }",
		       DIFFER WRITE MEET READ "call f;" SPLIT,
		       "shfl.sync.down.b32 %r3, %r4, 1, 31, %r7;", "warp");
	/* more than are looked at */
	assert_refused(".shared .u32 s, a, b, c, d, e, f, g, h, i, j, l, m, n, o, q, r;",
		       DIFFER WRITE
		       "ld.shared.u32 %r6, [a]; ld.shared.u32 %r6, [b]; ld.shared.u32 %r6, [c];\n"
		       "ld.shared.u32 %r6, [d]; ld.shared.u32 %r6, [e]; ld.shared.u32 %r6, [f];\n"
		       "ld.shared.u32 %r6, [g]; ld.shared.u32 %r6, [h]; ld.shared.u32 %r6, [i];\n"
		       "ld.shared.u32 %r6, [j]; ld.shared.u32 %r6, [l]; ld.shared.u32 %r6, [m];\n"
		       "ld.shared.u32 %r6, [n]; ld.shared.u32 %r6, [o]; ld.shared.u32 %r6, [q];\n"
		       "ld.shared.u32 %r6, [r];\n" MEET READ SPLIT,
		       "shfl.sync.down.b32 %r3, %r4, 1, 31, %r7;", "warp");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transform_trusts_memory_behind_meetings),
		cmocka_unit_test(transform_trusts_what_one_lane_says),
		cmocka_unit_test(transform_takes_the_lanes_number_off),
		cmocka_unit_test(transform_trusts_variables_that_are_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
