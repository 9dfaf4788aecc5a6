/*
 * histogram.c: byte histogram. Never waits for the GPU: it polls an event, and a stream, and does
 * something else meanwhile.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

#define GRID	 24
#define PAUSE_NS 20000

extern const char histogram_ptx[];

static struct {
	size_t n;
	unsigned char *data; /* page-locked */
	unsigned *bins;	     /* page-locked */
	unsigned want[HISTOGRAM_BINS];
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CUevent done;
	CUdeviceptr dev_data, dev_bins;
} my;

static void histogram_open(const struct app_options *options) {
	my.n = options->size;
	my.module = driver_open(options->gpu, histogram_ptx);
	my.kernel = driver_kernel(my.module, "histogram");
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&my.done, CU_EVENT_DISABLE_TIMING));
	CU(cuMemAllocHost((void **)&my.data, my.n));
	CU(cuMemAllocHost((void **)&my.bins, sizeof(my.want)));
	my.dev_data = driver_alloc(my.n);
	my.dev_bins = driver_alloc(sizeof(my.want));
}

/* Polls in one of two ways, by turns. */
static void wait_for_frame(unsigned frame) {
	CUresult r;

	for (;;) {
		r = frame % 2 ? cuStreamQuery(my.stream) : cuEventQuery(my.done);
		if (r != CUDA_ERROR_NOT_READY) {
			break;
		}
		app_pause_ns(PAUSE_NS);
	}
	CU(r);
}

static void histogram_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned n = (unsigned)my.n;
	void *params[] = {&my.dev_data, &n, &my.dev_bins};

	app_random_bytes(&random, my.data, my.n);
	reference_histogram(my.data, my.n, my.want);

	CU(cuMemcpyHtoDAsync(my.dev_data, my.data, my.n, my.stream));
	CU(cuMemsetD32Async(my.dev_bins, 0, HISTOGRAM_BINS, my.stream));
	CU(cuLaunchKernel(my.kernel, GRID, 1, 1, HISTOGRAM_BLOCK, 1, 1,
			  HISTOGRAM_BINS * sizeof(unsigned), my.stream, params, NULL));
	lane->launches++;
	CU(cuMemcpyDtoHAsync(my.bins, my.dev_bins, sizeof(my.want), my.stream));
	CU(cuEventRecord(my.done, my.stream));
	wait_for_frame(lane->frame);
	app_compare(lane, "bins", my.want, my.bins, HISTOGRAM_BINS, sizeof(unsigned));
}

static void histogram_close(void) {
	driver_free(my.dev_bins);
	driver_free(my.dev_data);
	CU(cuMemFreeHost(my.bins));
	CU(cuMemFreeHost(my.data));
	CU(cuEventDestroy(my.done));
	CU(cuStreamDestroy(my.stream));
	driver_close(my.module);
}

static const struct app histogram_app = {
	.name = "histogram",
	.summary = "Counts byte values; polls instead of waiting.",
	.size_meaning = "bytes",
	.size_default = 60000,
	.size_min = 1,
	.size_max = 1u << 30,
	.open = histogram_open,
	.frame = histogram_frame,
	.close = histogram_close,
};

int main(int argc, char **argv) {
	return app_main(&histogram_app, argc, argv);
}
