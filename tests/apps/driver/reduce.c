/*
 * reduce.c: sums of floats and of 64-bit integers by warp shuffles, two launches each, on two
 * streams that an event ties together.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char reduce_ptx[];

static struct {
	size_t n;
	float *floats;
	uint64_t *integers;
	CUmodule module;
	CUfunction reduce_float, reduce_u64;
	CUstream first, second;
	CUevent first_done;
	CUdeviceptr dev_floats, dev_integers, dev_partial_floats, dev_partial_integers, dev_sums;
} my;

static void reduce_open(const struct app_options *options) {
	my.n = options->size;
	my.floats = app_alloc(my.n, sizeof(float));
	my.integers = app_alloc(my.n, sizeof(uint64_t));
	my.module = driver_open(options->gpu, reduce_ptx);
	my.reduce_float = driver_kernel(my.module, "_Z6reduceIfEvPKT_PS0_j");
	my.reduce_u64 = driver_kernel(my.module, "_Z6reduceIyEvPKT_PS0_j");
	CU(cuStreamCreate(&my.first, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&my.second, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&my.first_done, CU_EVENT_DISABLE_TIMING));
	my.dev_floats = driver_alloc(my.n * sizeof(float));
	my.dev_integers = driver_alloc(my.n * sizeof(uint64_t));
	my.dev_partial_floats = driver_alloc(REDUCE_GRID * sizeof(float));
	my.dev_partial_integers = driver_alloc(REDUCE_GRID * sizeof(uint64_t));
	my.dev_sums = driver_alloc(2 * sizeof(uint64_t)); /* the integer, then the float */
}

static void launch(struct app_lane *lane, CUfunction kernel, CUstream stream, unsigned blocks,
		   CUdeviceptr in, CUdeviceptr out, unsigned n) {
	void *params[] = {&in, &out, &n};

	CU(cuLaunchKernel(kernel, blocks, 1, 1, REDUCE_BLOCK, 1, 1, 0, stream, params, NULL));
	lane->launches++;
}

static void reduce_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	CUdeviceptr dev_sum_float = my.dev_sums + sizeof(uint64_t);
	unsigned n = (unsigned)my.n;
	uint64_t want_u64, got_u64;
	float want_float, got_float;

	app_random_floats(&random, my.floats, my.n);
	for (size_t i = 0; i < my.n; i++) {
		my.integers[i] = (uint64_t)app_random_u32(&random) << 24;
	}
	want_float = reference_reduce_float(my.floats, my.n);
	want_u64 = reference_reduce_u64(my.integers, my.n);

	CU(cuMemcpyHtoDAsync(my.dev_floats, my.floats, my.n * sizeof(float), my.first));
	CU(cuMemcpyHtoDAsync(my.dev_integers, my.integers, my.n * sizeof(uint64_t), my.second));
	launch(lane, my.reduce_float, my.first, REDUCE_GRID, my.dev_floats, my.dev_partial_floats,
	       n);
	launch(lane, my.reduce_u64, my.second, REDUCE_GRID, my.dev_integers,
	       my.dev_partial_integers, n);
	launch(lane, my.reduce_float, my.first, 1, my.dev_partial_floats, dev_sum_float,
	       REDUCE_GRID);
	launch(lane, my.reduce_u64, my.second, 1, my.dev_partial_integers, my.dev_sums,
	       REDUCE_GRID);
	CU(cuEventRecord(my.first_done, my.first));
	CU(cuStreamWaitEvent(my.second, my.first_done, 0));
	CU(cuMemcpyDtoHAsync(&got_float, dev_sum_float, sizeof(got_float), my.second));
	CU(cuMemcpyDtoHAsync(&got_u64, my.dev_sums, sizeof(got_u64), my.second));
	CU(cuStreamSynchronize(my.second));
	app_compare(lane, "sum of floats", &want_float, &got_float, 1, sizeof(float));
	app_compare(lane, "sum of integers", &want_u64, &got_u64, 1, sizeof(uint64_t));
}

static void reduce_close(void) {
	driver_free(my.dev_sums);
	driver_free(my.dev_partial_integers);
	driver_free(my.dev_partial_floats);
	driver_free(my.dev_integers);
	driver_free(my.dev_floats);
	CU(cuEventDestroy(my.first_done));
	CU(cuStreamDestroy(my.second));
	CU(cuStreamDestroy(my.first));
	driver_close(my.module);
	free(my.integers);
	free(my.floats);
}

static const struct app reduce_app = {
	.name = "reduce",
	.summary = "Sums two arrays on two streams.",
	.size_meaning = "elements of each array",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 27,
	.open = reduce_open,
	.frame = reduce_frame,
	.close = reduce_close,
};

int main(int argc, char **argv) {
	return app_main(&reduce_app, argc, argv);
}
