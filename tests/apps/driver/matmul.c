/*
 * matmul.c: matrix multiplication on a stream of its own: page-locked memory, asynchronous copies,
 * cuStreamSynchronize.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char matmul_ptx[];

static struct {
	unsigned n;
	size_t cells;
	float *a, *b, *c; /* page-locked */
	float *want;
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CUdeviceptr dev_a, dev_b, dev_c;
} my;

static void matmul_open(const struct app_options *options) {
	size_t bytes;

	my.n = options->size;
	my.cells = (size_t)my.n * my.n;
	my.want = app_alloc(my.cells, sizeof(float));
	my.module = driver_open(options->gpu, matmul_ptx);
	my.kernel = driver_kernel(my.module, "_Z6matmulILi16EEvPKfS1_Pfj");
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	bytes = my.cells * sizeof(float);
	CU(cuMemAllocHost((void **)&my.a, bytes));
	CU(cuMemAllocHost((void **)&my.b, bytes));
	CU(cuMemAllocHost((void **)&my.c, bytes));
	my.dev_a = driver_alloc(bytes);
	my.dev_b = driver_alloc(bytes);
	my.dev_c = driver_alloc(bytes);
}

static void matmul_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned tiles = driver_blocks(my.n, MATMUL_TILE);
	size_t bytes = my.cells * sizeof(float);
	void *params[] = {&my.dev_a, &my.dev_b, &my.dev_c, &my.n};

	app_random_floats(&random, my.a, my.cells);
	app_random_floats(&random, my.b, my.cells);

	CU(cuMemcpyHtoDAsync(my.dev_a, my.a, bytes, my.stream));
	CU(cuMemcpyHtoDAsync(my.dev_b, my.b, bytes, my.stream));
	CU(cuLaunchKernel(my.kernel, tiles, tiles, 1, MATMUL_TILE, MATMUL_TILE, 1, 0, my.stream,
			  params, NULL));
	lane->launches++;
	CU(cuMemcpyDtoHAsync(my.c, my.dev_c, bytes, my.stream));
	reference_matmul(my.a, my.b, my.want, my.n); /* while the GPU works */
	CU(cuStreamSynchronize(my.stream));
	app_compare(lane, "product", my.want, my.c, my.cells, sizeof(float));
}

static void matmul_close(void) {
	driver_free(my.dev_c);
	driver_free(my.dev_b);
	driver_free(my.dev_a);
	CU(cuMemFreeHost(my.c));
	CU(cuMemFreeHost(my.b));
	CU(cuMemFreeHost(my.a));
	CU(cuStreamDestroy(my.stream));
	driver_close(my.module);
	free(my.want);
}

static const struct app matmul_app = {
	.name = "matmul",
	.summary = "Multiplies two square matrices.",
	.size_meaning = "rows",
	.size_default = 72,
	.size_min = 1,
	.size_max = 1u << 14,
	.open = matmul_open,
	.frame = matmul_frame,
	.close = matmul_close,
};

int main(int argc, char **argv) {
	return app_main(&matmul_app, argc, argv);
}
