/*
 * test-interp-sync.c: barriers and warp operations of the PTX interpreter: what they do, and that
 * what the PTX ISA leaves undefined is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-kernel.h"

/* Exited threads no longer count: whole warps and parts of them. */
static void sync_barrier_does_not_wait_for_exited_threads(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL(".shared .u32 s;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [s], 42;\n"
			  "setp.gt.u32 %p1, %t, 70;\n@%p1 exit;\n"
			  "setp.eq.u32 %p1, %t, 5;\n@%p1 ret;\n"
			  "bar.sync 0;\nld.shared.u32 %x, [s];\nst.global.u32 [%out], %x;\nret;"),
		   160, w);
	for (uint32_t t = 0; t < 160; t++) {
		assert_int_equal(w[t], t == 5 || t > 70 ? 0 : 42);
	}
}

static void sync_barrier_completes_when_the_last_exits(void **state) {
	uint32_t w[THREADS_MAX];

	/* Warp 0 waits before warp 1 exits, which it does after a long loop. */
	kernel_run(
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
static void sync_reducing_barrier_meets_from_two_places(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("setp.ge.u32 %p1, %t, 40;\n@%p1 bra B;\n"
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

static void sync_named_barriers_count_warps(void **state) {
	uint32_t w[THREADS_MAX];

	/* Warps 2 and 3 produce and go on, warps 0 and 1 wait for them; 5 takes no part at all. */
	kernel_run(KERNEL(".shared .u32 s[4];\nsetp.ge.u32 %p1, %t, 128;\n@%p1 bra X;\n"
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

static void sync_missing_thread_is_a_hang(void **state) {
	char text[1024];

	assert_int_equal(
		kernel_fault(KERNEL("setp.ge.u32 %p1, %t, 32;\n@%p1 bra B;\nbar.sync 0;\nret;\n"
				    "B: bar.sync 1;\nret;"),
			     64, text),
		INTERP_FAULT_HANG);
	assert_non_null(strstr(text, "kernel 'k', line"));
	assert_non_null(strstr(text, "bar.sync 0"));
}

static void sync_shuffles_move_values(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("add.u32 %r1, %t, 100;\n"
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
static void sync_shuffle_waits_for_its_members(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(
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

static void sync_votes_matches_and_reductions(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(
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

/* What the PTX ISA leaves undefined is told, with the place. */
static void sync_tells_what_is_undefined(void **state) {
	static const struct {
		const char *ptx, *place, *told;
	} cases[] = {
		{KERNEL("setp.lt.u32 %p1, %t, 4;\n@%p1 bar.warp.sync 0xfff0;\nret;"),
		 "bar.warp.sync 0xfff0", "not in its own mask"},
		{KERNEL("shfl.sync.idx.b32 %r1, %t, 0, 31, 0x7fffffff;\nret;"), "shfl.sync.idx",
		 "not in its own mask"},
		{KERNEL("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\n"
			"bar.warp.sync 0xffffffff;\nret;\nA: bar.warp.sync 0x0000ffff;\n"
			"vote.sync.ballot.b32 %r1, %p1, 0xffffffff;\nret;"),
		 "line 17: 'vote.sync.ballot", "which waits at line 14"},
		{KERNEL("mov.u32 %r1, 0xffff;\nsetp.lt.u32 %p1, %t, 9;\n"
			"@%p1 mov.u32 %r1, -1;\nbar.warp.sync %r1;\nret;"),
		 "bar.warp.sync %r1", "undefined by the PTX ISA"},
		{KERNEL("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\n"
			"shfl.sync.up.b32 %r1, %t, 1, 0, -1;\nret;\n"
			"A: shfl.sync.down.b32 %r1, %t, 1, 31, -1;\nret;"),
		 "shfl.sync", "at another operation"},
		{KERNEL("setp.lt.u32 %p1, %t, 40;\n@%p1 bra A;\nbar.sync 0;\nret;\n"
			"A: bar.sync 0;\nret;"),
		 "thread (40,0,0)", "thread (32,0,0) of the same warp waits at line 16"},
		{KERNEL("setp.lt.u32 %p1, %t, 40;\n@%p1 bra A;\nbarrier.sync 0;\nret;\n"
			"A: barrier.sync.aligned 0;\nret;"),
		 "barrier.sync", "an aligned barrier"},
		{KERNEL("setp.lt.u32 %p1, %t, 16;\n@%p1 bra A;\nsetp.lt.u32 %p1, %t, 32;\n"
			"@%p1 bra B;\nA: bar.sync 1, 32;\nret;\nB: bar.sync 0;\nret;"),
		 "bar.sync 1, 32", "only a part of its warp"},
		{KERNEL("setp.lt.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 2, 96;\nret;\n"
			"A: bar.sync 2, 64;\nret;"),
		 "bar.sync 2, 96", "another number"},
		{KERNEL("setp.lt.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.sync 0;\nret;\n"
			"A: bar.red.popc.u32 %r1, 0, %p1;\nret;"),
		 "bar.sync 0", "another kind of result"},
		{KERNEL("setp.eq.u32 %p1, %t, 0;\nsetp.lt.u32 %p2, %t, 32;\n@%p2 bra A;\n"
			"bar.red.and.pred %p3, 0, %p1;\nret;\n"
			"A: bar.red.or.pred %p3, 0, %p1;\nret;"),
		 "bar.red.and", "another kind of result"},
		{KERNEL("setp.ge.u32 %p1, %t, 32;\n@%p1 bra A;\nbar.arrive 3, 96;\n"
			"bar.arrive 3, 96;\nA: ret;"),
		 "bar.arrive 3, 96", "has arrived there already"},
		{KERNEL("mov.u32 %r1, 0;\nbar.arrive 3, %r1;\nret;"), "bar.arrive",
		 "an arrival needs a number"},
		{KERNEL("mov.u32 %r1, 33;\nbar.sync 3, %r1;\nret;"), "bar.sync",
		 "no multiple of 32"},
		{KERNEL("mov.u32 %r1, 16;\nbar.sync %r1;\nret;"), "bar.sync %r1",
		 "barriers 0 to 15"},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(kernel_fault(cases[i].ptx, 64, text), INTERP_FAULT_UNDEFINED);
		if (!strstr(text, cases[i].place) || !strstr(text, cases[i].told) ||
		    !strstr(text, "kernel 'k', line ") ||
		    !strstr(text, "block (0,0,0), thread (")) {
			fail_msg("case %zu: %s", i, text);
		}
	}
}

/* Members that have exited, or never were, are not waited for; masks may overlap in time. */
static void sync_masks_take_what_is_alive(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("setp.lt.u32 %p1, %t, 3;\n@%p1 exit;\n"
			  "bar.warp.sync 0xffffffff;\n"
			  "setp.lt.u32 %p2, %t, 8;\n@!%p2 bra B;\n"
			  "vote.sync.ballot.b32 %r1, %p2, 0xff;\nbra C;\n"
			  "B: redux.sync.add.u32 %r1, %t, 0xffffff00;\n"
			  "C: bar.warp.sync 0xffffffff;\nst.global.u32 [%out], %r1;\nret;"),
		   20, w);
	for (uint32_t t = 0; t < 20; t++) {
		assert_int_equal(w[t], t < 3 ? 0 : t < 8 ? 0xf8 : 162); /* 8 + ... + 19 */
	}
}

/* A lane that waits for one that exits later goes on then. */
static void sync_goes_on_when_the_last_member_exits(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("setp.ge.u32 %p1, %t, 30;\n@%p1 bra X;\n"
			  "vote.sync.ballot.b32 %r1, !%p1, -1;\nst.global.u32 [%out], %r1;\nret;\n"
			  "X: mov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1;\n"
			  "setp.lt.u32 %p2, %r2, 3000;\n@%p2 bra L;\nexit;"),
		   32, w);
	for (uint32_t t = 0; t < 32; t++) {
		assert_int_equal(w[t], t < 30 ? 0x3fffffff : 0);
	}
}

/* Those who have exited vote neither yes nor no, in warps that ended and in parts of one. */
static void sync_reductions_count_only_who_is_there(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("setp.ge.u32 %p1, %t, 70;\n@%p1 exit;\n"
			  "setp.eq.u32 %p2, %t, 5;\n@%p2 exit;\n"
			  "setp.ne.u32 %p3, %t, 5;\nbar.red.and.pred %p4, 0, %p3;\n"
			  "bar.red.popc.u32 %r1, 0, %p3;\nbar.red.or.pred %p5, 0, %p2;\n"
			  "@%p4 add.u32 %r1, %r1, 1000;\n@%p5 add.u32 %r1, %r1, 2000;\n"
			  "st.global.u32 [%out], %r1;\nret;"),
		   128, w);
	for (uint32_t t = 0; t < 128; t++) {
		assert_int_equal(w[t], t == 5 || t >= 70 ? 0 : 1069);
	}
}

/* What a shuffle reads from a thread that is not there is no thread's value. */
static void sync_shuffle_from_nobody_gives_no_value(void **state) {
	uint32_t w[THREADS_MAX];

	kernel_run(KERNEL("add.u32 %r2, %t, 1;\nshfl.sync.idx.b32 %r1, %r2, 25, 31, -1;\n"
			  "st.global.u32 [%out], %r1;\nret;"),
		   20, w);
	for (uint32_t t = 0; t < 20; t++) {
		assert_true(w[t] == 0 || w[t] > 20);
	}
}

#define TEST(name) cmocka_unit_test(name)
int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(sync_barrier_does_not_wait_for_exited_threads),
		TEST(sync_barrier_completes_when_the_last_exits),
		TEST(sync_reducing_barrier_meets_from_two_places),
		TEST(sync_named_barriers_count_warps),
		TEST(sync_missing_thread_is_a_hang),
		TEST(sync_shuffles_move_values),
		TEST(sync_shuffle_waits_for_its_members),
		TEST(sync_votes_matches_and_reductions),
		TEST(sync_tells_what_is_undefined),
		TEST(sync_masks_take_what_is_alive),
		TEST(sync_goes_on_when_the_last_member_exits),
		TEST(sync_reductions_count_only_who_is_there),
		TEST(sync_shuffle_from_nobody_gives_no_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
