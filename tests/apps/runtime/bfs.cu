/*
 * bfs.cu: breadth-first search. The host reads a flag after each level to learn whether to go on.
 */
#include "../kernels/bfs.cu"
#include "runtime.h"

#include <cstring>

static struct {
	unsigned n;
	unsigned *offsets, *edges;
	unsigned char *marks;
	int *levels, *want;
	unsigned *dev_offsets, *dev_edges;
	unsigned char *dev_frontier, *dev_reached, *dev_visited;
	int *dev_levels, *dev_more;
} my;

static void bfs_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	my.offsets = host_alloc<unsigned>((size_t)my.n + 1);
	my.edges = host_alloc<unsigned>((size_t)my.n * REFERENCE_BFS_DEGREE);
	my.marks = host_alloc<unsigned char>(my.n);
	my.levels = host_alloc<int>(my.n);
	my.want = host_alloc<int>(my.n);
	my.dev_offsets = device_alloc<unsigned>((size_t)my.n + 1);
	my.dev_edges = device_alloc<unsigned>((size_t)my.n * REFERENCE_BFS_DEGREE);
	my.dev_frontier = device_alloc<unsigned char>(my.n);
	my.dev_reached = device_alloc<unsigned char>(my.n);
	my.dev_visited = device_alloc<unsigned char>(my.n);
	my.dev_levels = device_alloc<int>(my.n);
	my.dev_more = device_alloc<int>(1);
}

static void send_input(unsigned source) {
	for (unsigned i = 0; i < my.n; i++) {
		my.levels[i] = BFS_UNREACHED;
	}
	my.levels[source] = 0;
	memset(my.marks, 0, my.n);
	my.marks[source] = 1;
	RT(cudaMemcpy(my.dev_offsets, my.offsets, ((size_t)my.n + 1) * sizeof(unsigned),
		      cudaMemcpyHostToDevice));
	RT(cudaMemcpy(my.dev_edges, my.edges, my.offsets[my.n] * sizeof(unsigned), cudaMemcpyDefault));
	RT(cudaMemcpy(my.dev_frontier, my.marks, my.n, cudaMemcpyHostToDevice));
	RT(cudaMemcpy(my.dev_visited, my.dev_frontier, my.n, cudaMemcpyDeviceToDevice));
	RT(cudaMemset(my.dev_reached, 0, my.n));
	RT(cudaMemcpy(my.dev_levels, my.levels, my.n * sizeof(int), cudaMemcpyHostToDevice));
}

static void bfs_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned source = app_random_u32(&random) % my.n;
	unsigned blocks = runtime_blocks(my.n, BFS_BLOCK);
	int more;

	reference_graph(&random, my.n, my.offsets, my.edges);
	reference_bfs(my.offsets, my.edges, my.n, source, my.want);
	send_input(source);
	do {
		RT(cudaMemset(my.dev_more, 0, sizeof(int)));
		bfs_expand<<<blocks, BFS_BLOCK>>>(my.dev_offsets, my.dev_edges, my.dev_frontier,
						  my.dev_reached, my.dev_visited, my.dev_levels, my.n);
		RT(cudaGetLastError());
		bfs_commit<<<blocks, BFS_BLOCK>>>(my.dev_frontier, my.dev_reached, my.dev_visited,
						  my.dev_more, my.n);
		RT(cudaGetLastError());
		lane->launches += 2;
		RT(cudaMemcpy(&more, my.dev_more, sizeof(more), cudaMemcpyDeviceToHost));
	} while (more);
	RT(cudaMemcpy(my.levels, my.dev_levels, my.n * sizeof(int), cudaMemcpyDeviceToHost));
	app_compare(lane, "levels", my.want, my.levels, my.n, sizeof(int));
}

static void bfs_close(void) {
	RT(cudaFree(my.dev_more));
	RT(cudaFree(my.dev_levels));
	RT(cudaFree(my.dev_visited));
	RT(cudaFree(my.dev_reached));
	RT(cudaFree(my.dev_frontier));
	RT(cudaFree(my.dev_edges));
	RT(cudaFree(my.dev_offsets));
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
