/*
 * legacy-order.c: what the legacy default stream, blocking streams and events wait for if a host
 * function is what they have to wait for. libsbeet.so moves streams into green contexts, whose
 * streams know nothing of the legacy one, and makes up for that by events.
 *
 * A host function sleeps, then changes a word of pinned memory, which is copied to the GPU by
 * another stream that has to wait for it. Each way of waiting ROUNDS times; the streams are idle
 * before, or have had work just before ("busy").
 *
 * usage: legacy-order [ROUNDS [SLEEP_US]]     (200, 300)
 *	For each way: in how many rounds the copy came too early.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe.h"

enum stream { NONE, LEGACY, BLOCKING, OWN, FREE, GREEN, STREAMS };

/* The host function is in `host`. An event is recorded in `record`, and `wait` waits for it; NONE:
 * there is none. Then the copy. What CUDA promises is that it comes last. */
static const struct way {
	const char *name;
	enum stream host, record, wait, copy;
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
static CUdeviceptr word, scrap;
static unsigned *value; /* pinned */
static unsigned sleep_us = 300;

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

/* Return: whether the copy came too early. */
static bool run(const struct way *way, unsigned round, bool busy) {
	unsigned got = 0;

	CHECK(cuCtxSynchronize());
	for (enum stream s = LEGACY; busy && s < STREAMS; s++) {
		CHECK(cuMemsetD32Async(scrap, round, 1, streams[s]));
	}
	*value = 0;
	CHECK(cuLaunchHostFunc(streams[way->host], change, (void *)(uintptr_t)round));
	if (way->record != NONE) {
		CHECK(cuEventRecord(event, streams[way->record]));
		CHECK(cuStreamWaitEvent(streams[way->wait], event, 0));
	}
	CHECK(cuMemcpyHtoDAsync(word, value, sizeof(*value), streams[way->copy]));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(&got, word, sizeof(got)));
	return got != round;
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
	CHECK(cuStreamCreate(&streams[FREE], CU_STREAM_NON_BLOCKING));
	make_green(0);
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuMemAlloc(&word, sizeof(*value)));
	CHECK(cuMemAlloc(&scrap, sizeof(*value)));
	CHECK(cuMemHostAlloc((void **)&value, sizeof(*value), 0));
	printf("%-40s %8s %8s of %u\n", "host function in", "idle", "busy", rounds);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		unsigned early[2] = {0, 0};

		for (unsigned r = 1; r <= rounds; r++) {
			early[0] += run(&ways[i], r, false);
			early[1] += run(&ways[i], r, true);
		}
		printf("%-40s %8u %8u\n", ways[i].name, early[0], early[1]);
	}
	return 0;
}
