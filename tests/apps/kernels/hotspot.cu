/*
 * hotspot.cu: one step of heat flow on a square plate; the program launches it again and again with
 * the two temperature fields swapped. Cells beyond the edge have the edge's temperature.
 *
 * A module-scope constant holds the coefficients: centre, neighbour, power, and ambient share.
 */
#include "shapes.h"

__constant__ float hotspot_coeff[4];

extern "C" __global__ void hotspot(const float *now, const float *power, float *next, int n) {
	__shared__ float tile[HOTSPOT_TILE + 2][HOTSPOT_TILE + 2];
	int x0 = blockIdx.x * HOTSPOT_TILE;
	int y0 = blockIdx.y * HOTSPOT_TILE;

	for (int i = threadIdx.y * HOTSPOT_TILE + threadIdx.x;
	     i < (HOTSPOT_TILE + 2) * (HOTSPOT_TILE + 2); i += HOTSPOT_TILE * HOTSPOT_TILE) {
		int ty = i / (HOTSPOT_TILE + 2);
		int tx = i % (HOTSPOT_TILE + 2);
		int y = min(max(y0 + ty - 1, 0), n - 1);
		int x = min(max(x0 + tx - 1, 0), n - 1);

		tile[ty][tx] = now[y * n + x];
	}
	__syncthreads();

	int x = x0 + threadIdx.x;
	int y = y0 + threadIdx.y;
	int tx = threadIdx.x + 1;
	int ty = threadIdx.y + 1;

	if (x < n && y < n) {
		float sides = (tile[ty - 1][tx] + tile[ty + 1][tx]) +
			      (tile[ty][tx - 1] + tile[ty][tx + 1]);
		float t = fmaf(hotspot_coeff[0], tile[ty][tx], hotspot_coeff[3]);

		t = fmaf(hotspot_coeff[1], sides, t);
		next[y * n + x] = fmaf(hotspot_coeff[2], power[y * n + x], t);
	}
}
