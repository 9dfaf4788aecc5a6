/*
 * bfs.c: breadth-first search. The host reads a flag after each level to learn whether to go on,
 * and passes parameters in one packed buffer (`extra`) instead of an array of pointers.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "reference.h"

extern const char bfs_ptx[];

static struct {
	unsigned n;
	unsigned *offsets, *edges;
	unsigned char *marks;
	int *levels, *want;
	CUmodule module;
	CUfunction expand, commit;
	CUdeviceptr dev_offsets, dev_edges, dev_frontier, dev_reached, dev_visited, dev_levels;
	CUdeviceptr dev_more;
} my;

/* The kernels' parameters as they lie in the buffer. */
struct expand_params {
	CUdeviceptr offsets, edges, frontier, reached, visited, levels;
	unsigned n;
};

struct commit_params {
	CUdeviceptr frontier, reached, visited, more;
	unsigned n;
};

static void bfs_open(const struct app_options *options) {
	my.n = options->size;
	my.offsets = app_alloc((size_t)my.n + 1, sizeof(unsigned));
	my.edges = app_alloc((size_t)my.n * REFERENCE_BFS_DEGREE, sizeof(unsigned));
	my.marks = app_alloc(my.n, 1);
	my.levels = app_alloc(my.n, sizeof(int));
	my.want = app_alloc(my.n, sizeof(int));
	my.module = driver_open(options->gpu, bfs_ptx);
	my.expand = driver_kernel(my.module, "bfs_expand");
	my.commit = driver_kernel(my.module, "bfs_commit");
	my.dev_offsets = driver_alloc(((size_t)my.n + 1) * sizeof(unsigned));
	my.dev_edges = driver_alloc((size_t)my.n * REFERENCE_BFS_DEGREE * sizeof(unsigned));
	my.dev_frontier = driver_alloc(my.n);
	my.dev_reached = driver_alloc(my.n);
	my.dev_visited = driver_alloc(my.n);
	my.dev_levels = driver_alloc(my.n * sizeof(int));
	my.dev_more = driver_alloc(sizeof(int));
}

static void launch(struct app_lane *lane, CUfunction kernel, void *params, size_t size) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};

	CU(cuLaunchKernel(kernel, driver_blocks(my.n, BFS_BLOCK), 1, 1, BFS_BLOCK, 1, 1, 0, NULL,
			  NULL, extra));
	lane->launches++;
}

static void send_input(unsigned source) {
	for (unsigned i = 0; i < my.n; i++) {
		my.levels[i] = BFS_UNREACHED;
	}
	my.levels[source] = 0;
	memset(my.marks, 0, my.n);
	my.marks[source] = 1;
	CU(cuMemcpyHtoD(my.dev_offsets, my.offsets, ((size_t)my.n + 1) * sizeof(unsigned)));
	if (my.offsets[my.n] > 0) {
		CU(cuMemcpyHtoD(my.dev_edges, my.edges, my.offsets[my.n] * sizeof(unsigned)));
	}
	CU(cuMemcpyHtoD(my.dev_frontier, my.marks, my.n));
	CU(cuMemcpyHtoD(my.dev_visited, my.marks, my.n));
	CU(cuMemsetD8(my.dev_reached, 0, my.n));
	CU(cuMemcpyHtoD(my.dev_levels, my.levels, my.n * sizeof(int)));
}

static void bfs_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned source = app_random_u32(&random) % my.n;
	struct expand_params expand = {
		my.dev_offsets, my.dev_edges, my.dev_frontier, my.dev_reached, my.dev_visited,
		my.dev_levels,	my.n};
	struct commit_params commit = {my.dev_frontier, my.dev_reached, my.dev_visited, my.dev_more,
				       my.n};
	int more;

	reference_graph(&random, my.n, my.offsets, my.edges);
	reference_bfs(my.offsets, my.edges, my.n, source, my.want);
	send_input(source);
	do {
		CU(cuMemsetD32(my.dev_more, 0, 1));
		/* 52 and 36 bytes: without the structures' padding at the end */
		launch(lane, my.expand, &expand,
		       offsetof(struct expand_params, n) + sizeof(unsigned));
		launch(lane, my.commit, &commit,
		       offsetof(struct commit_params, n) + sizeof(unsigned));
		CU(cuMemcpyDtoH(&more, my.dev_more, sizeof(more)));
	} while (more);
	CU(cuMemcpyDtoH(my.levels, my.dev_levels, my.n * sizeof(int)));
	app_compare(lane, "levels", my.want, my.levels, my.n, sizeof(int));
}

static void bfs_close(void) {
	driver_free(my.dev_more);
	driver_free(my.dev_levels);
	driver_free(my.dev_visited);
	driver_free(my.dev_reached);
	driver_free(my.dev_frontier);
	driver_free(my.dev_edges);
	driver_free(my.dev_offsets);
	driver_close(my.module);
	free(my.want);
	free(my.levels);
	free(my.marks);
	free(my.edges);
	free(my.offsets);
}

static const struct app bfs_app = {
	.name = "bfs",
	.summary = "Breadth-first search of a random graph, two launches a level.",
	.size_meaning = "nodes",
	.size_default = 4000,
	.size_min = 1,
	.size_max = 1u << 26,
	.open = bfs_open,
	.frame = bfs_frame,
	.close = bfs_close,
};

int main(int argc, char **argv) {
	return app_main(&bfs_app, argc, argv);
}
