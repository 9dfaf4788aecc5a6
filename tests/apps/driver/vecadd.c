/*
 * vecadd.c: vector addition on the default stream, blocking copies only.
 */
#include "common.h"
#include "vectors.h"

static struct vectors my;

static void vecadd_open(const struct app_options *options) {
	vectors_open(&my, options->gpu, options->size);
}

static void vecadd_frame(struct app_lane *lane, uint64_t seed) {
	vectors_draw(&my, seed);
	vectors_add(&my, lane);
}

static void vecadd_close(void) {
	vectors_close(&my);
}

static const struct app vecadd_app = {
	.name = "vecadd",
	.summary = "Adds two vectors.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = vecadd_open,
	.frame = vecadd_frame,
	.close = vecadd_close,
};

int main(int argc, char **argv) {
	return app_main(&vecadd_app, argc, argv);
}
