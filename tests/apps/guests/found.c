/*
 * found.c: see found.h.
 */
#include "found.h"

#include <stdlib.h>

static void check(CUresult r, const char *call) {
	if (r != CUDA_SUCCESS) {
		TELL("%s: error %d\n", call, (int)r);
		exit(1);
	}
}
#define CHECK(call) check((call), #call)

bool found_all(const char *how, found_finder *find, struct found *ret) {
	bool all = true;

#define FOUND(function, exported, name, since)                               \
	ret->function = (__typeof__(function) *)find(exported, name, since); \
	if (!ret->function) {                                                \
		TELL("%s: no %s\n", how, exported);                          \
		all = false;                                                 \
	}
	FOUND_FUNCTIONS
#undef FOUND
	return all;
}

void found_open(const struct found *f, struct found_gpu *ret) {
	CUdevice device;
	CUcontext context;
	CUmodule module;

	*ret = (struct found_gpu){.f = f};
	CHECK(f->cuInit(0));
	CHECK(f->cuDeviceGet(&device, 0));
	CHECK(f->cuDevicePrimaryCtxRetain(&context, device));
	CHECK(f->cuCtxSetCurrent(context));
	CHECK(f->cuModuleLoadData(&module, guest_ptx));
	CHECK(f->cuModuleGetFunction(&ret->step, module, "guest_step"));
	CHECK(f->cuStreamCreate(&ret->stream, CU_STREAM_NON_BLOCKING));
	CHECK(f->cuMemAlloc(&ret->p, FOUND_N * sizeof(unsigned)));
	CHECK(f->cuMemsetD32Async(ret->p, 0, FOUND_N, ret->stream));
}

void found_step(struct found_gpu *g, __typeof__(cuLaunchKernel) *launch) {
	unsigned n = FOUND_N, add = ++g->n_steps;
	void *params[] = {&g->p, &n, &add};

	g->want = g->want * 3 + add;
	if (!launch) {
		launch = g->f->cuLaunchKernel;
	}
	CHECK(launch(g->step, FOUND_N / 128, 1, 1, 128, 1, 1, 0, g->stream, params, NULL));
}

void found_tell(const char *how, struct found_gpu *g) {
	static unsigned values[FOUND_N];
	unsigned wrong = 0;

	CHECK(g->f->cuMemcpyDtoHAsync(values, g->p, sizeof(values), g->stream));
	CHECK(g->f->cuStreamSynchronize(g->stream));
	for (unsigned i = 0; i < FOUND_N; i++) {
		wrong += values[i] != g->want;
	}
	TELL("%s: %u steps, %u of %u values wrong\n", how, g->n_steps, wrong, FOUND_N);
}

void found_use(const char *how, found_finder *find) {
	struct found_gpu g;
	struct found f;

	if (!found_all(how, find, &f)) {
		return;
	}
	found_open(&f, &g);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 8; i++) {
			found_step(&g, NULL);
		}
		found_tell(how, &g);
	}
}
