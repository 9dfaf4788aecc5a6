/*
 * own-green.c: a program that keeps some of its work to SMs of its own choice, by a green context
 * of the driver API, and the rest in an ordinary stream. However it is steered, the former stays on
 * as many SMs as it has asked for, and all results are right.
 *
 * usage: own-green [--frames N] [--json]
 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "kernels/shapes.h"

extern const char compute_ptx[];

#define BLOCKS 48
#define N      ((size_t)BLOCKS * COMPUTE_BLOCK)
#define SMS    8 /* of its own */

static struct {
	CUresult (*resource)(CUdevice, CUdevResource *, CUdevResourceType);
	CUresult (*split)(CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *,
			  unsigned, unsigned);
	CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned);
	CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
	CUresult (*stream)(CUstream *, CUgreenCtx, unsigned, int);
} driver;

struct work {
	CUstream stream;
	CUdeviceptr out, sms;
	unsigned on[COMPUTE_SMS_MAX];
};

static void *find(const char *name) {
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f) {
		fprintf(stderr, "own-green: the driver has no %s\n", name);
		exit(1);
	}
	return f;
}

static CUstream green_stream(void) {
	CUdevResource all, group, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream stream;
	unsigned n = 1;

	*(void **)&driver.resource = find("cuDeviceGetDevResource");
	*(void **)&driver.split = find("cuDevSmResourceSplitByCount");
	*(void **)&driver.describe = find("cuDevResourceGenerateDesc");
	*(void **)&driver.create = find("cuGreenCtxCreate");
	*(void **)&driver.stream = find("cuGreenCtxStreamCreate");
	CU(driver.resource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CU(driver.split(&group, &n, &all, &rest, 0, SMS));
	CU(driver.describe(&desc, &group, 1));
	CU(driver.create(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	CU(driver.stream(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	return stream;
}

static void begin(struct work *w, CUstream stream) {
	w->stream = stream;
	w->out = driver_alloc(N * sizeof(unsigned));
	w->sms = driver_alloc(sizeof(w->on));
	CU(cuMemsetD32Async(w->out, 0, N, stream));
	CU(cuMemsetD32Async(w->sms, 0, COMPUTE_SMS_MAX, stream));
}

static void launch(struct work *w, CUfunction kernel) {
	unsigned first = 1, rounds = 0, mul = 1, add = 0;
	void *params[] = {&w->out, &first, &rounds, &mul, &add, &w->sms};

	CU(cuLaunchKernel(kernel, BLOCKS, 1, 1, COMPUTE_BLOCK, 1, 1, 0, w->stream, params, NULL));
}

/* Return: whether each block has run once in each of @frames; @ret_sms: on so many SMs. */
static bool is_right(struct work *w, unsigned frames, unsigned *ret_sms) {
	static unsigned out[N];
	unsigned blocks = 0;
	bool ok = true;

	CU(cuMemcpyDtoHAsync(out, w->out, sizeof(out), w->stream));
	CU(cuMemcpyDtoHAsync(w->on, w->sms, sizeof(w->on), w->stream));
	CU(cuStreamSynchronize(w->stream));
	for (unsigned i = 0; i < N; i++) {
		ok &= out[i] == frames * (1 + i);
	}
	*ret_sms = 0;
	for (unsigned i = 0; i < COMPUTE_SMS_MAX; i++) {
		*ret_sms += w->on[i] > 0;
		blocks += w->on[i];
	}
	return ok && blocks == frames * BLOCKS;
}

int main(int argc, char **argv) {
	CUmodule module = driver_open(0, compute_ptx);
	CUfunction kernel = driver_kernel(module, "compute");
	struct work own, other;
	unsigned frames = 4, n_own, n_other;
	CUstream stream;
	bool ok;

	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--frames") == 0) {
			frames = 25 * (unsigned)strtoul(argv[i + 1], NULL, 10); /* they are short */
		}
	}
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	begin(&own, green_stream());
	begin(&other, stream);
	for (unsigned i = 0; i < frames; i++) {
		launch(&own, kernel);
		launch(&other, kernel);
		CU(cuStreamSynchronize(own.stream));
		CU(cuStreamSynchronize(other.stream));
	}
	ok = is_right(&own, frames, &n_own);
	ok = is_right(&other, frames, &n_other) && ok;
	printf("{\"launches\":%u,\"own_sms\":%u,\"sms\":%u,\"ok\":%s}\n", 2 * frames, n_own,
	       n_other, ok && n_own <= SMS ? "true" : "false");
	return ok && n_own <= SMS ? 0 : 1;
}
