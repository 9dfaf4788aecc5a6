/*
 * job-start.c: what libsbeet.so adds to the launch that opens a job, to the launches inside it and
 * to the wait that ends it, in nanoseconds, on any GPU or the simulated one.
 *
 * It runs the same jobs in short turns with libsbeet.so and without it (bypass.c), in the order
 * with, without, without, with. Each call is timed on its own. A job is one launch, some more
 * launches, and cuStreamSynchronize(). The first jobs of a turn don't count: they warm the caches
 * up again.
 *
 * Prints one JSON line for each operation. `added_p50_ns` is the median, over pairs of
 * neighbouring turns, of the difference between their medians, and lies between `added_low_ns` and
 * `added_high_ns` with 95 % confidence. Run it under `sbeetctl run`.
 *
 * usage: job-start CASE LIBBYPASS [PAUSE_US [ROUNDS [JOBS [hold]]]]
 *   PAUSE_US  sleep between two jobs (0)
 *   ROUNDS    of four turns (100)
 *   JOBS      in a turn, without the first ones (50)
 *   hold      at the end wait until standard input is closed
 *
 * TOUCH_KIB: so much memory is written before each launch inside, as programs that do more than
 * launching have other things in the caches then (0).
 * IMAGE: a file with the kernel `nothing`, such as machine code, instead of PTX.
 */
#include "tests/bench/bypass.h"

#include <cuda.h>
#include <dlfcn.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INSIDE	  16 /* launches of a job behind its first one */
#define WARM	  2  /* jobs of a turn that don't count */
#define JOBS_MAX  500
#define TURNS_MAX 20000

enum operation { OPENS, IN_JOB, ENDS, N_OPERATIONS };

static const struct {
	const char *name;
	unsigned each; /* how many a job has */
} operations[N_OPERATIONS] = {
	[OPENS] = {"launch that opens a job", 1},
	[IN_JOB] = {"launch inside", INSIDE},
	[ENDS] = {"wait that ends it", 1},
};

/* What one turn took, in the order in which the calls were made. */
struct turn {
	uint32_t ns[N_OPERATIONS][JOBS_MAX * INSIDE];
};

static struct turn one;

#define LINE 64
static char *touched; /* before each launch inside */
static size_t touched_bytes;

static void *allocate(size_t n, size_t size) {
	void *p = calloc(n, size);

	if (!p) {
		errx(2, "no memory");
	}
	return p;
}

/* ---- the program ---- */

