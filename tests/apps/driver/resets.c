/*
 * resets.c: takes its contexts and streams down in the middle of their work, in a different way
 * each frame, begins anew, and expects right results of what comes after.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char vecadd_ptx[];

/* Launches in flight when the context goes. */
#define IN_FLIGHT 4

static struct {
	size_t n;
	float *a, *b, *c, *want;
	CUdevice device;
} my;

/* What lives in one context. */
struct work {
	CUmodule module;
	CUfunction kernel;
	CUstream streams[2];
	CUdeviceptr a, b, c;
};

static void resets_open(const struct app_options *options) {
	my.n = options->size;
	my.a = app_alloc(my.n, sizeof(float));
	my.b = app_alloc(my.n, sizeof(float));
	my.c = app_alloc(my.n, sizeof(float));
	my.want = app_alloc(my.n, sizeof(float));
	CU(cuInit(0));
	CU(cuDeviceGet(&my.device, (int)options->gpu));
}

static void work_init(struct work *w) {
	CU(cuModuleLoadData(&w->module, vecadd_ptx));
	w->kernel = driver_kernel(w->module, "vecadd");
	CU(cuStreamCreate(&w->streams[0], CU_STREAM_DEFAULT));
	CU(cuStreamCreate(&w->streams[1], CU_STREAM_NON_BLOCKING));
	w->a = driver_alloc(my.n * sizeof(float));
	w->b = driver_alloc(my.n * sizeof(float));
	w->c = driver_alloc(my.n * sizeof(float));
}

static void launch(struct app_lane *lane, struct work *w, CUstream stream) {
	unsigned n = (unsigned)my.n;
	void *params[] = {&w->a, &w->b, &w->c, &n};

	CU(cuLaunchKernel(w->kernel, driver_blocks(my.n, VECADD_BLOCK), 1, 1, VECADD_BLOCK, 1, 1, 0,
			  stream, params, NULL));
	lane->launches++;
}

static void leave_in_flight(struct app_lane *lane, struct work *w) {
	for (int i = 0; i < IN_FLIGHT; i++) {
		launch(lane, w, i % 3 < 2 ? w->streams[i % 3] : NULL);
	}
}

/* The sum, computed in the context that is current. */
static void compute(struct app_lane *lane, struct work *w, CUstream stream) {
	CU(cuMemcpyHtoD(w->a, my.a, my.n * sizeof(float)));
	CU(cuMemcpyHtoD(w->b, my.b, my.n * sizeof(float)));
	CU(cuMemsetD8(w->c, 0, my.n * sizeof(float)));
	/* For a stream that does not wait for the NULL stream. */
	CU(cuCtxSynchronize());
	launch(lane, w, stream);
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(my.c, w->c, my.n * sizeof(float)));
	app_compare(lane, "sum", my.want, my.c, my.n, sizeof(float));
}

/* cudaDeviceReset() */
static void reset_primary(struct app_lane *lane) {
	CUcontext context;
	struct work w;

	CU(cuDevicePrimaryCtxRetain(&context, my.device));
	CU(cuCtxSetCurrent(context));
	work_init(&w);
	compute(lane, &w, NULL);
	leave_in_flight(lane, &w);
	CU(cuDevicePrimaryCtxReset(my.device));
	CU(cuCtxSetCurrent(NULL));
}

static void release_primary(struct app_lane *lane) {
	CUcontext context;
	struct work w;

	CU(cuDevicePrimaryCtxRetain(&context, my.device));
	CU(cuCtxSetCurrent(context));
	work_init(&w);
	compute(lane, &w, w.streams[1]);
	leave_in_flight(lane, &w);
	CU(cuCtxSetCurrent(NULL));
	CU(cuDevicePrimaryCtxRelease(my.device));
}

static void destroy_own(struct app_lane *lane) {
	CUcontext context;
	struct work w;

#if CUDA_VERSION >= 13000
	CU(cuCtxCreate(&context, NULL, 0, my.device));
#else
	CU(cuCtxCreate(&context, 0, my.device));
#endif
	work_init(&w);
	compute(lane, &w, w.streams[0]);
	leave_in_flight(lane, &w);
	CU(cuCtxDestroy(context));
}

/* Streams go, their work does not. */
static void destroy_streams(struct app_lane *lane) {
	CUcontext context;
	struct work w;

	CU(cuDevicePrimaryCtxRetain(&context, my.device));
	CU(cuCtxSetCurrent(context));
	work_init(&w);
	leave_in_flight(lane, &w);
	CU(cuStreamDestroy(w.streams[0]));
	CU(cuStreamDestroy(w.streams[1]));
	CU(cuCtxSynchronize());
	compute(lane, &w, NULL);
	driver_free(w.a);
	driver_free(w.b);
	driver_free(w.c);
	CU(cuModuleUnload(w.module));
	CU(cuCtxSetCurrent(NULL));
	CU(cuDevicePrimaryCtxRelease(my.device));
}

static void resets_frame(struct app_lane *lane, uint64_t seed) {
	static void (*const ways[])(struct app_lane * lane) = {reset_primary, destroy_own,
							       destroy_streams, release_primary};
	static size_t frame;
	struct app_random random = {seed};

	app_random_floats(&random, my.a, my.n);
	app_random_floats(&random, my.b, my.n);
	reference_vecadd(my.a, my.b, my.want, my.n);
	ways[frame++ % 4](lane);
}

static void resets_close(void) {
	free(my.want);
	free(my.c);
	free(my.b);
	free(my.a);
}

static const struct app resets_app = {
	.name = "resets",
	.summary = "Takes contexts down while they work, and begins anew.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = resets_open,
	.frame = resets_frame,
	.close = resets_close,
};

int main(int argc, char **argv) {
	return app_main(&resets_app, argc, argv);
}
