/*
 * measure-twins.c: what confinement by twins gives on the GPU at hand: rates on the whole GPU and
 * on parts of it against the driver's own partitions, how full SMs are, how soon a kernel stops,
 * and that it goes on where it stopped. Through the shim's kernel.c and enforce.c, without a
 * daemon.
 *
 * Prints a table and, to the file named, one JSON object a row. Exit status 1 if a row that
 * promises something failed, 77 if there is no GPU.
 *
 * usage: measure-twins RATES.PTX DETAILS.JSON [SCALE]     (SCALE divides all sizes, for slow GPUs)
 */
#include "shim/real.h"

#include <dlfcn.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/units.h"
#include "shim/enforce/context.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "tests/func/twin/plain-driver.h"
#include "tests/gpu/green.h"

#define TURNS	     5
#define STOPS	     15
#define THREADS	     256
#define COPY_WRAP    32768u /* blocks' memory: 1 GiB, far above any cache */
#define COPY_BYTES   32768u
#define BURN_ROUNDS  400u
#define SHORT_ROUNDS 40u
#define MARK_CYCLES  40000u
#define STOP_MAX_US  60
#define STOP_EACH_NS (2 * NSEC_PER_SEC / 1000)

#define SMID SBEET__ENFORCEMENT__ENFORCEMENT_SMID

static CUresult (*event_elapsed)(float *, CUevent, CUevent);
static FILE *details;
static unsigned n_sms, scale = 1;
static CUdevice device;
static CUcontext context;
static CUstream stream;
static bool failed;

static void check_at(CUresult rc, const char *what) {
	if (rc != CUDA_SUCCESS) {
		errx(1, "%s: error %d", what, rc);
	}
}
#define CHECK(call) check_at(call, #call)

/* One of the kernels, with what it is launched with. */
struct work {
	CUfunction function;
	struct kernel *kernel;
	unsigned occupancy;
	void *params[4];
};

static CUdeviceptr buffers[2]; /* of copy; burn writes to the first, and never does */
static unsigned wrap = COPY_WRAP;

static CUdeviceptr alloc(size_t size) {
	CUdeviceptr p;

	CHECK(plain_driver.cuMemAlloc_v2(&p, size));
	CHECK(plain_driver.cuMemsetD8Async(p, 0, size, NULL));
	CHECK(plain_driver.cuCtxSynchronize());
	return p;
}

static struct work work_of(CUmodule module, const char *name) {
	struct work w = {0};
	int n = 0;

	CHECK(plain_driver.cuModuleGetFunction(&w.function, module, name));
	kernel_function_found(module, w.function, name);
	w.kernel = kernel_find(w.function);
	if (!w.kernel || kernel_refusal(w.kernel)) {
		errx(1, "%s has no twin: %s", name,
		     w.kernel ? kernel_refusal(w.kernel) : "not known");
	}
	CHECK(plain_driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, w.function, THREADS, 0));
	w.occupancy = (unsigned)n;
	return w;
}

static struct launch launch_of(struct work *w, unsigned n_blocks, CUstream s) {
	return (struct launch){
		.function = w->function,
		.grid = {n_blocks, 1, 1},
		.block = {THREADS, 1, 1},
		.stream = s,
		.params = w->params,
	};
}

/* On the SMs from 0 on. To a GPU that seems to have an SM more, so that all are a part of it too.
 */
static struct enforce_grant grant_of(unsigned sms) {
	struct enforce_grant g = {
		.enforcement = SMID,
		.sms = smset_range(0, sms),
		.gpu_sms = sms == n_sms ? n_sms + 1 : n_sms,
	};

	if (enforce_prepare(context, &g, NULL) < 0) {
		errx(1, "no device memory");
	}
	return g;
}

static void launch_twin(struct work *w, const struct enforce_grant *g, unsigned n_blocks) {
	struct launch l = launch_of(w, n_blocks, stream);
	Sbeet__Enforcement how;
	struct kernel_use use;
	CUcontext current;

	CHECK(plain_driver.cuCtxGetCurrent(&current));
	kernel_enforcement_mask(w->kernel, &l, current, &use);
	CHECK(enforce_launch(g, &use, &l, &how));
	if (how != SMID) {
		errx(1, "%s was not confined", kernel_name(w->kernel));
	}
}

static void launch_original(struct work *w, unsigned n_blocks, CUstream s) {
	struct launch l = launch_of(w, n_blocks, s);

	CHECK(enforce_launch_original(&l));
}

