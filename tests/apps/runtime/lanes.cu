/*
 * lanes.cu: several threads, each with a stream and data of its own, doing arithmetic at the same
 * time. Tells on which SMs each thread's blocks ran, and checks that each block ran exactly once.
 */
#include "../kernels/compute.cu"
#include "runtime.h"

/* What one lane owns. */
struct lane_data {
	size_t n;
	unsigned *out, *want;
	struct app_sms sms;
	cudaStream_t stream;
	unsigned *dev_out, *dev_sms;
};

static unsigned gpu;
static unsigned long long all_blocks; /* of all lanes */

static void lanes_open(const struct app_options *options) {
	gpu = options->gpu;
	runtime_open(gpu);
}

static void lanes_begin(struct app_lane *lane) {
	struct lane_data *d = host_alloc<struct lane_data>(1);

	lane->own = d;
	d->n = (size_t)lane->options->size * COMPUTE_BLOCK;
	d->out = host_alloc<unsigned>(d->n);
	d->want = host_alloc<unsigned>(d->n);
	RT(cudaSetDevice((int)gpu)); /* a thread's own */
	RT(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
	d->dev_out = device_alloc<unsigned>(d->n);
	d->dev_sms = device_alloc<unsigned>(APP_SMS_MAX);
}

static void lanes_frame(struct app_lane *lane, uint64_t seed) {
	struct lane_data *d = static_cast<struct lane_data *>(lane->own);
	const struct app_options *o = lane->options;
	struct app_random random = {seed};
	unsigned first = app_random_u32(&random);
	uint64_t start_ns;

	for (size_t i = 0; i < d->n; i++) {
		d->want[i] = 0;
	}
	RT(cudaMemsetAsync(d->dev_out, 0, d->n * sizeof(unsigned), d->stream));
	RT(cudaMemsetAsync(d->dev_sms, 0, sizeof(d->sms), d->stream));
	start_ns = app_now_ns();
	for (unsigned l = 0; l < o->launches; l++) {
		compute<<<o->size, COMPUTE_BLOCK, 0, d->stream>>>(
			d->dev_out, first + l, o->rounds, REFERENCE_COMPUTE_MUL, REFERENCE_COMPUTE_ADD,
			d->dev_sms);
	}
	RT(cudaGetLastError());
	RT(cudaStreamSynchronize(d->stream));
	lane->gpu_ns += app_now_ns() - start_ns;
	lane->launches += o->launches;
	lane->blocks += (uint64_t)o->launches * o->size;

	RT(cudaMemcpyAsync(d->out, d->dev_out, d->n * sizeof(unsigned), cudaMemcpyDeviceToHost,
			   d->stream));
	RT(cudaMemcpyAsync(&d->sms, d->dev_sms, sizeof(d->sms), cudaMemcpyDeviceToHost, d->stream));
	RT(cudaStreamSynchronize(d->stream));
	for (unsigned l = 0; l < o->launches; l++) {
		reference_compute(d->want, d->n, first + l, o->rounds);
	}
	app_compare(lane, "numbers", d->want, d->out, d->n, sizeof(unsigned));
	app_count_sms(lane, &d->sms);
}

static void lanes_end(struct app_lane *lane) {
	struct lane_data *d = static_cast<struct lane_data *>(lane->own);

	RT(cudaFree(d->dev_sms));
	RT(cudaFree(d->dev_out));
	RT(cudaStreamDestroy(d->stream));
	free(d->want);
	free(d->out);
	free(d);
	__atomic_fetch_add(&all_blocks, lane->blocks, __ATOMIC_RELAXED);
}

/* The kernel's own count of its blocks, all lanes and frames together. */
static uint64_t lanes_check(void) {
	unsigned long long counted;

	RT(cudaMemcpyFromSymbol(&counted, compute_blocks, sizeof(counted)));
	return counted > all_blocks ? counted - all_blocks : all_blocks - counted;
}

static void lanes_close(void) {
}

static const struct app lanes_app = {
	.name = "lanes",
	.summary = "Arithmetic in several threads, each with a stream.",
	.size_meaning = "blocks a launch",
	.size_default = 64,
	.size_min = 1,
	.size_max = 1u << 20,
	.lanes_default = 3,
	.launches_default = 2,
	.rounds_default = 100,
	.open = lanes_open,
	.begin = lanes_begin,
	.frame = lanes_frame,
	.end = lanes_end,
	.check = lanes_check,
	.close = lanes_close,
};

int main(int argc, char **argv) {
	return app_main(&lanes_app, argc, argv);
}
