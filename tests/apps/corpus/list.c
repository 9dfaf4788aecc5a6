/*
 * list.c: the corpus as a list of samples (tests/func/twin/sample.h): those of its kernels, as nvcc
 * -O3 made them, that have twins and can be run.
 */
#include <stdio.h>

#include "tests/apps/corpus/corpus.h"

static const struct corpus_kernel *nth(size_t n) {
	for (size_t i = 0; i < corpus_n; i++) {
		if (!corpus[i].reason && !corpus[i].verdict_only && !corpus[i].interpreter_only &&
		    n-- == 0) {
			return &corpus[i];
		}
	}
	return NULL;
}

size_t sample_count(void) {
	size_t n = 0;

	while (nth(n)) {
		n++;
	}
	return n;
}

const char *sample_name(size_t i) {
	return nth(i)->kernel;
}

void sample_init(struct sample *s, size_t i, uint64_t *seed) {
	static char file[64];
	const struct corpus_kernel *k = nth(i);

	snprintf(file, sizeof(file), "%s.ptx", k->file);
	corpus_sample(s, k, file, seed);
}
