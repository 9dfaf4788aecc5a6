/*
 * test-twin.c: the twin of every sample kernel does what the original does (trial.h).
 *
 * usage: test-twin KERNEL [ROUNDS [SEED]]: so many launches of a kernel, named as in its PTX; a
 * failure prints the seed that repeats it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/func/twin/trial.h"

#define ROUNDS_DEFAULT 100
#define SEED_DEFAULT   0x5BEE7

/* Kernel @i once, as @seed says. Return: did it go well? */
static bool round_of(size_t i, uint64_t first) {
	const struct twin_kernel *info;
	struct transform *tr = NULL;
	uint64_t seed = first;
	char text[256] = "";
	struct sample s;
	bool ok = false;
	char *ptx;

	sample_init(&s, i, &seed);
	ptx = sample_read_ptx(s.file);
	if (transform_new(&tr, ptx, strlen(ptx), text, sizeof(text)) < 0) {
		printf("%s is not transformed: %s\n", s.file, text);
	} else {
		info = trial_find(tr, s.kernel);
		ok = info && info->confinable == s.confinable;
		if (!ok) {
			printf("%s confinable: %s\n", s.kernel,
			       !info		  ? "not found"
			       : info->confinable ? "yes"
						  : info->reason);
		} else if (s.confinable) {
			ok = trial_run(&s, ptx, tr, seed, first);
		}
	}
	transform_free(tr);
	free(ptx);
	sample_deinit(&s);
	return ok;
}

int main(int argc, char **argv) {
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : ROUNDS_DEFAULT, failed = 0;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : SEED_DEFAULT;
	size_t i = 0;

	while (argc > 1 && i < sample_count() && strcmp(sample_name(i), argv[1])) {
		i++;
	}
	if (argc < 2 || argc > 4 || i == sample_count()) {
		fprintf(stderr, "usage: %s KERNEL [ROUNDS [SEED]]; kernels:\n", argv[0]);
		for (i = 0; i < sample_count(); i++) {
			fprintf(stderr, "  %s\n", sample_name(i));
		}
		return 2;
	}
	for (unsigned long n = 0; n < rounds; n++) {
		failed += !round_of(i, seed + n);
	}
	printf("%s: %lu launches, %lu failed\n", sample_name(i), rounds, failed);
	return failed ? 1 : 0;
}
