/*
 * context.c: contexts of the program's own, green contexts of its own, and the primary one's life.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* In the current context, whatever it is: a module, a stream and memory of its own. */
static void work_here(const char *name) {
	struct chain c;
	CUstream s;

	gpu_load();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 10; i++) {
		chain_step(&c, s);
	}
	chain_tell(name, &c, s);
	chain_step(&c, NULL);
	chain_tell(name, &c, NULL);
	CU(cuMemFree(c.p));
	CU(cuStreamDestroy(s));
}

static CUcontext own_context(unsigned flags) {
	CUcontext context;

	CU(cuCtxCreate_v4(&context, NULL, flags, gpu.device));
	return context;
}

static void own(void) {
	CUcontext context, current;
	CUdevice device;
	unsigned flags;

	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	GPU_NEEDS(cuCtxGetFlags);
	context = own_context(CU_CTX_SCHED_BLOCKING_SYNC);
	CU(cuCtxGetCurrent(&current));
	CU(cuCtxGetDevice(&device));
	CU(cuCtxGetFlags(&flags));
	TELL("current %d, device %d, flags %u\n", current == context, device, flags & 7);
	work_here("own");
	CU(cuCtxDestroy(context));
	CU(cuCtxGetCurrent(&current));
	TELL("after it %d\n", current != NULL);
	context = own_context(0);
	work_here("another");
	TELL_RESULT(cuCtxDestroy(context));
	TELL_RESULT(cuCtxDestroy(NULL));
}

static void old_forms(void) {
	CUcontext context;

	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	{
		CUresult (*create)(CUcontext *, unsigned, CUdevice) =
			gpu_function("cuCtxCreate_v2");

		CU(create(&context, 0, gpu.device));
		work_here("v2");
		CU(cuCtxDestroy(context));
	}
	{
		CUresult (*create)(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice) =
			gpu_function("cuCtxCreate_v3");

		CU(create(&context, NULL, 0, 0, gpu.device));
		work_here("v3");
		CU(cuCtxDestroy(context));
	}
}

