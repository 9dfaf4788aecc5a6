/*
 * copies.c: bytes to the GPU and back; no kernel at all. For those who look for one.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"

extern const char vecadd_ptx[];

static struct {
	unsigned char *in, *out;
	CUmodule module;
	CUdeviceptr memory;
} my;

static void copies_open(const struct app_options *options) {
	my.in = app_alloc(options->size, 1);
	my.out = app_alloc(options->size, 1);
	my.module = driver_open(options->gpu, vecadd_ptx);
	my.memory = driver_alloc(options->size);
}

static void copies_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t n = lane->options->size;

	app_random_bytes(&random, my.in, n);
	CU(cuMemcpyHtoD(my.memory, my.in, n));
	CU(cuMemcpyDtoH(my.out, my.memory, n));
	app_compare(lane, "copy", my.in, my.out, n, 1);
}

static void copies_close(void) {
	driver_free(my.memory);
	driver_close(my.module);
	free(my.out);
	free(my.in);
}

static const struct app copies_app = {
	.name = "copies",
	.summary = "Copies bytes to the GPU and back.",
	.size_meaning = "bytes",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = copies_open,
	.frame = copies_frame,
	.close = copies_close,
};

int main(int argc, char **argv) {
	return app_main(&copies_app, argc, argv);
}
