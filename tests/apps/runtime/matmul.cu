/*
 * matmul.cu: matrix multiplication on a stream of its own: page-locked memory, asynchronous copies,
 * cudaStreamSynchronize.
 */
#include "../kernels/matmul.cu"
#include "runtime.h"

static struct {
	unsigned n;
	size_t cells;
	float *a, *b, *c; /* page-locked */
	float *want;
	float *dev_a, *dev_b, *dev_c;
	cudaStream_t stream;
} my;

static void matmul_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	my.cells = (size_t)my.n * my.n;
	my.want = host_alloc<float>(my.cells);
	RT(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
	my.a = pinned_alloc<float>(my.cells);
	my.b = pinned_alloc<float>(my.cells);
	my.c = pinned_alloc<float>(my.cells);
	my.dev_a = device_alloc<float>(my.cells);
	my.dev_b = device_alloc<float>(my.cells);
	my.dev_c = device_alloc<float>(my.cells);
}

static void matmul_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t bytes = my.cells * sizeof(float);
	dim3 block(MATMUL_TILE, MATMUL_TILE);
	dim3 grid(runtime_blocks(my.n, MATMUL_TILE), runtime_blocks(my.n, MATMUL_TILE));

	app_random_floats(&random, my.a, my.cells);
	app_random_floats(&random, my.b, my.cells);

	RT(cudaMemcpyAsync(my.dev_a, my.a, bytes, cudaMemcpyHostToDevice, my.stream));
	RT(cudaMemcpyAsync(my.dev_b, my.b, bytes, cudaMemcpyHostToDevice, my.stream));
	matmul<MATMUL_TILE><<<grid, block, 0, my.stream>>>(my.dev_a, my.dev_b, my.dev_c, my.n);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaMemcpyAsync(my.c, my.dev_c, bytes, cudaMemcpyDeviceToHost, my.stream));
	reference_matmul(my.a, my.b, my.want, my.n); /* while the GPU works */
	RT(cudaStreamSynchronize(my.stream));
	app_compare(lane, "product", my.want, my.c, my.cells, sizeof(float));
}

static void matmul_close(void) {
	RT(cudaFree(my.dev_c));
	RT(cudaFree(my.dev_b));
	RT(cudaFree(my.dev_a));
	RT(cudaFreeHost(my.c));
	RT(cudaFreeHost(my.b));
	RT(cudaFreeHost(my.a));
	RT(cudaStreamDestroy(my.stream));
	free(my.want);
}

static const struct app matmul_app = {
	.name = "matmul",
	.summary = "Multiplies two square matrices.",
	.size_meaning = "rows",
	.size_default = 72,
	.size_min = 1,
	.size_max = 1u << 14,
	.open = matmul_open,
	.frame = matmul_frame,
	.close = matmul_close,
};

int main(int argc, char **argv) {
	return app_main(&matmul_app, argc, argv);
}