/* Blocks in a second; as a twin under @g, or as it is if that is NULL. */
static double rate_of(struct work *w, const struct enforce_grant *g, unsigned n_blocks,
		      CUstream s) {
	CUevent begin, end;
	float ms;

	CHECK(plain_driver.cuEventCreate(&begin, CU_EVENT_DEFAULT));
	CHECK(plain_driver.cuEventCreate(&end, CU_EVENT_DEFAULT));
	CHECK(plain_driver.cuEventRecord(begin, s));
	if (g) {
		launch_twin(w, g, n_blocks);
	} else {
		launch_original(w, n_blocks, s);
	}
	CHECK(plain_driver.cuEventRecord(end, s));
	CHECK(plain_driver.cuEventSynchronize(end));
	CHECK(event_elapsed(&ms, begin, end));
	CHECK(plain_driver.cuEventDestroy_v2(begin));
	CHECK(plain_driver.cuEventDestroy_v2(end));
	return n_blocks / (ms / 1e3);
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list, size_t n) {
	qsort(list, n, sizeof(*list), compare);
	return list[n / 2];
}

/* A row: @least is what is promised of @value, 0 for a figure to know. */
__attribute__((format(printf, 4, 5))) static void row(const char *what, double value, double least,
						      const char *format, ...) {
	bool good = value >= least;
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	failed |= !good;
	printf("%-46s %-7s %s\n", what, least == 0 ? "-" : good ? "ok" : "FAILED", text);
	fprintf(details, "{\"what\":\"%s\",\"value\":%.4f,\"least\":%.4f,\"detail\":\"%s\"}\n",
		what, value, least, text);
}

/* The twin on @sms SMs against the original on as many, in turns. */
static void compare_rates(struct work *w, const char *name, unsigned sms, double least) {
	struct enforce_grant g = grant_of(sms);
	double ratios[TURNS], originals[TURNS], twin;
	unsigned n_blocks = sms * w->occupancy * 400 / scale;
	struct green green = {.stream = stream, .n_sms = n_sms};
	double middle;
	char what[64];

	if (sms < n_sms && green_init(&green, device, sms) < 0) {
		return;
	}
	n_blocks = n_blocks ? n_blocks : 1;
	rate_of(w, &g, n_blocks, stream);
	for (unsigned i = 0; i < TURNS; i++) {
		originals[i] = rate_of(w, NULL, n_blocks, green.stream) * sms / green.n_sms;
		twin = rate_of(w, &g, n_blocks, stream);
		ratios[i] = 100 * twin / originals[i];
	}
	snprintf(what, sizeof(what), "%s, %u SMs", name, sms);
	middle = median(ratios, TURNS);
	row(what, middle, least, "%.1f %% (%.1f to %.1f) of %.0f blocks/s; original on %u SMs",
	    middle, ratios[0], ratios[TURNS - 1], median(originals, TURNS), green.n_sms);
	if (sms < n_sms) {
		green_deinit(&green);
	}
}

/* What mark() counts. */
struct marks {
	unsigned n_blocks;
	CUdeviceptr runs, live, peak;
	unsigned cycles;
};

static void marks_init(struct marks *m, struct work *w, unsigned n_blocks) {
	m->n_blocks = n_blocks;
	m->cycles = MARK_CYCLES / scale;
	m->runs = alloc(n_blocks * sizeof(unsigned));
	m->live = alloc(PROTO_SMS_MAX * sizeof(unsigned));
	m->peak = alloc(PROTO_SMS_MAX * sizeof(unsigned));
	memcpy(w->params, (void *[]){&m->runs, &m->live, &m->peak, &m->cycles}, 4 * sizeof(void *));
}

static unsigned *fetch(CUdeviceptr p, unsigned n) {
	unsigned *list = malloc(n * sizeof(*list));

	if (!list) {
		err(1, "malloc");
	}
	CHECK(plain_driver.cuMemcpyDtoH_v2(list, p, n * sizeof(*list)));
	return list;
}

/* Return: how many blocks did not run exactly once. */
static unsigned count_wrong(const struct marks *m) {
	unsigned *runs = fetch(m->runs, m->n_blocks), n = 0;

	for (unsigned i = 0; i < m->n_blocks; i++) {
		n += runs[i] != 1;
	}
	free(runs);
	return n;
}

static void marks_deinit(struct marks *m) {
	plain_driver.cuMemFree_v2(m->runs);
	plain_driver.cuMemFree_v2(m->live);
	plain_driver.cuMemFree_v2(m->peak);
}

