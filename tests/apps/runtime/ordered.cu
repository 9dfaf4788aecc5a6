/*
 * ordered.cu: vector addition in a stream of high priority: memory that comes and goes in the
 * stream's order, pinned memory, and after the copy back a callback and a host function, which must
 * see what came before them.
 */
#include "../kernels/vecadd.cu"
#include "runtime.h"

static struct {
	size_t n;
	float *a, *b, *c, *want;
	cudaStream_t stream;
	unsigned called_back,
		called; /* by CUDA's threads, before what waits for the stream goes on */
	bool in_order;
} my;

static void CUDART_CB call_back(cudaStream_t stream, cudaError_t status, void *userdata) {
	(void)stream;
	(void)userdata;
	my.in_order = my.in_order && status == cudaSuccess && my.called_back == my.called &&
		      my.c[my.n - 1] == my.want[my.n - 1];
	my.called_back++;
}

static void CUDART_CB call(void *userdata) {
	my.called++;
	my.in_order = my.in_order && userdata == &my && my.called_back == my.called;
}

static float *pinned_alloc(size_t n) {
	void *p;

	RT(cudaHostAlloc(&p, n * sizeof(float), cudaHostAllocDefault));
	return (float *)p;
}

static void ordered_open(const struct app_options *options) {
	int least, greatest;

	runtime_open(options->gpu);
	my.n = options->size;
	my.in_order = true;
	my.a = pinned_alloc(my.n);
	my.b = pinned_alloc(my.n);
	my.c = pinned_alloc(my.n);
	my.want = host_alloc<float>(my.n);
	RT(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	RT(cudaStreamCreateWithPriority(&my.stream, cudaStreamNonBlocking, greatest));
}

static void ordered_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	size_t bytes = my.n * sizeof(float);
	float *a, *b, *c;

	app_random_floats(&random, my.a, my.n);
	app_random_floats(&random, my.b, my.n);
	reference_vecadd(my.a, my.b, my.want, my.n);
	RT(cudaMallocAsync((void **)&a, bytes, my.stream));
	RT(cudaMallocAsync((void **)&b, bytes, my.stream));
	RT(cudaMallocAsync((void **)&c, bytes, my.stream));
	RT(cudaMemcpyAsync(a, my.a, bytes, cudaMemcpyHostToDevice, my.stream));
	RT(cudaMemcpyAsync(b, my.b, bytes, cudaMemcpyHostToDevice, my.stream));
	vecadd<<<runtime_blocks(my.n, VECADD_BLOCK), VECADD_BLOCK, 0, my.stream>>>(a, b, c,
										   (unsigned)my.n);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaMemcpyAsync(my.c, c, bytes, cudaMemcpyDeviceToHost, my.stream));
	RT(cudaStreamAddCallback(my.stream, call_back, NULL, 0));
	RT(cudaLaunchHostFunc(my.stream, call, &my));
	RT(cudaFreeAsync(a, my.stream));
	RT(cudaFreeAsync(b, my.stream));
	RT(cudaFreeAsync(c, my.stream));
	RT(cudaStreamSynchronize(my.stream));
	app_compare(lane, "sum", my.want, my.c, my.n, sizeof(float));
	if (!my.in_order || my.called != lane->launches) {
		fprintf(stderr, "ordered: a callback came at the wrong time\n");
		lane->wrong++;
	}
}

static void ordered_close(void) {
	RT(cudaStreamDestroy(my.stream));
	free(my.want);
	RT(cudaFreeHost(my.c));
	RT(cudaFreeHost(my.b));
	RT(cudaFreeHost(my.a));
}

static const struct app ordered_app = {
	.name = "ordered",
	.summary = "Adds two vectors, everything in a stream's order.",
	.size_meaning = "elements",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 28,
	.open = ordered_open,
	.frame = ordered_frame,
	.close = ordered_close,
};

int main(int argc, char **argv) {
	return app_main(&ordered_app, argc, argv);
}
