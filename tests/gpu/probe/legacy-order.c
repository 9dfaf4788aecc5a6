/*
 * legacy-order.c: what the legacy default stream, blocking streams and events wait for: whether for
 * a host function as well as for work on the GPU. libsbeet.so moves streams into green contexts,
 * whose streams know nothing of the legacy one, and makes up for that by events.
 *
 * A host function sleeps, then changes pinned memory, which is copied to the GPU by another stream;
 * or a long memset on the GPU changes a word that is copied from there; or one is behind the other.
 * Each way of waiting ROUNDS times.
 *
 * usage: legacy-order [ROUNDS [SLEEP_US]]     (200, 300)
 *	For each way: in how many rounds the copy came too early. Then whether who waits for one
 *	stream waits for what came before in the other, too, with and without an operation in
 *	between.
 *
 * An H200 (HARDWARE.md, 16): a copy of 4 bytes of pinned memory comes too early each time if it
 * waits by the legacy stream's rules alone, and nothing else does.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe.h"

enum stream { NONE, LEGACY, BLOCKING, OWN, FREE, GREEN, THIRD, STREAMS };

/* What comes first is in `first`. An event is recorded in `record`, and `wait` waits
 * for it; NONE: there is none. Then the copy. */
static const struct way {
	const char *name;
	enum stream first, record, wait, copy;
} ways[] = {
	{"legacy, then blocking", LEGACY, NONE, NONE, BLOCKING},
	{"legacy, then the thread's own", LEGACY, NONE, NONE, OWN},
	{"blocking, then legacy", BLOCKING, NONE, NONE, LEGACY},
	{"the thread's own, then legacy", OWN, NONE, NONE, LEGACY},
	{"legacy, event there, free", LEGACY, LEGACY, FREE, FREE},
	{"legacy, event there, green", LEGACY, LEGACY, GREEN, GREEN},
	{"legacy, event in blocking, green", LEGACY, BLOCKING, GREEN, GREEN},
	{"blocking, event there, green", BLOCKING, BLOCKING, GREEN, GREEN},
	{"blocking, event in legacy, free", BLOCKING, LEGACY, FREE, FREE},
	{"blocking, event in legacy, green", BLOCKING, LEGACY, GREEN, GREEN},
	{"green, event there, legacy", GREEN, GREEN, LEGACY, LEGACY},
	{"green, event there, blocking", GREEN, GREEN, BLOCKING, BLOCKING},
	{"green, event, legacy waits, blocking", GREEN, GREEN, LEGACY, BLOCKING},
	{"green, event, blocking waits, legacy", GREEN, GREEN, BLOCKING, LEGACY},
	{"free, event there, green", FREE, FREE, GREEN, GREEN},
};

static CUstream streams[STREAMS];
static CUevent event;
static CUdeviceptr word, large;
static unsigned *value; /* the last of PINNED_BYTES */
static unsigned sleep_us = 300;

/* Some 0.2 ms of an H200. */
#define LARGE_BYTES ((size_t)1 << 30)
#define LARGE_WORDS (LARGE_BYTES / sizeof(unsigned))

#define PINNED_BYTES ((size_t)1 << 20)

static void CUDA_CB change(void *data) {
	usleep(sleep_us);
	*value = (unsigned)(uintptr_t)data;
}

static void make_green(CUdevice device) {
	CUdevResource all, part, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	unsigned n = 1;

	CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&part, &n, &all, &rest, 0, 32));
	CHECK(cuDevResourceGenerateDesc(&desc, &part, 1));
	CHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	CHECK(cuGreenCtxStreamCreate(&streams[GREEN], green, CU_STREAM_NON_BLOCKING, 0));
}

/* What comes first, and what is copied then: of the memset, if there is one, or from pinned memory,
 * which the host function has changed. */
static const struct work {
	const char *name;
	bool memset_first, host, memset_last;
	size_t pinned; /* bytes of the copy; 0: of the memset */
} works[] = {
	{"host", false, true, false, sizeof(unsigned)},
	{"host, 1 MiB", false, true, false, PINNED_BYTES},
	{"host, memset, 4 B", false, true, true, sizeof(unsigned)},
	{"host, memset, 1 MiB", false, true, true, PINNED_BYTES},
	{"host, memset", false, true, true, 0},
	{"memset, host", true, true, false, 0},
	{"memset", true, false, false, 0},
};

/* Return: whether the copy came too early. */
static bool run(const struct way *way, unsigned round, const struct work *work) {
	size_t bytes = work->pinned ? work->pinned : sizeof(unsigned);
	unsigned got = 0;

	CHECK(cuCtxSynchronize());
	*value = 0;
	if (work->memset_first) {
		CHECK(cuMemsetD32Async(large, round, LARGE_WORDS, streams[way->first]));
	}
	if (work->host) {
		CHECK(cuLaunchHostFunc(streams[way->first], change, (void *)(uintptr_t)round));
	}
	if (work->memset_last) {
		CHECK(cuMemsetD32Async(large, round, LARGE_WORDS, streams[way->first]));
	}
	if (way->record != NONE) {
		CHECK(cuEventRecord(event, streams[way->record]));
		CHECK(cuStreamWaitEvent(streams[way->wait], event, 0));
	}
	if (work->pinned) {
		CHECK(cuMemcpyHtoDAsync(word, value + 1 - bytes / sizeof(*value), bytes,
					streams[way->copy]));
	} else {
		CHECK(cuMemcpyDtoDAsync(word, large + LARGE_BYTES - bytes, bytes,
					streams[way->copy]));
	}
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&got, word + bytes - sizeof(got), sizeof(got)));
	return got != round;
}

