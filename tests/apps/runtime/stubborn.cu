/*
 * stubborn.cu: runs a kernel that cannot be turned into persistent threads.
 */
#include "../kernels/stubborn.cu"
#include "runtime.h"

static struct {
	size_t n;
	unsigned *data, *want;
	unsigned *dev_data;
} my;

static void stubborn_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	my.data = host_alloc<unsigned>(my.n);
	my.want = host_alloc<unsigned>(my.n);
	my.dev_data = device_alloc<unsigned>(my.n);
}

static void stubborn_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t bytes = my.n * sizeof(unsigned);

	for (size_t i = 0; i < my.n; i++) {
		my.data[i] = app_random_u32(&random);
		my.want[i] = my.data[i] % 2 ? my.data[i] : my.data[i] + 1;
	}
	RT(cudaMemcpy(my.dev_data, my.data, bytes, cudaMemcpyHostToDevice));
	stubborn<<<runtime_blocks(my.n, STUBBORN_BLOCK), STUBBORN_BLOCK>>>(my.dev_data, (unsigned)my.n);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaMemcpy(my.data, my.dev_data, bytes, cudaMemcpyDeviceToHost));
	app_compare(lane, "numbers", my.want, my.data, my.n, sizeof(unsigned));
}

static void stubborn_close(void) {
	RT(cudaFree(my.dev_data));
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
