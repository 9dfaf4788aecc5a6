/*
 * graph.c: the heat flow of hotspot.c as a graph: copies, a memset and all steps are captured from
 * two streams, once in every other of the first frames, and the graph is launched twice in each frame.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "reference.h"

/* Frames behind the first ones use the last graph. */
#define CAPTURED_MAX 20

extern const char hotspot_ptx[];

static struct {
	int n;
	size_t cells, bytes;
	float *field, *power, *result; /* pinned: graphs read and write them when they run */
	float *want, *scratch;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr dev[2], dev_power;
	CUstream stream, side;
	CUevent fork, join;
	CUgraphExec exec;
	unsigned n_captures;
} my;

static float *pinned(size_t bytes) {
	void *p;

	CU(cuMemHostAlloc(&p, bytes, 0));
	return p;
}

static void graph_open(const struct app_options *options) {
	CUdeviceptr coeff;
	size_t bytes;

	my.n = (int)options->size;
	my.cells = (size_t)my.n * my.n;
	my.bytes = my.cells * sizeof(float);
	my.module = driver_open(options->gpu, hotspot_ptx);
	my.kernel = driver_kernel(my.module, "hotspot");
	my.field = pinned(my.bytes);
	my.power = pinned(my.bytes);
	my.result = pinned(my.bytes);
	my.want = app_alloc(my.cells, sizeof(float));
	my.scratch = app_alloc(my.cells, sizeof(float));
	my.dev[0] = driver_alloc(my.bytes);
	my.dev[1] = driver_alloc(my.bytes);
	my.dev_power = driver_alloc(my.bytes);
	CU(cuModuleGetGlobal(&coeff, &bytes, my.module, "hotspot_coeff"));
	CU(cuMemcpyHtoD(coeff, reference_hotspot_coeff, sizeof(reference_hotspot_coeff)));
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&my.side, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&my.fork, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&my.join, CU_EVENT_DISABLE_TIMING));
}

/* In global mode, in which the driver lets nobody in the process wait or ask. */
static void graph_capture(unsigned steps) {
	unsigned tiles = driver_blocks((size_t)my.n, HOTSPOT_TILE);
	CUgraph graph;

	if (my.exec) {
		CU(cuGraphExecDestroy(my.exec));
	}
	CU(cuStreamBeginCapture(my.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CU(cuEventRecord(my.fork, my.stream));
	CU(cuStreamWaitEvent(my.side, my.fork, 0));
	CU(cuMemcpyHtoDAsync(my.dev_power, my.power, my.bytes, my.side));
	CU(cuMemsetD32Async(my.dev[1], 0, my.cells, my.side));
	CU(cuEventRecord(my.join, my.side));
	CU(cuMemcpyHtoDAsync(my.dev[0], my.field, my.bytes, my.stream));
	CU(cuStreamWaitEvent(my.stream, my.join, 0));
	for (unsigned s = 0; s < steps; s++) {
		void *params[] = {&my.dev[s % 2], &my.dev_power, &my.dev[1 - s % 2], &my.n};

		CU(cuLaunchKernel(my.kernel, tiles, tiles, 1, HOTSPOT_TILE, HOTSPOT_TILE, 1, 0,
				  my.stream, params, NULL));
	}
	CU(cuMemcpyDtoHAsync(my.result, my.dev[steps % 2], my.bytes, my.stream));
	CU(cuStreamEndCapture(my.stream, &graph));
	my.n_captures++;
	CU(cuGraphInstantiateWithFlags(
		&my.exec, graph,
		my.n_captures % 2 ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0));
	CU(cuGraphDestroy(graph));
}

static void graph_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned steps = lane->options->launches;

	if (lane->frame % 2 == 0 && lane->frame < CAPTURED_MAX) {
		graph_capture(steps);
	}
	for (unsigned round = 0; round < 2; round++) {
		app_random_floats(&random, my.field, my.cells);
		app_random_floats(&random, my.power, my.cells);
		memset(my.result, 0xff, my.bytes);
		CU(cuGraphLaunch(my.exec, my.stream));
		lane->launches++;
		memcpy(my.want, my.field, my.bytes);
		reference_hotspot(my.want, my.scratch, my.power, my.n, steps);
		CU(cuStreamSynchronize(my.stream));
		app_compare(lane, "temperature", my.want, my.result, my.cells, sizeof(float));
	}
}

static void graph_close(void) {
	if (my.exec) {
		CU(cuGraphExecDestroy(my.exec));
	}
	CU(cuEventDestroy(my.join));
	CU(cuEventDestroy(my.fork));
	CU(cuStreamDestroy(my.side));
	CU(cuStreamDestroy(my.stream));
	driver_free(my.dev_power);
	driver_free(my.dev[1]);
	driver_free(my.dev[0]);
	CU(cuMemFreeHost(my.result));
	CU(cuMemFreeHost(my.power));
	CU(cuMemFreeHost(my.field));
	driver_close(my.module);
	free(my.scratch);
	free(my.want);
}

static const struct app graph_app = {
	.name = "graph",
	.summary = "Steps of heat flow on a plate, all in one graph.",
	.size_meaning = "cells of the plate's edge",
	.size_default = 80,
	.size_min = 1,
	.size_max = 1u << 14,
	.launches_default = 10,
	.open = graph_open,
	.frame = graph_frame,
	.close = graph_close,
};

int main(int argc, char **argv) {
	return app_main(&graph_app, argc, argv);
}
