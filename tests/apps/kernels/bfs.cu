/*
 * bfs.cu: breadth-first search, one pair of launches a level; the program reads `more` to learn
 * whether another level is needed. Threads that reach a node at once all write the same level.
 */
#include "shapes.h"

extern "C" __global__ void bfs_expand(const unsigned *offsets, const unsigned *edges,
				      unsigned char *frontier, unsigned char *reached,
				      const unsigned char *visited, int *levels, unsigned n) {
	unsigned node = blockIdx.x * blockDim.x + threadIdx.x;

	if (node >= n || !frontier[node]) {
		return;
	}
	frontier[node] = 0;
	for (unsigned e = offsets[node]; e < offsets[node + 1]; e++) {
		unsigned to = edges[e];

		if (!visited[to]) {
			levels[to] = levels[node] + 1;
			reached[to] = 1;
		}
	}
}

extern "C" __global__ void bfs_commit(unsigned char *frontier, unsigned char *reached,
				      unsigned char *visited, int *more, unsigned n) {
	unsigned node = blockIdx.x * blockDim.x + threadIdx.x;

	if (node < n && reached[node]) {
		reached[node] = 0;
		visited[node] = 1;
		frontier[node] = 1;
		*more = 1;
	}
}
