/*
 * holds.c: what keeps a held copy waiting when it may go: the GPU, which looks at the word that the
 * copy waits for, or the host, whose thread has to write that word and may be without a CPU.
 *
 * `mps.sh FOLDER holds` runs all of it.
 *
 * usage: holds gpu COPIES
 *	A copy of 4 MiB waits for a word that this thread writes 0.1 to 3 ms later. From then until
 *the word behind the copy is there, in us: p50, p99, most; and the same of copies that wait for
 *	nothing.
 *	holds host SECONDS THREADS
 *	So many threads look at the clock without a pause. How long they had no CPU: how often for
 *0.3, 1 and 3 ms, and the longest, in us.
 */
#include <cuda.h>
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe.h"

#define BYTES ((size_t)4 << 20)
#define US    INT64_C(1000)

static int64_t now(void) {
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static int by_value(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print(const char *what, int64_t *samples, unsigned n) {
	qsort(samples, n, sizeof(*samples), by_value);
	printf("%s: %.1f %.1f %.1f\n", what, (double)samples[n / 2] / US,
	       (double)samples[n * 99 / 100] / US, (double)samples[n - 1] / US);
}

/* ---- the GPU ---- */

static struct {
	CUstream stream;
	void *from;
	CUdeviceptr to, gate_at, done_at;
	_Atomic uint32_t *gate, *done;
} my;

static _Atomic uint32_t *word(CUdeviceptr *ret_at) {
	void *p;

	CHECK(cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(ret_at, p, 0));
	memset(p, 0, 64);
	return p;
}

static void open_gpu(void) {
	CUcontext context;
	int least, greatest;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(cuStreamCreateWithPriority(&my.stream, CU_STREAM_NON_BLOCKING, greatest));
	CHECK(cuMemHostAlloc(&my.from, BYTES, 0));
	CHECK(cuMemAlloc(&my.to, BYTES));
	my.gate = word(&my.gate_at);
	my.done = word(&my.done_at);
}

/* @hold: until the copy may go, 0: at once. Return: from then until it is seen to be done. */
static int64_t make_copy(uint32_t number, int64_t hold) {
	int64_t begun, open;

	atomic_store(my.gate, hold ? 0 : 1);
	CHECK(cuStreamWaitValue32(my.stream, my.gate_at, 1, CU_STREAM_WAIT_VALUE_GEQ));
	CHECK(cuMemcpyHtoDAsync(my.to, my.from, BYTES, my.stream));
	CHECK(cuStreamWriteValue32(my.stream, my.done_at, number, CU_STREAM_WRITE_VALUE_DEFAULT));
	begun = now();
	while (now() < begun + hold) {
	}
	open = now();
	atomic_store(my.gate, 1);
	while (atomic_load(my.done) != number) {
	}
	return now() - open;
}

static void measure_gpu(unsigned n) {
	int64_t *held = calloc(n, sizeof(*held)), *free_ = calloc(n, sizeof(*free_));
	const struct timespec pause = {.tv_nsec = 500 * US};

	open_gpu();
	for (unsigned i = 0; i < n; i++) {
		held[i] = make_copy(2 * i + 1, (100 + rand() % 2900) * US);
		free_[i] = make_copy(2 * i + 2, 0);
		nanosleep(&pause, NULL);
	}
	print("waits for nothing", free_, n);
	print("waits for a word", held, n);
	free(held);
	free(free_);
}

/* ---- the host ---- */

static int64_t until;

struct gaps {
	pthread_t thread;
	unsigned n[3];
	int64_t longest;
};

static void *look(void *data) {
	static const int64_t limits[] = {300 * US, 1000 * US, 3000 * US};
	struct gaps *g = data;
	int64_t last = now(), t;

	for (; (t = now()) < until; last = t) {
		for (unsigned i = 0; i < 3; i++) {
			g->n[i] += t - last >= limits[i];
		}
		g->longest = t - last > g->longest ? t - last : g->longest;
	}
	return NULL;
}

static void measure_host(double seconds, unsigned n) {
	struct gaps *all = calloc(n, sizeof(*all)), sum = {.longest = 0};

	until = now() + (int64_t)(seconds * 1e9);
	for (unsigned i = 0; i < n; i++) {
		if (pthread_create(&all[i].thread, NULL, look, &all[i]) != 0) {
			errx(1, "no thread");
		}
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(all[i].thread, NULL);
		for (unsigned k = 0; k < 3; k++) {
			sum.n[k] += all[i].n[k];
		}
		sum.longest = all[i].longest > sum.longest ? all[i].longest : sum.longest;
	}
	printf("%u threads, without a CPU for 0.3 ms %u, 1 ms %u, 3 ms %u times, longest %.0f us\n",
	       n, sum.n[0], sum.n[1], sum.n[2], (double)sum.longest / US);
	free(all);
}

int main(int argc, char **argv) {
	if (argc == 3 && strcmp(argv[1], "gpu") == 0 && atoi(argv[2]) > 0) {
		measure_gpu((unsigned)atoi(argv[2]));
	} else if (argc == 4 && strcmp(argv[1], "host") == 0 && atoi(argv[3]) > 0) {
		measure_host(atof(argv[2]), (unsigned)atoi(argv[3]));
	} else {
		errx(2, "usage: holds gpu COPIES | holds host SECONDS THREADS");
	}
	return 0;
}
