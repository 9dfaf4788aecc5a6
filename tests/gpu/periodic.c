/*
 * periodic.c: one task of the evaluation: a sample kernel, released again and again at fixed times.
 *
 * usage: periodic profile SCALE COUNT MILLISECONDS SMS...
 *	Every kind of work in a green context of each number of SMs, COUNT jobs each, then for so
 *	many MILLISECONDS (0: not) over and over for its power. A line each on stdout: work sms
 *	copy_in_ns exec_best_ns exec_worst_ns copy_out_ns watts
 * usage: periodic power SCALE MILLISECONDS CELL...
 *	What the GPU draws for so long: a line "CELL WATTS" each. WORK:SMS: kernels of that work on
 *	so many SMs, without a pause; WORK:SMS+WORK:SMS: two side by side; static: a context alone.
 *	Exit 1 if there were no such SMs for one: the others are measured all the same.
 * usage: periodic WORK SCALE PERIOD_NS DEADLINE_NS OFFSET_NS WINDOW_NS [LEAD_NS]
 *	Says "ready" on stdout, reads the start (CLOCK_MONOTONIC, ns) from stdin, and runs a job at
 *	each release for LEAD_NS (0) and the window after; a job that can't begin in time begins
 *	when it can. At the end of the window a line: released completed missed mean_ns p50_ns
 *	p99_ns max_ns digest. Released: within the window, and so are their deadlines; missed: of
 *	these, done too late or not at all; the times are responses, from release to result, of the
 *	completed. Nothing counts of jobs released in the lead, which is there for what happens but
 *	once: caches, partitions, the manager's guess of when the period begins.
 *	PERIODIC_PRIORITY=N: CUDA's priority of its stream. PERIODIC_EMPTY=1: the same calls with
 *	empty kernels and copies of 4 bytes, for what the host alone takes. PERIODIC_LATE=FILE: gets
 *	a line for each missed job, what its time went into, in ns: the job before that still ran,
 *	the wake-up, the first call, the copy to the GPU, the kernels, the copy back, the return;
 *	then all of it. By events, which every job records then. PERIODIC_ALL=1: a line for each
 *	job. PERIODIC_SECONDS=FILE: gets a line for each second of lead and window: jobs that were
 *	released in it, and how many of them were done too late or not at all. PERIODIC_CODE=FOLDER:
 *	the kernels' machine code (FOLDER/vecadd.cubin ...) instead of PTX.
 *
 * A job is a copy to the GPU, launches, and a copy back, on one stream. The first result is
 * compared with the CPU's, where that takes no minutes; the last one with the first: same input,
 * same bits; of each one between a part, another one each time, so that it takes no time that the
 * next job needs. Knows nothing of sbeet. Exit 1 if a result is wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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
#define COUNTS_MAX    64
#define PART_BYTES    ((size_t)128 << 10)
#define CELL_MAX      2 /* works side by side */

extern const char compute_ptx[], histogram_ptx[], hotspot_ptx[], matmul_ptx[], vecadd_ptx[];

/* The GPU's and the host's side of the one kind of work that is open. */
static _Thread_local struct opened {
	const struct work *work;
	unsigned n, launches, rounds;
	bool empty;
	size_t in_bytes, out_bytes;
	void *in, *out, *first; /* in and out are pinned */
	CUmodule module, empty_module;
	CUfunction kernel, empty_kernel;
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
	unsigned rounds;     /* arithmetic a thread, at scale 100 */
};

static void launch(unsigned x, unsigned y, unsigned block_x, unsigned block_y, unsigned shared,
		   void **params) {
	if (my.empty) {
		CU(cuLaunchKernel(my.empty_kernel, 1, 1, 1, 1, 1, 1, 0, my.stream, NULL, NULL));
		return;
	}
	CU(cuLaunchKernel(my.kernel, x, y, 1, block_x, block_y, 1, shared, my.stream, params,
			  NULL));
}

