/*
 * test-twin-streams.c: twins of two kernels in flight at once on many streams of one process,
 * through the shim's own launches, on whatever GPU there is: each virtual block runs as often as it
 * was launched, also when sets of SMs are stopped in the middle and what is left is launched again;
 * and the control blocks of streams that are gone are used again, whatever happened on them.
 *
 * usage: test-twin-streams [ROUNDS [SEED]]
 */
#include <err.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/enforce/context.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "tests/func/twin/plain-driver.h"
#include "tests/func/twin/sample.h"

#define SKIPPED	       77
#define STREAMS_MAX    8
#define SETS	       4
#define BLOCKS_MAX     300
#define THREADS	       64
#define VOTERS	       40 /* as in the text below */
#define LAUNCHES_MAX   24
#define RESUMES_MAX    200
#define CONTROLS_MAX   256
#define ROUNDS_DEFAULT 30
#define SEED_DEFAULT   7041
#define SMID	       SBEET__ENFORCEMENT__ENFORCEMENT_SMID

#define CHECK(call)                                          \
	do {                                                 \
		CUresult rc_ = (call);                       \
		if (rc_ != CUDA_SUCCESS) {                   \
			errx(1, "%s: error %d", #call, rc_); \
		}                                            \
	} while (0)

#define BEGIN                                                                             \
	"(.param .u64 counts, .param .u64 sums, .param .u32 turns)\n{\n"                  \
	"\t.reg .pred %p<5>;\n\t.reg .b32 %r<20>;\n\t.reg .b64 %d<9>;\n"                  \
	"\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ctaid.y;\n\tmov.u32 %r3, %nctaid.x;\n" \
	"\tmad.lo.u32 %r4, %r2, %r3, %r1;\n\tmov.u32 %r5, %tid.x;\n"                      \
	"\tld.param.u64 %d1, [counts];\n\tcvta.to.global.u64 %d1, %d1;\n"                 \
	"\tmul.wide.u32 %d2, %r4, 4;\n\tadd.s64 %d2, %d1, %d2;\n"                         \
	"\tsetp.eq.u32 %p1, %r5, 0;\n\t@%p1 red.global.add.u32 [%d2], 1;\n"               \
	"\tld.param.u32 %r6, [turns];\n"                                                  \
	"again:\n\tsub.u32 %r6, %r6, 1;\n\tsetp.gt.s32 %p2, %r6, 0;\n\t@%p2 bra again;\n"

/* sums[block][thread] += %r10 */
#define END                                                              \
	"\tld.param.u64 %d3, [sums];\n\tcvta.to.global.u64 %d3, %d3;\n"  \
	"\tmad.lo.u32 %r7, %r4, 64, %r5;\n\tmul.wide.u32 %d4, %r7, 4;\n" \
	"\tadd.s64 %d4, %d3, %d4;\n\tld.global.u32 %r8, [%d4];\n"        \
	"\tadd.u32 %r8, %r8, %r10;\n\tst.global.u32 [%d4], %r8;\n\tret;\n}\n"

/* One that waits for nobody, and one in which some threads end before the others' barrier. */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry plain" BEGIN "\tadd.u32 %r10, %r5, 1;\n" END ".visible .entry votes" BEGIN
	"\t.shared .align 4 .b8 s[160];\n"
	"\tsetp.ge.u32 %p3, %r5, 40;\n\t@%p3 ret;\n"
	"\tmov.u32 %r11, s;\n\tmad.lo.u32 %r12, %r5, 4, %r11;\n\tst.shared.u32 [%r12], %r5;\n"
	"\tbar.sync 0;\n"
	"\tsub.u32 %r13, 39, %r5;\n\tmad.lo.u32 %r12, %r13, 4, %r11;\n"
	"\tld.shared.u32 %r10, [%r12];\n" END;

struct grid {
	unsigned kernel, x, y;
};

struct lane {
	CUstream stream;
	struct enforce_grant grant;
	CUdeviceptr counts, sums;
	uint32_t expected_counts[BLOCKS_MAX], expected_sums[BLOCKS_MAX * THREADS];
	struct grid grid;  /* of the last launch */
	uint64_t complete; /* twin_ctl.launches before that */
};

struct test {
	CUcontext handle;
	struct context *context;
	unsigned n_sms;
	uint64_t seed;
	CUfunction functions[2];
	struct smset sets[SETS];
	struct lane lanes[STREAMS_MAX];
	unsigned n_lanes;
	CUdeviceptr controls[CONTROLS_MAX]; /* seen so far */
	unsigned n_controls, n_stops;
};

static struct launch launch_of(struct test *t, struct lane *lane) {
	return (struct launch){
		.function = t->functions[lane->grid.kernel],
		.grid = {lane->grid.x, lane->grid.y, 1},
		.block = {THREADS, 1, 1},
		.stream = lane->stream,
	};
}

/* What lane->grid says, from where it was left if it was stopped. */
static void launch(struct test *t, struct lane *lane) {
	unsigned turns = (unsigned)sample_below(&t->seed, 200);
	void *params[] = {&lane->counts, &lane->sums, &turns};
	Sbeet__Enforcement how = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	struct launch l = launch_of(t, lane);
	struct kernel_use use;

	l.params = params;
	kernel_enforcement_mask(kernel_find(l.function), &l, t->handle, &use);
	CHECK(enforce_launch(&lane->grant, &use, &l, &how));
	if (how != SMID) {
		errx(1, "a launch was not confined");
	}
}

static void expect(struct lane *lane) {
	for (unsigned b = 0; b < lane->grid.x * lane->grid.y; b++) {
		lane->expected_counts[b]++;
		for (unsigned i = 0; i < THREADS; i++) {
			lane->expected_sums[b * THREADS + i] += lane->grid.kernel == 0 ? i + 1
								: i < VOTERS ? VOTERS - 1 - i
									     : 0;
		}
	}
}

static void random_grid(struct test *t, struct lane *lane) {
	unsigned y = 1 + (unsigned)sample_below(&t->seed, 3);

	lane->grid = (struct grid){.kernel = (unsigned)sample_below(&t->seed, 2),
				   .x = 1 + (unsigned)sample_below(&t->seed, BLOCKS_MAX / y),
				   .y = y};
}

static struct twin_ctl read_control(struct test *t, struct lane *lane, struct control **ret) {
	struct launch l = launch_of(t, lane);
	struct control *control = context_find_control(t->context, &l);
	struct twin_ctl ctl;

	if (!control || context_read(t->context, &ctl, control->address, sizeof(ctl)) < 0) {
		errx(1, "a control block can't be read");
	}
	*ret = control;
	return ctl;
}

static void write_stop(struct test *t, unsigned set, uint32_t stop) {
	CUdeviceptr at = context_find_set(t->context, &t->sets[set]);

	if (!at || context_write(t->context, at + offsetof(struct twin_set, stop), &stop,
				 sizeof(stop)) < 0) {
		errx(1, "a stop flag can't be written");
	}
}

/* All streams at once, each with several launches in a row. */
static void crowd(struct test *t) {
	unsigned n = 1 + (unsigned)sample_below(&t->seed, LAUNCHES_MAX);

	for (unsigned i = 0; i < n; i++) {
		struct lane *lane = &t->lanes[sample_below(&t->seed, t->n_lanes)];

		random_grid(t, lane);
		launch(t, lane);
		expect(lane);
	}
	CHECK(plain_driver.cuCtxSynchronize());
}

/* One launch on each stream; sets are stopped before it or under it, until all is done. */
static void stop_and_resume(struct test *t) {
	bool left[STREAMS_MAX], any = true;
	struct control *control;

	for (unsigned i = 0; i < t->n_lanes; i++) {
		random_grid(t, &t->lanes[i]);
		expect(&t->lanes[i]);
		t->lanes[i].complete = read_control(t, &t->lanes[i], &control).launches;
		left[i] = true;
	}
	for (unsigned turn = 0; any; turn++) {
		unsigned set = (unsigned)sample_below(&t->seed, SETS);
		bool before = sample_below(&t->seed, 2) && turn < RESUMES_MAX / 2;

		if (turn == RESUMES_MAX) {
			errx(1, "the grids do not get done");
		}
		if (before) {
			write_stop(t, set, 1);
		}
		for (unsigned i = 0; i < t->n_lanes; i++) {
			if (left[i]) {
				launch(t, &t->lanes[i]);
			}
		}
		if (!before && turn < RESUMES_MAX / 2) {
			write_stop(t, set, 1);
		}
		CHECK(plain_driver.cuCtxSynchronize());
		write_stop(t, set, 0);
		any = false;
		for (unsigned i = 0; i < t->n_lanes; i++) {
			left[i] = left[i] && read_control(t, &t->lanes[i], &control).launches ==
						     t->lanes[i].complete;
			any |= left[i];
			t->n_stops += left[i];
		}
	}
}

static void check_lane(struct test *t, unsigned number) {
	static uint32_t counts[BLOCKS_MAX], sums[BLOCKS_MAX * THREADS];
	struct lane *lane = &t->lanes[number];
	struct control *control;
	struct twin_ctl ctl = read_control(t, lane, &control);
	unsigned i;

	CHECK(plain_driver.cuMemcpyDtoH_v2(counts, lane->counts, sizeof(counts)));
	CHECK(plain_driver.cuMemcpyDtoH_v2(sums, lane->sums, sizeof(sums)));
	for (i = 0; i < BLOCKS_MAX; i++) {
		if (counts[i] != lane->expected_counts[i]) {
			errx(1, "stream %u: block %u ran %u times, not %u", number, i, counts[i],
			     lane->expected_counts[i]);
		}
	}
	for (i = 0; i < BLOCKS_MAX * THREADS; i++) {
		if (sums[i] != lane->expected_sums[i]) {
			errx(1, "stream %u: sum %u of block %u is %u, not %u", number, i % THREADS,
			     i / THREADS, sums[i], lane->expected_sums[i]);
		}
	}
	if (ctl.next || ctl.launches + ctl.stops != atomic_load(&control->launches_begun)) {
		errx(1, "stream %u: %llu launches begun, %llu complete, %llu stopped", number,
		     (unsigned long long)atomic_load(&control->launches_begun),
		     (unsigned long long)ctl.launches, (unsigned long long)ctl.stops);
	}
	for (i = 0; i < t->n_controls && t->controls[i] != control->address; i++) {
	}
	if (i == CONTROLS_MAX) {
		errx(1, "control blocks are not used again");
	}
	t->controls[i] = control->address;
	t->n_controls += i == t->n_controls;
}

static void lane_init(struct test *t, struct lane *lane) {
	*lane = (struct lane){
		.grant = {.enforcement = SMID, .gpu_sms = t->n_sms},
	};
	lane->grant.sms = t->sets[sample_below(&t->seed, SETS)];
	CHECK(plain_driver.cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING));
	CHECK(plain_driver.cuMemAlloc_v2(&lane->counts, sizeof(lane->expected_counts)));
	CHECK(plain_driver.cuMemAlloc_v2(&lane->sums, sizeof(lane->expected_sums)));
	if (context_write(t->context, lane->counts, lane->expected_counts,
			  sizeof(lane->expected_counts)) < 0 ||
	    context_write(t->context, lane->sums, lane->expected_sums,
			  sizeof(lane->expected_sums)) < 0 ||
	    enforce_prepare(t->handle, &lane->grant, NULL) < 0) {
		errx(1, "a stream can't be prepared");
	}
}

