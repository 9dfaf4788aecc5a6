/*
 * held.c: large copies from pinned memory, in more than one stream and before events, from memory
 * of other kinds, into a stream that is being captured, while memory goes: for programs whose
 * copies are held. All of it must be as without that.
 *
 * usage: held equal | forever | urgent [COPIES] | leave | fork | destroy
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

extern const char vecadd_ptx[];

/* Some pieces, and a last one that is shorter. */
#define BYTES (((size_t)17 << 20) + 12345)

static struct {
	CUmodule module;
	CUstream stream, other;
	unsigned char *in, *out;
	CUdeviceptr memory;
} my;

static void check(const char *what, const unsigned char *want) {
	memset(my.out, 0, BYTES);
	CU(cuMemcpyDtoH(my.out, my.memory, BYTES));
	if (memcmp(want, my.out, BYTES) != 0) {
		printf("%s: {\"ok\":false}\n", what);
		exit(1);
	}
}

static void fill(unsigned char *at, uint64_t seed) {
	struct app_random random = {seed};

	app_random_bytes(&random, at, BYTES);
}

static void copy(CUstream stream) {
	CU(cuMemcpyHtoDAsync(my.memory, my.in, BYTES, stream));
}

/* What stands behind the copy sees all of it. */
static void order(void) {
	CUevent event;

	CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	fill(my.in, 1);
	copy(my.stream);
	CU(cuEventRecord(event, my.stream));
	CU(cuStreamWaitEvent(my.other, event, 0));
	CU(cuMemcpyDtoHAsync(my.out, my.memory, BYTES, my.other));
	CU(cuStreamSynchronize(my.other));
	if (memcmp(my.in, my.out, BYTES) != 0) {
		printf("events: {\"ok\":false}\n");
		exit(1);
	}
	/* The same by address, and what is changed before the second copy ends. */
	fill(my.in, 2);
	CU(cuMemcpyAsync(my.memory, (CUdeviceptr)(uintptr_t)my.in, BYTES, my.stream));
	CU(cuMemsetD8Async(my.memory + BYTES - 1, my.in[BYTES - 1] ^ 1, 1, my.stream));
	CU(cuStreamSynchronize(my.stream));
	my.in[BYTES - 1] ^= 1;
	check("address", my.in);
	/* The default stream. */
	fill(my.in, 3);
	copy(NULL);
	CU(cuCtxSynchronize());
	check("default stream", my.in);
	CU(cuEventDestroy(event));
}

static void other_memory(void) {
	unsigned char *pageable = app_alloc(BYTES, 1), *combined;

	fill(pageable, 4);
	CU(cuMemcpyHtoDAsync(my.memory, pageable, BYTES, my.stream));
	CU(cuStreamSynchronize(my.stream));
	check("pageable", pageable);
	CU(cuMemHostAlloc((void **)&combined, BYTES, CU_MEMHOSTALLOC_WRITECOMBINED));
	fill(combined, 5);
	CU(cuMemcpyHtoDAsync(my.memory, combined, BYTES, my.stream));
	CU(cuStreamSynchronize(my.stream));
	check("write-combined", combined);
	/* Refused as a whole, and nothing of it is copied. */
	fill(my.in, 6);
	if (cuMemcpyHtoDAsync(my.memory + BYTES / 2, my.in, BYTES, my.stream) == CUDA_SUCCESS) {
		printf("too long: {\"ok\":false}\n");
		exit(1);
	}
	check("refused", combined);
	CU(cuMemFreeHost(combined));
	free(pageable);
}

static void captured(void) {
	CUgraphExec exec;
	CUgraph graph;

	CU(cuStreamBeginCapture(my.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	copy(my.stream);
	CU(cuStreamEndCapture(my.stream, &graph));
	CU(cuGraphInstantiate(&exec, graph, 0));
	fill(my.in, 7);
	CU(cuGraphLaunch(exec, my.stream));
	CU(cuStreamSynchronize(my.stream));
	check("graph", my.in);
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
}

/* Memory and streams go while copies are under way. */
static void gone(void) {
	unsigned char *in;
	CUdeviceptr memory;
	CUstream stream;

	CU(cuMemHostAlloc((void **)&in, BYTES, 0));
	CU(cuMemAlloc(&memory, BYTES));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemcpyHtoDAsync(memory, in, BYTES, stream));
	CU(cuStreamDestroy(stream));
	CU(cuMemFree(memory));
	CU(cuMemFreeHost(in));
}

static void begin(void) {
	my.module = driver_open(0, vecadd_ptx);
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&my.other, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&my.in, BYTES, 0));
	CU(cuMemHostAlloc((void **)&my.out, BYTES, 0));
	CU(cuMemAlloc(&my.memory, BYTES));
	fill(my.in, 8);
}

static void copy_on(long n) {
	for (long i = 0; n < 0 || i < n; i++) {
		copy(my.stream);
		CU(cuStreamSynchronize(my.stream));
		if (i == 0) {
			printf("begun\n");
			fflush(stdout);
		}
	}
	check("copies", my.in);
}

int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "equal";
	int status = 0;

	begin();
	if (strcmp(what, "equal") == 0) {
		for (int i = 0; i < 5; i++) {
			order();
			other_memory();
			captured();
			gone();
		}
	} else if (strcmp(what, "forever") == 0) {
		copy_on(-1);
	} else if (strcmp(what, "urgent") == 0) {
		copy_on(argc > 2 ? strtol(argv[2], NULL, 10) : 10);
	} else if (strcmp(what, "leave") == 0) {
		copy(my.stream); /* nobody waits for it */
		copy(my.other);
	} else if (strcmp(what, "fork") == 0) {
		pid_t child;

		copy(my.stream);
		child = fork();
		if (child == 0) {
			exit(0);
		}
		waitpid(child, &status, 0);
		CU(cuStreamSynchronize(my.stream));
		check("fork", my.in);
	} else {
		copy(my.stream);
		CU(cuDevicePrimaryCtxReset(0));
		begin(); /* anew, in the same process */
		copy_on(3);
	}
	printf("{\"ok\":%s}\n", status == 0 ? "true" : "false");
	return status != 0;
}
