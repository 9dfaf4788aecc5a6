/*
 * back.c: asynchronous copies from the GPU of any length, from and to any address, into memory of
 * every kind and into graphs, with what comes behind them in the stream, for programs whose copies
 * back a kernel may make. All of it must be as without that.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

extern const char vecadd_ptx[];

#define COPIES 16    /* a frame */
#define AROUND 16    /* bytes before and behind, which nobody may touch */
#define BLOCK  256u  /* of the kernel */
#define PAGE   4096u /* of memory that is registered: others' keep their pages */
#define MARK   0xa5u /* what stands where nothing was copied to */

enum kind { PINNED, COMBINED, PAGEABLE, KINDS };

static struct {
	CUmodule module;
	CUfunction add;
	unsigned n; /* floats */
	float *in, *want;
	CUdeviceptr a, b, sum;
	unsigned char *to[KINDS];
	CUstream stream;
} my;

static size_t bytes_of(unsigned n) {
	return n * sizeof(float);
}

static void back_open(const struct app_options *options) {
	size_t room;

	my.module = driver_open(options->gpu, vecadd_ptx);
	my.add = driver_kernel(my.module, "vecadd");
	my.n = options->size;
	room = bytes_of(my.n) + 2 * AROUND;
	my.in = app_alloc(my.n, sizeof(float));
	my.want = app_alloc(my.n, sizeof(float));
	my.a = driver_alloc(bytes_of(my.n));
	my.b = driver_alloc(bytes_of(my.n));
	my.sum = driver_alloc(bytes_of(my.n));
	CU(cuMemHostAlloc((void **)&my.to[PINNED], room, 0));
	CU(cuMemHostAlloc((void **)&my.to[COMBINED], room, CU_MEMHOSTALLOC_WRITECOMBINED));
	my.to[PAGEABLE] = app_alloc(room, 1);
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
}

static void back_close(void) {
	CU(cuStreamDestroy(my.stream));
	CU(cuMemFreeHost(my.to[PINNED]));
	CU(cuMemFreeHost(my.to[COMBINED]));
	free(my.to[PAGEABLE]);
	driver_free(my.sum);
	driver_free(my.b);
	driver_free(my.a);
	free(my.want);
	free(my.in);
	driver_close(my.module);
}

static void add(struct app_lane *lane, CUstream stream) {
	void *params[] = {&my.a, &my.b, &my.sum, &my.n};

	CU(cuLaunchKernel(my.add, driver_blocks(my.n, BLOCK), 1, 1, BLOCK, 1, 1, 0, stream, params,
			  NULL));
	lane->launches++;
}

static void copy(bool unified, unsigned char *to, CUdeviceptr from, size_t n, CUstream stream) {
	if (unified) {
		CU(cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, from, n, stream));
	} else {
		CU(cuMemcpyDtoHAsync(to, from, n, stream));
	}
}

/* Whether only @n bytes at @at are those of the sum, from @from on. */
static void check(struct app_lane *lane, enum kind kind, size_t at, size_t from, size_t n) {
	static const char *const names[] = {"pinned", "write-combined", "pageable"};
	size_t room = bytes_of(my.n) + 2 * AROUND;
	unsigned char *want = app_alloc(room, 1);

	memset(want, MARK, room);
	memcpy(want + at, (unsigned char *)my.want + from, n);
	app_compare(lane, names[kind], want, my.to[kind], room, 1);
	free(want);
}

/* A length, and where it begins: most are such that words divide them. */
static size_t draw(struct app_random *r, size_t below) {
	static const size_t units[] = {1, 4, 16, 16};
	size_t unit = units[app_random_u32(r) % 4];

	return app_random_u32(r) % (below / unit + 1) * unit;
}