static void lane_deinit(struct test *t, struct lane *lane) {
	enforce_stream_destroying(t->handle, lane->stream);
	CHECK(plain_driver.cuStreamDestroy_v2(lane->stream));
	CHECK(plain_driver.cuMemFree_v2(lane->counts));
	CHECK(plain_driver.cuMemFree_v2(lane->sums));
}

static void round_of(struct test *t) {
	t->n_lanes = 2 + (unsigned)sample_below(&t->seed, STREAMS_MAX - 1);
	for (unsigned i = 0; i < t->n_lanes; i++) {
		lane_init(t, &t->lanes[i]);
	}
	crowd(t);
	stop_and_resume(t);
	crowd(t);
	for (unsigned i = 0; i < t->n_lanes; i++) {
		check_lane(t, i);
	}
	for (unsigned i = 0; i < t->n_lanes; i++) {
		lane_deinit(t, &t->lanes[i]);
	}
}

/* Sets that may have SMs in common; each is a proper part of the GPU. */
static void find_sets(struct test *t) {
	for (unsigned i = 0; i < SETS; i++) {
		do {
			t->sets[i] = SMSET_EMPTY;
			for (unsigned sm = 0; sm < t->n_sms; sm++) {
				if (sample_below(&t->seed, 2)) {
					smset_add(&t->sets[i], sm);
				}
			}
		} while (smset_empty(&t->sets[i]) || smset_count(&t->sets[i]) == t->n_sms);
		/* the flags of all of them are written */
		if (context_prepare_set(t->context, &t->sets[i]) < 0) {
			errx(1, "a set can't be prepared");
		}
	}
}

