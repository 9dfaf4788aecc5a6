/*
 * test-twin-driver.c: every sample kernel, confined by the shim's own kernel.c and enforce.c, does
 * on a GPU what the original does, and only on the SMs that it was given. The GPU is whatever
 * libcuda.so.1 there is: the simulated one in the test suite. No preloading and no daemon: grants
 * are made up here.
 *
 * Random: shapes, input, SM sets, the way of loading (module, library), of passing parameters, of
 * launching, and the stream; several launches follow each other on it.
 *
 * usage: test-twin-driver [ROUNDS [SEED [KERNEL...]]], all kernels if none is named; a failure
 * prints the seed that repeats it.
 */
#include "shim/real.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "tests/func/twin/plain-driver.h"
#include "tests/func/twin/sample.h"

#define ROUNDS_DEFAULT 6
#define SEED_DEFAULT   0x5BEE7
#define SKIPPED	       77
#define LAUNCHES_MAX   4
#define PARAMS_BYTES   4096

#define SMID SBEET__ENFORCEMENT__ENFORCEMENT_SMID
#define NONE SBEET__ENFORCEMENT__ENFORCEMENT_NONE

/* One kernel, both ways. */
struct trial {
	const struct sample *sample;
	uint64_t seed;
	CUcontext context;
	unsigned n_sms;
	CUmodule module;
	CUlibrary library;
	CUfunction function;
	CUdeviceptr buffers[SAMPLE_BUFFERS_MAX];
	uint8_t *after[2][SAMPLE_BUFFERS_MAX]; /* owned; what was in them */
	uint8_t var[2][16];
	struct enforce_grant grant;
	uint64_t outside;
	unsigned n_launches;
	char error[512];
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct trial *t, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(t->error, sizeof(t->error), format, args);
	va_end(args);
	return false;
}

#define TRY(t, call)                                                   \
	do {                                                           \
		CUresult rc_ = (call);                                 \
		if (rc_ != CUDA_SUCCESS) {                             \
			return wrong((t), "%s: error %d", #call, rc_); \
		}                                                      \
	} while (0)

/* As a program would, and as the hooks would tell of it. */
static bool load_module(struct trial *t, const char *ptx) {
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)(uintptr_t)(32 + 32 * sample_below(&t->seed, 2));
	struct jit jit = {0};

	jit_add(&jit, 1, &option, &value);
	TRY(t, plain_driver.cuModuleLoadDataEx(&t->module, ptx, 1, &option, &value));
	kernel_module_loaded(t->module, ptx, NULL, &jit);
	TRY(t, plain_driver.cuModuleGetFunction(&t->function, t->module, t->sample->kernel));
	kernel_function_found(t->module, t->function, t->sample->kernel);
	return true;
}

