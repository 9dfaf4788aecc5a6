/*
 * reference.c: see reference.h. Built with -ffp-contract=off: only what says fmaf is fused.
 */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void reference_vecadd(const float *a, const float *b, float *c, size_t n) {
	for (size_t i = 0; i < n; i++) {
		c[i] = a[i] + b[i];
	}
}

void reference_matmul(const float *a, const float *b, float *c, size_t n) {
	memset(c, 0, n * n * sizeof(*c));
	for (size_t row = 0; row < n; row++) {
		for (size_t k = 0; k < n; k++) {
			for (size_t col = 0; col < n; col++) {
				c[row * n + col] =
					fmaf(a[row * n + k], b[k * n + col], c[row * n + col]);
			}
		}
	}
}

void reference_histogram(const unsigned char *data, size_t n, unsigned *bins) {
	memset(bins, 0, HISTOGRAM_BINS * sizeof(*bins));
	for (size_t i = 0; i < n; i++) {
		bins[data[i]]++;
	}
}

const float reference_hotspot_coeff[4] = {0.59f, 0.1f, 0.05f, 0.8f};

static int clamp(int v, int n) {
	return v < 0 ? 0 : v >= n ? n - 1 : v;
}

void reference_hotspot(float *now, float *next, const float *power, int n, unsigned steps) {
	const float *k = reference_hotspot_coeff;

	for (unsigned s = 0; s < steps; s++) {
		for (int y = 0; y < n; y++) {
			const float *above = now + (size_t)clamp(y - 1, n) * n;
			const float *row = now + (size_t)y * n;
			const float *below = now + (size_t)clamp(y + 1, n) * n;

			for (int x = 0; x < n; x++) {
				float sides = (above[x] + below[x]) +
					      (row[clamp(x - 1, n)] + row[clamp(x + 1, n)]);
				float t = fmaf(k[1], sides, fmaf(k[0], row[x], k[3]));

				next[(size_t)y * n + x] = fmaf(k[2], power[(size_t)y * n + x], t);
			}
		}
		memcpy(now, next, (size_t)n * n * sizeof(*now));
	}
}

void reference_graph(struct app_random *random, unsigned n, unsigned *offsets, unsigned *edges) {
	unsigned n_edges = 0;

	for (unsigned node = 0; node < n; node++) {
		unsigned degree = app_random_u32(random) % (REFERENCE_BFS_DEGREE + 1);

		offsets[node] = n_edges;
		for (unsigned e = 0; e < degree; e++) {
			edges[n_edges++] = app_random_u32(random) % n;
		}
	}
	offsets[n] = n_edges;
}

void reference_bfs(const unsigned *offsets, const unsigned *edges, unsigned n, unsigned source,
		   int *levels) {
	unsigned *queue = app_alloc(n, sizeof(*queue));
	unsigned first = 0;
	unsigned end = 0;

	for (unsigned i = 0; i < n; i++) {
		levels[i] = BFS_UNREACHED;
	}
	levels[source] = 0;
	queue[end++] = source;
	while (first < end) {
		unsigned node = queue[first++];

		for (unsigned e = offsets[node]; e < offsets[node + 1]; e++) {
			if (levels[edges[e]] == BFS_UNREACHED) {
				levels[edges[e]] = levels[node] + 1;
				queue[end++] = edges[e];
			}
		}
	}
	free(queue);
}

/* What lane 0 of a warp holds after the shuffles: shfl_down leaves lanes whose source lies outside
 * the warp with their own value, which never reaches lane 0. */
static float warp_sum(float lanes[REDUCE_WARP]) {
	for (int delta = REDUCE_WARP / 2; delta > 0; delta /= 2) {
		for (int i = 0; i < delta; i++) {
			lanes[i] += lanes[i + delta];
		}
	}
	return lanes[0];
}

static float block_sum(const float *values, size_t n, unsigned block, unsigned blocks) {
	float warps[REDUCE_WARP] = {0};

	for (unsigned w = 0; w < REDUCE_BLOCK / REDUCE_WARP; w++) {
		float lanes[REDUCE_WARP] = {0};

		for (unsigned l = 0; l < REDUCE_WARP; l++) {
			for (size_t i = (size_t)block * REDUCE_BLOCK + w * REDUCE_WARP + l; i < n;
			     i += (size_t)blocks * REDUCE_BLOCK) {
				lanes[l] += values[i];
			}
		}
		warps[w] = warp_sum(lanes);
	}
	return warp_sum(warps);
}

float reference_reduce_float(const float *values, size_t n) {
	float partial[REDUCE_GRID];

	for (unsigned b = 0; b < REDUCE_GRID; b++) {
		partial[b] = block_sum(values, n, b, REDUCE_GRID);
	}
	return block_sum(partial, REDUCE_GRID, 0, 1);
}

uint64_t reference_reduce_u64(const uint64_t *values, size_t n) {
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += values[i];
	}
	return sum;
}

void reference_early(const unsigned *data, const unsigned *lengths, unsigned stride, unsigned rows,
		     unsigned *sums) {
	for (unsigned r = 0; r < rows; r++) {
		unsigned sum = 0;

		for (unsigned i = 0; i < lengths[r]; i++) {
			sum += data[(size_t)r * stride + i];
		}
		/* Nobody writes the sum of a row that has no element. */
		sums[r] = sum;
	}
}

/* The value of the field's cell that is nearest to (x, y, z), as the kernel's volume_at(). */
static float volume_at(const float *field, const int n[3], int x, int y, int z) {
	return field[((size_t)clamp(z, n[2]) * n[1] + clamp(y, n[1])) * n[0] + clamp(x, n[0])];
}

void reference_volume(const float *in, float *out, unsigned nx, unsigned ny, unsigned nz,
		      float weight) {
	const int n[3] = {(int)nx, (int)ny, (int)nz};

	for (int z = 0; z < n[2]; z++) {
		for (int y = 0; y < n[1]; y++) {
			for (int x = 0; x < n[0]; x++) {
				float sum = volume_at(in, n, x - 1, y, z) +
					    volume_at(in, n, x + 1, y, z);

				sum += volume_at(in, n, x, y - 1, z) +
				       volume_at(in, n, x, y + 1, z);
				sum += volume_at(in, n, x, y, z - 1) +
				       volume_at(in, n, x, y, z + 1);
				*out++ = fmaf(weight, sum, volume_at(in, n, x, y, z));
			}
		}
	}
}

void reference_compute(unsigned *out, size_t n, unsigned first, unsigned rounds) {
	/* x -> mul * x + add, composed with itself @rounds times by squaring. */
	unsigned mul = 1;
	unsigned add = 0;
	unsigned square_mul = REFERENCE_COMPUTE_MUL;
	unsigned square_add = REFERENCE_COMPUTE_ADD;

	for (unsigned left = rounds; left > 0; left /= 2) {
		if (left % 2) {
			add = square_mul * add + square_add;
			mul = square_mul * mul;
		}
		square_add = square_mul * square_add + square_add;
		square_mul = square_mul * square_mul;
	}
	for (size_t i = 0; i < n; i++) {
		out[i] += mul * (first + (unsigned)i) + add;
	}
}
