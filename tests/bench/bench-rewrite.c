/*
 * bench-rewrite.c: how long rewriting PTX takes by its length, and that no shape of it takes more
 * than its share. Prints a JSON object a line: bytes, milliseconds, and for each shape the time of
 * 8 MiB over that of 1 MiB, which is 8 where time is linear.
 *
 * usage: bench-rewrite [FILE.ptx]: the kernels of a file, over and over, besides the made-up
 * shapes.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/ptx/transform.h"
#include "tests/bench/ptx-shapes.h"

#define MIB	 (1024u * 1024)
#define LARGEST	 (8 * MIB)
#define RUNS	 5
#define FILE_MAX (16 * MIB)

static double milliseconds(void) {
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The fastest of some runs: what the machine's other work does not explain. */
static double rewrite(const struct ptx_shape_text *t, bool *ret_twins) {
	double best = 0;

	for (int i = 0; i < RUNS; i++) {
		struct transform *out = NULL;
		char error[200] = "";
		double began = milliseconds(), took;

		if (transform_new(&out, t->s, t->n, error, sizeof(error)) < 0) {
			fprintf(stderr, "bench-rewrite: %s\n", error);
			exit(1);
		}
		took = milliseconds() - began;
		*ret_twins = out->ptx != NULL;
		transform_free(out);
		best = i == 0 || took < best ? took : best;
	}
	return best;
}

static void tell(const char *shape, const struct ptx_shape_text *t, double *ret) {
	bool twins;

	*ret = rewrite(t, &twins);
	printf("{\"bench\": \"rewrite\", \"shape\": \"%s\", \"bytes\": %zu, \"twins\": %s, "
	       "\"ms\": %.2f}\n",
	       shape, t->n, twins ? "true" : "false", *ret);
}

int main(int argc, char **argv) {
	struct ptx_shape_text t = {.s = malloc(2 * LARGEST), .size = 2 * LARGEST};

	if (!t.s) {
		return 1;
	}
	for (size_t i = 0; i < ptx_shapes_n; i++) {
		double one = 0, last = 0;

		for (size_t bytes = MIB / 8; bytes <= LARGEST; bytes *= 2) {
			ptx_shape_write(&t, &ptx_shapes[i], bytes);
			tell(ptx_shapes[i].name, &t, &last);
			one = bytes == MIB ? last : one;
		}
		printf("{\"bench\": \"rewrite\", \"shape\": \"%s\", \"ms_8_mib_over_1_mib\": "
		       "%.2f}\n",
		       ptx_shapes[i].name, last / one);
	}
	if (argc > 1) {
		FILE *f = fopen(argv[1], "re");
		double took;

		t.n = f ? fread(t.s, 1, FILE_MAX, f) : 0;
		if (!f || t.n == 0) {
			perror(argv[1]);
			return 1;
		}
		fclose(f);
		tell(argv[1], &t, &took);
	}
	free(t.s);
	return 0;
}
