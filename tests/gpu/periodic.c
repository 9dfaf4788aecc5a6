/*
 * periodic.c: one task of the evaluation: a sample kernel, released again and again at fixed times.
 *
 * usage: periodic profile SCALE COUNT MILLISECONDS SMS...
 *	Every kind of work in a green context of each number of SMs, COUNT jobs each, then for so
 *many MILLISECONDS (0: not) over and over for its power. A line each on stdout: work sms copy_in_ns
 *	exec_best_ns exec_worst_ns copy_out_ns watts
 * usage: periodic WORK SCALE PERIOD_NS DEADLINE_NS OFFSET_NS WINDOW_NS [LEAD_NS]
 *	Says "ready" on stdout, reads the start (CLOCK_MONOTONIC, ns) from stdin, and runs a job at
 *	each release for LEAD_NS (0) and the window after; a job that can't begin in time begins
 *	when it can. Then a line: released completed missed mean_ns p99_ns max_ns digest. Released:
 *	within the window, and so are their deadlines; missed: of these, done too late or not at
 *	all; the times are responses, from release to result, of the completed. Nothing counts of
 *	jobs released in the lead, which is there for what happens but once: caches, partitions,
 *	the manager's guess of when the period begins.
 *
 * A job is a copy to the GPU, launches, and a copy back, on one stream. The first result is
 * compared with the CPU's, where that takes no minutes; each later one with the first: same input,
 * same bits. Knows nothing of sbeet. Exit 1 if a result is wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hash.h"
#include "tests/apps/common.h"
#include "tests/apps/driver/driver.h"
#include "tests/apps/reference.h"
#include "tests/gpu/green.h"
#include "tests/gpu/meter.h"

#define RESPONSES_MAX 1000000

extern const char compute_ptx[], histogram_ptx[], hotspot_ptx[], matmul_ptx[], vecadd_ptx[];

/* The GPU's and the host's side of the one kind of work that is open. */
static struct {
	const struct work *work;
	unsigned n, launches;
	size_t in_bytes, out_bytes;
	void *in, *out, *first; /* in and out are pinned */
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr dev_in, dev_out, dev_more;
	CUstream stream; /* borrowed */
} my;

struct work {
	const char *name, *ptx, *kernel;
	unsigned n, launches;	   /* at scale 100 */
	unsigned tiny, n_launches; /* at scale 0 */
	void (*size)(void);	   /* sets in_bytes and out_bytes from n */
	void (*launch)(void);
	bool (*right)(void); /* NULL: only repeated */
};

static void launch(unsigned x, unsigned y, unsigned block_x, unsigned block_y, unsigned shared,
		   void **params) {
	CU(cuLaunchKernel(my.kernel, x, y, 1, block_x, block_y, 1, shared, my.stream, params,
			  NULL));
}

/* Two vectors or square matrices in, one out. */
static void two_in_one_out(size_t elements) {
	my.in_bytes = 2 * elements * sizeof(float);
	my.out_bytes = elements * sizeof(float);
}

static void vecadd_size(void) {
	two_in_one_out(my.n);
}

static void vecadd_launch(void) {
	CUdeviceptr b = my.dev_in + my.n * sizeof(float);
	void *params[] = {&my.dev_in, &b, &my.dev_out, &my.n};

	for (unsigned i = 0; i < my.launches; i++) {
		launch(driver_blocks(my.n, VECADD_BLOCK), 1, VECADD_BLOCK, 1, 0, params);
	}
}

static bool vecadd_right(void) {
	float *want = app_alloc(my.n, sizeof(float));
	bool same;

	reference_vecadd(my.in, (float *)my.in + my.n, want, my.n);
	same = memcmp(want, my.out, my.out_bytes) == 0;
	free(want);
	return same;
}

static void matmul_size(void) {
	two_in_one_out((size_t)my.n * my.n);
}

static void matmul_launch(void) {
	CUdeviceptr b = my.dev_in + (size_t)my.n * my.n * sizeof(float);
	void *params[] = {&my.dev_in, &b, &my.dev_out, &my.n};
	unsigned tiles = driver_blocks(my.n, MATMUL_TILE);

	for (unsigned i = 0; i < my.launches; i++) {
		launch(tiles, tiles, MATMUL_TILE, MATMUL_TILE, 0, params);
	}
}

static bool matmul_right(void) {
	float *want;
	bool same;

	if (my.n > 512) {
		return true; /* a long time on one CPU */
	}
	want = app_alloc((size_t)my.n * my.n, sizeof(float));
	reference_matmul(my.in, (float *)my.in + (size_t)my.n * my.n, want, my.n);
	same = memcmp(want, my.out, my.out_bytes) == 0;
	free(want);
	return same;
}

