/*
 * volume.c: smooths a 3-D field: a 3-D grid, a structure as parameter, cuLaunchKernelEx. Checks too
 * that each block of the grid ran exactly once.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char volume_ptx[];

struct volume_dims {
	unsigned x, y, z;
};

static struct {
	struct volume_dims dims, grid;
	size_t cells, blocks;
	float *in, *out, *want;
	unsigned *marks, *want_marks;
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CUdeviceptr dev_in, dev_out, dev_marks;
} my;

static void volume_open(const struct app_options *options) {
	unsigned edge = options->size;

	/* Three different edges: an index in the wrong order shows. */
	my.dims = (struct volume_dims){edge + 3, edge, edge / 2 + 1};
	my.grid = (struct volume_dims){driver_blocks(my.dims.x, VOLUME_X),
				       driver_blocks(my.dims.y, VOLUME_Y),
				       driver_blocks(my.dims.z, VOLUME_Z)};
	my.cells = (size_t)my.dims.x * my.dims.y * my.dims.z;
	my.blocks = (size_t)my.grid.x * my.grid.y * my.grid.z;
	my.in = app_alloc(my.cells, sizeof(float));
	my.out = app_alloc(my.cells, sizeof(float));
	my.want = app_alloc(my.cells, sizeof(float));
	my.marks = app_alloc(my.blocks, sizeof(unsigned));
	my.want_marks = app_alloc(my.blocks, sizeof(unsigned));
	for (size_t i = 0; i < my.blocks; i++) {
		my.want_marks[i] = 1;
	}
	my.module = driver_open(options->gpu, volume_ptx);
	my.kernel = driver_kernel(my.module, "volume");
	CU(cuStreamCreate(&my.stream, CU_STREAM_DEFAULT));
	my.dev_in = driver_alloc(my.cells * sizeof(float));
	my.dev_out = driver_alloc(my.cells * sizeof(float));
	my.dev_marks = driver_alloc(my.blocks * sizeof(unsigned));
}

static void volume_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	float weight = app_random_unit(&random);
	void *params[] = {&my.dev_in, &my.dev_out, &my.dims, &weight, &my.dev_marks};
	CUlaunchConfig config = {
		.gridDimX = my.grid.x,
		.gridDimY = my.grid.y,
		.gridDimZ = my.grid.z,
		.blockDimX = VOLUME_X,
		.blockDimY = VOLUME_Y,
		.blockDimZ = VOLUME_Z,
		.hStream = my.stream,
	};

	app_random_floats(&random, my.in, my.cells);
	reference_volume(my.in, my.want, my.dims.x, my.dims.y, my.dims.z, weight);

	CU(cuMemcpyHtoDAsync(my.dev_in, my.in, my.cells * sizeof(float), my.stream));
	CU(cuMemsetD32Async(my.dev_marks, 0, my.blocks, my.stream));
	CU(cuLaunchKernelEx(&config, my.kernel, params, NULL));
	lane->launches++;
	CU(cuStreamSynchronize(my.stream));
	CU(cuMemcpyDtoH(my.out, my.dev_out, my.cells * sizeof(float)));
	CU(cuMemcpyDtoH(my.marks, my.dev_marks, my.blocks * sizeof(unsigned)));
	app_compare(lane, "field", my.want, my.out, my.cells, sizeof(float));
	app_compare(lane, "runs of each block", my.want_marks, my.marks, my.blocks,
		    sizeof(unsigned));
}

static void volume_close(void) {
	driver_free(my.dev_marks);
	driver_free(my.dev_out);
	driver_free(my.dev_in);
	CU(cuStreamDestroy(my.stream));
	driver_close(my.module);
	free(my.want_marks);
	free(my.marks);
	free(my.want);
	free(my.out);
	free(my.in);
}

static const struct app volume_app = {
	.name = "volume",
	.summary = "Smooths a 3-D field with device functions and a 3-D grid.",
	.size_meaning = "cells of the field's edge",
	.size_default = 22,
	.size_min = 1,
	.size_max = 1000,
	.open = volume_open,
	.frame = volume_frame,
	.close = volume_close,
};

int main(int argc, char **argv) {
	return app_main(&volume_app, argc, argv);
}
