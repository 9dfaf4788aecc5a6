/*
 * matmul.cu: c = a * b for square matrices of any size, tiles in shared memory.
 *
 * Each element is one chain of fused multiply-adds in the order of k, so a CPU that does the same
 * gets the same bits. Cells of a tile outside the matrix are zero and add nothing: fma(0, 0, s) is s.
 */
#include "shapes.h"

template <int TILE>
__global__ void matmul(const float *a, const float *b, float *c, unsigned n) {
	__shared__ float tile_a[TILE][TILE];
	__shared__ float tile_b[TILE][TILE];
	unsigned row = blockIdx.y * TILE + threadIdx.y;
	unsigned col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0.0f;

	for (unsigned first = 0; first < n; first += TILE) {
		unsigned k_a = first + threadIdx.x;
		unsigned k_b = first + threadIdx.y;

		tile_a[threadIdx.y][threadIdx.x] = row < n && k_a < n ? a[row * n + k_a] : 0.0f;
		tile_b[threadIdx.y][threadIdx.x] = k_b < n && col < n ? b[k_b * n + col] : 0.0f;
		__syncthreads();
		for (int k = 0; k < TILE; k++) {
			sum = fmaf(tile_a[threadIdx.y][k], tile_b[k][threadIdx.x], sum);
		}
		__syncthreads();
	}
	if (row < n && col < n) {
		c[row * n + col] = sum;
	}
}

template __global__ void matmul<MATMUL_TILE>(const float *, const float *, float *, unsigned);
