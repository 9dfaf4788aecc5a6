/*
 * sample-apps.c: the samples of tests/apps. Grids are kept to some dozens of blocks, as an
 * interpreter runs them.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "tests/apps/kernels/shapes.h"
#include "tests/func/twin/sample.h"

/* @n elements of @each bytes, zeros. Return: its index. */
static int add_buffer(struct sample *s, size_t n, size_t each) {
	struct sample_buffer *b = &s->buffers[s->n_buffers];

	b->size = n * each;
	b->init = calloc(n ? n : 1, each);
	if (!b->init) {
		err(1, "calloc");
	}
	s->params[s->n_params++] = (struct sample_param){.buffer = (int)s->n_buffers, .size = 8};
	return (int)s->n_buffers++;
}

static void add_value(struct sample *s, const void *value, size_t size) {
	struct sample_param *p = &s->params[s->n_params++];

	*p = (struct sample_param){.buffer = -1, .size = size};
	memcpy(p->bytes, value, size);
}

static void add_u32(struct sample *s, uint32_t v) {
	add_value(s, &v, sizeof(v));
}

static void *bytes_of(struct sample *s, int buffer) {
	return s->buffers[buffer].init;
}

static void fill_floats(struct sample *s, int buffer, uint64_t *seed) {
	float *f = bytes_of(s, buffer);

	for (size_t i = 0; i < s->buffers[buffer].size / sizeof(*f); i++) {
		f[i] = (float)((double)(sample_random(seed) >> 40) / (1 << 20) - 8);
	}
}

static void fill_words(struct sample *s, int buffer, uint64_t *seed) {
	uint32_t *w = bytes_of(s, buffer);

	for (size_t i = 0; i < s->buffers[buffer].size / sizeof(*w); i++) {
		w[i] = (uint32_t)sample_random(seed);
	}
}

static void shape(struct sample *s, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		  unsigned bz) {
	unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};

	memcpy(s->grid, grid, sizeof(grid));
	memcpy(s->block, block, sizeof(block));
}

static unsigned blocks_for(unsigned n, unsigned block) {
	return (n + block - 1) / block;
}

static void vecadd(struct sample *s, uint64_t *seed) {
	unsigned block = (unsigned)sample_below(seed, 256) + 1;
	unsigned n = (unsigned)sample_below(seed, 30 * block) + 1;

	fill_floats(s, add_buffer(s, n, 4), seed);
	fill_floats(s, add_buffer(s, n, 4), seed);
	add_buffer(s, n, 4);
	add_u32(s, n);
	shape(s, blocks_for(n, block) + (unsigned)sample_below(seed, 3), 1, 1, block, 1, 1);
}

static void matmul(struct sample *s, uint64_t *seed) {
	unsigned n = (unsigned)sample_below(seed, 50) + 1, tiles = blocks_for(n, MATMUL_TILE);

	fill_floats(s, add_buffer(s, n * n, 4), seed);
	fill_floats(s, add_buffer(s, n * n, 4), seed);
	add_buffer(s, n * n, 4);
	add_u32(s, n);
	shape(s, tiles, tiles, 1, MATMUL_TILE, MATMUL_TILE, 1);
}

static void histogram(struct sample *s, uint64_t *seed) {
	unsigned n = (unsigned)sample_below(seed, 5000) + 1;

	fill_words(s, add_buffer(s, n / 4 + 1, 4), seed);
	add_u32(s, n);
	add_buffer(s, HISTOGRAM_BINS, 4);
	shape(s, (unsigned)sample_below(seed, 24) + 1, 1, 1, HISTOGRAM_BLOCK, 1, 1);
	s->shared_bytes = HISTOGRAM_BINS * 4;
}

