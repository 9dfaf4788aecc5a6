/*
 * bench-interp.c: how fast the PTX interpreter is: one JSON line for each kernel, in million thread
 * instructions a second on one core (a warp instruction counts 32, whoever is active), and how much
 * faster two threads are than one on independent blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/ahead.h"

#define BENCH_BYTES  (1u << 20)
#define BENCH_ADDR   INTERP_DEVICE_FIRST
#define AHEAD_BLOCKS 32

#define HEAD                                                                              \
	".version 8.0\n.target sm_75\n.address_size 64\n"                                 \
	".visible .entry k(.param .u64 b)\n{\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n"       \
	".reg .b64 %rd<9>;\n.reg .pred %p<3>;\n.shared .b32 s[256];\n"                    \
	"ld.param.u64 %rd1, [b];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\n"                \
	"mad.wide.u32 %rd2, %r1, 4, %rd1;\nmov.u32 %r3, %r1;\nmov.f32 %f1, 0f3F800000;\n" \
	"mov.u32 %r6, s;\nmad.lo.u32 %r6, %r1, 4, %r6;\nst.shared.u32 [%r6], %r2;\nL:\n"
#define TAIL                                                               \
	"add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 5000;\n@%p1 bra L;\n" \
	"st.global.u32 [%rd2], %r3;\nst.global.f32 [%rd2+4096], %f1;\nret;\n}\n"

static const struct {
	const char *name, *ptx;
} kernels[] = {
	{"integer",
	 HEAD "mad.lo.u32 %r3, %r3, 5, 7;\nxor.b32 %r4, %r3, %r2;\nshr.u32 %r4, %r4, 3;\n"
	      "add.u32 %r3, %r3, %r4;\nand.b32 %r5, %r3, 255;\nsub.u32 %r3, %r3, %r5;\n" TAIL},
	{"float", HEAD "fma.rn.f32 %f1, %f1, %f1, 0f3F000000;\nmul.f32 %f2, %f1, 0f3E800000;\n"
		       "add.f32 %f1, %f2, %f1;\nmin.f32 %f1, %f1, 0f40000000;\n" TAIL},
	{"global", HEAD
	 "ld.global.u32 %r4, [%rd2];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd2], %r4;\n" TAIL},
	{"shared",
	 HEAD "ld.shared.u32 %r4, [%r6];\nadd.u32 %r4, %r4, 1;\nst.shared.u32 [%r6], %r4;\n"
	      "bar.sync 0;\n" TAIL},
	{"divergent", HEAD "and.b32 %r4, %r1, 1;\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra A;\n"
			   "add.u32 %r3, %r3, 3;\nbra B;\nA: add.u32 %r3, %r3, 5;\nB:\n" TAIL},
	{"atomic", HEAD "atom.global.add.u32 %r4, [%rd1], 1;\n" TAIL},
};

static uint8_t *memory;

static uint8_t *resolve(void *userdata, uint64_t addr, size_t size, bool write, uint64_t *ret_start,
			uint64_t *ret_end) {
	if (addr < BENCH_ADDR || addr + size > BENCH_ADDR + BENCH_BYTES) {
		return NULL;
	}
	*ret_start = BENCH_ADDR;
	*ret_end = BENCH_ADDR + BENCH_BYTES;
	return memory + (addr - BENCH_ADDR);
}

static double now_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs one block of 256 threads to its end. Returns warp instructions, 0 on failure. */
static uint64_t run(const struct interp_module *m) {
	uint64_t buffer = BENCH_ADDR, total = 0, instructions, cycles;
	struct interp_launch launch = {.kernel = interp_module_find(m, "k"),
				       .grid = {1, 1, 1},
				       .block = {256, 1, 1},
				       .params = &buffer,
				       .params_size = sizeof(buffer)};
	struct interp_machine machine = {.memory = {NULL, resolve}};
	struct interp_block *b;
	enum interp_result r;
	const uint32_t zero[3] = {0};

	if (interp_block_new(&b, &launch, zero, (struct interp_place){0, 1}, &machine) < 0) {
		return 0;
	}
	do {
		r = interp_block_run(b, 100000, &instructions, &cycles);
		total += instructions;
	} while (r == INTERP_MORE);
	interp_block_free(b);
	return r == INTERP_DONE ? total : 0;
}