/* What @later does before it is waited for, and how that is done. */
static const struct pause {
	const char *name;
	enum { NOTHING, COMPLETE, RECORD, MEMSET } between;
	enum { SYNC, QUERY, EVENT } by;
} pauses[] = {
	{"nothing, sync", NOTHING, SYNC},   {"a wait for a complete event, sync", COMPLETE, SYNC},
	{"a memset, sync", MEMSET, SYNC},   {"an event, sync", RECORD, SYNC},
	{"an event, query", RECORD, QUERY}, {"an event, sync of that", RECORD, EVENT},
};

static void pause_for(enum stream later, const struct pause *pause) {
	if (pause->between == COMPLETE) {
		CHECK(cuStreamWaitEvent(streams[later], event, 0));
	} else if (pause->between == MEMSET) {
		CHECK(cuMemsetD32Async(word, 1, 1, streams[later]));
	} else if (pause->between == RECORD) {
		CHECK(cuEventRecord(event, streams[later]));
	}
	if (pause->by == EVENT) {
		CHECK(cuEventSynchronize(event));
	} else if (pause->by == SYNC) {
		CHECK(cuStreamSynchronize(streams[later]));
	}
	while (pause->by == QUERY && cuStreamQuery(streams[later]) == CUDA_ERROR_NOT_READY) {
		usleep(20);
	}
}

/* By the legacy stream's rules @later comes behind what is in @first: a memset, or a host function,
 * or that behind a memset in a third stream, which is behind it by the same rules. Return: whether
 * that was not done when @later had been waited for. */
static bool pause_is_early(enum stream first, enum stream later, const struct pause *pause,
			   unsigned what, unsigned round) {
	bool early;

	CHECK(cuCtxSynchronize());
	CHECK(cuEventRecord(event, streams[later]));
	CHECK(cuEventSynchronize(event));
	*value = 0;
	if (what == 2) {
		CHECK(cuMemsetD32Async(large, round, LARGE_WORDS, streams[THIRD]));
	}
	if (what == 0) {
		CHECK(cuMemsetD32Async(large, round, LARGE_WORDS, streams[first]));
	} else {
		CHECK(cuLaunchHostFunc(streams[first], change, (void *)(uintptr_t)round));
	}
	pause_for(later, pause);
	early = what == 0 ? cuStreamQuery(streams[first]) == CUDA_ERROR_NOT_READY
			  : *(volatile unsigned *)value != round;
	CHECK(cuCtxSynchronize());
	return early;
}

static void look_at_pauses(unsigned rounds) {
	static const struct {
		const char *name;
		enum stream first, later;
	} pairs[] = {
		{"legacy, then blocking", LEGACY, BLOCKING},
		{"legacy, then the thread's own", LEGACY, OWN},
		{"blocking, then legacy", BLOCKING, LEGACY},
		{"the thread's own, then legacy", OWN, LEGACY},
	};

	printf("waited for too early of %u: behind a memset, host function, host function behind a "
	       "third stream\n",
	       rounds);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (size_t k = 0; k < sizeof(pauses) / sizeof(pauses[0]); k++) {
			printf("%-30s | %-34s", pairs[i].name, pauses[k].name);
			for (unsigned what = 0; what < 3; what++) {
				unsigned early = 0;

				for (unsigned r = 1; r <= rounds; r++) {
					early += pause_is_early(pairs[i].first, pairs[i].later,
								&pauses[k], what, r);
				}
				printf(" %4u", early);
			}
			printf("\n");
		}
	}
}

int main(int argc, char **argv) {
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
	CUcontext context;

	sleep_us = argc > 2 ? (unsigned)atoi(argv[2]) : sleep_us;
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	streams[LEGACY] = CU_STREAM_LEGACY;
	streams[OWN] = CU_STREAM_PER_THREAD;
	CHECK(cuStreamCreate(&streams[BLOCKING], CU_STREAM_DEFAULT));
	CHECK(cuStreamCreate(&streams[THIRD], CU_STREAM_DEFAULT));
	CHECK(cuStreamCreate(&streams[FREE], CU_STREAM_NON_BLOCKING));
	make_green(0);
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc(&word, PINNED_BYTES));
	CHECK(cuMemAlloc(&large, LARGE_BYTES));
	CHECK(cuMemsetD32(large, 0, LARGE_WORDS));
	CHECK(cuMemHostAlloc((void **)&value, PINNED_BYTES, 0));
	value += PINNED_BYTES / sizeof(*value) - 1;
	printf("too early of %u; first in", rounds);
	for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		printf(" | %s", works[w].name);
	}
	printf("\n");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		printf("%-38s", ways[i].name);
		for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
			unsigned early = 0;

			for (unsigned r = 1; r <= rounds; r++) {
				early += run(&ways[i], 16 * r + (unsigned)w, &works[w]);
			}
			printf(" %4u", early);
		}
		printf("\n");
	}
	look_at_pauses(rounds);
	return 0;
}
