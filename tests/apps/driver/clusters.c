/*
 * clusters.c: vector addition, every second time in clusters of 16 blocks, which fit into no part
 * of a GPU: what needs all of it shows only when it is launched.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "reference.h"

#define CLUSTER 16

extern const char vecadd_ptx[];

static struct {
	size_t n;
	float *a, *b, *c, *want;
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	CUdeviceptr dev_a, dev_b, dev_c;
} my;

static void clusters_open(const struct app_options *options) {
	my.n = options->size;
	my.a = app_alloc(my.n, sizeof(float));
	my.b = app_alloc(my.n, sizeof(float));
	my.c = app_alloc(my.n, sizeof(float));
	my.want = app_alloc(my.n, sizeof(float));
	my.module = driver_open(options->gpu, vecadd_ptx);
	my.kernel = driver_kernel(my.module, "vecadd");
	CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
	my.dev_a = driver_alloc(my.n * sizeof(float));
	my.dev_b = driver_alloc(my.n * sizeof(float));
	my.dev_c = driver_alloc(my.n * sizeof(float));
}

/* c = a + b, behind whatever the stream has to do. */
static void launch(struct app_lane *lane, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c,
		   unsigned cluster) {
	unsigned n = (unsigned)my.n, blocks = driver_blocks(my.n, VECADD_BLOCK);
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
	CUlaunchConfig config = {
		.gridDimX = (blocks + cluster - 1) / cluster * cluster,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = VECADD_BLOCK,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = my.stream,
		.attrs = &attribute,
		.numAttrs = cluster > 1,
	};
	void *params[] = {&a, &b, &c, &n};

	attribute.value.clusterDim.x = cluster;
	attribute.value.clusterDim.y = 1;
	attribute.value.clusterDim.z = 1;
	CU(cuLaunchKernelEx(&config, my.kernel, params, NULL));
	lane->launches++;
}

static void clusters_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};

	app_random_floats(&random, my.a, my.n);
	app_random_floats(&random, my.b, my.n);
	reference_vecadd(my.a, my.b, my.want, my.n);
	memcpy(my.c, my.want, my.n * sizeof(float));
	reference_vecadd(my.c, my.b, my.want, my.n); /* a + b + b */

	CU(cuMemcpyHtoDAsync(my.dev_a, my.a, my.n * sizeof(float), my.stream));
	CU(cuMemcpyHtoDAsync(my.dev_b, my.b, my.n * sizeof(float), my.stream));
	launch(lane, my.dev_a, my.dev_b, my.dev_c, 1);
	launch(lane, my.dev_c, my.dev_b, my.dev_a, CLUSTER);
	CU(cuMemcpyDtoHAsync(my.c, my.dev_a, my.n * sizeof(float), my.stream));
	CU(cuStreamSynchronize(my.stream));
	app_compare(lane, "sum", my.want, my.c, my.n, sizeof(float));
}

static void clusters_close(void) {
	driver_free(my.dev_c);
	driver_free(my.dev_b);
	driver_free(my.dev_a);
	CU(cuStreamDestroy(my.stream));
	driver_close(my.module);
	free(my.want);
	free(my.c);
	free(my.b);
	free(my.a);
}

static const struct app clusters_app = {
	.name = "clusters",
	.summary = "Adds vectors, in clusters of blocks as well.",
	.size_meaning = "elements",
	.size_default = 20000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = clusters_open,
	.frame = clusters_frame,
	.close = clusters_close,
};

int main(int argc, char **argv) {
	return app_main(&clusters_app, argc, argv);
}