static double thread_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs blocks of the kernel in turns, as simgpud does. Return: seconds, or 0 on failure. @ret_own:
 * processor time of the calling thread in it. */
static double run_ahead(const struct interp_module *m, unsigned threads, double *ret_own) {
	static struct ahead_block blocks[AHEAD_BLOCKS];
	uint64_t buffer = BENCH_ADDR;
	struct interp_launch launch = {.kernel = interp_module_find(m, "k"),
				       .grid = {AHEAD_BLOCKS, 1, 1},
				       .block = {256, 1, 1},
				       .params = &buffer,
				       .params_size = sizeof(buffer)};
	struct interp_machine machine = {.memory = {NULL, resolve}};
	const uint32_t zero[3] = {0};
	unsigned left = 0;
	struct ahead *a;
	double start, own;

	if (ahead_new(&a, threads, 512) < 0) {
		return 0;
	}
	start = now_s();
	own = thread_s();
	memset(blocks, 0, sizeof(blocks));
	for (; left < AHEAD_BLOCKS; left++) {
		if (interp_block_new(&blocks[left].interp, &launch, zero,
				     (struct interp_place){0, 1}, &machine) < 0) {
			return 0;
		}
		ahead_add(a, &blocks[left]);
	}
	while (left > 0) {
		for (unsigned i = 0; i < AHEAD_BLOCKS; i++) {
			struct ahead_block *b = &blocks[i];

			if (b->interp && ahead_take(a, b).result != INTERP_MORE) {
				ahead_remove(a, b);
				b->interp = interp_block_free(b->interp);
				left--;
			}
		}
	}
	ahead_free(a);
	*ret_own = thread_s() - own;
	return now_s() - start;
}

/* The least of some rounds, since others use the cores too. What the calling thread had to do
 * itself says what the speed-up is where nobody does. */
static int bench_cores(void) {
	struct interp_module *m;
	double best[2] = {0, 0}, best_own[2] = {0, 0};

	if (interp_module_new(&m, kernels[0].ptx, strlen(kernels[0].ptx), NULL, 0) < 0) {
		return 1;
	}
	for (unsigned round = 0; round < 10; round++) {
		double own = 0, s = run_ahead(m, round % 2, &own);

		if (s == 0) {
			return 1;
		}
		if (best[round % 2] == 0 || s < best[round % 2]) {
			best[round % 2] = s;
		}
		if (best_own[round % 2] == 0 || own < best_own[round % 2]) {
			best_own[round % 2] = own;
		}
	}
	printf("{\"bench\": \"interp-two-threads\", \"speedup\": %.2f, \"own_share\": %.2f}\n",
	       best[0] / best[1], best_own[1] / best_own[0]);
	interp_module_free(m);
	return 0;
}

int main(void) {
	memory = calloc(1, BENCH_BYTES);
	if (!memory) {
		return 1;
	}
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		struct interp_module *m;
		char error[256];
		uint64_t n = 0;
		double start, s = 0;

		if (interp_module_new(&m, kernels[i].ptx, strlen(kernels[i].ptx), error,
				      sizeof(error)) < 0) {
			fprintf(stderr, "bench-interp: %s: %s\n", kernels[i].name, error);
			return 1;
		}
		start = now_s();
		while (s < 0.3) {
			uint64_t done = run(m);

			if (!done) {
				fprintf(stderr, "bench-interp: %s failed\n", kernels[i].name);
				return 1;
			}
			n += done;
			s = now_s() - start;
		}
		printf("{\"bench\": \"interp-%s\", \"million_thread_instructions_per_s\": %.1f}\n",
		       kernels[i].name, (double)n * 32 / s * 1e-6);
		interp_module_free(m);
	}
	if (bench_cores() != 0) {
		fprintf(stderr, "bench-interp: two threads failed\n");
		return 1;
	}
	free(memory);
	return 0;
}