static bool load_library(struct trial *t, const char *ptx) {
	CUkernel kernel;

	TRY(t, plain_driver.cuLibraryLoadData(&t->library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	kernel_library_loaded(t->library, ptx, NULL, NULL);
	TRY(t, plain_driver.cuLibraryGetKernel(&kernel, t->library, t->sample->kernel));
	kernel_library_kernel_found(t->library, kernel, t->sample->kernel);
	t->function = (CUfunction)kernel;
	if (sample_below(&t->seed, 2)) {
		TRY(t, plain_driver.cuKernelGetFunction(&t->function, kernel));
		kernel_kernel_function_found(kernel, t->function);
	}
	return true;
}

static void unload(struct trial *t) {
	if (t->module) {
		kernel_module_unloading(t->module);
		plain_driver.cuModuleUnload(t->module);
	}
	if (t->library) {
		kernel_library_unloading(t->library);
		plain_driver.cuLibraryUnload(t->library);
	}
}

static bool variable(struct trial *t, CUdeviceptr *ret) {
	size_t size;

	if (t->module) {
		TRY(t,
		    plain_driver.cuModuleGetGlobal_v2(ret, &size, t->module, t->sample->var.name));
	} else {
		TRY(t,
		    plain_driver.cuLibraryGetGlobal(ret, &size, t->library, t->sample->var.name));
	}
	return true;
}

static bool write_input(struct trial *t) {
	const struct sample *s = t->sample;
	CUdeviceptr var;

	for (unsigned i = 0; i < s->n_buffers; i++) {
		TRY(t, plain_driver.cuMemcpyHtoD_v2(t->buffers[i], s->buffers[i].init,
						    s->buffers[i].size));
	}
	if (s->var.name) {
		if (!variable(t, &var)) {
			return false;
		}
		TRY(t, plain_driver.cuMemcpyHtoD_v2(var, s->var.init, s->var.size));
	}
	/* A copy may still be on its way, and non-blocking streams don't wait for it. */
	TRY(t, plain_driver.cuCtxSynchronize());
	return true;
}

static bool read_output(struct trial *t, unsigned way) {
	const struct sample *s = t->sample;
	CUdeviceptr var;

	for (unsigned i = 0; i < s->n_buffers; i++) {
		t->after[way][i] = malloc(s->buffers[i].size);
		if (!t->after[way][i]) {
			return wrong(t, "out of memory");
		}
		TRY(t, plain_driver.cuMemcpyDtoH_v2(t->after[way][i], t->buffers[i],
						    s->buffers[i].size));
	}
	if (s->var.name) {
		if (!variable(t, &var)) {
			return false;
		}
		TRY(t, plain_driver.cuMemcpyDtoH_v2(t->var[way], var, s->var.size));
	}
	return true;
}

/* The parameters in one buffer, each at its natural alignment. */
static size_t pack(const struct trial *t, uint8_t *buffer) {
	size_t at = 0;

	for (unsigned i = 0; i < t->sample->n_params; i++) {
		const struct sample_param *p = &t->sample->params[i];
		size_t align = p->align ? p->align : p->size == 8 ? 8 : 4;

		at = (at + align - 1) / align * align;
		memcpy(buffer + at, p->buffer < 0 ? (const void *)p->bytes : &t->buffers[p->buffer],
		       p->size);
		at += p->size;
	}
	return at;
}

static bool launch(struct trial *t, CUstream stream, bool per_thread, unsigned way) {
	const struct sample *s = t->sample;
	void *params[SAMPLE_PARAMS_MAX];
	uint8_t buffer[PARAMS_BYTES];
	size_t size = pack(t, buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	struct launch l = {
		.function = t->function,
		.shared_bytes = s->shared_bytes,
		.stream = stream,
		.per_thread_default = per_thread,
	};
	const CUlaunchConfig config = {
		.gridDimX = s->grid[0],
		.gridDimY = s->grid[1],
		.gridDimZ = s->grid[2],
		.blockDimX = s->block[0],
		.blockDimY = s->block[1],
		.blockDimZ = s->block[2],
		.sharedMemBytes = s->shared_bytes,
		.hStream = stream,
	};
	struct kernel *k = kernel_find(t->function);
	Sbeet__Enforcement how = SMID;
	struct kernel_use use;
	CUcontext context;
	uint32_t mask;

	memcpy(l.grid, s->grid, sizeof(l.grid));
	memcpy(l.block, s->block, sizeof(l.block));
	for (unsigned i = 0; i < s->n_params; i++) {
		params[i] = s->params[i].buffer < 0 ? (void *)s->params[i].bytes
						    : &t->buffers[s->params[i].buffer];
	}
	if (sample_below(&t->seed, 2)) {
		l.params = params;
	} else {
		l.extra = extra;
	}
	if (sample_below(&t->seed, 2)) {
		l.config = &config;
	}
	if (way == 0) {
		TRY(t, enforce_launch_original(&l));
		return true;
	}
	TRY(t, plain_driver.cuCtxGetCurrent(&context));
	mask = kernel_enforcement_mask(k, &l, context, &use);
	if (!s->confinable) {
		TRY(t, enforce_launch(&t->grant, &use, &l, &how));
		return (how == NONE && k && kernel_refusal(k)) || wrong(t, "it was confined");
	}
	if (!(mask & 1u << SMID)) {
		return wrong(t, "it is not confinable: %s", k ? kernel_refusal(k) : "not known");
	}
	TRY(t, enforce_launch(&t->grant, &use, &l, &how));
	return how == t->grant.enforcement || wrong(t, "it ran in way %d", how);
}

static bool run(struct trial *t, unsigned way) {
	CUstream own = NULL, stream;
	bool per_thread = sample_below(&t->seed, 2);

	TRY(t, plain_driver.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	switch (sample_below(&t->seed, 4)) {
	case 0:
		stream = NULL;
		break;
	case 1:
		stream = CU_STREAM_PER_THREAD;
		break;
	case 2:
		stream = CU_STREAM_LEGACY;
		break;
	default:
		stream = own;
		break;
	}
	if (!write_input(t)) {
		return false;
	}
	for (unsigned i = 0; i < t->n_launches; i++) {
		if (!launch(t, stream, per_thread, way)) {
			return false;
		}
	}
	TRY(t, plain_driver.cuCtxSynchronize());
	enforce_stream_destroying(t->context, own);
	TRY(t, plain_driver.cuStreamDestroy_v2(own));
	return read_output(t, way);
}

/*
 * Where blocks are placed as GPUs are known to place them, none runs outside its set. Where they
 * are not (SIMGPU_PLACE), a launch may reach no SM of the set; its blocks then run where they are
 * rather than never. Results must be right all the same, and none of it may go untold.
 */
static bool compare(struct trial *t) {
	const struct sample *s = t->sample;
	const uint32_t *n;
	uint64_t blocks = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2] * t->n_launches;
	uint64_t outside = 0;

	for (unsigned i = 0; i < s->n_buffers; i++) {
		if (!s->buffers[i].varies &&
		    memcmp(t->after[0][i], t->after[1][i], s->buffers[i].size)) {
			return wrong(t, "buffer %u differs", i);
		}
	}
	if (memcmp(t->var[0], t->var[1], s->var.size)) {
		return wrong(t, "variable %s differs", s->var.name);
	}
	if (t->outside && !getenv("SIMGPU_PLACE")) {
		return wrong(t, "%llu blocks ran outside", (unsigned long long)t->outside);
	}
	if (s->marks >= 0) {
		n = (const uint32_t *)t->after[1][s->marks];
		for (size_t i = 0; i < s->buffers[s->marks].size / 4; i++) {
			if (n[i] != t->n_launches) {
				return wrong(t, "block %zu ran %u times in %u launches", i, n[i],
					     t->n_launches);
			}
		}
	}
	if (s->sm_hits >= 0) {
		n = (const uint32_t *)t->after[1][s->sm_hits];
		for (unsigned sm = 0; sm < PROTO_SMS_MAX; sm++) {
			blocks -= n[sm];
			outside += smset_has(&t->grant.sms, sm) ? 0 : n[sm];
		}
		if (outside > t->outside) {
			return wrong(t, "%llu blocks ran outside the set, %llu are told",
				     (unsigned long long)outside, (unsigned long long)t->outside);
		}
		if (blocks) {
			return wrong(t, "%lld blocks are missing", (long long)blocks);
		}
	}
	return true;
}

static void random_grant(struct trial *t) {
	t->grant = (struct enforce_grant){.enforcement = SMID, .gpu_sms = t->n_sms};
	do {
		t->grant.sms = SMSET_EMPTY;
		for (unsigned sm = 0; sm < t->n_sms; sm++) {
			if (sample_below(&t->seed, 2)) {
				smset_add(&t->grant.sms, sm);
			}
		}
	} while (smset_empty(&t->grant.sms) || smset_count(&t->grant.sms) == t->n_sms);
}

static bool trial(struct trial *t, const char *ptx) {
	random_grant(t);
	t->n_launches = 1 + (unsigned)sample_below(&t->seed, LAUNCHES_MAX);
	if (!(sample_below(&t->seed, 2) ? load_module(t, ptx) : load_library(t, ptx))) {
		return false;
	}
	for (unsigned i = 0; i < t->sample->n_buffers; i++) {
		TRY(t, plain_driver.cuMemAlloc_v2(&t->buffers[i], t->sample->buffers[i].size));
	}
	if (enforce_prepare(t->context, &t->grant, NULL) < 0) {
		return wrong(t, "it can't be prepared");
	}
	if (!run(t, 0) || !run(t, 1)) {
		return false;
	}
	t->outside = enforce_outside_blocks(t->context);
	return compare(t);
}

/* Whether the arguments, from the third on, name the kernel, or none at all. */
static bool is_wanted(int argc, char **argv, const char *name) {
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], name)) {
			return true;
		}
	}
	return argc <= 3;
}