/* Two contexts of its own and the primary one, by turns. */
static void several(void) {
	CUcontext contexts[3];
	CUfunction steps[3];
	CUstream streams[3];
	struct chain chains[3];

	gpu_open();
	GPU_NEEDS_AS(cuCtxPushCurrent, "cuCtxPushCurrent_v2");
	GPU_NEEDS_AS(cuCtxPopCurrent, "cuCtxPopCurrent_v2");
	contexts[0] = gpu.context;
	contexts[1] = own_context(0);
	contexts[2] = own_context(0);
	for (unsigned i = 0; i < 3; i++) {
		CU(cuCtxSetCurrent(contexts[i]));
		gpu_load();
		steps[i] = gpu.step;
		streams[i] = gpu_stream(CU_STREAM_NON_BLOCKING);
		chains[i] = chain_new(CHAIN_N);
	}
	for (unsigned i = 0; i < 60; i++) {
		CUcontext popped;

		gpu.step = steps[i % 3];
		CU(cuCtxPushCurrent(contexts[i % 3]));
		chain_step(&chains[i % 3], streams[i % 3]);
		CU(cuCtxPopCurrent(&popped));
		if (popped != contexts[i % 3]) {
			guest_fail("another context is popped");
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		CU(cuCtxSetCurrent(contexts[i]));
		chain_tell("context", &chains[i], streams[i]);
	}
	CU(cuCtxDestroy(contexts[1]));
	CU(cuCtxSetCurrent(contexts[2]));
	gpu.step = steps[2];
	chain_step(&chains[2], streams[2]);
	chain_tell("after another's end", &chains[2], streams[2]);
}

static void destroyed_with_work(void) {
	gpu_open();
	for (unsigned i = 0; i < 6; i++) {
		CUcontext context = own_context(0);
		CUdeviceptr p;

		gpu_load();
		p = gpu_alloc(sizeof(unsigned));
		gpu_spin(NULL, p, 8, 2000);
		gpu_spin(gpu_stream(CU_STREAM_NON_BLOCKING), p, 8, 2000);
		CU(cuCtxDestroy(context));
	}
	gpu_enter();
	work_here("primary");
}

static void stack(void) {
	CUcontext a, b, c = NULL;

	gpu_open();
	GPU_NEEDS_AS(cuCtxPushCurrent, "cuCtxPushCurrent_v2");
	GPU_NEEDS_AS(cuCtxPopCurrent, "cuCtxPopCurrent_v2");
	a = own_context(0);
	b = own_context(0);
	TELL_RESULT(cuCtxPopCurrent(&c));
	TELL("%d\n", c == b);
	TELL_RESULT(cuCtxPopCurrent(&c));
	TELL("%d\n", c == a);
	TELL_RESULT(cuCtxPopCurrent(&c));
	TELL("%d\n", c == gpu.context);
	TELL_RESULT(cuCtxPopCurrent(&c));
	TELL_RESULT(cuCtxPushCurrent(b));
	work_here("pushed");
	TELL_RESULT(cuCtxPushCurrent(NULL));
	CU(cuCtxGetCurrent(&c));
	TELL("%d\n", c == b);
}

/* A context made by one thread and used by another. */
static void *use_given(void *data) {
	CU(cuCtxSetCurrent(data));
	work_here("given");
	return NULL;
}

static void floating(void) {
	CUcontext context, popped;
	pthread_t t;

	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	GPU_NEEDS_AS(cuCtxPopCurrent, "cuCtxPopCurrent_v2");
	context = own_context(0);
	CU(cuCtxPopCurrent(&popped));
	for (unsigned i = 0; i < 3; i++) {
		pthread_create(&t, NULL, use_given, context);
		pthread_join(t, NULL);
	}
	CU(cuCtxDestroy(context));
}

/* ---- the primary one ---- */

static void tell_state(const char *name) {
	unsigned flags;
	int active;

	GPU_NEEDS(cuDevicePrimaryCtxGetState);
	CU(cuDevicePrimaryCtxGetState(gpu.device, &flags, &active));
	TELL("%s: flags %u, active %d\n", name, flags, active);
}

static void primary_state(void) {
	CUcontext context;

	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	tell_state("at first");
	GPU_NEEDS_AS(cuDevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2");
	TELL_RESULT(cuDevicePrimaryCtxSetFlags(gpu.device, CU_CTX_SCHED_YIELD));
	tell_state("flags set");
	CU(cuDevicePrimaryCtxRetain(&context, gpu.device));
	CU(cuDevicePrimaryCtxRetain(&context, gpu.device));
	CU(cuCtxSetCurrent(context));
	tell_state("retained");
	work_here("primary");
	CU(cuDevicePrimaryCtxRelease(gpu.device));
	tell_state("released once");
	work_here("primary");
	CU(cuDevicePrimaryCtxRelease(gpu.device));
	tell_state("released");
	TELL_RESULT(cuDevicePrimaryCtxRelease(gpu.device));
	TELL_RESULT(cuCtxSynchronize());
	CU(cuDevicePrimaryCtxRetain(&context, gpu.device));
	CU(cuCtxSetCurrent(context));
	work_here("retained again");
	tell_state("at last");
}

static void resets(void) {
	for (unsigned i = 0; i < 4; i++) {
		gpu_open();
		work_here("before");
		gpu_spin(gpu_stream(i % 2), gpu_alloc(16), 4, 2000);
		CU(cuDevicePrimaryCtxReset(gpu.device));
		tell_state("reset");
	}
	gpu_open();
	work_here("at last");
}

static void released_with_work(void) {
	for (unsigned i = 0; i < 4; i++) {
		gpu_open();
		gpu_spin(NULL, gpu_alloc(16), 4, 2000);
		CU(cuDevicePrimaryCtxRelease(gpu.device));
	}
	gpu_open();
	work_here("at last");
}

static void never_current(void) {
	CUcontext context;
	CUdeviceptr p;

	CU(cuInit(0));
	CU(cuDeviceGet(&gpu.device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, gpu.device));
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuCtxSynchronize());
	TELL_RESULT(cuModuleLoadData(&gpu.module, guest_ptx));
}

static void answers(void) {
	CUcontext context;
	CUstreamCaptureStatus capture;
	CUgreenCtx green = NULL;
	CUstream s;
	unsigned version;
	size_t limit;

	gpu_open();
	GPU_NEEDS(cuCtxGetApiVersion);
	GPU_NEEDS(cuCtxGetLimit);
	GPU_NEEDS(cuCtxSetLimit);
	GPU_NEEDS(cuStreamIsCapturing);
	GPU_NEEDS(cuStreamGetCtx);
	work_here("primary");
	CU(cuCtxGetApiVersion(gpu.context, &version));
	TELL("version %u\n", version);
	for (int i = 0; i < 4; i++) {
		CUresult r = cuCtxGetLimit(&limit, (CUlimit)i);

		TELL("limit %d: %d, %zu\n", i, (int)r, r == CUDA_SUCCESS ? limit : 0);
	}
	TELL_RESULT(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	CU(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
	TELL("stack %zu\n", limit);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuStreamGetCtx(s, &context));
	TELL("of a stream %d\n", context == gpu.context);
	CU(cuStreamGetCtx(NULL, &context));
	TELL("of the default one %d\n", context == gpu.context);
	CU(cuStreamIsCapturing(s, &capture));
	TELL("capturing %d\n", (int)capture);
	{
		GPU_NEEDS(cuStreamGetGreenCtx);

		TELL_RESULT(cuStreamGetGreenCtx(s, &green));
		TELL("green %d\n", green != NULL);
	}
}

/* ---- green contexts of its own ---- */

static unsigned split(CUgreenCtx *ret, unsigned n) {
	CUdevResource all, parts[4], rest;
	unsigned n_parts = n;

	GPU_NEEDS(cuDeviceGetDevResource);
	GPU_NEEDS(cuDevSmResourceSplitByCount);
	GPU_NEEDS(cuDevResourceGenerateDesc);
	GPU_NEEDS(cuGreenCtxCreate);
	CU(cuDeviceGetDevResource(gpu.device, &all, CU_DEV_RESOURCE_TYPE_SM));
	CU(cuDevSmResourceSplitByCount(parts, &n_parts, &all, &rest, 0, 8));
	TELL("%u SMs, %u parts of %u\n", all.sm.smCount, n_parts, parts[0].sm.smCount);
	for (unsigned i = 0; i < n_parts; i++) {
		CUdevResourceDesc description;

		CU(cuDevResourceGenerateDesc(&description, &parts[i], 1));
		CU(cuGreenCtxCreate(&ret[i], description, gpu.device, CU_GREEN_CTX_DEFAULT_STREAM));
	}
	return n_parts;
}

static void green_streams(void) {
	CUgreenCtx green[4], of = NULL;
	unsigned n;
	struct chain c;

	gpu_open();
	GPU_NEEDS(cuGreenCtxStreamCreate);
	GPU_NEEDS(cuGreenCtxDestroy);
	GPU_NEEDS(cuStreamGetGreenCtx);
	n = split(green, 2);
	c = chain_new(20000);
	for (unsigned i = 0; i < n; i++) {
		CUstream s;

		CU(cuGreenCtxStreamCreate(&s, green[i], CU_STREAM_NON_BLOCKING, 0));
		for (unsigned k = 0; k < 20; k++) {
			chain_step(&c, s);
		}
		chain_tell("green", &c, s);
		CU(cuStreamGetGreenCtx(s, &of));
		TELL("of it %d\n", of == green[i]);
		CU(cuStreamDestroy(s));
	}
	for (unsigned i = 0; i < n; i++) {
		CU(cuGreenCtxDestroy(green[i]));
	}
	chain_step(&c, NULL);
	chain_tell("after them", &c, NULL);
}

static void green_beside_plain(void) {
	CUgreenCtx green[4];
	CUstream s[3];
	CUevent e;
	unsigned n;
	struct chain c;

	gpu_open();
	GPU_NEEDS(cuGreenCtxStreamCreate);
	n = split(green, 2);
	if (n < 2) {
		guest_skip("too few SMs");
	}
	CU(cuGreenCtxStreamCreate(&s[0], green[0], CU_STREAM_NON_BLOCKING, 0));
	CU(cuGreenCtxStreamCreate(&s[1], green[1], CU_STREAM_NON_BLOCKING, -1));
	s[2] = gpu_stream(CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c = chain_new(20000);
	for (unsigned i = 0; i < 60; i++) {
		chain_step(&c, s[i % 3]);
		CU(cuEventRecord(e, s[i % 3]));
		CU(cuStreamWaitEvent(s[(i + 1) % 3], e, 0));
	}
	chain_tell("by events", &c, s[0]);
}

static void green_current(void) {
	CUgreenCtx green[4];
	CUcontext as_context, current;
	unsigned n;

	gpu_open();
	GPU_NEEDS(cuCtxFromGreenCtx);
	n = split(green, 2);
	for (unsigned i = 0; i < n; i++) {
		CU(cuCtxFromGreenCtx(&as_context, green[i]));
		CU(cuCtxSetCurrent(as_context));
		work_here("green");
		CU(cuCtxGetCurrent(&current));
		TELL("current %d\n", current == as_context);
	}
	gpu_enter();
	work_here("primary");
}

const struct guest guests[] = {
	{"own", own},
	{"old-forms", old_forms},
	{"several", several},
	{"destroyed-with-work", destroyed_with_work},
	{"stack", stack},
	{"floating", floating},
	{"primary-state", primary_state},
	{"resets", resets},
	{"released-with-work", released_with_work},
	{"never-current", never_current},
	{"answers", answers},
	{"green-streams", green_streams},
	{"green-beside-plain", green_beside_plain},
	{"green-current", green_current},
	{NULL, NULL},
};