static void hotspot(struct sample *s, uint64_t *seed) {
	static const float coefficients[4] = {0.625f, 0.0625f, 0.03125f, 10.0f};
	unsigned n = (unsigned)sample_below(seed, 70) + 1, tiles = blocks_for(n, HOTSPOT_TILE);

	fill_floats(s, add_buffer(s, n * n, 4), seed);
	fill_floats(s, add_buffer(s, n * n, 4), seed);
	add_buffer(s, n * n, 4);
	add_u32(s, n);
	shape(s, tiles, tiles, 1, HOTSPOT_TILE, HOTSPOT_TILE, 1);
	s->var = (struct sample_var){.name = "hotspot_coeff", .size = sizeof(coefficients)};
	memcpy(s->var.init, coefficients, sizeof(coefficients));
}

static void bfs_expand(struct sample *s, uint64_t *seed) {
	unsigned n = (unsigned)sample_below(seed, 2000) + 1, degree = 4;
	int offsets = add_buffer(s, n + 1, 4), edges = add_buffer(s, n * degree, 4);
	int frontier = add_buffer(s, n, 1), visited, levels;
	uint32_t *words;

	add_buffer(s, n, 1); /* reached */
	visited = add_buffer(s, n, 1);
	levels = add_buffer(s, n, 4);
	add_u32(s, n);
	words = bytes_of(s, offsets);
	for (unsigned i = 0; i <= n; i++) {
		words[i] = i * degree;
	}
	words = bytes_of(s, edges);
	for (unsigned i = 0; i < n * degree; i++) {
		words[i] = (uint32_t)sample_below(seed, n);
	}
	for (unsigned i = 0; i < n; i++) {
		/* All of the frontier has one level, as in a search: who writes first is the same.
		 */
		bool now = sample_below(seed, 3) == 0;

		((uint8_t *)bytes_of(s, frontier))[i] = now;
		((uint8_t *)bytes_of(s, visited))[i] = now || sample_below(seed, 3) == 0;
		((uint32_t *)bytes_of(s, levels))[i] = now ? 5 : (uint32_t)BFS_UNREACHED;
	}
	shape(s, blocks_for(n, BFS_BLOCK), 1, 1, BFS_BLOCK, 1, 1);
}

static void bfs_commit(struct sample *s, uint64_t *seed) {
	unsigned n = (unsigned)sample_below(seed, 2000) + 1;
	int reached;

	add_buffer(s, n, 1); /* frontier */
	reached = add_buffer(s, n, 1);
	add_buffer(s, n, 1); /* visited */
	add_buffer(s, 1, 4); /* more */
	add_u32(s, n);
	for (unsigned i = 0; i < n; i++) {
		((uint8_t *)bytes_of(s, reached))[i] = sample_below(seed, 2) == 0;
	}
	shape(s, blocks_for(n, BFS_BLOCK), 1, 1, BFS_BLOCK, 1, 1);
}

static void reduce_of(struct sample *s, uint64_t *seed, size_t each) {
	unsigned n = (unsigned)sample_below(seed, 6000) + 1;
	unsigned grid = (unsigned)sample_below(seed, REDUCE_GRID) + 1;
	int in = add_buffer(s, n, each);

	if (each == 4) {
		fill_floats(s, in, seed);
	} else {
		fill_words(s, in, seed);
	}
	add_buffer(s, grid, each);
	add_u32(s, n);
	shape(s, grid, 1, 1, REDUCE_BLOCK, 1, 1);
}

static void reduce_float(struct sample *s, uint64_t *seed) {
	reduce_of(s, seed, 4);
}

static void reduce_u64(struct sample *s, uint64_t *seed) {
	reduce_of(s, seed, 8);
}

static void early(struct sample *s, uint64_t *seed) {
	unsigned rows = (unsigned)sample_below(seed, 40) + 1;
	int lengths;

	fill_words(s, add_buffer(s, (size_t)rows * EARLY_BLOCK, 4), seed);
	lengths = add_buffer(s, rows, 4);
	add_u32(s, EARLY_BLOCK);
	add_buffer(s, rows, 4);
	for (unsigned i = 0; i < rows; i++) {
		((uint32_t *)bytes_of(s, lengths))[i] =
			(uint32_t)sample_below(seed, EARLY_BLOCK + 1);
	}
	shape(s, rows, 1, 1, EARLY_BLOCK, 1, 1);
}