/* Return: did it go well? */
static bool round_of(CUcontext context, unsigned n_sms, size_t i, uint64_t seed) {
	struct trial t = {.context = context, .n_sms = n_sms, .seed = seed};
	struct sample s;
	char *ptx;
	bool ok;

	sample_init(&s, i, &t.seed);
	t.sample = &s;
	ptx = sample_read_ptx(s.file);
	ok = trial(&t, ptx);
	if (!ok) {
		printf("%s, seed %#llx, %u x %u x %u blocks: %s\n", s.kernel,
		       (unsigned long long)seed, s.grid[0], s.grid[1], s.grid[2], t.error);
	}
	unload(&t);
	for (unsigned b = 0; b < s.n_buffers; b++) {
		plain_driver.cuMemFree_v2(t.buffers[b]);
		free(t.after[0][b]);
		free(t.after[1][b]);
	}
	free(ptx);
	sample_deinit(&s);
	return ok;
}

int main(int argc, char **argv) {
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : ROUNDS_DEFAULT, failed = 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : SEED_DEFAULT;
	CUcontext context;
	int n_sms = 0;

	if (!plain_driver_load()) {
		printf("There is no driver.\n");
		return SKIPPED;
	}
	if (plain_driver.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    plain_driver.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
	    plain_driver.cuDeviceGetAttribute(&n_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
					      0) != CUDA_SUCCESS) {
		printf("There is no context.\n");
		return 1;
	}
	for (size_t i = 0; i < sample_count(); i++) {
		unsigned long bad = 0;

		if (!is_wanted(argc, argv, sample_name(i))) {
			continue;
		}
		for (unsigned long n = 0; n < rounds; n++) {
			bad += !round_of(context, (unsigned)n_sms, i, seed + n);
		}
		printf("%s: %lu rounds, %lu failed\n", sample_name(i), rounds, bad);
		failed += bad;
	}
	kernel_context_destroying(context);
	enforce_context_destroying(context);
	plain_driver.cuDevicePrimaryCtxRelease_v2(0);
	return failed ? 1 : 0;
}
