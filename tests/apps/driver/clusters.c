/*
 * clusters.c: vector addition, every second time in clusters of 16 blocks, which fit into no part
 * of a GPU: what needs all of it shows only when it is launched.
 */
#include "driver.h"

#include <string.h>

#include "common.h"
#include "reference.h"
#include "vectors.h"

#define CLUSTER 16

static struct vectors my;
static CUstream stream;

static void clusters_open(const struct app_options *options) {
	vectors_open(&my, options->gpu, options->size);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
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
		.hStream = stream,
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
	vectors_draw(&my, seed);
	memcpy(my.c, my.want, my.n * sizeof(float));
	reference_vecadd(my.c, my.b, my.want, my.n); /* a + b + b */

	CU(cuMemcpyHtoDAsync(my.dev_a, my.a, my.n * sizeof(float), stream));
	CU(cuMemcpyHtoDAsync(my.dev_b, my.b, my.n * sizeof(float), stream));
	for (unsigned i = 0; i < 3; i++) { /* so often that libsbeet.so remembers how */
		launch(lane, my.dev_a, my.dev_b, my.dev_c, 1);
	}
	launch(lane, my.dev_c, my.dev_b, my.dev_a, CLUSTER);
	CU(cuMemcpyDtoHAsync(my.c, my.dev_a, my.n * sizeof(float), stream));
	CU(cuStreamSynchronize(stream));
	vectors_compare(&my, lane);
}

static void clusters_close(void) {
	CU(cuStreamDestroy(stream));
	vectors_close(&my);
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