static void clear_out(void) {
	if (!my.empty) {
		CU(cuMemsetD32Async(my.dev_out, 0, my.out_bytes / sizeof(unsigned), my.stream));
	}
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

	clear_out();
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

static void compute_launch(void) {
	unsigned first = 7, mul = REFERENCE_COMPUTE_MUL, add = REFERENCE_COMPUTE_ADD;
	void *params[] = {&my.dev_out, &first, &my.rounds, &mul, &add, &my.dev_more};

	clear_out();
	for (unsigned i = 0; i < my.launches; i++) {
		launch(my.n, 1, COMPUTE_BLOCK, 1, 0, params);
	}
}

static bool compute_right(void) {
	unsigned *want = app_alloc((size_t)my.n * COMPUTE_BLOCK, sizeof(unsigned));
	bool same;

	for (unsigned i = 0; i < my.launches; i++) {
		reference_compute(want, (size_t)my.n * COMPUTE_BLOCK, 7, my.rounds);
	}
	same = memcmp(want, my.out, my.out_bytes) == 0;
	free(want);
	return same;
}

#define MATMUL "_Z6matmulILi16EEvPKfS1_Pfj"

/* The five kernels in eight sizes: 1 to 8 ms on the whole of an H200, copies or kernels prevailing.
 * Then works of the family "long": blocks of 1 ms where an SM is full, one and three waves of them
 * on 132 SMs, and networks of 100 small kernels. */
static const struct work works[] = {
	{"vecadd", vecadd_ptx, "vecadd", 4000000, 20, 2000, 1, vecadd_size, vecadd_launch,
	 vecadd_right, 0},
	{"stream", vecadd_ptx, "vecadd", 1000000, 400, 1000, 2, vecadd_size, vecadd_launch,
	 vecadd_right, 0},
	{"matmul", matmul_ptx, MATMUL, 1024, 3, 32, 1, matmul_size, matmul_launch, matmul_right, 0},
	{"matmul-small", matmul_ptx, MATMUL, 512, 6, 16, 1, matmul_size, matmul_launch,
	 matmul_right, 0},
	{"hotspot", hotspot_ptx, "hotspot", 1024, 101, 32, 3, hotspot_size, hotspot_launch,
	 hotspot_right, 0},
	{"histogram", histogram_ptx, "histogram", 16000000, 4, 5000, 1, histogram_size,
	 histogram_launch, histogram_right, 0},
	{"compute", compute_ptx, "compute", 4224, 8, 16, 1, compute_size, compute_launch,
	 compute_right, 20000},
	{"compute-long", compute_ptx, "compute", 4224, 24, 16, 3, compute_size, compute_launch,
	 compute_right, 20000},
	{"block", compute_ptx, "compute", 2112, 2, 16, 1, compute_size, compute_launch,
	 compute_right, 62000},
	{"block-long", compute_ptx, "compute", 6336, 2, 16, 2, compute_size, compute_launch,
	 compute_right, 62000},
	{"network", matmul_ptx, MATMUL, 256, 100, 16, 5, matmul_size, matmul_launch, matmul_right,
	 0},
	{"network-large", matmul_ptx, MATMUL, 512, 100, 16, 4, matmul_size, matmul_launch,
	 matmul_right, 0},
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

static const char empty_ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry empty() { ret; }\n";

static void make_empty(void) {
	CU(cuModuleLoadData(&my.empty_module, empty_ptx));
	my.empty_kernel = driver_kernel(my.empty_module, "empty");
	my.in_bytes = my.out_bytes = sizeof(unsigned);
}

static void load_kernel(const struct work *work) {
	static const struct {
		const char *ptx, *file;
	} codes[] = {{compute_ptx, "compute"},
		     {histogram_ptx, "histogram"},
		     {hotspot_ptx, "hotspot"},
		     {matmul_ptx, "matmul"},
		     {vecadd_ptx, "vecadd"}};
	const char *folder = getenv("PERIODIC_CODE");
	char path[4096];
	size_t i = 0;

	if (!folder || !*folder) {
		CU(cuModuleLoadData(&my.module, work->ptx));
		return;
	}
	while (codes[i].ptx != work->ptx) {
		i++;
	}
	snprintf(path, sizeof(path), "%s/%s.cubin", folder, codes[i].file);
	CU(cuModuleLoad(&my.module, path));
}

/* @full: as measured in RESULTS.md; else so small that an interpreter can run it. */
static void work_open(const struct work *work, bool full, bool empty) {
	memset(&my, 0, sizeof(my));
	my.work = work;
	my.n = full ? work->n : work->tiny;
	my.launches = full ? work->launches : work->n_launches;
	my.rounds = full ? work->rounds : 10;
	my.empty = empty;
	load_kernel(work);
	my.kernel = driver_kernel(my.module, work->kernel);
	work->size();
	if (empty) {
		make_empty();
	}
	CU(cuMemAllocHost(&my.in, my.in_bytes));
	CU(cuMemAllocHost(&my.out, my.out_bytes));
	my.first = app_alloc(my.out_bytes, 1);
	my.dev_in = driver_alloc(my.in_bytes);
	my.dev_out = driver_alloc(my.out_bytes);
	my.dev_more = driver_alloc(COMPUTE_SMS_MAX * sizeof(unsigned));
	CU(cuMemsetD32(my.dev_out, 0, my.out_bytes / sizeof(unsigned)));
	CU(cuMemsetD32(my.dev_more, 0, COMPUTE_SMS_MAX));
	CU(cuCtxSynchronize()); /* the jobs' streams don't wait for the default one */
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

/* Where the time of late jobs goes. */
static struct {
	FILE *to; /* NULL: nobody asks */
	CUevent marks[4];
	/* Of the first mark: behind the last job's copy back it would wait for whatever others copy
	 * back just then, and the job with it. */
	CUstream aside;
	uint64_t called, begun; /* of the last job: before and after its first call */
	bool all;		/* of those in time as well */
} late;

static void late_open(const char *path) {
	late.to = fopen(path, "we");
	if (!late.to) {
		fprintf(stderr, "periodic: cannot write '%s': %s\n", path, strerror(errno));
		exit(1);
	}
	for (unsigned i = 0; i < 4; i++) {
		CU(cuEventCreate(&late.marks[i], CU_EVENT_DEFAULT));
	}
	CU(cuStreamCreate(&late.aside, CU_STREAM_NON_BLOCKING));
}

static void mark(unsigned i) {
	if (late.to) {
		CU(cuEventRecord(late.marks[i], i == 0 ? late.aside : my.stream));
	}
}

/* The job of @release ended at @done; the one before it at @before. */
static void late_report(uint64_t release, uint64_t before, uint64_t done) {
	uint64_t ready = before > release ? before : release;
	int64_t gpu[3], first = (int64_t)(late.begun - late.called);
	float ms;

	if (!late.to) {
		return;
	}
	for (unsigned i = 0; i < 3; i++) {
		CU(cuEventElapsedTime(&ms, late.marks[i], late.marks[i + 1]));
		gpu[i] = (int64_t)((double)ms * 1e6);
	}
	/* The first mark may stand before what the first call waits for. */
	gpu[0] = gpu[0] > first ? gpu[0] - first : 0;
	fprintf(late.to,
		"%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
		" %" PRIu64 "\n",
		ready - release, late.called - ready, first, gpu[0], gpu[1], gpu[2],
		(int64_t)(done - late.begun) - gpu[0] - gpu[1] - gpu[2], done - release);
}

/* It never began: until @now the one before ran. */
static void late_report_unbegun(uint64_t release, uint64_t now) {
	if (late.to) {
		fprintf(late.to, "%" PRIu64 " 0 0 0 0 0 0 %" PRIu64 "\n", now - release,
			now - release);
	}
}

static void job(void) {
	late.called = app_now_ns();
	mark(0);
	CU(cuMemcpyHtoDAsync(my.dev_in, my.in, my.in_bytes, my.stream));
	late.begun = app_now_ns();
	mark(1);
	my.work->launch();
	mark(2);
	CU(cuMemcpyDtoHAsync(my.out, my.dev_out, my.out_bytes, my.stream));
	mark(3);
	CU(cuStreamSynchronize(my.stream));
}

static void expect(bool right) {
	if (!right) {
		fprintf(stderr, "periodic: %s: the result is wrong\n", my.work->name);
		exit(1);
	}
}

/* Of the result, another one each time: so much as takes some microseconds. */
static void expect_part(void) {
	static size_t at;
	size_t n;

	at = at < my.out_bytes ? at : 0;
	n = my.out_bytes - at < PART_BYTES ? my.out_bytes - at : PART_BYTES;
	expect(memcmp((char *)my.first + at, (char *)my.out + at, n) == 0);
	at += n;
}

static void first_job(void) {
	job();
	expect(my.empty || !my.work->right || my.work->right());
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

static CUcontext context;
static bool ending; /* atomic */

static void *keep_busy(void *opened) {
	my = *(struct opened *)opened;
	CU(cuCtxSetCurrent(context));
	while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
		my.work->launch();
		CU(cuStreamSynchronize(my.stream));
	}
	return NULL;
}

/* Mean power over about @ms while the kernels of all @n, from threads of their own, run without a
 * pause, also while the meter is waited for; 0 if it is not to be measured. */
static double power(struct opened *opened, unsigned n, unsigned ms) {
	pthread_t threads[CELL_MAX];
	struct meter_span span;
	double watts = 0;

	if (ms == 0) {
		return 0;
	}
	__atomic_store_n(&ending, false, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++) {
		if (pthread_create(&threads[i], NULL, keep_busy, &opened[i]) != 0) {
			fprintf(stderr, "periodic: cannot start a thread\n");
			exit(1);
		}
	}
	if (meter_begin(&span)) {
		app_pause_ns(ms * 1000000ull);
		watts = meter_end(&span);
	}
	__atomic_store_n(&ending, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
	}
	return watts;
}

/* The work is open, and its first job done. */
static void profile_point(unsigned count, unsigned ms, const struct green *green) {
	uint64_t in = 0, out = 0, best = UINT64_MAX, worst = 0, t[3];

	my.stream = green->stream;
	job();
	for (unsigned i = 0; i < count; i++) {
		timed_job(t);
		expect(memcmp(my.first, my.out, my.out_bytes) == 0);
		in = t[0] > in ? t[0] : in;
		best = t[1] < best ? t[1] : best;
		worst = t[1] > worst ? t[1] : worst;
		out = t[2] > out ? t[2] : out;
	}
	printf("%s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %.3f\n", my.work->name,
	       green->n_sms, in, best, worst, out, power(&my, 1, ms));
	fflush(stdout);
}

static int profile(int argc, char **argv, CUdevice device) {
	bool full = strcmp(argv[2], "0") != 0;
	unsigned count = (unsigned)strtoul(argv[3], NULL, 10);
	unsigned ms = (unsigned)strtoul(argv[4], NULL, 10);
	struct green greens[COUNTS_MAX];
	int n = 0;

	for (; n < argc - 5 && n < COUNTS_MAX; n++) {
		if (green_init(&greens[n], device, (unsigned)strtoul(argv[5 + n], NULL, 10)) < 0) {
			fprintf(stderr, "periodic: this driver has no green contexts\n");
			return 1;
		}
	}
	for (size_t w = 0; w < N_WORKS; w++) {
		work_open(&works[w], full, false);
		my.stream = greens[n - 1].stream;
		first_job();
		for (int i = 0; i < n; i++) {
			profile_point(count, ms, &greens[i]);
		}
		work_close();
	}
	while (n > 0) {
		green_deinit(&greens[--n]);
	}
	return 0;
}

static const struct work *find_work(const char *name) {
	for (size_t w = 0; w < N_WORKS; w++) {
		if (strcmp(works[w].name, name) == 0) {
			return &works[w];
		}
	}
	fprintf(stderr, "periodic: there is no work '%s'\n", name);
	exit(2);
}

/* False: this GPU has no such SMs. */
static bool power_cell(const char *cell, bool full, unsigned ms, CUdevice device) {
	struct opened opened[CELL_MAX];
	struct green greens[CELL_MAX];
	unsigned n = 0, first = 0, n_sms;
	const char *part = strcmp(cell, "static") == 0 ? NULL : cell;
	bool has_sms = true;
	char name[32];

	for (; part && n < CELL_MAX; n++) {
		has_sms = sscanf(part, "%31[^:]:%u", name, &n_sms) == 2 &&
			  green_init_row(&greens[n], device, first, n_sms) == 0;
		if (!has_sms) {
			fprintf(stderr, "periodic: %s: no such SMs, or no green contexts\n", cell);
			break;
		}
		first += n_sms;
		work_open(find_work(name), full, false);
		my.stream = greens[n].stream;
		job();
		opened[n] = my;
		part = strchr(part, '+');
		part = part ? part + 1 : NULL;
	}
	if (has_sms) {
		printf("%s %.3f\n", cell, power(opened, n, ms));
		fflush(stdout);
	}
	while (n-- > 0) {
		my = opened[n];
		work_close();
		green_deinit(&greens[n]);
	}
	return has_sms;
}

static int compare(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct schedule {
	uint64_t period, deadline, offset, window, lead;
};

#define SECONDS_MAX 600

/* By the second in which they were released. */
static struct { unsigned released, missed; } seconds[SECONDS_MAX];

static void count_second(uint64_t since_start, bool is_late) {
	uint64_t second = since_start / 1000000000;

	if (second < SECONDS_MAX) {
		seconds[second].released++;
		seconds[second].missed += is_late;
	}
}

static void write_seconds(const char *path, uint64_t until) {
	FILE *f = path ? fopen(path, "we") : NULL;

	if (path && !f) {
		fprintf(stderr, "periodic: cannot write '%s': %s\n", path, strerror(errno));
		exit(1);
	}
	for (uint64_t i = 0; f && i < SECONDS_MAX && i * 1000000000 < until; i++) {
		fprintf(f, "%u %u\n", seconds[i].released, seconds[i].missed);
	}
	if (f) {
		fclose(f);
	}
}

static void sleep_until(uint64_t when) {
	uint64_t now = app_now_ns();

	if (now < when) {
		app_pause_ns(when - now);
	}
}

static int run(const struct schedule *s, uint64_t start) {
	uint64_t *responses = app_alloc(RESPONSES_MAX, sizeof(*responses));
	uint64_t release, begin = start + s->lead, end = begin + s->window;
	uint64_t released = 0, completed = 0, missed = 0, before = 0, now;
	double sum = 0;
	bool is_late;

	for (release = start + s->offset; release < end; release += s->period) {
		bool inside = release >= begin, counts = inside && release + s->deadline <= end;

		released += counts;
		sleep_until(release);
		now = app_now_ns();
		if (now >= end || completed == RESPONSES_MAX) {
			missed += counts;
			count_second(release - start, true);
			if (counts) {
				late_report_unbegun(release, now);
			}
			continue;
		}
		job();
		now = app_now_ns();
		responses[completed] = now - release;
		expect_part();
		is_late = responses[completed] > s->deadline;
		missed += counts && is_late;
		count_second(release - start, is_late);
		if (counts && (is_late || late.all)) {
			late_report(release, before, now);
		}
		before = now;
		if (inside) {
			sum += (double)responses[completed++];
		}
	}
	qsort(responses, completed, sizeof(*responses), compare);
	expect(memcmp(my.first, my.out, my.out_bytes) == 0);
	sleep_until(end);
	write_seconds(getenv("PERIODIC_SECONDS"), end - start);
	if (late.to) {
		fclose(late.to);
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.0f %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %016" PRIx64 "\n",
	       released, completed, missed, completed ? sum / (double)completed : 0,
	       completed ? responses[(completed - 1) / 2] : 0,
	       completed ? responses[(completed - 1) * 99 / 100] : 0,
	       completed ? responses[completed - 1] : 0, digest());
	free(responses);
	return 0;
}

static CUstream own_stream(void) {
	const char *priority = getenv("PERIODIC_PRIORITY");
	CUstream stream;

	CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
				      priority ? (int)strtol(priority, NULL, 10) : 0));
	return stream;
}

static int run_task(int argc, char **argv) {
	const char *empty = getenv("PERIODIC_EMPTY"), *late_file = getenv("PERIODIC_LATE");
	uint64_t start;
	struct schedule s = {
		.period = strtoull(argv[3], NULL, 10),
		.deadline = strtoull(argv[4], NULL, 10),
		.offset = strtoull(argv[5], NULL, 10),
		.window = strtoull(argv[6], NULL, 10),
		.lead = argc > 7 ? strtoull(argv[7], NULL, 10) : 0,
	};

	work_open(find_work(argv[1]), strcmp(argv[2], "0") != 0, empty && strcmp(empty, "1") == 0);
	my.stream = own_stream();
	if (late_file) {
		late.all = getenv("PERIODIC_ALL") != NULL;
		late_open(late_file);
	}
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

int main(int argc, char **argv) {
	bool profiles = argc > 5 && strcmp(argv[1], "profile") == 0;
	bool powers = argc > 4 && strcmp(argv[1], "power") == 0;
	int missing = 0;
	CUdevice device;

	if (!profiles && !powers && (argc < 7 || argc > 8 || strtoull(argv[3], NULL, 10) == 0)) {
		fprintf(stderr,
			"usage: periodic profile SCALE COUNT MILLISECONDS SMS...\n"
			"       periodic power SCALE MILLISECONDS CELL...\n"
			"       periodic WORK SCALE PERIOD DEADLINE OFFSET WINDOW [LEAD] (ns)\n");
		return 2;
	}
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	for (int i = 4; powers && i < argc; i++) {
		missing += !power_cell(argv[i], strcmp(argv[2], "0") != 0,
				       (unsigned)strtoul(argv[3], NULL, 10), device);
	}
	return powers ? missing > 0 : profiles ? profile(argc, argv, device) : run_task(argc, argv);
}
