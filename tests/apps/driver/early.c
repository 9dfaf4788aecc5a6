/*
 * early.c: sums rows of random lengths; the kernel's threads leave early, before barriers that the
 * rest still meets. Waits with cuEventSynchronize.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char early_ptx[];

static struct {
	unsigned rows;
	size_t cells;
	unsigned *data, *lengths, *sums, *want;
	CUmodule module;
	CUfunction kernel;
	CUevent done;
	CUdeviceptr dev_data, dev_lengths, dev_sums;
} my;

static void early_open(const struct app_options *options) {
	my.rows = options->size;
	my.cells = (size_t)my.rows * EARLY_BLOCK;
	my.data = app_alloc(my.cells, sizeof(unsigned));
	my.lengths = app_alloc(my.rows, sizeof(unsigned));
	my.sums = app_alloc(my.rows, sizeof(unsigned));
	my.want = app_alloc(my.rows, sizeof(unsigned));
	my.module = driver_open(options->gpu, early_ptx);
	my.kernel = driver_kernel(my.module, "early");
	CU(cuEventCreate(&my.done, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
	my.dev_data = driver_alloc(my.cells * sizeof(unsigned));
	my.dev_lengths = driver_alloc(my.rows * sizeof(unsigned));
	my.dev_sums = driver_alloc(my.rows * sizeof(unsigned));
}

static void early_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned stride = EARLY_BLOCK;
	void *params[] = {&my.dev_data, &my.dev_lengths, &stride, &my.dev_sums};

	for (size_t i = 0; i < my.cells; i++) {
		my.data[i] = app_random_u32(&random);
	}
	for (unsigned r = 0; r < my.rows; r++) {
		my.lengths[r] = app_random_u32(&random) % (EARLY_BLOCK + 1);
	}
	reference_early(my.data, my.lengths, stride, my.rows, my.want);

	CU(cuMemcpyHtoD(my.dev_data, my.data, my.cells * sizeof(unsigned)));
	CU(cuMemcpyHtoD(my.dev_lengths, my.lengths, my.rows * sizeof(unsigned)));
	CU(cuMemsetD32(my.dev_sums, 0, my.rows));
	CU(cuLaunchKernel(my.kernel, my.rows, 1, 1, EARLY_BLOCK, 1, 1, 0, NULL, params, NULL));
	lane->launches++;
	CU(cuEventRecord(my.done, NULL));
	CU(cuEventSynchronize(my.done));
	CU(cuMemcpyDtoH(my.sums, my.dev_sums, my.rows * sizeof(unsigned)));
	app_compare(lane, "row sums", my.want, my.sums, my.rows, sizeof(unsigned));
}

static void early_close(void) {
	driver_free(my.dev_sums);
	driver_free(my.dev_lengths);
	driver_free(my.dev_data);
	CU(cuEventDestroy(my.done));
	driver_close(my.module);
	free(my.want);
	free(my.sums);
	free(my.lengths);
	free(my.data);
}

static const struct app early_app = {
	.name = "early",
	.summary = "Sums rows of different lengths; threads leave before barriers.",
	.size_meaning = "rows",
	.size_default = 200,
	.size_min = 1,
	.size_max = 1u << 22,
	.open = early_open,
	.frame = early_frame,
	.close = early_close,
};

int main(int argc, char **argv) {
	return app_main(&early_app, argc, argv);
}