static void hotspot_size(void) {
	CUdeviceptr coeff;
	size_t bytes;

	two_in_one_out((size_t)my.n * my.n);
	CU(cuModuleGetGlobal(&coeff, &bytes, my.module, "hotspot_coeff"));
	CU(cuMemcpyHtoD(coeff, reference_hotspot_coeff, sizeof(reference_hotspot_coeff)));
}

/* An odd number of steps ends in dev_out. */
static void hotspot_launch(void) {
	CUdeviceptr now = my.dev_in, next = my.dev_out;
	CUdeviceptr power = my.dev_in + (size_t)my.n * my.n * sizeof(float);
	int n = (int)my.n;
	unsigned tiles = driver_blocks(my.n, HOTSPOT_TILE);

	for (unsigned i = 0; i < my.launches; i++) {
		void *params[] = {&now, &power, &next, &n};

		launch(tiles, tiles, HOTSPOT_TILE, HOTSPOT_TILE, 0, params);
		now = next;
		next = next == my.dev_out ? my.dev_in : my.dev_out;
	}
}

static bool hotspot_right(void) {
	size_t cells = (size_t)my.n * my.n;
	float *now, *next;
	bool same;

	now = app_alloc(cells, sizeof(float));
	next = app_alloc(cells, sizeof(float));
	memcpy(now, my.in, cells * sizeof(float));
	reference_hotspot(now, next, (float *)my.in + cells, (int)my.n, my.launches);
	same = memcmp(now, my.out, my.out_bytes) == 0;
	free(next);
	free(now);
	return same;
}

static void histogram_size(void) {
	my.in_bytes = my.n;
	my.out_bytes = HISTOGRAM_BINS * sizeof(unsigned);
}

static void histogram_launch(void) {
	void *params[] = {&my.dev_in, &my.n, &my.dev_out};

	CU(cuMemsetD32Async(my.dev_out, 0, HISTOGRAM_BINS, my.stream));
	for (unsigned i = 0; i < my.launches; i++) {
		launch(driver_blocks(my.n, HISTOGRAM_BLOCK * 64), 1, HISTOGRAM_BLOCK, 1,
		       HISTOGRAM_BINS * sizeof(unsigned), params);
	}
}

static bool histogram_right(void) {
	unsigned want[HISTOGRAM_BINS] = {0};

	reference_histogram(my.in, my.n, want);
	for (unsigned i = 0; i < HISTOGRAM_BINS; i++) {
		want[i] *= my.launches;
	}
	return memcmp(want, my.out, sizeof(want)) == 0;
}

/* @n blocks, of so much arithmetic that copies are nothing. */
static void compute_size(void) {
	my.in_bytes = sizeof(unsigned);
	my.out_bytes = (size_t)my.n * COMPUTE_BLOCK * sizeof(unsigned);
}

#define COMPUTE_ROUNDS 20000u

static void compute_launch(void) {
	unsigned first = 7, mul = REFERENCE_COMPUTE_MUL, add = REFERENCE_COMPUTE_ADD;
	unsigned rounds = my.work->n == my.n ? COMPUTE_ROUNDS : 10;
	void *params[] = {&my.dev_out, &first, &rounds, &mul, &add, &my.dev_more};

	CU(cuMemsetD32Async(my.dev_out, 0, (size_t)my.n * COMPUTE_BLOCK, my.stream));
	for (unsigned i = 0; i < my.launches; i++) {
		launch(my.n, 1, COMPUTE_BLOCK, 1, 0, params);
	}
}

static bool compute_right(void) {
	unsigned *want = app_alloc((size_t)my.n * COMPUTE_BLOCK, sizeof(unsigned));
	unsigned rounds = my.work->n == my.n ? COMPUTE_ROUNDS : 10;
	bool same;

	for (unsigned i = 0; i < my.launches; i++) {
		reference_compute(want, (size_t)my.n * COMPUTE_BLOCK, 7, rounds);
	}
	same = memcmp(want, my.out, my.out_bytes) == 0;
	free(want);
	return same;
}

/* The five kernels in eight sizes: 1 to 8 ms on the whole of an H200, copies or kernels prevailing.
 */
