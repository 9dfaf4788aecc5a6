/*
 * stubborn.c: runs a kernel that cannot be turned into persistent threads.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char stubborn_ptx[];

static struct {
	size_t n;
	unsigned *data, *want;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr dev_data;
} my;

static void stubborn_open(const struct app_options *options) {
	my.n = options->size;
	my.data = app_alloc(my.n, sizeof(unsigned));
	my.want = app_alloc(my.n, sizeof(unsigned));
	my.module = driver_open(options->gpu, stubborn_ptx);
	my.kernel = driver_kernel(my.module, "stubborn");
	my.dev_data = driver_alloc(my.n * sizeof(unsigned));
}

static void stubborn_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned n = (unsigned)my.n;
	void *params[] = {&my.dev_data, &n};

	for (size_t i = 0; i < my.n; i++) {
		my.data[i] = app_random_u32(&random);
		my.want[i] = my.data[i] % 2 ? my.data[i] : my.data[i] + 1;
	}
	CU(cuMemcpyHtoD(my.dev_data, my.data, my.n * sizeof(unsigned)));
	CU(cuLaunchKernel(my.kernel, driver_blocks(my.n, STUBBORN_BLOCK), 1, 1, STUBBORN_BLOCK, 1,
			  1, 0, NULL, params, NULL));
	lane->launches++;
	CU(cuMemcpyDtoH(my.data, my.dev_data, my.n * sizeof(unsigned)));
	app_compare(lane, "numbers", my.want, my.data, my.n, sizeof(unsigned));
}

static void stubborn_close(void) {
	driver_free(my.dev_data);
	driver_close(my.module);
	free(my.want);
	free(my.data);
}

static const struct app stubborn_app = {
	.name = "stubborn",
	.summary = "Runs a kernel that cannot be confined to SMs.",
	.size_meaning = "elements",
	.size_default = 20000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = stubborn_open,
	.frame = stubborn_frame,
	.close = stubborn_close,
};

int main(int argc, char **argv) {
	return app_main(&stubborn_app, argc, argv);
}