static void volume(struct sample *s, uint64_t *seed) {
	uint32_t dims[3];
	float weight = 0.125f;
	unsigned grid[3];
	int in;

	for (unsigned i = 0; i < 3; i++) {
		dims[i] = (uint32_t)sample_below(seed, 14) + 1;
	}
	grid[0] = blocks_for(dims[0], VOLUME_X) + (unsigned)sample_below(seed, 2);
	grid[1] = blocks_for(dims[1], VOLUME_Y) + (unsigned)sample_below(seed, 2);
	grid[2] = blocks_for(dims[2], VOLUME_Z) + (unsigned)sample_below(seed, 2);
	in = add_buffer(s, (size_t)dims[0] * dims[1] * dims[2], 4);
	fill_floats(s, in, seed);
	add_buffer(s, (size_t)dims[0] * dims[1] * dims[2], 4);
	add_value(s, dims, sizeof(dims));
	add_value(s, &weight, sizeof(weight));
	s->marks = add_buffer(s, (size_t)grid[0] * grid[1] * grid[2], 4);
	shape(s, grid[0], grid[1], grid[2], VOLUME_X, VOLUME_Y, VOLUME_Z);
}

static void compute(struct sample *s, uint64_t *seed) {
	unsigned blocks = (unsigned)sample_below(seed, 100) + 1;

	fill_words(s, add_buffer(s, (size_t)blocks * COMPUTE_BLOCK, 4), seed);
	add_u32(s, (uint32_t)sample_random(seed));
	add_u32(s, (uint32_t)sample_below(seed, 20));
	add_u32(s, 1664525);
	add_u32(s, 1013904223);
	s->sm_hits = add_buffer(s, COMPUTE_SMS_MAX, 4);
	s->buffers[s->sm_hits].varies = true;
	shape(s, blocks, 1, 1, COMPUTE_BLOCK, 1, 1);
	s->var = (struct sample_var){.name = "compute_blocks", .size = 8};
}

static void stubborn(struct sample *s, uint64_t *seed) {
	unsigned n = (unsigned)sample_below(seed, 1000) + 1;

	fill_words(s, add_buffer(s, n, 4), seed);
	add_u32(s, n);
	shape(s, blocks_for(n, STUBBORN_BLOCK), 1, 1, STUBBORN_BLOCK, 1, 1);
	s->confinable = false;
}

static const struct {
	const char *file, *kernel;
	void (*make)(struct sample *s, uint64_t *seed);
} samples[] = {
	{"vecadd.ptx", "vecadd", vecadd},
	{"matmul.ptx", "_Z6matmulILi16EEvPKfS1_Pfj", matmul},
	{"histogram.ptx", "histogram", histogram},
	{"hotspot.ptx", "hotspot", hotspot},
	{"bfs.ptx", "bfs_expand", bfs_expand},
	{"bfs.ptx", "bfs_commit", bfs_commit},
	{"reduce.ptx", "_Z6reduceIfEvPKT_PS0_j", reduce_float},
	{"reduce.ptx", "_Z6reduceIyEvPKT_PS0_j", reduce_u64},
	{"early.ptx", "early", early},
	{"volume.ptx", "volume", volume},
	{"compute.ptx", "compute", compute},
	{"stubborn.ptx", "stubborn", stubborn},
};

size_t sample_count(void) {
	return sizeof(samples) / sizeof(samples[0]);
}

const char *sample_name(size_t i) {
	return samples[i].kernel;
}

void sample_init(struct sample *s, size_t i, uint64_t *seed) {
	*s = (struct sample){
		.file = samples[i].file,
		.kernel = samples[i].kernel,
		.confinable = true,
		.marks = -1,
		.sm_hits = -1,
	};
	samples[i].make(s, seed);
}