static const struct work works[] = {
	{"vecadd", vecadd_ptx, "vecadd", 4000000, 20, 2000, 1, vecadd_size, vecadd_launch,
	 vecadd_right},
	{"stream", vecadd_ptx, "vecadd", 1000000, 400, 1000, 2, vecadd_size, vecadd_launch,
	 vecadd_right},
	{"matmul", matmul_ptx, "_Z6matmulILi16EEvPKfS1_Pfj", 1024, 3, 32, 1, matmul_size,
	 matmul_launch, matmul_right},
	{"matmul-small", matmul_ptx, "_Z6matmulILi16EEvPKfS1_Pfj", 512, 6, 16, 1, matmul_size,
	 matmul_launch, matmul_right},
	{"hotspot", hotspot_ptx, "hotspot", 1024, 101, 32, 3, hotspot_size, hotspot_launch,
	 hotspot_right},
	{"histogram", histogram_ptx, "histogram", 16000000, 4, 5000, 1, histogram_size,
	 histogram_launch, histogram_right},
	{"compute", compute_ptx, "compute", 4224, 8, 16, 1, compute_size, compute_launch,
	 compute_right},
	{"compute-long", compute_ptx, "compute", 4224, 24, 16, 3, compute_size, compute_launch,
	 compute_right},
};
#define N_WORKS (sizeof(works) / sizeof(works[0]))

static void fill(void) {
	struct app_random random = {1};

	if (my.work->ptx == histogram_ptx || my.in_bytes < 2 * sizeof(float)) {
		app_random_bytes(&random, my.in, my.in_bytes);
	} else {
		app_random_floats(&random, my.in, my.in_bytes / sizeof(float));
	}
}

/* @full: as measured in RESULTS.md; else so small that an interpreter can run it. */
static void work_open(const struct work *work, bool full) {
	memset(&my, 0, sizeof(my));
	my.work = work;
	my.n = full ? work->n : work->tiny;
	my.launches = full ? work->launches : work->n_launches;
	CU(cuModuleLoadData(&my.module, work->ptx));
	my.kernel = driver_kernel(my.module, work->kernel);
	work->size();
	CU(cuMemAllocHost(&my.in, my.in_bytes));
	CU(cuMemAllocHost(&my.out, my.out_bytes));
	my.first = app_alloc(my.out_bytes, 1);
	my.dev_in = driver_alloc(my.in_bytes);
	my.dev_out = driver_alloc(my.out_bytes);
	my.dev_more = driver_alloc(COMPUTE_SMS_MAX * sizeof(unsigned));
	CU(cuMemsetD32(my.dev_more, 0, COMPUTE_SMS_MAX));
	fill();
}

static void work_close(void) {
	driver_free(my.dev_more);
	driver_free(my.dev_out);
	driver_free(my.dev_in);
	free(my.first);
	CU(cuMemFreeHost(my.out));
	CU(cuMemFreeHost(my.in));
	CU(cuModuleUnload(my.module));
}

static void job(void) {
	CU(cuMemcpyHtoDAsync(my.dev_in, my.in, my.in_bytes, my.stream));
	my.work->launch();
	CU(cuMemcpyDtoHAsync(my.out, my.dev_out, my.out_bytes, my.stream));
	CU(cuStreamSynchronize(my.stream));
}

static void expect(bool right) {
	if (!right) {
		fprintf(stderr, "periodic: %s: the result is wrong\n", my.work->name);
		exit(1);
	}
}

static void first_job(void) {
	job();
	expect(!my.work->right || my.work->right());
	memcpy(my.first, my.out, my.out_bytes);
}

/* Of the first result, which all others equal. */
static uint64_t digest(void) {
	return hash_bytes(HASH_EMPTY, my.first, my.out_bytes);
}

/* The same job with a wait after each phase. */
static void timed_job(uint64_t ret_ns[3]) {
	uint64_t t[4];

	t[0] = app_now_ns();
	CU(cuMemcpyHtoDAsync(my.dev_in, my.in, my.in_bytes, my.stream));
	CU(cuStreamSynchronize(my.stream));
	t[1] = app_now_ns();
	my.work->launch();
	CU(cuStreamSynchronize(my.stream));
	t[2] = app_now_ns();
	CU(cuMemcpyDtoHAsync(my.out, my.dev_out, my.out_bytes, my.stream));
	CU(cuStreamSynchronize(my.stream));
	t[3] = app_now_ns();
	for (unsigned i = 0; i < 3; i++) {
		ret_ns[i] = t[i + 1] - t[i];
	}
}

/* Mean power over about @ms of kernels without a pause; 0 if it is not to be measured. */
static double power(unsigned ms) {
	uint64_t end = app_now_ns() + ms * 1000000ull;
	struct meter_span span;

	if (ms == 0 || !meter_begin(&span)) {
		return 0;
	}
	while (app_now_ns() < end) {
		my.work->launch();
		CU(cuStreamSynchronize(my.stream));
	}
	return meter_end(&span);
}

