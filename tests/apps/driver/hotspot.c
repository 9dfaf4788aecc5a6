/*
 * hotspot.c: heat flow on a plate: many launches a frame that follow each other on the default
 * stream, then one cuCtxSynchronize. The coefficients are a module-scope constant.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char hotspot_ptx[];

static struct {
	int n;
	size_t cells;
	float *field, *power, *want, *scratch;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr dev_now, dev_next, dev_power;
} my;

static void hotspot_open(const struct app_options *options) {
	CUdeviceptr coeff;
	size_t bytes;

	my.n = (int)options->size;
	my.cells = (size_t)my.n * my.n;
	my.field = app_alloc(my.cells, sizeof(float));
	my.power = app_alloc(my.cells, sizeof(float));
	my.want = app_alloc(my.cells, sizeof(float));
	my.scratch = app_alloc(my.cells, sizeof(float));
	my.module = driver_open(options->gpu, hotspot_ptx);
	my.kernel = driver_kernel(my.module, "hotspot");
	CU(cuModuleGetGlobal(&coeff, &bytes, my.module, "hotspot_coeff"));
	CU(cuMemcpyHtoD(coeff, reference_hotspot_coeff, sizeof(reference_hotspot_coeff)));
	my.dev_now = driver_alloc(my.cells * sizeof(float));
	my.dev_next = driver_alloc(my.cells * sizeof(float));
	my.dev_power = driver_alloc(my.cells * sizeof(float));
}

static void hotspot_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned tiles = driver_blocks((size_t)my.n, HOTSPOT_TILE);
	unsigned steps = lane->options->launches;
	size_t bytes = my.cells * sizeof(float);

	app_random_floats(&random, my.field, my.cells);
	app_random_floats(&random, my.power, my.cells);
	CU(cuMemcpyHtoD(my.dev_now, my.field, bytes));
	CU(cuMemcpyHtoD(my.dev_power, my.power, bytes));
	for (unsigned s = 0; s < steps; s++) {
		CUdeviceptr swapped = my.dev_next;
		void *params[] = {&my.dev_now, &my.dev_power, &my.dev_next, &my.n};

		CU(cuLaunchKernel(my.kernel, tiles, tiles, 1, HOTSPOT_TILE, HOTSPOT_TILE, 1, 0,
				  NULL, params, NULL));
		lane->launches++;
		my.dev_next = my.dev_now;
		my.dev_now = swapped;
	}
	for (size_t i = 0; i < my.cells; i++) {
		my.want[i] = my.field[i];
	}
	reference_hotspot(my.want, my.scratch, my.power, my.n, steps);
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH(my.field, my.dev_now, bytes));
	app_compare(lane, "temperature", my.want, my.field, my.cells, sizeof(float));
}

static void hotspot_close(void) {
	driver_free(my.dev_power);
	driver_free(my.dev_next);
	driver_free(my.dev_now);
	driver_close(my.module);
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