static const char image[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry nothing() { ret; }\n";

static CUfunction function;
static CUstream stream;

static uint64_t now_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void check(CUresult rc) {
	if (rc != CUDA_SUCCESS) {
		errx(2, "CUDA error %d", rc);
	}
}

static void touch(void) {
	for (size_t i = 0; i < touched_bytes; i += LINE) {
		((volatile char *)touched)[i]++;
	}
}

static uint32_t launch(void) {
	uint64_t begin = now_ns();

	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
	return (uint32_t)(now_ns() - begin);
}

static uint32_t wait_for_it(void) {
	uint64_t begin = now_ns();

	check(cuStreamSynchronize(stream));
	return (uint32_t)(now_ns() - begin);
}

/* Job @i of the turn. */
static void run_job(unsigned i) {
	one.ns[OPENS][i] = launch();
	for (unsigned k = 0; k < INSIDE; k++) {
		touch();
		one.ns[IN_JOB][i * INSIDE + k] = launch();
	}
	one.ns[ENDS][i] = wait_for_it();
}

static void run_turn(unsigned jobs, unsigned pause_us) {
	const struct timespec pause = {.tv_sec = pause_us / 1000000,
				       .tv_nsec = pause_us % 1000000 * 1000};

	for (unsigned i = 0; i < WARM + jobs; i++) {
		if (pause_us > 0) {
			nanosleep(&pause, NULL);
		}
		run_job(i < WARM ? 0 : i - WARM);
	}
}

static void open_gpu(void) {
	const char *file = getenv("IMAGE");
	CUcontext context;
	CUmodule module;

	check(cuInit(0));
	check(cuDevicePrimaryCtxRetain(&context, 0));
	check(cuCtxSetCurrent(context));
	check(file ? cuModuleLoad(&module, file) : cuModuleLoadData(&module, image));
	check(cuModuleGetFunction(&function, module, "nothing"));
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

/* ---- the comparison ---- */

static __typeof__(bypass_switch) *switch_shim;

/* With the shim, or without it. */
struct side {
	bool with;
	uint32_t *ns[N_OPERATIONS]; /* of all turns */
	double *medians[N_OPERATIONS];
	unsigned turns;
};

static void side_init(struct side *side, bool with, unsigned turns, unsigned jobs) {
	side->with = with;
	for (enum operation o = 0; o < N_OPERATIONS; o++) {
		side->ns[o] = allocate((size_t)turns * jobs * operations[o].each, sizeof(uint32_t));
		side->medians[o] = allocate(turns, sizeof(double));
	}
}

static int compare_ns(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void take_turn(struct side *side, unsigned jobs, unsigned pause_us) {
	if (switch_shim(!side->with) <= 0) {
		errx(2, "the shim can't be switched");
	}
	run_turn(jobs, pause_us);
	for (enum operation o = 0; o < N_OPERATIONS; o++) {
		size_t n = (size_t)jobs * operations[o].each;

		memcpy(side->ns[o] + side->turns * n, one.ns[o], n * sizeof(uint32_t));
		qsort(one.ns[o], n, sizeof(uint32_t), compare_ns);
		side->medians[o][side->turns] = one.ns[o][n / 2];
	}
	side->turns++;
}

/* Sorts on the way. */
static uint32_t quantile(uint32_t *ns, size_t n, double part) {
	qsort(ns, n, sizeof(*ns), compare_ns);
	return ns[(size_t)((double)(n - 1) * part)];
}

static void say(const char *name, unsigned pause_us, struct side *with, struct side *without,
		enum operation o, unsigned jobs) {
	unsigned turns = with->turns;
	size_t n = (size_t)turns * jobs * operations[o].each;
	double added[TURNS_MAX], margin = 0, root = turns;
	uint32_t p50[2], p99[2];

	for (unsigned t = 0; t < turns; t++) {
		added[t] = with->medians[o][t] - without->medians[o][t];
	}
	qsort(added, turns, sizeof(*added), compare);
	/* The ranks between which the median lies: n/2 +- 0.98 sqrt(n). */
	for (unsigned i = 0; i < 40; i++) {
		root = (root + turns / root) / 2;
	}
	margin = 0.98 * root < turns / 2.0 ? 0.98 * root : turns / 2.0 - 0.5;
	p50[0] = quantile(without->ns[o], n, 0.5);
	p99[0] = quantile(without->ns[o], n, 0.99);
	p50[1] = quantile(with->ns[o], n, 0.5);
	p99[1] = quantile(with->ns[o], n, 0.99);
	printf("{\"bench\":\"job-start\",\"case\":\"%s\",\"pause_us\":%u,\"touch_kib\":%zu,"
	       "\"operation\":\"%s\","
	       "\"n\":%zu,\"without_p50_ns\":%u,\"with_p50_ns\":%u,\"added_p50_ns\":%.0f,"
	       "\"added_low_ns\":%.0f,\"added_high_ns\":%.0f,\"without_p99_ns\":%u,"
	       "\"with_p99_ns\":%u,\"added_p99_ns\":%d}\n",
	       name, pause_us, touched_bytes >> 10, operations[o].name, n, p50[0], p50[1],
	       added[turns / 2], added[(unsigned)(turns / 2.0 - margin)],
	       added[(unsigned)(turns / 2.0 + margin)], p99[0], p99[1], (int)p99[1] - (int)p99[0]);
}

static void load_bypass(const char *path) {
	void *library = dlopen(path, RTLD_NOW);

	switch_shim = library ? (__typeof__(switch_shim))dlsym(library, "bypass_switch") : NULL;
	if (!switch_shim) {
		errx(2, "%s", dlerror());
	}
}

static unsigned number(const char *text, unsigned least, unsigned most) {
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n < least || n > most) {
		errx(2, "'%s' is not a number from %u to %u", text, least, most);
	}
	return (unsigned)n;
}

int main(int argc, char **argv) {
	static struct side with, without;
	unsigned pause_us = argc > 3 ? number(argv[3], 0, 1000000) : 0;
	unsigned rounds = argc > 4 ? number(argv[4], 1, TURNS_MAX / 2) : 100;
	unsigned jobs = argc > 5 ? number(argv[5], 1, JOBS_MAX - WARM) : 50;

	if (argc < 3 || argc > 7) {
		errx(2, "usage: job-start CASE LIBBYPASS [PAUSE_US [ROUNDS [JOBS [hold]]]]");
	}
	if (getenv("TOUCH_KIB")) {
		touched_bytes = (size_t)number(getenv("TOUCH_KIB"), 0, 1 << 20) << 10;
		touched = allocate(touched_bytes + 1, 1);
	}
	open_gpu();
	load_bypass(argv[2]);
	side_init(&with, true, 2 * rounds, jobs);
	side_init(&without, false, 2 * rounds, jobs);
	run_turn(jobs, pause_us);
	for (unsigned i = 0; i < rounds; i++) {
		take_turn(&with, jobs, pause_us);
		take_turn(&without, jobs, pause_us);
		take_turn(&without, jobs, pause_us);
		take_turn(&with, jobs, pause_us);
	}
	for (enum operation o = 0; o < N_OPERATIONS; o++) {
		say(argv[1], pause_us, &with, &without, o, jobs);
	}
	fflush(stdout);
	while (argc > 6 && read(STDIN_FILENO, &(char){0}, 1) > 0) { /* until it is closed */
	}
	return 0;
}