/* Is each target SM as full as the original would make it, and no other touched? */
static void fill(struct work *w, unsigned sms) {
	struct enforce_grant g = grant_of(sms);
	unsigned full = 0, held = 0, outside = 0, *peak;
	struct marks m = {0};
	char what[64];

	marks_init(&m, w, sms * w->occupancy * 20);
	launch_twin(w, &g, m.n_blocks);
	CHECK(plain_driver.cuStreamSynchronize(stream));
	peak = fetch(m.peak, PROTO_SMS_MAX);
	for (unsigned sm = 0; sm < PROTO_SMS_MAX; sm++) {
		full += sm < sms && peak[sm] == w->occupancy;
		held += sm < sms ? peak[sm] : 0;
		outside += sm >= sms && peak[sm] != 0;
	}
	snprintf(what, sizeof(what), "SMs filled, %u SMs", sms);
	row(what, full == sms && !outside && !count_wrong(&m), 1,
	    "%u of %u hold %u blocks, all together %u; %u others used; %u blocks not run once",
	    full, sms, w->occupancy, held, outside, count_wrong(&m));
	free(peak);
	marks_deinit(&m);
}

static bool is_done(void) {
	CUresult rc = plain_driver.cuStreamQuery(stream);

	if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_NOT_READY) {
		errx(1, "cuStreamQuery: error %d", rc);
	}
	return rc == CUDA_SUCCESS;
}

static void spin(nsec_t ns) {
	nsec_t begin = nsec_now();

	while (nsec_now() - begin < ns) {
	}
}

static void write_stop(CUdeviceptr set, uint32_t stop) {
	if (context_write(context_current(), set + offsetof(struct twin_set, stop), &stop,
			  sizeof(stop)) < 0) {
		errx(1, "the stop flag can't be written");
	}
}

/* Are blocks of the grid left that was stopped? */
static bool is_stopped(struct work *w, unsigned n_blocks) {
	struct launch l = launch_of(w, n_blocks, stream);
	struct control *control = context_find_control(context_current(), &l);
	struct twin_ctl ctl;

	if (!control || context_read(context_current(), &ctl, control->address, sizeof(ctl)) < 0) {
		errx(1, "the control block can't be read");
	}
	return ctl.next != 0;
}

/* A long kernel, stopped time and again, and sent on each time. */
static void stop_and_resume(struct work *w, unsigned sms) {
	struct enforce_grant g = grant_of(sms);
	CUdeviceptr set = context_find_set(context_current(), &g.sms);
	double us[STOPS], block_us;
	struct marks m = {0};
	unsigned n = 0;

	marks_init(&m, w, sms * w->occupancy * 20);
	block_us = 1e6 * sms * w->occupancy / rate_of(w, &g, m.n_blocks, stream);
	marks_deinit(&m);
	marks_init(&m, w, sms * w->occupancy * 4000 / scale);
	launch_twin(w, &g, m.n_blocks);
	for (spin(STOP_EACH_NS); n < STOPS && !is_done(); spin(STOP_EACH_NS)) {
		nsec_t begin = nsec_now();

		write_stop(set, 1);
		while (!is_done()) {
		}
		us[n] = (double)(nsec_now() - begin) / 1e3;
		write_stop(set, 0);
		if (!is_stopped(w, m.n_blocks)) {
			break; /* it was just done */
		}
		n++;
		launch_twin(w, &g, m.n_blocks);
	}
	CHECK(plain_driver.cuStreamSynchronize(stream));
	if (n) {
		double middle = median(us, n);

		row("stop, as the host sees it", middle <= STOP_MAX_US + block_us, 1,
		    "%.1f us (%.1f to %.1f) in %u stops; one block takes %.1f us", middle, us[0],
		    us[n - 1], n, block_us);
	}
	row("stopped and resumed, blocks not run once", count_wrong(&m) == 0, 1,
	    "%u of %u, %u stops", count_wrong(&m), m.n_blocks, n);
	marks_deinit(&m);
}

/* The set shrinks under a running kernel. */
static void shrink(struct work *w, unsigned sms) {
	struct enforce_grant g = grant_of(sms);
	CUdeviceptr set = context_find_set(context_current(), &g.sms);
	struct smset half = smset_range(0, sms / 2);
	struct marks m = {0};
	bool early;

	marks_init(&m, w, sms * w->occupancy * 1000 / scale);
	launch_twin(w, &g, m.n_blocks);
	spin(STOP_EACH_NS);
	early = is_done();
	if (context_write(context_current(), set, half.words, sizeof(half.words)) < 0) {
		errx(1, "the set can't be written");
	}
	CHECK(plain_driver.cuStreamSynchronize(stream));
	if (context_write(context_current(), set, g.sms.words, sizeof(g.sms.words)) < 0) {
		errx(1, "the set can't be written");
	}
	row("set made smaller in the middle, blocks wrong", count_wrong(&m) == 0 && !early, 1,
	    "%u of %u; %llu outside", count_wrong(&m), m.n_blocks,
	    (unsigned long long)enforce_outside_blocks(context));
	marks_deinit(&m);
}

