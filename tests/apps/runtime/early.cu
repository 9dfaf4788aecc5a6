/*
 * early.cu: sums rows of random lengths; the kernel's threads leave early, before barriers that the
 * rest still meets. Waits with cudaEventSynchronize.
 */
#include "../kernels/early.cu"
#include "runtime.h"

static struct {
	unsigned rows;
	size_t cells;
	unsigned *data, *lengths, *sums, *want;
	unsigned *dev_data, *dev_lengths, *dev_sums;
	cudaEvent_t done;
} my;

static void early_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.rows = options->size;
	my.cells = (size_t)my.rows * EARLY_BLOCK;
	my.data = host_alloc<unsigned>(my.cells);
	my.lengths = host_alloc<unsigned>(my.rows);
	my.sums = host_alloc<unsigned>(my.rows);
	my.want = host_alloc<unsigned>(my.rows);
	RT(cudaEventCreateWithFlags(&my.done, cudaEventBlockingSync | cudaEventDisableTiming));
	my.dev_data = device_alloc<unsigned>(my.cells);
	my.dev_lengths = device_alloc<unsigned>(my.rows);
	my.dev_sums = device_alloc<unsigned>(my.rows);
}

static void early_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};

	for (size_t i = 0; i < my.cells; i++) {
		my.data[i] = app_random_u32(&random);
	}
	for (unsigned r = 0; r < my.rows; r++) {
		my.lengths[r] = app_random_u32(&random) % (EARLY_BLOCK + 1);
	}
	reference_early(my.data, my.lengths, EARLY_BLOCK, my.rows, my.want);

	RT(cudaMemcpy(my.dev_data, my.data, my.cells * sizeof(unsigned), cudaMemcpyHostToDevice));
	RT(cudaMemcpy(my.dev_lengths, my.lengths, my.rows * sizeof(unsigned), cudaMemcpyHostToDevice));
	RT(cudaMemset(my.dev_sums, 0, my.rows * sizeof(unsigned)));
	early<<<my.rows, EARLY_BLOCK>>>(my.dev_data, my.dev_lengths, EARLY_BLOCK, my.dev_sums);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaEventRecord(my.done));
	RT(cudaEventSynchronize(my.done));
	RT(cudaMemcpy(my.sums, my.dev_sums, my.rows * sizeof(unsigned), cudaMemcpyDeviceToHost));
	app_compare(lane, "row sums", my.want, my.sums, my.rows, sizeof(unsigned));
}

static void early_close(void) {
	RT(cudaFree(my.dev_sums));
	RT(cudaFree(my.dev_lengths));
	RT(cudaFree(my.dev_data));
	RT(cudaEventDestroy(my.done));
	free(my.want);
	free(my.sums);
	free(my.lengths);
	free(my.data);
}

static const struct app early_app = {
	.name = "early",
	.summary = "Sums rows of different lengths; threads leave before barriers.",
	.size_meaning = "rows",
	.size_default = 200,
	.size_min = 1,
	.size_max = 1u << 22,
	.open = early_open,
	.frame = early_frame,
	.close = early_close,
};

int main(int argc, char **argv) {
	return app_main(&early_app, argc, argv);
}
