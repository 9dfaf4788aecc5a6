/*
 * launch-parts.c: what the things cost that a wrapper may do at each launch, right beside a launch
 * of the real driver, where caches and store buffers are as that leaves them. Nanoseconds added to
 * back-to-back launches of an empty kernel, each part against bare launches by turns. At the end,
 * what it costs to launch into a stream of the program's own, or a green context's, instead.
 *
 * usage: launch-parts RATES.PTX
 */
#include "shim/real.h"

#include <err.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proto/units.h"
#include "tests/func/twin/plain-driver.h"
#include "tests/gpu/green.h"

#define GREEN_SMS 64
#define LAUNCHES  5000
#define TURNS	  31

static CUfunction function;
static _Atomic uint64_t word __attribute__((aligned(64)));
static volatile nsec_t sink;
static _Atomic uint64_t lines[512][8];

static void nothing(void) {
}

static void ask_context(void) {
	CUcontext c;

	plain_driver.cuCtxGetCurrent(&c);
}

static void ask_time(void) {
	sink = nsec_now();
}

#ifdef __x86_64__
static void ask_tsc(void) {
	sink = (nsec_t)__builtin_ia32_rdtsc();
}

static void ask_tsc_in_order(void) {
	__builtin_ia32_lfence();
	sink = (nsec_t)__builtin_ia32_rdtsc();
}

static void ask_tscp(void) {
	unsigned cpu;

	sink = (nsec_t)__builtin_ia32_rdtscp(&cpu);
}
#endif

static void exchange(void) {
	atomic_store(&word, 1);
}

static void exchange_and_release(void) {
	atomic_store(&word, 1);
	atomic_store_explicit(&word, 0, memory_order_release);
}

static void fetch_add(void) {
	atomic_fetch_add_explicit(&word, 1, memory_order_relaxed);
}

static void fence(void) {
	atomic_thread_fence(memory_order_seq_cst);
}

static void touch(void) {
	static unsigned at;

	atomic_store_explicit(&lines[at++ % 512][0], 1, memory_order_relaxed);
}

static const struct part {
	const char *name;
	void (*before)(void);
} parts[] = {
	{"nothing (an indirect call)", nothing},
	{"cuCtxGetCurrent", ask_context},
	{"clock_gettime", ask_time},
#ifdef __x86_64__
	{"rdtsc", ask_tsc},
	{"lfence, rdtsc", ask_tsc_in_order},
	{"rdtscp", ask_tscp},
#endif
	{"sequentially consistent store", exchange},
	{"that and a release store", exchange_and_release},
	{"relaxed fetch_add", fetch_add},
	{"full fence", fence},
	{"store into a new line", touch},
};

static double turn(void (*before)(void), CUstream at) {
	nsec_t begin = nsec_now();

	for (unsigned i = 0; i < LAUNCHES; i++) {
		if (before) {
			before();
		}
		if (plain_driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, at, NULL, NULL) !=
		    CUDA_SUCCESS) {
			errx(1, "cuLaunchKernel");
		}
	}
	plain_driver.cuStreamSynchronize(at);
	return (double)(nsec_now() - begin) / LAUNCHES;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Against bare launches into the NULL stream. */
static void measure(const char *name, void (*before)(void), CUstream at) {
	double bare[TURNS], with[TURNS];

	for (unsigned t = 0; t < TURNS; t++) {
		bare[t] = turn(NULL, NULL);
		with[t] = turn(before, at) - bare[t];
	}
	qsort(bare, TURNS, sizeof(*bare), compare);
	qsort(with, TURNS, sizeof(*with), compare);
	printf("  %-32s %+6.1f ns (%.1f to %.1f) on %.0f ns\n", name, with[TURNS / 2],
	       with[TURNS / 4], with[TURNS * 3 / 4], bare[TURNS / 2]);
}

int main(int argc, char **argv) {
	static char ptx[1 << 20];
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	CUcontext context;
	struct green green;
	CUstream own;
	CUmodule module;

	if (!f || !fread(ptx, 1, sizeof(ptx) - 1, f)) {
		errx(2, "usage: %s RATES.PTX", argv[0]);
	}
	fclose(f);
	if (!plain_driver_load()) {
		printf("There is no GPU.\n");
		return 77;
	}
	if (plain_driver.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    plain_driver.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
	    plain_driver.cuModuleLoadData(&module, ptx) != CUDA_SUCCESS ||
	    plain_driver.cuModuleGetFunction(&function, module, "nothing") != CUDA_SUCCESS) {
		errx(1, "the kernel can't be loaded");
	}
	turn(NULL, NULL);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		measure(parts[i].name, parts[i].before, NULL);
	}
	if (plain_driver.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
		errx(1, "cuStreamCreate");
	}
	measure("a stream of its own", NULL, own);
	if (green_init(&green, 0, GREEN_SMS) == 0) {
		measure("a stream of 64 SMs", NULL, green.stream);
		green_deinit(&green);
	}
	return 0;
}