/* Launches of an empty kernel of one block, back to back: nanoseconds each. */
static double launch_ns(struct work *w, const struct enforce_grant *g, unsigned n) {
	nsec_t begin = nsec_now();

	for (unsigned i = 0; i < n; i++) {
		if (g) {
			launch_twin(w, g, 1);
		} else {
			launch_original(w, 1, stream);
		}
	}
	CHECK(plain_driver.cuStreamSynchronize(stream));
	return (double)(nsec_now() - begin) / n;
}

static void tiny(struct work *w, unsigned sms) {
	struct enforce_grant g = grant_of(sms);
	double ratios[11], bare[11], twin[11];
	unsigned n = 20000 / scale;
	double middle;
	char what[64];

	launch_ns(w, NULL, 100);
	launch_ns(w, &g, 100);
	for (unsigned i = 0; i < 11; i++) {
		bare[i] = launch_ns(w, NULL, n);
		twin[i] = launch_ns(w, &g, n);
		ratios[i] = 100 * bare[i] / twin[i];
	}
	snprintf(what, sizeof(what), "empty kernels confined to %u SMs", sms);
	middle = median(ratios, 11);
	row(what, middle, 0, "%.1f %% of the bare rate (%.0f ns, %.0f ns confined)", middle,
	    median(bare, 11), median(twin, 11));
}

static char *read_file(const char *path) {
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
		err(1, "%s", path);
	}
	fclose(f);
	return text;
}

static void start(void) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int n = 0;

	event_elapsed = lib ? (__typeof__(event_elapsed))dlsym(lib, "cuEventElapsedTime") : NULL;
	if (!event_elapsed || !plain_driver_load()) {
		printf("There is no GPU.\n");
		exit(77);
	}
	CHECK(plain_driver.cuDevicePrimaryCtxRetain(&context, device));
	CHECK(plain_driver.cuCtxSetCurrent(context));
	CHECK(plain_driver.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
						device));
	n_sms = (unsigned)n;
	CHECK(plain_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	wrap = COPY_WRAP / scale;
	for (unsigned i = 0; i < 2; i++) {
		buffers[i] = alloc((size_t)wrap * COPY_BYTES);
	}
}

int main(int argc, char **argv) {
	static const unsigned parts[] = {1, 16, 66, 100};
	unsigned rounds = BURN_ROUNDS, short_rounds = SHORT_ROUNDS;
	struct work burn, shared, brief, copy, mark, nothing;
	CUmodule module;
	char *ptx;

	if (argc < 3 || argc > 4) {
		errx(2, "usage: %s RATES.PTX DETAILS.JSON [SCALE]", argv[0]);
	}
	scale = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
	details = fopen(argv[2], "w");
	if (!details || !scale) {
		err(1, "%s", argv[2]);
	}
	ptx = read_file(argv[1]);
	start();
	CHECK(plain_driver.cuModuleLoadData(&module, ptx));
	kernel_module_loaded(module, ptx, NULL, NULL);
	burn = brief = work_of(module, "burn");
	shared = work_of(module, "burn_shared");
	copy = work_of(module, "copy");
	mark = work_of(module, "mark");
	nothing = work_of(module, "nothing");
	memcpy(burn.params, (void *[]){&buffers[0], &rounds}, 2 * sizeof(void *));
	memcpy(shared.params, (void *[]){&buffers[0], &rounds}, 2 * sizeof(void *));
	memcpy(brief.params, (void *[]){&buffers[0], &short_rounds}, 2 * sizeof(void *));
	memcpy(copy.params, (void *[]){&buffers[0], &buffers[1], &wrap}, 3 * sizeof(void *));

	compare_rates(&burn, "arithmetic", n_sms, 97);
	compare_rates(&shared, "arithmetic, shared memory", n_sms, 97);
	compare_rates(&brief, "arithmetic, short blocks", n_sms, 0);
	compare_rates(&copy, "memory", n_sms, 97);
	for (unsigned i = 0; i < 4; i++) {
		if (parts[i] < n_sms) {
			compare_rates(&burn, "arithmetic", parts[i], 95);
			compare_rates(&brief, "arithmetic, short blocks", parts[i], 0);
			compare_rates(&copy, "memory", parts[i], 95);
			fill(&mark, parts[i]);
		}
	}
	tiny(&nothing, n_sms / 2);
	tiny(&nothing, n_sms);
	stop_and_resume(&mark, n_sms > 1 ? n_sms / 2 : 1);
	if (n_sms > 1) {
		shrink(&mark, n_sms / 2 * 2 / 2);
	}
	free(ptx);
	fclose(details);
	return failed ? 1 : 0;
}