static CUmodule begin(struct test *t) {
	static const char *const names[] = {"plain", "votes"};
	CUmodule module;
	int n_sms;

	CHECK(plain_driver.cuDevicePrimaryCtxRetain(&t->handle, 0));
	CHECK(plain_driver.cuCtxSetCurrent(t->handle));
	CHECK(plain_driver.cuDeviceGetAttribute(&n_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
						0));
	t->n_sms = (unsigned)n_sms;
	t->context = context_current();
	CHECK(plain_driver.cuModuleLoadData(&module, text));
	kernel_module_loaded(module, text, NULL, NULL);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(plain_driver.cuModuleGetFunction(&t->functions[i], module, names[i]));
		kernel_function_found(module, t->functions[i], names[i]);
	}
	return module;
}

int main(int argc, char **argv) {
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS_DEFAULT;
	static struct test t;
	CUmodule module;

	if (!plain_driver_load()) {
		printf("There is no driver.\n");
		return SKIPPED;
	}
	t.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : SEED_DEFAULT;
	module = begin(&t);
	find_sets(&t);
	for (unsigned long i = 0; i < rounds; i++) {
		printf("round %lu, seed %#llx\n", i, (unsigned long long)t.seed);
		round_of(&t);
	}
	printf("%lu rounds, %u launches stopped, %u control blocks\n", rounds, t.n_stops,
	       t.n_controls);
	if (t.n_stops == 0 || t.n_controls > STREAMS_MAX + 1) {
		errx(1, "nothing was stopped, or control blocks are not used again");
	}
	kernel_module_unloading(module);
	CHECK(plain_driver.cuModuleUnload(module));
	kernel_context_destroying(t.handle);
	enforce_context_destroying(t.handle);
	plain_driver.cuDevicePrimaryCtxRelease_v2(0);
	return 0;
}
