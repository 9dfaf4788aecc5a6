/*
 * reference.h: the answers of the sample kernels, computed on the CPU in the same order of
 * operations, so that the GPU's must be the same bit for bit. C and CUDA C++ alike.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common.h"
#include "kernels/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

void reference_vecadd(const float *a, const float *b, float *c, size_t n);
void reference_matmul(const float *a, const float *b, float *c, size_t n);
void reference_histogram(const unsigned char *data, size_t n, unsigned *bins);

/* Centre, neighbour, power and ambient share: what hotspot_coeff holds. */
extern const float reference_hotspot_coeff[4];

/* @steps steps; @now ends with the result, @next is scratch, both n * n. */
void reference_hotspot(float *now, float *next, const float *power, int n, unsigned steps);

/* A random graph of @n nodes: offsets[n + 1] and edges[n * REFERENCE_BFS_DEGREE]. Many nodes have
 * no edge to them, so some stay unreached. */
#define REFERENCE_BFS_DEGREE 4
void reference_graph(struct app_random *random, unsigned n, unsigned *offsets, unsigned *edges);
void reference_bfs(const unsigned *offsets, const unsigned *edges, unsigned n, unsigned source,
		   int *levels);

/* In the order of two launches of kernel reduce: REDUCE_GRID blocks, then one. */
float reference_reduce_float(const float *values, size_t n);
uint64_t reference_reduce_u64(const uint64_t *values, size_t n);

void reference_early(const unsigned *data, const unsigned *lengths, unsigned stride, unsigned rows,
		     unsigned *sums);

void reference_volume(const float *in, float *out, unsigned nx, unsigned ny, unsigned nz,
		      float weight);

#define REFERENCE_COMPUTE_MUL 1664525u
#define REFERENCE_COMPUTE_ADD 1013904223u

/* out[i] += x(first + i) after @rounds rounds. */
void reference_compute(unsigned *out, size_t n, unsigned first, unsigned rounds);

#ifdef __cplusplus
}
#endif
