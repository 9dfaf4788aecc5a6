/*
 * lanes.c: several threads, each with a stream and data of its own, doing arithmetic at the same
 * time. Tells on which SMs each thread's blocks ran, and checks that each block ran exactly once.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"
#include "reference.h"

extern const char compute_ptx[];

/* What one lane owns. */
struct lane_data {
	size_t n;
	unsigned *out, *want;
	struct app_sms sms;
	CUstream stream;
	CUdeviceptr dev_out, dev_sms;
};

static struct {
	CUmodule module;
	CUfunction kernel;
	uint64_t blocks; /* of all lanes */
} my;

static void lanes_open(const struct app_options *options) {
	my.module = driver_open(options->gpu, compute_ptx);
	my.kernel = driver_kernel(my.module, "compute");
}

static void lanes_begin(struct app_lane *lane) {
	struct lane_data *d = app_alloc(1, sizeof(*d));

	lane->own = d;
	d->n = (size_t)lane->options->size * COMPUTE_BLOCK;
	d->out = app_alloc(d->n, sizeof(unsigned));
	d->want = app_alloc(d->n, sizeof(unsigned));
	driver_enter_thread();
	CU(cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
	d->dev_out = driver_alloc(d->n * sizeof(unsigned));
	d->dev_sms = driver_alloc(sizeof(d->sms));
}

static void lanes_frame(struct app_lane *lane, uint64_t seed) {
	struct lane_data *d = lane->own;
	const struct app_options *o = lane->options;
	struct app_random random = {seed};
	unsigned first = app_random_u32(&random);
	unsigned mul = REFERENCE_COMPUTE_MUL;
	unsigned add = REFERENCE_COMPUTE_ADD;
	unsigned rounds = o->rounds;
	void *params[] = {&d->dev_out, &first, &rounds, &mul, &add, &d->dev_sms};
	uint64_t start_ns;

	for (size_t i = 0; i < d->n; i++) {
		d->want[i] = 0;
	}
	CU(cuMemsetD32Async(d->dev_out, 0, d->n, d->stream));
	CU(cuMemsetD32Async(d->dev_sms, 0, APP_SMS_MAX, d->stream));
	start_ns = app_now_ns();
	for (unsigned l = 0; l < o->launches; l++, first++) {
		CU(cuLaunchKernel(my.kernel, o->size, 1, 1, COMPUTE_BLOCK, 1, 1, 0, d->stream,
				  params, NULL));
	}
	CU(cuStreamSynchronize(d->stream));
	lane->gpu_ns += app_now_ns() - start_ns;
	lane->launches += o->launches;
	lane->blocks += (uint64_t)o->launches * o->size;

	CU(cuMemcpyDtoHAsync(d->out, d->dev_out, d->n * sizeof(unsigned), d->stream));
	CU(cuMemcpyDtoHAsync(&d->sms, d->dev_sms, sizeof(d->sms), d->stream));
	CU(cuStreamSynchronize(d->stream));
	first -= o->launches;
	for (unsigned l = 0; l < o->launches; l++) {
		reference_compute(d->want, d->n, first + l, rounds);
	}
	app_compare(lane, "numbers", d->want, d->out, d->n, sizeof(unsigned));
	app_count_sms(lane, &d->sms);
}

static void lanes_end(struct app_lane *lane) {
	struct lane_data *d = lane->own;

	driver_free(d->dev_sms);
	driver_free(d->dev_out);
	CU(cuStreamDestroy(d->stream));
	free(d->want);
	free(d->out);
	free(d);
	__atomic_fetch_add(&my.blocks, lane->blocks, __ATOMIC_RELAXED);
}

/* The kernel's own count of its blocks, all lanes and frames together. */
static uint64_t lanes_check(void) {
	CUdeviceptr counter;
	uint64_t counted;
	size_t bytes;

	CU(cuModuleGetGlobal(&counter, &bytes, my.module, "compute_blocks"));
	CU(cuMemcpyDtoH(&counted, counter, sizeof(counted)));
	return counted > my.blocks ? counted - my.blocks : my.blocks - counted;
}

static void lanes_close(void) {
	driver_close(my.module);
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
