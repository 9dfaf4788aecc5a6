/*
 * sample.c: launches of the corpus's kernels, made from the letters that describe their arguments.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "tests/apps/corpus/corpus.h"

#define IN_WORDS    4096 /* as in kernels/common.cuh */
#define COUNT_BYTES 8192
#define BLOCKS_MAX  28
#define THREADS_MAX 160

static void random_bytes(void *to, size_t size, uint64_t *seed) {
	uint8_t *bytes = to;

	for (size_t i = 0; i < size; i++) {
		bytes[i] = (uint8_t)sample_random(seed);
	}
}

static struct sample_buffer *add_buffer(struct sample *s, size_t size) {
	struct sample_buffer *b = &s->buffers[s->n_buffers];

	*b = (struct sample_buffer){.init = calloc(1, size), .size = size};
	if (!b->init) {
		err(1, "calloc");
	}
	s->params[s->n_params++] = (struct sample_param){.buffer = (int)s->n_buffers++, .size = 8};
	return b;
}

static void *add_value(struct sample *s, size_t size, size_t align) {
	struct sample_param *p = &s->params[s->n_params++];

	*p = (struct sample_param){.buffer = -1, .size = size, .align = align};
	return p->bytes;
}

static void add_word(struct sample *s, uint64_t value) {
	uint32_t v = (uint32_t)value;

	memcpy(add_value(s, sizeof(v), 4), &v, sizeof(v));
}

static void add_argument(struct sample *s, char letter, uint64_t *seed) {
	size_t blocks = (size_t)s->grid[0] * s->grid[1] * s->grid[2];
	size_t threads = blocks * s->block[0] * s->block[1] * s->block[2];

	switch (letter) {
	case 'i':
		random_bytes(add_buffer(s, IN_WORDS * 4)->init, IN_WORDS * 4, seed);
		break;
	case 'o':
	case 'v':
		add_buffer(s, threads * 16 + 4096)->varies = letter == 'v';
		break;
	case 'c':
		add_buffer(s, COUNT_BYTES);
		break;
	case 'm':
		s->marks = (int)s->n_buffers;
		add_buffer(s, blocks * 4);
		break;
	case 'n':
		add_word(s, sample_below(seed, IN_WORDS));
		break;
	case 'k':
		add_word(s, sample_below(seed, 8));
		break;
	case 't':
		add_word(s, sample_below(seed, threads + threads / 8 + 2));
		break;
	case 'b':
		random_bytes(add_value(s, 1, 1), 1, seed);
		break;
	case 'h':
		random_bytes(add_value(s, 2, 2), 2, seed);
		break;
	case 'q':
		random_bytes(add_value(s, 8, 8), 8, seed);
		break;
	case 'L':
		random_bytes(add_value(s, SAMPLE_VALUE_MAX, 4), SAMPLE_VALUE_MAX, seed);
		break;
	case 'S':
		random_bytes(add_value(s, 32, 8), 32, seed);
		break;
	default:
		errx(1, "%s: no argument '%c'", s->kernel, letter);
	}
}

static unsigned from(uint64_t *seed, unsigned first, unsigned last) {
	return first + (unsigned)sample_below(seed, last - first + 1);
}

/* An interpreter wants few, a GPU with many SMs takes more. */
static unsigned blocks_max(void) {
	const char *text = getenv("SBEET_CORPUS_BLOCKS");
	unsigned long n = text ? strtoul(text, NULL, 10) : BLOCKS_MAX;

	return n > 0 && n <= 500 ? (unsigned)n : BLOCKS_MAX;
}

static void choose_shape(struct sample *s, enum corpus_shape shape, uint64_t *seed) {
	unsigned blocks = blocks_max();

	for (unsigned i = 0; i < 3; i++) {
		s->grid[i] = s->block[i] = 1;
	}
	switch (shape) {
	case CORPUS_ANY:
		s->block[0] = from(seed, 1, THREADS_MAX);
		s->block[1] = from(seed, 1, THREADS_MAX / s->block[0]);
		s->block[2] = from(seed, 1, THREADS_MAX / s->block[0] / s->block[1]);
		s->grid[0] = from(seed, 1, blocks);
		s->grid[1] = from(seed, 1, blocks / s->grid[0]);
		s->grid[2] = from(seed, 1, blocks / s->grid[0] / s->grid[1]);
		return;
	case CORPUS_LINE:
		s->block[0] = from(seed, 1, THREADS_MAX);
		break;
	case CORPUS_WARPS:
		s->block[0] = 32 * from(seed, 1, THREADS_MAX / 32);
		break;
	case CORPUS_THREADS_64:
		s->block[0] = 64;
		break;
	case CORPUS_THREADS_128:
		s->block[0] = 128;
		break;
	}
	s->grid[0] = from(seed, 1, blocks);
}

void corpus_sample(struct sample *s, const struct corpus_kernel *k, const char *file,
		   uint64_t *seed) {
	*s = (struct sample){
		.file = file,
		.kernel = k->kernel,
		.confinable = true,
		.undefined = k->undefined,
		.marks = -1,
		.sm_hits = -1,
	};
	choose_shape(s, k->shape, seed);
	if (k->dynamic_shared) {
		s->shared_bytes = 4 * s->block[0] * s->block[1] * s->block[2];
	}
	for (const char *a = k->arguments; *a; a++) {
		add_argument(s, *a, seed);
	}
}
