/*
 * full.c: takes all of the GPU's memory, so that nobody finds any, before its first launch; and
 * works on.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "common.h"
#include "vectors.h"

#define PIECES_MAX 4096

static struct {
	struct vectors vectors;
	size_t n_pieces;
	CUdeviceptr pieces[PIECES_MAX];
} my;

static void take_all(void) {
	for (size_t bytes = (size_t)1 << 40; bytes >= 256;) {
		CUdeviceptr p;
		CUresult r =
			my.n_pieces < PIECES_MAX ? cuMemAlloc(&p, bytes) : CUDA_ERROR_OUT_OF_MEMORY;

		if (r == CUDA_SUCCESS) {
			my.pieces[my.n_pieces++] = p;
		} else if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			bytes /= 2;
		} else {
			CU(r);
		}
	}
	if (my.n_pieces == 0 || my.n_pieces == PIECES_MAX) {
		fprintf(stderr, "full: the memory can't be filled\n");
		exit(1);
	}
}

static void full_open(const struct app_options *options) {
	vectors_open(&my.vectors, options->gpu, options->size);
	take_all();
}

static void full_frame(struct app_lane *lane, uint64_t seed) {
	vectors_draw(&my.vectors, seed);
	vectors_add(&my.vectors, lane);
}

static void full_close(void) {
	while (my.n_pieces > 0) {
		driver_free(my.pieces[--my.n_pieces]);
	}
	vectors_close(&my.vectors);
}

static const struct app full_app = {
	.name = "full",
	.summary = "Takes all memory of the GPU, and adds two vectors.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = full_open,
	.frame = full_frame,
	.close = full_close,
};

int main(int argc, char **argv) {
	return app_main(&full_app, argc, argv);
}
