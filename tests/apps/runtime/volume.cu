/*
 * volume.cu: smooths a 3-D field: a 3-D grid, a structure as parameter, cudaLaunchKernelEx. Checks too
 * that each block of the grid ran exactly once.
 */
#include "../kernels/volume.cu"
#include "runtime.h"

static struct {
	struct volume_dims dims;
	dim3 grid;
	size_t cells, blocks;
	float *in, *out, *want;
	unsigned *marks, *want_marks;
	float *dev_in, *dev_out;
	unsigned *dev_marks;
	cudaStream_t stream;
} my;

static void volume_open(const struct app_options *options) {
	unsigned edge = options->size;

	runtime_open(options->gpu);
	/* Three different edges: an index in the wrong order shows. */
	my.dims = volume_dims{edge + 3, edge, edge / 2 + 1};
	my.grid = dim3(runtime_blocks(my.dims.x, VOLUME_X), runtime_blocks(my.dims.y, VOLUME_Y),
		       runtime_blocks(my.dims.z, VOLUME_Z));
	my.cells = (size_t)my.dims.x * my.dims.y * my.dims.z;
	my.blocks = (size_t)my.grid.x * my.grid.y * my.grid.z;
	my.in = host_alloc<float>(my.cells);
	my.out = host_alloc<float>(my.cells);
	my.want = host_alloc<float>(my.cells);
	my.marks = host_alloc<unsigned>(my.blocks);
	my.want_marks = host_alloc<unsigned>(my.blocks);
	for (size_t i = 0; i < my.blocks; i++) {
		my.want_marks[i] = 1;
	}
	RT(cudaStreamCreate(&my.stream));
	my.dev_in = device_alloc<float>(my.cells);
	my.dev_out = device_alloc<float>(my.cells);
	my.dev_marks = device_alloc<unsigned>(my.blocks);
}

static void volume_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	float weight = app_random_unit(&random);
	cudaLaunchConfig_t config = {};

	config.gridDim = my.grid;
	config.blockDim = dim3(VOLUME_X, VOLUME_Y, VOLUME_Z);
	config.stream = my.stream;
	app_random_floats(&random, my.in, my.cells);
	reference_volume(my.in, my.want, my.dims.x, my.dims.y, my.dims.z, weight);

	RT(cudaMemcpyAsync(my.dev_in, my.in, my.cells * sizeof(float), cudaMemcpyHostToDevice,
			   my.stream));
	RT(cudaMemsetAsync(my.dev_marks, 0, my.blocks * sizeof(unsigned), my.stream));
	RT(cudaLaunchKernelEx(&config, volume, (const float *)my.dev_in, my.dev_out, my.dims, weight,
			      my.dev_marks));
	lane->launches++;
	RT(cudaStreamSynchronize(my.stream));
	RT(cudaMemcpy(my.out, my.dev_out, my.cells * sizeof(float), cudaMemcpyDeviceToHost));
	RT(cudaMemcpy(my.marks, my.dev_marks, my.blocks * sizeof(unsigned), cudaMemcpyDeviceToHost));
	app_compare(lane, "field", my.want, my.out, my.cells, sizeof(float));
	app_compare(lane, "runs of each block", my.want_marks, my.marks, my.blocks, sizeof(unsigned));
}

static void volume_close(void) {
	RT(cudaFree(my.dev_marks));
	RT(cudaFree(my.dev_out));
	RT(cudaFree(my.dev_in));
	RT(cudaStreamDestroy(my.stream));
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
