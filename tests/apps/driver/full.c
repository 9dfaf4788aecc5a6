/*
 * full.c: takes all of the GPU's memory, so that nobody finds any, before its first launch; and
 * works on.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char vecadd_ptx[];

#define PIECES_MAX 4096

static struct {
	size_t n, n_pieces;
	float *a, *b, *c, *want;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr dev_a, dev_b, dev_c, pieces[PIECES_MAX];
} my;

static void take_all(void) {
	for (size_t bytes = (size_t)1 << 40; bytes >= 256;) {
		CUdeviceptr p;
		CUresult r =
			my.n_pieces < PIECES_MAX ? cuMemAlloc(&p, bytes) : CUDA_ERROR_OUT_OF_MEMORY;

		if (r == CUDA_SUCCESS) {
			my.pieces[my.n_pieces++] = p;
		} else if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			bytes /= 2;
		} else {
			CU(r);
		}
	}
	if (my.n_pieces == 0 || my.n_pieces == PIECES_MAX) {
		fprintf(stderr, "full: the memory can't be filled\n");
		exit(1);
	}
}

static void full_open(const struct app_options *options) {
	my.n = options->size;
	my.a = app_alloc(my.n, sizeof(float));
	my.b = app_alloc(my.n, sizeof(float));
	my.c = app_alloc(my.n, sizeof(float));
	my.want = app_alloc(my.n, sizeof(float));
	my.module = driver_open(options->gpu, vecadd_ptx);
	my.kernel = driver_kernel(my.module, "vecadd");
	my.dev_a = driver_alloc(my.n * sizeof(float));
	my.dev_b = driver_alloc(my.n * sizeof(float));
	my.dev_c = driver_alloc(my.n * sizeof(float));
	take_all();
}

static void full_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned n = (unsigned)my.n;
	void *params[] = {&my.dev_a, &my.dev_b, &my.dev_c, &n};

	app_random_floats(&random, my.a, my.n);
	app_random_floats(&random, my.b, my.n);
	reference_vecadd(my.a, my.b, my.want, my.n);
	CU(cuMemcpyHtoD(my.dev_a, my.a, my.n * sizeof(float)));
	CU(cuMemcpyHtoD(my.dev_b, my.b, my.n * sizeof(float)));
	CU(cuLaunchKernel(my.kernel, driver_blocks(my.n, VECADD_BLOCK), 1, 1, VECADD_BLOCK, 1, 1, 0,
			  NULL, params, NULL));
	lane->launches++;
	CU(cuMemcpyDtoH(my.c, my.dev_c, my.n * sizeof(float)));
	app_compare(lane, "sum", my.want, my.c, my.n, sizeof(float));
}

static void full_close(void) {
	while (my.n_pieces > 0) {
		driver_free(my.pieces[--my.n_pieces]);
	}
	driver_free(my.dev_c);
	driver_free(my.dev_b);
	driver_free(my.dev_a);
	driver_close(my.module);
	free(my.want);
	free(my.c);
	free(my.b);
	free(my.a);
}

static const struct app full_app = {
	.name = "full",
	.summary = "Takes all memory of the GPU, and adds two vectors.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = full_open,
	.frame = full_frame,
	.close = full_close,
};

int main(int argc, char **argv) {
	return app_main(&full_app, argc, argv);
}