static void one_copy(struct app_lane *lane, struct app_random *r) {
	enum kind kind = app_random_u32(r) % KINDS;
	CUstream stream = app_random_u32(r) % 4 ? my.stream : NULL;
	size_t at = draw(r, AROUND), from = draw(r, 64), n = draw(r, bytes_of(my.n) - from);
	unsigned char *to = my.to[kind] + at;

	memset(my.to[kind], MARK, bytes_of(my.n) + 2 * AROUND);
	add(lane, stream);
	copy(app_random_u32(r) % 2, to, my.sum + from, n, stream);
	CU(cuMemsetD8Async(my.sum, 0, bytes_of(my.n), stream)); /* after the copy */
	CU(cuStreamSynchronize(stream));
	check(lane, kind, at, from, n);
}

/* Refused as a whole, and nothing of it is copied. */
static void too_long(struct app_lane *lane) {
	memset(my.to[PINNED], MARK, bytes_of(my.n) + 2 * AROUND);
	if (cuMemcpyDtoHAsync(my.to[PINNED], my.sum + 16, bytes_of(my.n), my.stream) ==
	    CUDA_SUCCESS) {
		lane->wrong++;
	}
	CU(cuStreamSynchronize(my.stream));
	check(lane, PINNED, 0, 0, 0);
}

static void captured(struct app_lane *lane) {
	CUgraphExec exec;
	CUgraph graph;

	memset(my.to[PINNED], MARK, bytes_of(my.n) + 2 * AROUND);
	add(lane, my.stream);
	CU(cuStreamBeginCapture(my.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CU(cuMemcpyDtoHAsync(my.to[PINNED], my.sum, bytes_of(my.n), my.stream));
	CU(cuStreamEndCapture(my.stream, &graph));
	CU(cuGraphInstantiate(&exec, graph, 0));
	CU(cuGraphLaunch(exec, my.stream));
	lane->launches++;
	CU(cuStreamSynchronize(my.stream));
	check(lane, PINNED, 0, 0, bytes_of(my.n));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
}

/* Memory and stream go while the copy is under way. */
static void gone(void) {
	unsigned char *to;
	CUdeviceptr from;
	CUstream stream;

	CU(cuMemHostAlloc((void **)&to, bytes_of(my.n), 0));
	from = driver_alloc(bytes_of(my.n));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemsetD8Async(from, 0, bytes_of(my.n), stream));
	CU(cuMemcpyDtoHAsync(to, from, bytes_of(my.n), stream));
	CU(cuStreamDestroy(stream));
	driver_free(from);
	CU(cuMemFreeHost(to));
}

/* Memory that is unregistered while the copy is under way has all of it by then. */
static void unregistered(struct app_lane *lane) {
	size_t pages = (bytes_of(my.n) + PAGE - 1) / PAGE;
	unsigned char *to = aligned_alloc(PAGE, pages * PAGE);

	if (!to) {
		lane->wrong++;
		return;
	}
	memset(to, MARK, pages * PAGE);
	CU(cuMemHostRegister(to, bytes_of(my.n), 0));
	add(lane, my.stream);
	CU(cuMemcpyDtoHAsync(to, my.sum, bytes_of(my.n), my.stream));
	CU(cuMemHostUnregister(to));
	app_compare(lane, "unregistered", my.want, to, bytes_of(my.n), 1);
	free(to);
}

static void back_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random r = {seed};

	app_random_floats(&r, my.in, my.n);
	CU(cuMemcpyHtoD(my.a, my.in, bytes_of(my.n)));
	CU(cuMemcpyHtoD(my.b, my.in, bytes_of(my.n)));
	for (unsigned i = 0; i < my.n; i++) {
		my.want[i] = my.in[i] + my.in[i];
	}
	for (unsigned i = 0; i < COPIES; i++) {
		one_copy(lane, &r);
	}
	too_long(lane);
	captured(lane);
	gone();
	unregistered(lane);
}

static const struct app back_app = {
	.name = "back",
	.summary = "Adds two vectors and copies parts of the sum back in every way.",
	.size_meaning = "elements",
	.size_default = 20000,
	.size_min = 1000,
	.size_max = 1u << 28,
	.open = back_open,
	.frame = back_frame,
	.close = back_close,
};

int main(int argc, char **argv) {
	return app_main(&back_app, argc, argv);
}
