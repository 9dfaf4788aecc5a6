/*
 * reduce.cu: sums of floats and of 64-bit integers by warp shuffles, two launches each, on two streams
 * that an event ties together.
 */
#include "../kernels/reduce.cu"
#include "runtime.h"

typedef unsigned long long u64; /* the kernel's 64-bit type; uint64_t is another one in C++ */

static struct {
	size_t n;
	float *floats;
	uint64_t *integers;
	float *dev_floats, *dev_partial_floats, *dev_sum_float;
	u64 *dev_integers, *dev_partial_integers, *dev_sum_integer;
	cudaStream_t first, second;
	cudaEvent_t first_done;
} my;

static void reduce_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	my.floats = host_alloc<float>(my.n);
	my.integers = host_alloc<uint64_t>(my.n);
	RT(cudaStreamCreateWithFlags(&my.first, cudaStreamNonBlocking));
	RT(cudaStreamCreateWithFlags(&my.second, cudaStreamNonBlocking));
	RT(cudaEventCreateWithFlags(&my.first_done, cudaEventDisableTiming));
	my.dev_floats = device_alloc<float>(my.n);
	my.dev_integers = device_alloc<u64>(my.n);
	my.dev_partial_floats = device_alloc<float>(REDUCE_GRID);
	my.dev_partial_integers = device_alloc<u64>(REDUCE_GRID);
	my.dev_sum_float = device_alloc<float>(1);
	my.dev_sum_integer = device_alloc<u64>(1);
}

static void reduce_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned n = (unsigned)my.n;
	uint64_t want_u64, got_u64;
	float want_float, got_float;

	app_random_floats(&random, my.floats, my.n);
	for (size_t i = 0; i < my.n; i++) {
		my.integers[i] = (uint64_t)app_random_u32(&random) << 24;
	}
	want_float = reference_reduce_float(my.floats, my.n);
	want_u64 = reference_reduce_u64(my.integers, my.n);

	RT(cudaMemcpyAsync(my.dev_floats, my.floats, my.n * sizeof(float), cudaMemcpyHostToDevice,
			   my.first));
	RT(cudaMemcpyAsync(my.dev_integers, my.integers, my.n * sizeof(u64), cudaMemcpyHostToDevice,
			   my.second));
	reduce<<<REDUCE_GRID, REDUCE_BLOCK, 0, my.first>>>((const float *)my.dev_floats,
							   my.dev_partial_floats, n);
	RT(cudaGetLastError());
	reduce<<<REDUCE_GRID, REDUCE_BLOCK, 0, my.second>>>((const u64 *)my.dev_integers,
							    my.dev_partial_integers, n);
	RT(cudaGetLastError());
	reduce<<<1, REDUCE_BLOCK, 0, my.first>>>((const float *)my.dev_partial_floats,
						 my.dev_sum_float, (unsigned)REDUCE_GRID);
	RT(cudaGetLastError());
	reduce<<<1, REDUCE_BLOCK, 0, my.second>>>((const u64 *)my.dev_partial_integers,
						  my.dev_sum_integer, (unsigned)REDUCE_GRID);
	RT(cudaGetLastError());
	lane->launches += 4;
	RT(cudaEventRecord(my.first_done, my.first));
	RT(cudaStreamWaitEvent(my.second, my.first_done, 0));
	RT(cudaMemcpyAsync(&got_float, my.dev_sum_float, sizeof(got_float), cudaMemcpyDeviceToHost,
			   my.second));
	RT(cudaMemcpyAsync(&got_u64, my.dev_sum_integer, sizeof(got_u64), cudaMemcpyDeviceToHost,
			   my.second));
	RT(cudaStreamSynchronize(my.second));
	app_compare(lane, "sum of floats", &want_float, &got_float, 1, sizeof(float));
	app_compare(lane, "sum of integers", &want_u64, &got_u64, 1, sizeof(uint64_t));
}

static void reduce_close(void) {
	RT(cudaFree(my.dev_sum_integer));
	RT(cudaFree(my.dev_sum_float));
	RT(cudaFree(my.dev_partial_integers));
	RT(cudaFree(my.dev_partial_floats));
	RT(cudaFree(my.dev_integers));
	RT(cudaFree(my.dev_floats));
	RT(cudaEventDestroy(my.first_done));
	RT(cudaStreamDestroy(my.second));
	RT(cudaStreamDestroy(my.first));
	free(my.integers);
	free(my.floats);
}

static const struct app reduce_app = {
	.name = "reduce",
	.summary = "Sums two arrays on two streams.",
	.size_meaning = "elements of each array",
	.size_default = 40000,
	.size_min = 1,
	.size_max = 1u << 27,
	.open = reduce_open,
	.frame = reduce_frame,
	.close = reduce_close,
};

int main(int argc, char **argv) {
	return app_main(&reduce_app, argc, argv);
}
