/*
 * hotspot.cu: heat flow on a plate: many launches a frame that follow each other on the default
 * stream, then one cudaDeviceSynchronize. The coefficients are a module-scope constant.
 */
#include "../kernels/hotspot.cu"
#include "runtime.h"

#include <cstring>

static struct {
	int n;
	size_t cells;
	float *field, *power, *want, *scratch;
	float *dev_now, *dev_next, *dev_power;
} my;

static void hotspot_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = (int)options->size;
	my.cells = (size_t)my.n * my.n;
	my.field = host_alloc<float>(my.cells);
	my.power = host_alloc<float>(my.cells);
	my.want = host_alloc<float>(my.cells);
	my.scratch = host_alloc<float>(my.cells);
	RT(cudaMemcpyToSymbol(hotspot_coeff, reference_hotspot_coeff, sizeof(hotspot_coeff)));
	my.dev_now = device_alloc<float>(my.cells);
	my.dev_next = device_alloc<float>(my.cells);
	my.dev_power = device_alloc<float>(my.cells);
}

static void hotspot_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t bytes = my.cells * sizeof(float);
	dim3 block(HOTSPOT_TILE, HOTSPOT_TILE);
	dim3 grid(runtime_blocks(my.n, HOTSPOT_TILE), runtime_blocks(my.n, HOTSPOT_TILE));
	unsigned steps = lane->options->launches;

	app_random_floats(&random, my.field, my.cells);
	app_random_floats(&random, my.power, my.cells);
	RT(cudaMemcpy(my.dev_now, my.field, bytes, cudaMemcpyHostToDevice));
	RT(cudaMemcpy(my.dev_power, my.power, bytes, cudaMemcpyHostToDevice));
	for (unsigned s = 0; s < steps; s++) {
		float *swapped = my.dev_next;

		hotspot<<<grid, block>>>(my.dev_now, my.dev_power, my.dev_next, my.n);
		RT(cudaGetLastError());
		lane->launches++;
		my.dev_next = my.dev_now;
		my.dev_now = swapped;
	}
	memcpy(my.want, my.field, bytes);
	reference_hotspot(my.want, my.scratch, my.power, my.n, steps);
	RT(cudaDeviceSynchronize());
	RT(cudaMemcpy(my.field, my.dev_now, bytes, cudaMemcpyDeviceToHost));
	app_compare(lane, "temperature", my.want, my.field, my.cells, sizeof(float));
}

static void hotspot_close(void) {
	RT(cudaFree(my.dev_power));
	RT(cudaFree(my.dev_next));
	RT(cudaFree(my.dev_now));
	free(my.scratch);
	free(my.want);
	free(my.power);
	free(my.field);
}

static const struct app hotspot_app = {
	.name = "hotspot",
	.summary = "Steps of heat flow on a plate, a launch each.",
	.size_meaning = "cells of the plate's edge",
	.size_default = 80,
	.size_min = 1,
	.size_max = 1u << 14,
	.launches_default = 10,
	.open = hotspot_open,
	.frame = hotspot_frame,
	.close = hotspot_close,
};

int main(int argc, char **argv) {
	return app_main(&hotspot_app, argc, argv);
}