static void profile_point(const struct work *work, bool full, unsigned count, unsigned ms,
			  const struct green *green) {
	uint64_t in = 0, out = 0, best = UINT64_MAX, worst = 0, t[3];

	work_open(work, full);
	my.stream = green->stream;
	first_job();
	for (unsigned i = 0; i < count; i++) {
		timed_job(t);
		expect(memcmp(my.first, my.out, my.out_bytes) == 0);
		in = t[0] > in ? t[0] : in;
		best = t[1] < best ? t[1] : best;
		worst = t[1] > worst ? t[1] : worst;
		out = t[2] > out ? t[2] : out;
	}
	printf("%s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %.3f\n", work->name,
	       green->n_sms, in, best, worst, out, power(ms));
	work_close();
}

static int profile(int argc, char **argv, CUdevice device) {
	bool full = strcmp(argv[2], "0") != 0;
	unsigned count = (unsigned)strtoul(argv[3], NULL, 10);
	unsigned ms = (unsigned)strtoul(argv[4], NULL, 10);

	for (int i = 5; i < argc; i++) {
		struct green green;

		if (green_init(&green, device, (unsigned)strtoul(argv[i], NULL, 10)) < 0) {
			fprintf(stderr, "periodic: this driver has no green contexts\n");
			return 1;
		}
		for (size_t w = 0; w < N_WORKS; w++) {
			profile_point(&works[w], full, count, ms, &green);
		}
		green_deinit(&green);
	}
	return 0;
}

static int compare(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct schedule {
	uint64_t period, deadline, offset, window, lead;
};

static void sleep_until(uint64_t when) {
	uint64_t now = app_now_ns();

	if (now < when) {
		app_pause_ns(when - now);
	}
}

static int run(const struct schedule *s, uint64_t start) {
	uint64_t *responses = app_alloc(RESPONSES_MAX, sizeof(*responses));
	uint64_t release, begin = start + s->lead, end = begin + s->window;
	uint64_t released = 0, completed = 0, missed = 0;
	double sum = 0;

	for (release = start + s->offset; release < end; release += s->period) {
		bool inside = release >= begin, counts = inside && release + s->deadline <= end;

		released += counts;
		sleep_until(release);
		if (app_now_ns() >= end || completed == RESPONSES_MAX) {
			missed += counts;
			continue;
		}
		job();
		responses[completed] = app_now_ns() - release;
		expect(memcmp(my.first, my.out, my.out_bytes) == 0);
		missed += counts && responses[completed] > s->deadline;
		if (inside) {
			sum += (double)responses[completed++];
		}
	}
	qsort(responses, completed, sizeof(*responses), compare);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.0f %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n",
	       released, completed, missed, completed ? sum / (double)completed : 0,
	       completed ? responses[(completed - 1) * 99 / 100] : 0,
	       completed ? responses[completed - 1] : 0, digest());
	free(responses);
	return 0;
}

static int run_task(int argc, char **argv) {
	uint64_t start;
	struct schedule s = {
		.period = strtoull(argv[3], NULL, 10),
		.deadline = strtoull(argv[4], NULL, 10),
		.offset = strtoull(argv[5], NULL, 10),
		.window = strtoull(argv[6], NULL, 10),
		.lead = argc > 7 ? strtoull(argv[7], NULL, 10) : 0,
	};

	for (size_t w = 0; w < N_WORKS; w++) {
		if (strcmp(works[w].name, argv[1]) != 0) {
			continue;
		}
		work_open(&works[w], strcmp(argv[2], "0") != 0);
		CU(cuStreamCreate(&my.stream, CU_STREAM_NON_BLOCKING));
		first_job();
		for (unsigned i = 0; i < 3; i++) {
			job();
		}
		puts("ready");
		fflush(stdout);
		if (scanf("%" SCNu64, &start) != 1) {
			return 1; /* called off */
		}
		return run(&s, start);
	}
	fprintf(stderr, "periodic: there is no work '%s'\n", argv[1]);
	return 2;
}

int main(int argc, char **argv) {
	bool profiles = argc > 5 && strcmp(argv[1], "profile") == 0;
	CUcontext context;
	CUdevice device;

	if (!profiles && (argc < 7 || argc > 8 || strtoull(argv[3], NULL, 10) == 0)) {
		fprintf(stderr,
			"usage: periodic profile SCALE COUNT MILLISECONDS SMS...\n"
			"       periodic WORK SCALE PERIOD DEADLINE OFFSET WINDOW [LEAD] (ns)\n");
		return 2;
	}
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	return profiles ? profile(argc, argv, device) : run_task(argc, argv);
}
