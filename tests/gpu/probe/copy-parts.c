/*
 * copy-parts.c: what the beginning of a job costs its host when the job begins with a copy: each
 * call that a held or announced copy needs, in a program that has slept before, as periodic ones
 * do.
 *
 * `mps.sh FOLDER copy-parts` runs all of it.
 *
 * usage: copy-parts [JOBS [PERIOD_US]]     (1000, 1500)
 *	For each way of making the copy: the time of each call, and of the whole job, p50 and p99 in
 *us. usage: copy-parts back JOBS Small copies from the GPU: by events the copy's own time, and what
 *the host waits longer. usage: copy-parts load SECONDS PIECE_MIB Copies 16 MiB from the GPU in such
 *pieces, again and again, for the others to be beside.
 */
#include <cuda.h>
#include <err.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define MIB	  ((size_t)1 << 20)
#define PARTS_MAX 24

enum way {
	WHOLE_4,
	WHOLE_16M,
	ASKED_16M,
	ANNOUNCED_4,
	WOKEN_4,
	WOKEN_16M,
	PIECES_16M,
	HELD_16M,
	BATCH_16M,
	WAYS
};
static const char *const ways[] = {"4 bytes",
				   "16 MiB",
				   "16 MiB, addresses asked",
				   "4 bytes, a word behind",
				   "4 bytes, a thread woken, a word behind",
				   "16 MiB, a thread woken, a word behind",
				   "pieces of 4 MiB, a word behind",
				   "held pieces of 4 MiB, woken, a word behind",
				   "held by one batch each, woken, a word behind"};

static struct {
	CUdeviceptr to;
	unsigned char *from;
	CUdeviceptr word;
	CUstream stream;
} my;

static _Atomic uint32_t calls, seen;
static int64_t *samples[PARTS_MAX];
static const char *names[PARTS_MAX];
static unsigned n_parts;
static unsigned jobs = 1000, at;

