/*
 * sample.h: launches of the sample programs' kernels (tests/apps/kernels) with random shapes and
 * random input, for whoever runs a kernel in two ways and compares. No expected results here: the
 * original kernel gives those.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_BUFFERS_MAX 8
#define SAMPLE_PARAMS_MAX  8
#define SAMPLE_VALUE_MAX   3600

struct sample_buffer {
	uint8_t *init; /* owned */
	size_t size;
	bool varies; /* depends on where blocks run: not to be compared */
};

struct sample_param {
	int buffer; /* index, or -1: the bytes */
	uint8_t bytes[SAMPLE_VALUE_MAX];
	size_t size;
	size_t align; /* 0: 8 if it has 8 bytes, else 4 */
};

/* A module-scope variable of the kernel's. */
struct sample_var {
	const char *name; /* NULL: there is none */
	uint8_t init[16];
	size_t size;
};

struct sample {
	const char *file;   /* in tests/apps/ptx */
	const char *kernel; /* mangled */
	bool confinable;
	bool undefined; /* with some inputs by the PTX ISA; then there is nothing to compare */
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	struct sample_buffer buffers[SAMPLE_BUFFERS_MAX];
	unsigned n_buffers;
	struct sample_param params[SAMPLE_PARAMS_MAX];
	unsigned n_params;
	struct sample_var var;
	int marks;   /* buffer of a u32 for each block, which counts how often it ran; -1: none */
	int sm_hits; /* buffer of a u32 for each SM, which counts blocks that ran there; -1: none */
};

/* A small generator of its own, so that a failing case can be repeated by its seed. */
uint64_t sample_random(uint64_t *seed);
uint64_t sample_below(uint64_t *seed, uint64_t n); /* 0 to n - 1 */

/* The list: sample-apps.c, or the corpus's own. */
size_t sample_count(void);
const char *sample_name(size_t i);

/* Launch @i with what @seed says. Out of memory ends the process. */
void sample_init(struct sample *s, size_t i, uint64_t *seed);
void sample_deinit(struct sample *s);

/* The whole of FILE in SBEET_TEST_PTX (tests/apps/ptx), terminated, to be freed. A missing file
 * ends the process. */
char *sample_read_ptx(const char *file);
