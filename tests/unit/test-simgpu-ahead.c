/*
 * test-simgpu-ahead.c: blocks that threads run ahead of time: the same slices and the same memory
 * as without threads, whatever the order in which blocks are asked for, let go and paused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simgpu/ahead.h"
#include "tests/unit/interp-kernel.h"

#define BLOCKS	     24
#define THREADS	     64u
#define INSTRUCTIONS 64
#define SLICES_MAX   4096

/* Threads of a block mix what they pass each other through shared memory, block n for longer than
 * block n - 1. */
static const char mixing[] =
	KERNEL(".shared .u32 s[64];\nmov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r2, %r1, 64, %t;\n"
	       "mad.wide.u32 %out, %r2, 4, %buf;\nmov.u32 %r9, s;\nmad.lo.u32 %r3, %t, 4, %r9;\n"
	       "xor.b32 %r4, %t, 37;\nmad.lo.u32 %r4, %r4, 4, %r9;\n"
	       "mad.lo.u32 %r5, %r1, 13, 10;\nmov.u32 %x, %r2;\n"
	       "L: mad.lo.u32 %x, %x, 1664525, 1013904223;\nst.shared.u32 [%r3], %x;\nbar.sync 0;\n"
	       "ld.shared.u32 %r6, [%r4];\nbar.sync 0;\nadd.u32 %x, %x, %r6;\n"
	       "sub.u32 %r5, %r5, 1;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 bra L;\n"
	       "st.global.u32 [%out], %x;\nret;");

struct outcome {
	unsigned n[BLOCKS]; /* slices */
	uint64_t cycles[BLOCKS][SLICES_MAX];
	uint32_t words[BLOCKS * THREADS];
};

struct run {
	struct harness h;
	struct ahead *ahead;
	struct ahead_block blocks[BLOCKS];
	bool left[BLOCKS];
	uint64_t buffer;
	uint32_t *host;
};

static void run_init(struct run *r, unsigned threads) {
	memset(r, 0, sizeof(*r));
	harness_init(&r->h, mixing);
	r->buffer = harness_alloc(&r->h, 4 * BLOCKS * THREADS, &r->host);
	assert_int_equal(ahead_new(&r->ahead, threads, INSTRUCTIONS), 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct interp_launch l = {.kernel = interp_module_find(r->h.module, "k"),
					  .grid = {BLOCKS, 1, 1},
					  .block = {THREADS, 1, 1},
					  .params = &r->buffer,
					  .params_size = 8};
		const uint32_t ctaid[3] = {i};

		assert_int_equal(interp_block_new(&r->blocks[i].interp, &l, ctaid,
						  (struct interp_place){0, 1}, &r->h.machine),
				 0);
		ahead_add(r->ahead, &r->blocks[i]);
		r->left[i] = true;
	}
}

static void run_drop(struct run *r, unsigned i) {
	ahead_remove(r->ahead, &r->blocks[i]);
	r->blocks[i].interp = interp_block_free(r->blocks[i].interp);
	r->left[i] = false;
}

static void run_deinit(struct run *r) {
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (r->left[i]) {
			run_drop(r, i);
		}
	}
	ahead_free(r->ahead);
	harness_deinit(&r->h);
}

/* Takes slices of random blocks until all have ended. */
static void run_all(struct run *r, unsigned seed, struct outcome *o) {
	unsigned left = BLOCKS;

	memset(o, 0, sizeof(*o));
	while (left > 0) {
		unsigned i = (seed = seed * 1103515245 + 12345) >> 16;
		struct ahead_slice s;

		i %= BLOCKS;
		if (!r->left[i]) {
			continue;
		}
		if (seed >> 28 == 0) {
			ahead_pause(r->ahead);
			ahead_pause(r->ahead);
			ahead_resume(r->ahead);
			ahead_resume(r->ahead);
		}
		s = ahead_take(r->ahead, &r->blocks[i]);
		assert_true(o->n[i] < SLICES_MAX);
		o->cycles[i][o->n[i]++] = s.cycles;
		if (s.result == INTERP_MORE) {
			continue;
		}
		assert_int_equal(s.result, INTERP_DONE);
		run_drop(r, i);
		left--;
	}
	memcpy(o->words, r->host, sizeof(o->words));
}