static int64_t now(void) {
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void *sleeper(void *data) {
	(void)data;
	for (;;) {
		uint32_t s = atomic_load(&calls);

		atomic_store(&seen, s);
		syscall(SYS_futex, &calls, FUTEX_WAIT_PRIVATE, s, NULL, NULL, 0);
	}
	return NULL;
}

static void part(const char *name, int64_t *since) {
	int64_t t = now();

	if (!samples[n_parts]) {
		samples[n_parts] = calloc(jobs, sizeof(int64_t));
	}
	names[n_parts] = name;
	samples[n_parts++][at] = t - *since;
	*since = now();
}

static void ask(int64_t *t) {
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned type, managed = 0, flags;
	CUdeviceptr start;
	size_t size;
	void *answers[] = {&type, &managed, &start, &size};

	CHECK(cuPointerGetAttributes(4, which, answers, (CUdeviceptr)(uintptr_t)my.from));
	part("cuPointerGetAttributes, host", t);
	CHECK(cuMemHostGetFlags(&flags, my.from));
	CHECK(cuMemHostGetFlags(&flags, my.from + 16 * MIB - 1));
	part("cuMemHostGetFlags, twice", t);
	CHECK(cuPointerGetAttributes(4, which, answers, my.to));
	part("cuPointerGetAttributes, device", t);
	CHECK(cuMemGetAddressRange(&start, &size, my.to));
	part("cuMemGetAddressRange", t);
}

static void wake(int64_t *t) {
	atomic_fetch_add(&calls, 1);
	syscall(SYS_futex, &calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	part("futex wake", t);
}

static void copy(size_t from, size_t n, const char *name, int64_t *t) {
	CHECK(cuMemcpyHtoDAsync(my.to + from, my.from + from, n, my.stream));
	part(name, t);
}

static void pieces(enum way way, int64_t *t) {
	for (size_t i = 0; i < 4; i++) {
		if (way == HELD_16M) {
			CHECK(cuStreamWaitValue32(my.stream, my.word, 0, CU_STREAM_WAIT_VALUE_GEQ));
			part(i ? "another wait" : "cuStreamWaitValue32", t);
		} else if (way == BATCH_16M) {
			CUstreamBatchMemOpParams op = {
				.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
					      .address = my.word,
					      .value = 0,
					      .flags = CU_STREAM_WAIT_VALUE_GEQ}};

			CHECK(cuStreamBatchMemOp(my.stream, 1, &op, 0));
			part(i ? "another batch" : "cuStreamBatchMemOp", t);
		}
		copy(i * 4 * MIB, 4 * MIB, i ? "another piece" : "first piece", t);
	}
}

static void job(enum way way) {
	int64_t begin = now(), t = begin, whole = begin;

	n_parts = 0;
	if (way == ASKED_16M) {
		ask(&t);
	}
	if (way == WOKEN_4 || way == WOKEN_16M || way == HELD_16M || way == BATCH_16M) {
		wake(&t);
	}
	if (way == PIECES_16M || way == HELD_16M || way == BATCH_16M) {
		pieces(way, &t);
	} else {
		copy(0, way == WHOLE_4 || way == ANNOUNCED_4 || way == WOKEN_4 ? 4 : 16 * MIB,
		     "the copy", &t);
	}
	if (way != WHOLE_4 && way != WHOLE_16M && way != ASKED_16M) {
		CHECK(cuStreamWriteValue32(my.stream, my.word + 64, at, 0));
		part("cuStreamWriteValue32", &t);
	}
	CHECK(cuStreamSynchronize(my.stream));
	part("cuStreamSynchronize", &t);
	part("the job", &whole);
}

static int compare(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report(enum way way) {
	if (way < WAYS) {
		printf("%s\n", ways[way]);
	}
	for (unsigned i = 0; i < n_parts; i++) {
		qsort(samples[i], jobs, sizeof(int64_t), compare);
		printf("  %-32s %7.2f %7.2f\n", names[i], (double)samples[i][jobs / 2] / 1e3,
		       (double)samples[i][jobs * 99 / 100] / 1e3);
	}
}

static void load(double seconds, size_t piece) {
	int64_t end = now() + (int64_t)(seconds * 1e9);
	unsigned n = 0;

	for (; now() < end; n++) {
		for (size_t i = 0; i < 16 * MIB; i += piece) {
			CHECK(cuMemcpyDtoHAsync(my.from + i, my.to + i, piece, my.stream));
		}
		CHECK(cuStreamSynchronize(my.stream));
	}
	printf("  load: %.0f copies a second\n", n / seconds);
}

static void back(void) {
	CUevent marks[2];

	CHECK(cuEventCreate(&marks[0], CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&marks[1], CU_EVENT_DEFAULT));
	for (at = 0; at < jobs; at++) {
		struct timespec ts = {.tv_nsec = 1500000};
		int64_t begin, t;
		float ms;

		nanosleep(&ts, NULL);
		n_parts = 0;
		begin = t = now();
		CHECK(cuEventRecord(marks[0], my.stream));
		CHECK(cuMemcpyDtoHAsync(my.from, my.to, 1024, my.stream));
		CHECK(cuEventRecord(marks[1], my.stream));
		part("calls", &t);
		CHECK(cuStreamSynchronize(my.stream));
		t = begin;
		part("the job", &t);
		CHECK(cuEventElapsedTime(&ms, marks[0], marks[1]));
		samples[0][at] = (int64_t)((double)ms * 1e6);
		names[0] = "the copy, by events";
		if (!samples[2]) {
			samples[2] = calloc(jobs, sizeof(int64_t));
		}
		names[2] = "the rest";
		samples[2][at] = samples[1][at] - samples[0][at];
		n_parts = 3;
	}
	printf("1 KiB back\n");
	report(WAYS);
}

int main(int argc, char **argv) {
	bool beside = argc == 4 && strcmp(argv[1], "load") == 0;
	bool backward = argc == 3 && strcmp(argv[1], "back") == 0;
	unsigned period_us = argc > 2 ? (unsigned)atoi(argv[2]) : 1500;
	void *words;
	CUcontext context;
	CUdevice device;
	pthread_t thread;

	jobs = backward ? (unsigned)atoi(argv[2]) : argc > 1 ? (unsigned)atoi(argv[1]) : jobs;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAllocHost((void **)&my.from, 16 * MIB));
	memset(my.from, 1, 16 * MIB);
	CHECK(cuMemAlloc(&my.to, 16 * MIB));
	CHECK(cuMemHostAlloc(&words, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(words, 0, 4096);
	CHECK(cuMemHostGetDevicePointer(&my.word, words, 0));
	CHECK(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	if (beside) {
		load(atof(argv[2]), (size_t)atoi(argv[3]) * MIB);
		return 0;
	}
	if (backward) {
		back();
		return 0;
	}
	if (pthread_create(&thread, NULL, sleeper, NULL) != 0) {
		errx(1, "no thread");
	}
	for (enum way way = 0; way < WAYS; way++) {
		for (at = 0; at < jobs; at++) {
			struct timespec ts = {.tv_nsec = (long)period_us * 1000};

			nanosleep(&ts, NULL);
			job(way);
		}
		report(way);
	}
	return 0;
}
