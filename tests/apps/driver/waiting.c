/*
 * waiting.c: runs kernels whose blocks wait for each other, with as many blocks as the GPU holds.
 */
#include "driver.h"

#include <stdlib.h>

#include "common.h"

#define THREADS 1024
#define ROUNDS	3

extern const char waiting_ptx[];

static struct {
	unsigned n; /* blocks */
	unsigned *x, *want, *before;
	CUmodule module;
	CUfunction all_wait, wait_for_higher;
	CUdeviceptr dev_x, dev_gate, dev_done;
} my;

static void waiting_open(const struct app_options *options) {
	int per_sm, sms;

	my.module = driver_open(options->gpu, waiting_ptx);
	my.all_wait = driver_kernel(my.module, "all_wait");
	my.wait_for_higher = driver_kernel(my.module, "wait_for_higher");
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, my.all_wait, THREADS, 0));
	CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				(CUdevice)options->gpu));
	my.n = (unsigned)(per_sm * sms);
	my.x = app_alloc(my.n, sizeof(unsigned));
	my.want = app_alloc(my.n, sizeof(unsigned));
	my.before = app_alloc(my.n, sizeof(unsigned));
	my.dev_x = driver_alloc(my.n * sizeof(unsigned));
	my.dev_done = driver_alloc(my.n * sizeof(unsigned));
	my.dev_gate = driver_alloc(2 * sizeof(unsigned));
}

static void expect(void) {
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < my.n; i++) {
			my.before[i] = my.want[i];
		}
		for (unsigned i = 0; i < my.n; i++) {
			my.want[i] += my.before[(i + my.n - 1) % my.n];
		}
	}
	for (unsigned i = my.n - 1; i-- > 0;) {
		my.want[i] += my.want[i + 1];
	}
}

static void waiting_frame(struct app_lane *lane, uint64_t seed) {
	struct app_random random = {seed};
	unsigned rounds = ROUNDS;
	void *first[] = {&my.dev_x, &my.dev_gate, &rounds}, *second[] = {&my.dev_x, &my.dev_done};

	for (unsigned i = 0; i < my.n; i++) {
		my.x[i] = my.want[i] = app_random_u32(&random);
	}
	expect();
	CU(cuMemsetD32(my.dev_gate, 0, 2));
	CU(cuMemsetD32(my.dev_done, 0, my.n));
	CU(cuMemcpyHtoD(my.dev_x, my.x, my.n * sizeof(unsigned)));
	CU(cuLaunchKernel(my.all_wait, my.n, 1, 1, THREADS, 1, 1, 0, NULL, first, NULL));
	CU(cuLaunchKernel(my.wait_for_higher, my.n, 1, 1, THREADS, 1, 1, 0, NULL, second, NULL));
	lane->launches += 2;
	CU(cuMemcpyDtoH(my.x, my.dev_x, my.n * sizeof(unsigned)));
	app_compare(lane, "sums", my.want, my.x, my.n, sizeof(unsigned));
}

static void waiting_close(void) {
	driver_free(my.dev_x);
	driver_free(my.dev_done);
	driver_free(my.dev_gate);
	driver_close(my.module);
	free(my.x);
	free(my.want);
	free(my.before);
}

static const struct app waiting_app = {
	.name = "waiting",
	.summary = "Runs kernels whose blocks wait for each other.",
	.size_meaning = "nothing",
	.size_default = 1,
	.size_min = 1,
	.size_max = 1,
	.open = waiting_open,
	.frame = waiting_frame,
	.close = waiting_close,
};

int main(int argc, char **argv) {
	return app_main(&waiting_app, argc, argv);
}
