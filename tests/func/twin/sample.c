/*
 * sample.c: what all lists of samples need.
 */
#include "tests/func/twin/sample.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t sample_random(uint64_t *seed) {
	/* splitmix64 */
	uint64_t z = *seed += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

uint64_t sample_below(uint64_t *seed, uint64_t n) {
	return sample_random(seed) % n;
}

void sample_deinit(struct sample *s) {
	for (unsigned i = 0; i < s->n_buffers; i++) {
		free(s->buffers[i].init);
	}
}

char *sample_read_ptx(const char *file) {
	const char *dir = getenv("SBEET_TEST_PTX");
	char path[4096], *text;
	long size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "tests/apps/ptx", file);
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		err(1, "%s", path);
	}
	rewind(f);
	text = calloc(1, (size_t)size + 1);
	if (!text || fread(text, 1, (size_t)size, f) != (size_t)size) {
		err(1, "%s", path);
	}
	fclose(f);
	return text;
}
