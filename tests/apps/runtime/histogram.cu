/*
 * histogram.cu: byte histogram. Never waits for the GPU: it polls an event, and a stream, and does
 * something else meanwhile.
 */
#include "../kernels/histogram.cu"
#include "runtime.h"

#define GRID	 24
#define PAUSE_NS 20000

static struct {
	size_t n;
	unsigned char *data; /* page-locked */
	unsigned *bins;	     /* page-locked */
	unsigned want[HISTOGRAM_BINS];
	unsigned char *dev_data;
	unsigned *dev_bins;
	cudaStream_t stream;
	cudaEvent_t done;
} my;

static void histogram_open(const struct app_options *options) {
	runtime_open(options->gpu);
	my.n = options->size;
	RT(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
	RT(cudaEventCreateWithFlags(&my.done, cudaEventDisableTiming));
	my.data = pinned_alloc<unsigned char>(my.n);
	my.bins = pinned_alloc<unsigned>(HISTOGRAM_BINS);
	my.dev_data = device_alloc<unsigned char>(my.n);
	my.dev_bins = device_alloc<unsigned>(HISTOGRAM_BINS);
}

/* Polls in one of two ways, by turns. */
static void wait_for_frame(unsigned frame) {
	cudaError_t r;

	for (;;) {
		r = frame % 2 ? cudaStreamQuery(my.stream) : cudaEventQuery(my.done);
		if (r != cudaErrorNotReady) {
			break;
		}
		app_pause_ns(PAUSE_NS);
	}
	RT(r);
}

static void histogram_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};

	app_random_bytes(&random, my.data, my.n);
	reference_histogram(my.data, my.n, my.want);

	RT(cudaMemcpyAsync(my.dev_data, my.data, my.n, cudaMemcpyHostToDevice, my.stream));
	RT(cudaMemsetAsync(my.dev_bins, 0, sizeof(my.want), my.stream));
	histogram<<<GRID, HISTOGRAM_BLOCK, HISTOGRAM_BINS * sizeof(unsigned), my.stream>>>(
		my.dev_data, (unsigned)my.n, my.dev_bins);
	RT(cudaGetLastError());
	lane->launches++;
	RT(cudaMemcpyAsync(my.bins, my.dev_bins, sizeof(my.want), cudaMemcpyDeviceToHost, my.stream));
	RT(cudaEventRecord(my.done, my.stream));
	wait_for_frame(lane->frame);
	app_compare(lane, "bins", my.want, my.bins, HISTOGRAM_BINS, sizeof(unsigned));
}

static void histogram_close(void) {
	RT(cudaFree(my.dev_bins));
	RT(cudaFree(my.dev_data));
	RT(cudaFreeHost(my.bins));
	RT(cudaFreeHost(my.data));
	RT(cudaEventDestroy(my.done));
	RT(cudaStreamDestroy(my.stream));
}

static const struct app histogram_app = {
	.name = "histogram",
	.summary = "Counts byte values; polls instead of waiting.",
	.size_meaning = "bytes",
	.size_default = 60000,
	.size_min = 1,
	.size_max = 1u << 30,
	.open = histogram_open,
	.frame = histogram_frame,
	.close = histogram_close,
};

int main(int argc, char **argv) {
	return app_main(&histogram_app, argc, argv);
}
