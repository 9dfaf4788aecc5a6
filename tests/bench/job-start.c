/*
 * job-start.c: what libsbeet.so adds to the launch that opens a job, to the launches inside it and
 * to the wait that ends it, in nanoseconds, on any GPU or the simulated one.
 *
 * Two processes run the same jobs in short turns, one with libsbeet.so and one without it, in the
 * order with, without, without, with. Each call is timed on its own. A job is one launch, some more
 * launches, and cuStreamSynchronize(). The first jobs of a turn don't count: they warm the caches
 * up again.
 *
 * Prints one JSON line for each operation. `added_p50_ns` is the median, over pairs of
 * neighbouring turns, of the difference between their medians, and lies between `added_low_ns` and
 * `added_high_ns` with 95 % confidence. Run it under `sbeetctl run`.
 *
 * usage: job-start CASE [PAUSE_US [ROUNDS [JOBS]]]
 *   PAUSE_US  sleep between two jobs (0)
 *   ROUNDS    of four turns (100)
 *   JOBS      in a turn, without the first ones (50)
 *
 * TOUCH_KIB: so much memory is written before each launch inside, as programs that do more than
 * launching have other things in the caches then (0).
 */
#include <cuda.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* Whole or not at all: false at the end. */
static bool transfer(int fd, void *data, size_t size, bool out) {
	for (char *p = data; size > 0;) {
		ssize_t n = out ? write(fd, p, size) : read(fd, p, size);

		if (n <= 0) {
			return false;
		}
		p += n;
		size -= (size_t)n;
	}
	return true;
}

/* Says how it went, turn by turn, until nobody wants another one. */
static int serve(unsigned jobs, unsigned pause_us) {
	CUcontext context;
	CUmodule module;
	char word = 0;

	check(cuInit(0));
	check(cuDevicePrimaryCtxRetain(&context, 0));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, image));
	check(cuModuleGetFunction(&function, module, "nothing"));
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	run_turn(jobs, pause_us);
	while (transfer(STDIN_FILENO, &word, 1, false)) {
		run_turn(jobs, pause_us);
		for (enum operation o = 0; o < N_OPERATIONS; o++) {
			if (!transfer(STDOUT_FILENO, one.ns[o],
				      jobs * operations[o].each * sizeof(uint32_t), true)) {
				return 2;
			}
		}
	}
	return 0;
}

/* ---- the comparison ---- */

struct side {
	pid_t pid;
	int ask, answer;
	uint32_t *ns[N_OPERATIONS]; /* of all turns */
	double *medians[N_OPERATIONS];
	unsigned turns;
};

static void start(struct side *side, bool with, char **argv, unsigned turns, unsigned jobs) {
	int ask[2], answer[2];

	if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0) {
		err(2, "pipe");
	}
	side->pid = fork();
	if (side->pid == 0) {
		dup2(ask[0], STDIN_FILENO);
		dup2(answer[1], STDOUT_FILENO);
		setenv("JOB_START_SERVE", "1", 1);
		if (!with) {
			unsetenv("LD_PRELOAD");
		}
		execv("/proc/self/exe", argv);
		err(2, "exec");
	}
	close(ask[0]);
	close(answer[1]);
	side->ask = ask[1];
	side->answer = answer[0];
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

static void take_turn(struct side *side, unsigned jobs) {
	char word = 1;

	if (!transfer(side->ask, &word, 1, true)) {
		errx(2, "a program is gone");
	}
	for (enum operation o = 0; o < N_OPERATIONS; o++) {
		size_t n = (size_t)jobs * operations[o].each;

		if (!transfer(side->answer, one.ns[o], n * sizeof(uint32_t), false)) {
			errx(2, "a program is gone");
		}
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

static void stop(struct side *side) {
	int status;

	close(side->ask);
	if (waitpid(side->pid, &status, 0) != side->pid || status != 0) {
		errx(2, "a program ended with status %#x", status);
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
	unsigned pause_us = argc > 2 ? number(argv[2], 0, 1000000) : 0;
	unsigned rounds = argc > 3 ? number(argv[3], 1, TURNS_MAX / 2) : 100;
	unsigned jobs = argc > 4 ? number(argv[4], 1, JOBS_MAX - WARM) : 50;
	const char *preload = getenv("LD_PRELOAD");

	if (argc < 2 || argc > 6) {
		errx(2, "usage: job-start CASE [PAUSE_US [ROUNDS [JOBS [hold]]]]");
	}
	if (getenv("TOUCH_KIB")) {
		touched_bytes = (size_t)number(getenv("TOUCH_KIB"), 0, 1 << 20) << 10;
		touched = allocate(touched_bytes + 1, 1);
	}
	if (getenv("JOB_START_SERVE")) {
		return serve(jobs, pause_us);
	}
	if (!preload || !strstr(preload, "libsbeet.so")) {
		errx(2, "run it under 'sbeetctl run'");
	}
	start(&with, true, argv, 2 * rounds, jobs);
	start(&without, false, argv, 2 * rounds, jobs);
	for (unsigned i = 0; i < rounds; i++) {
		take_turn(&with, jobs);
		take_turn(&without, jobs);
		take_turn(&without, jobs);
		take_turn(&with, jobs);
	}
	for (enum operation o = 0; o < N_OPERATIONS; o++) {
		say(argv[1], pause_us, &with, &without, o, jobs);
	}
	while (argc > 5 && read(STDIN_FILENO, &(char){0}, 1) > 0) { /* until it is closed */
	}
	stop(&with);
	stop(&without);
	return 0;
}