static void ahead_does_the_same_with_any_number_of_threads(void **state) {
	static struct outcome alone, several;
	static struct run r;

	run_init(&r, 0);
	run_all(&r, 1, &alone);
	run_deinit(&r);
	assert_true(alone.n[BLOCKS - 1] > AHEAD_SLICES);
	for (unsigned threads = 1; threads < 4; threads++) {
		run_init(&r, threads);
		run_all(&r, threads, &several);
		run_deinit(&r);
		assert_memory_equal(&several, &alone, sizeof(alone));
	}
}

/* Blocks that go before their end, as those of a context that has failed do. */
static void ahead_lets_blocks_go_at_any_time(void **state) {
	static struct run r;

	for (unsigned round = 0; round < 20; round++) {
		run_init(&r, 3);
		for (unsigned i = 0; i < round; i++) {
			(void)ahead_take(r.ahead, &r.blocks[(round * 7 + i) % BLOCKS]);
		}
		run_deinit(&r);
	}
}

static void independent(const char *ptx, bool expected) {
	struct interp_kernel_info info;
	struct harness h;

	harness_init(&h, ptx);
	interp_kernel_get_info(interp_module_find(h.module, "k"), &info);
	if (info.independent != expected) {
		fail_msg("%s: %d", ptx, info.independent);
	}
	harness_deinit(&h);
}

/* What a block can learn from others by, also in a function that the kernel calls. */
static void ahead_is_only_for_independent_kernels(void **state) {
	static const char *const dependent[] = {
		KERNEL("atom.global.add.u32 %r1, [%buf], 1;\nret;"),
		KERNEL("red.global.add.u32 [%buf], 1;\nret;"),
		KERNEL("atom.add.u32 %r1, [%buf], 1;\nret;"),
		KERNEL("ld.volatile.global.u32 %r1, [%buf];\nret;"),
		KERNEL("ld.acquire.gpu.global.u32 %r1, [%buf];\nret;"),
		KERNEL("ld.relaxed.gpu.global.u32 %r1, [%buf];\nret;"),
		KERNEL("st.volatile.u32 [%buf], %t;\nret;"),
		KERNEL("membar.gl;\nret;"),
		KERNEL("mov.u64 %rd1, %globaltimer;\nret;"),
		KERNEL("mov.u32 %r1, %globaltimer_hi;\nret;"),
		HEAD
		".global .u32 v;\n.func f() { .reg .b32 %r; atom.global.inc.u32 %r, [v], 9; ret; "
		"}\n"
		".func g() { call.uni f; ret; }\n"
		".visible .entry k(.param .u64 b) { call.uni g; ret; }\n",
		HEAD
		".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
		".visible .entry k(.param .u64 b)\n{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [b];\n"
		"{ .param .b64 f; .param .b64 a; .param .b32 r;\nst.param.b64 [f], %rd1;\n"
		"st.param.b64 [a], %rd1;\ncall.uni (r), vprintf, (f, a); }\nret;\n}\n",
	};

	for (size_t i = 0; i < sizeof(dependent) / sizeof(*dependent); i++) {
		independent(dependent[i], false);
	}
	independent(mixing, true);
	independent(KERNEL(".shared .u32 s;\nst.volatile.shared.u32 [s], 0;\n"
			   "atom.shared.add.u32 %r1, [s], 1;\nld.volatile.shared.u32 %r2, [s];\n"
			   "mov.u64 %rd1, %clock64;\nmov.u32 %r3, %smid;\n"
			   "ld.global.nc.u32 %r4, [%buf];\nret;"),
		    true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ahead_does_the_same_with_any_number_of_threads),
		cmocka_unit_test(ahead_lets_blocks_go_at_any_time),
		cmocka_unit_test(ahead_is_only_for_independent_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
