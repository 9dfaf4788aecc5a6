/*
 * vecadd.cu: vector addition on the default stream, blocking copies only.
 */
#include "../kernels/vecadd.cu"
#include "runtime.h"

static struct {
	size_t n;
	float *a, *b, *c, *want;
	float *dev_a, *dev_b, *dev_c;
} my;

static void vecadd_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	my.a = host_alloc<float>(my.n);
	my.b = host_alloc<float>(my.n);
	my.c = host_alloc<float>(my.n);
	my.want = host_alloc<float>(my.n);
	my.dev_a = device_alloc<float>(my.n);
	my.dev_b = device_alloc<float>(my.n);
	my.dev_c = device_alloc<float>(my.n);
}

static void vecadd_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t bytes = my.n * sizeof(float);

	app_random_floats(&random, my.a, my.n);
	app_random_floats(&random, my.b, my.n);
	reference_vecadd(my.a, my.b, my.want, my.n);

	RT(cudaMemcpy(my.dev_a, my.a, bytes, cudaMemcpyHostToDevice));
	RT(cudaMemcpy(my.dev_b, my.b, bytes, cudaMemcpyHostToDevice));
	vecadd<<<runtime_blocks(my.n, VECADD_BLOCK), VECADD_BLOCK>>>(my.dev_a, my.dev_b, my.dev_c,
								     (unsigned)my.n);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaMemcpy(my.c, my.dev_c, bytes, cudaMemcpyDeviceToHost));
	app_compare(lane, "sum", my.want, my.c, my.n, sizeof(float));
}

static void vecadd_close(void) {
	RT(cudaFree(my.dev_c));
	RT(cudaFree(my.dev_b));
	RT(cudaFree(my.dev_a));
	free(my.want);
	free(my.c);
	free(my.b);
	free(my.a);
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
