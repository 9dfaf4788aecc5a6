/*
 * test-enforce.c: the kernel registry and confined launches (kernel.c, enforce.c and what they
 * stand on) against a driver of the test's own, whose device memory is the test's memory and whose
 * launches are written down. The rewriter is replaced too: its answers are made up here.
 */
#include "shim/real.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/enforce.h"
#include "shim/kernel.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/twin.h"
#include "shim/state.h"

#define N_SMS	   40
#define OCCUPANCY  4
#define TWIN_TEXT  ".version 7.0 // twins"
#define PROGRAM	   ".version 7.0 .target sm_75 // original"
#define PROGRAM_90 ".version 7.0 .target sm_90 // original"

/* The made-up rewriter. */

static unsigned n_transforms;
static const size_t add_offsets[] = {0, 8};
static const uint32_t first_var[] = {0}, second_var[] = {1};
static const char *const var_names[] = {"known", "unknown"};
static const struct twin_kernel made_up_kernels[] = {
	{.name = "add",
	 .confinable = true,
	 .n_params = 2,
	 .param_offsets = add_offsets,
	 .params_size = 12,
	 .block_multiple = 1},
	{.name = "grid_sync",
	 .reason = "it waits for the whole grid",
	 .line = 12,
	 .instruction = "barrier.cluster.arrive;"},
	{.name = "reads_known",
	 .confinable = true,
	 .block_multiple = 1,
	 .vars = first_var,
	 .n_vars = 1},
	{.name = "reads_unknown",
	 .confinable = true,
	 .block_multiple = 1,
	 .vars = second_var,
	 .n_vars = 1},
};

int transform_new(struct transform **ret, const char *text, size_t size, char *error,
		  size_t error_size) {
	n_transforms++;
	if (memmem(text, size, "garbage", 7)) {
		snprintf(error, error_size, "line 1: garbage");
		return -EINVAL;
	}
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	**ret = (struct transform){
		.kernels = made_up_kernels,
		.n_kernels = 4,
		.vars = var_names,
		.n_vars = 2,
		.ptx = TWIN_TEXT,
		.ptx_size = strlen(TWIN_TEXT),
	};
	return 0;
}

struct transform *transform_free(struct transform *t) {
	free(t);
	return NULL;
}

/* The made-up driver. */

struct fake_module {
	bool twins;
	uint64_t vars[2];
	uint64_t known; /* a variable of the program's */
};

struct fake_function {
	void *module;
	char name[64];
};

struct fake_context {
	CUdevice device;
};

static struct {
	struct fake_context contexts[2], *current;
	struct fake_context *stream_context; /* of all streams; NULL: the current one */
	int sm[2];
	struct fake_function functions[64];
	unsigned n_functions;
	unsigned n_loads, n_unloads, n_allocs, n_copies;
	bool no_memory, no_loads, no_twin_launch, capturing;
	CUresult launch_result;
	/* the last launch */
	struct fake_function *launched;
	unsigned grid[3];
	CUstream stream;
	struct twin_arg arg;
	void *params[3];
	unsigned n_launches, n_launches_ex, attribute_calls;
	void *memory[256];
	unsigned n_memory;
} fake;

STATE_TLS unsigned state_depth;

int state_enter(void) {
	state_depth++;
	return 0;
}

void state_leave(int token) {
	state_depth--;
}

static CUresult fake_CtxGetCurrent(CUcontext *c) {
	*c = (CUcontext)fake.current;
	return CUDA_SUCCESS;
}

static CUresult fake_CtxPushCurrent(CUcontext c) {
	fake.current = (struct fake_context *)c;
	return CUDA_SUCCESS;
}

static CUresult fake_CtxPopCurrent(CUcontext *c) {
	*c = (CUcontext)fake.current;
	fake.current = &fake.contexts[0];
	return CUDA_SUCCESS;
}

static CUresult fake_CtxGetDevice(CUdevice *d) {
	*d = fake.current->device;
	return CUDA_SUCCESS;
}

static CUresult fake_DeviceGetCount(int *n) {
	*n = 2;
	return CUDA_SUCCESS;
}

static CUresult fake_DeviceGet(CUdevice *d, int i) {
	*d = i;
	return CUDA_SUCCESS;
}

static CUresult fake_DeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*v = N_SMS;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*v = fake.sm[d] / 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*v = fake.sm[d] % 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*v = 16;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult module_new(void **ret) {
	struct fake_module *m;

	if (fake.no_loads) {
		return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
	}
	m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->twins = true;
	fake.n_loads++;
	*ret = m;
	return CUDA_SUCCESS;
}

static CUresult fake_ModuleLoadDataEx(CUmodule *m, const void *image, unsigned n,
				      CUjit_option *options, void **values) {
	assert_true(state_depth > 0);
	assert_string_equal(image, TWIN_TEXT);
	if (fake.no_loads) {
		snprintf(values[0], 20, "no compiler\nmore");
	}
	return module_new((void **)m);
}

static CUresult fake_LibraryLoadData(CUlibrary *l, const void *image, CUjit_option *jo, void **jv,
				     unsigned nj, CUlibraryOption *lo, void **lv, unsigned nl) {
	assert_string_equal(image, TWIN_TEXT);
	return module_new((void **)l);
}

static CUresult fake_ModuleUnload(CUmodule m) {
	fake.n_unloads++;
	free(m);
	return CUDA_SUCCESS;
}

static CUresult fake_LibraryUnload(CUlibrary l) {
	return fake_ModuleUnload((CUmodule)l);
}

static struct fake_function *function_of(void *module, const char *name) {
	struct fake_function *f;

	for (unsigned i = 0; i < fake.n_functions; i++) {
		f = &fake.functions[i];
		if (f->module == module && !strcmp(f->name, name)) {
			return f;
		}
	}
	assert_true(fake.n_functions < 64);
	f = &fake.functions[fake.n_functions++];
	f->module = module;
	snprintf(f->name, sizeof(f->name), "%s", name);
	return f;
}

static CUresult fake_ModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	*f = (CUfunction)function_of(m, name);
	return CUDA_SUCCESS;
}

static CUresult fake_LibraryGetKernel(CUkernel *k, CUlibrary l, const char *name) {
	*k = (CUkernel)function_of(l, name);
	return CUDA_SUCCESS;
}

static CUresult fake_ModuleGetGlobal(CUdeviceptr *p, size_t *n, CUmodule module, const char *name) {
	struct fake_module *m = (struct fake_module *)module;

	if (m->twins && !strcmp(name, TWIN_VARS_NAME)) {
		*p = (CUdeviceptr)(uintptr_t)m->vars;
		*n = sizeof(m->vars);
		return CUDA_SUCCESS;
	}
	if (!m->twins && !strcmp(name, "known")) {
		*p = (CUdeviceptr)(uintptr_t)&m->known;
		*n = sizeof(m->known);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult fake_LibraryGetGlobal(CUdeviceptr *p, size_t *n, CUlibrary l, const char *name) {
	return fake_ModuleGetGlobal(p, n, (CUmodule)l, name);
}

static CUresult fake_GetErrorName(CUresult rc, const char **name) {
	*name = rc == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ? "CUDA_ERROR_JIT_COMPILER_NOT_FOUND" : "?";
	return CUDA_SUCCESS;
}

static CUresult fake_StreamCreate(CUstream *s, unsigned flags) {
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	*s = (CUstream)&fake.stream;
	return CUDA_SUCCESS;
}

static CUresult fake_StreamGetCtx(CUstream s, CUcontext *c) {
	*c = (CUcontext)(fake.stream_context ? fake.stream_context : fake.current);
	return CUDA_SUCCESS;
}

static CUresult fake_StreamDestroy(CUstream s) {
	return CUDA_SUCCESS;
}

static CUresult fake_StreamSynchronize(CUstream s) {
	return CUDA_SUCCESS;
}

static CUresult fake_StreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
	*status = fake.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult fake_MemAlloc(CUdeviceptr *p, size_t n) {
	void *m = fake.no_memory ? NULL : malloc(n);

	if (!m) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	assert_true(fake.n_memory < 256);
	fake.memory[fake.n_memory++] = m;
	fake.n_allocs++;
	*p = (CUdeviceptr)(uintptr_t)m;
	return CUDA_SUCCESS;
}

static CUresult fake_MemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s) {
	memset((void *)(uintptr_t)p, v, n);
	return CUDA_SUCCESS;
}

static CUresult fake_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
	fake.n_copies++;
	memcpy((void *)(uintptr_t)to, from, n);
	return CUDA_SUCCESS;
}

static CUresult fake_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
	fake.n_copies++;
	memcpy(to, (void *)(uintptr_t)from, n);
	return CUDA_SUCCESS;
}

static CUresult fake_Occupancy(int *n, CUfunction f, int threads, size_t shared) {
	*n = threads > 512 ? 0 : OCCUPANCY;
	return CUDA_SUCCESS;
}

static bool is_twin(const struct fake_function *f) {
	return !strncmp(f->name, TWIN_PREFIX, strlen(TWIN_PREFIX));
}

static CUresult fake_LaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				  unsigned by, unsigned bz, unsigned shared, CUstream s,
				  void **params, void **extra) {
	struct fake_function *function = (struct fake_function *)f;
	size_t n = strstr(function->name, "add") ? 2 : 0;

	if (is_twin(function) && fake.no_twin_launch) {
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	}
	fake.launched = function;
	fake.n_launches++;
	fake.grid[0] = gx;
	fake.grid[1] = gy;
	fake.grid[2] = gz;
	fake.stream = s;
	memset(fake.params, 0, sizeof(fake.params));
	if (is_twin(function)) {
		assert_null(extra);
		memcpy(fake.params, params, n * sizeof(*params));
		memcpy(&fake.arg, params[n], sizeof(fake.arg));
	}
	return fake.launch_result;
}

static CUresult fake_LaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params,
				    void **extra) {
	fake.n_launches_ex++;
	return fake_LaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
				 c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, params,
				 extra);
}

static CUresult fake_FuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
	assert_true(is_twin((struct fake_function *)f));
	fake.attribute_calls++;
	return CUDA_SUCCESS;
}

static CUresult fake_KernelSetAttribute(CUfunction_attribute a, int value, CUkernel k,
					CUdevice device) {
	return fake_FuncSetAttribute((CUfunction)k, a, value);
}

static CUresult fake_FuncSetCacheConfig(CUfunction f, CUfunc_cache config) {
	return fake_FuncSetAttribute(f, 0, 0);
}

static const struct real real_table = {
	.cuCtxGetCurrent = fake_CtxGetCurrent,
	.cuCtxPushCurrent_v2 = fake_CtxPushCurrent,
	.cuCtxPopCurrent_v2 = fake_CtxPopCurrent,
	.cuCtxGetDevice = fake_CtxGetDevice,
	.cuDeviceGetCount = fake_DeviceGetCount,
	.cuDeviceGet = fake_DeviceGet,
	.cuDeviceGetAttribute = fake_DeviceGetAttribute,
	.cuModuleLoadDataEx = fake_ModuleLoadDataEx,
	.cuModuleUnload = fake_ModuleUnload,
	.cuModuleGetFunction = fake_ModuleGetFunction,
	.cuModuleGetGlobal_v2 = fake_ModuleGetGlobal,
	.cuLibraryLoadData = fake_LibraryLoadData,
	.cuLibraryUnload = fake_LibraryUnload,
	.cuLibraryGetKernel = fake_LibraryGetKernel,
	.cuLibraryGetGlobal = fake_LibraryGetGlobal,
	.cuGetErrorName = fake_GetErrorName,
	.cuStreamCreate = fake_StreamCreate,
	.cuStreamDestroy_v2 = fake_StreamDestroy,
	.cuStreamGetCtx = fake_StreamGetCtx,
	.cuStreamSynchronize = fake_StreamSynchronize,
	.cuStreamIsCapturing = fake_StreamIsCapturing,
	.cuMemAlloc_v2 = fake_MemAlloc,
	.cuMemsetD8Async = fake_MemsetD8Async,
	.cuMemcpyHtoDAsync_v2 = fake_MemcpyHtoDAsync,
	.cuMemcpyDtoHAsync_v2 = fake_MemcpyDtoHAsync,
	.cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_Occupancy,
	.cuLaunchKernel = fake_LaunchKernel,
	.cuLaunchKernel_ptsz = fake_LaunchKernel,
	.cuLaunchKernelEx = fake_LaunchKernelEx,
	.cuLaunchKernelEx_ptsz = fake_LaunchKernelEx,
	.cuFuncSetAttribute = fake_FuncSetAttribute,
	.cuFuncSetCacheConfig = fake_FuncSetCacheConfig,
	.cuKernelSetAttribute = fake_KernelSetAttribute,
};

const struct real *real_get(void) {
	return &real_table;
}

const struct real *real_get_loaded(void) {
	return &real_table;
}

/* What the tests share. */

#define CONTEXT(i) ((CUcontext)&fake.contexts[i])

static struct fake_module program;
static int a_number = 7;
static void *a_pointer = &a_number;
static void *add_params[] = {&a_pointer, &a_number};
static const struct enforce_grant half = {
	.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID,
	.sms = {.words = {0xFFFFF00000}},
	.gpu_sms = N_SMS,
};
#define WHOLE (1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)
#define CONFINED \
	(1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID | 1u << SBEET__ENFORCEMENT__ENFORCEMENT_COUNT)

static int setup(void **state) {
	memset(&fake, 0, sizeof(fake));
	memset(&program, 0, sizeof(program));
	fake.sm[0] = fake.sm[1] = 75;
	fake.contexts[1].device = 1;
	fake.current = &fake.contexts[0];
	n_transforms = 0;
	return 0;
}

static int teardown(void **state) {
	fake.current = &fake.contexts[0];
	kernel_module_unloading((CUmodule)&program);
	kernel_library_unloading((CUlibrary)&program);
	for (int i = 0; i < 2; i++) {
		kernel_context_destroying(CONTEXT(i));
		enforce_context_destroying(CONTEXT(i));
	}
	for (unsigned i = 0; i < fake.n_memory; i++) {
		free(fake.memory[i]);
	}
	return 0;
}

static struct kernel *kernel_of(const char *name) {
	CUfunction f = (CUfunction)function_of(&program, name);

	kernel_function_found((CUmodule)&program, f, name);
	return kernel_find(f);
}

static struct kernel *load(const char *name) {
	kernel_module_loaded((CUmodule)&program, PROGRAM, NULL);
	return kernel_of(name);
}

static struct launch launch_of(const char *name) {
	return (struct launch){
		.function = (CUfunction)function_of(&program, name),
		.grid = {100, 3, 2},
		.block = {256, 1, 1},
		.params = add_params,
	};
}

static void launch_gives(const struct enforce_grant *g, const struct launch *l,
			 Sbeet__Enforcement expected, const char *function) {
	Sbeet__Enforcement how = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;

	assert_int_equal(enforce_launch(g, kernel_find(l->function), l, &how), CUDA_SUCCESS);
	assert_int_equal(how, expected);
	assert_string_equal(fake.launched->name, function);
}

#define NONE SBEET__ENFORCEMENT__ENFORCEMENT_NONE
#define SMID SBEET__ENFORCEMENT__ENFORCEMENT_SMID

/* The device's side of a launch that ran to its end. */
static void complete(const struct twin_arg *arg, uint64_t outside) {
	struct twin_ctl *ctl = (struct twin_ctl *)(uintptr_t)arg->ctl;

	ctl->outside += outside;
	ctl->launches++;
}

static void enforce_launches_the_twin(void **state) {
	struct kernel *k = load("add");
	struct launch l = launch_of("add");
	const struct twin_set *set;

	assert_non_null(k);
	assert_string_equal(kernel_name(k), "add");
	assert_null(kernel_refusal(k));
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE | CONFINED);
	assert_int_equal(enforce_prepare(CONTEXT(0), &half), 0);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");

	assert_true(fake.arg.n_blocks == 600);
	assert_int_equal(fake.arg.grid_x, 100);
	assert_int_equal(fake.arg.grid_y, 3);
	assert_int_equal(fake.arg.grid_z, 2);
	assert_int_equal(fake.arg.n_workers, N_SMS * OCCUPANCY * 2);
	assert_int_equal(fake.grid[0], fake.arg.n_workers);
	assert_int_equal(fake.grid[1], 1);
	assert_int_equal(fake.grid[2], 1);
	assert_ptr_equal(fake.params[0], add_params[0]);
	assert_ptr_equal(fake.params[1], add_params[1]);
	assert_int_equal(fake.arg.ctl % 16, 0);
	assert_int_equal(fake.arg.set % 16, 0);
	set = (const struct twin_set *)(uintptr_t)fake.arg.set;
	assert_memory_equal(set->sms, half.sms.words, sizeof(set->sms));
	assert_int_equal(set->stop, 0);
}

static void enforce_runs_the_original_on_the_whole_gpu(void **state) {
	struct enforce_grant g = {
		.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE,
		.sms = smset_range(0, N_SMS),
		.gpu_sms = N_SMS,
	};
	struct launch l = launch_of("add");

	load("add");
	launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, "add");
	g.enforcement = SMID;
	assert_int_equal(enforce_prepare(CONTEXT(0), &g), 0);
	launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, "add");
	assert_int_equal(fake.n_allocs, 0);
}

static void enforce_counts_sms_from_0(void **state) {
	struct enforce_grant g = half;
	struct launch l = launch_of("add");
	struct smset first = smset_range(0, 20);

	g.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_COUNT;
	load("add");
	enforce_prepare(CONTEXT(0), &g);
	launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT, TWIN_PREFIX "add");
	assert_memory_equal((void *)(uintptr_t)fake.arg.set, first.words, sizeof(first));
}

static void enforce_takes_parameters_from_a_buffer(void **state) {
	char buffer[12];
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	struct launch l = launch_of("add");

	l.params = NULL;
	l.extra = extra;
	load("add");
	enforce_prepare(CONTEXT(0), &half);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	assert_ptr_equal(fake.params[0], buffer);
	assert_ptr_equal(fake.params[1], buffer + 8);
}

static void kernel_says_why_it_is_not_confined(void **state) {
	struct kernel *k = load("grid_sync");
	struct launch l = launch_of("grid_sync");

	assert_string_equal(kernel_refusal(k),
			    "it waits for the whole grid (line 12: barrier.cluster.arrive;)");
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	assert_int_equal(kernel_enforcement_mask(NULL, &l), WHOLE);
	k = kernel_of("nowhere");
	assert_string_equal(kernel_refusal(k), "it is not in the image's PTX");
}

static void kernel_refuses_users_of_unknown_variables_only(void **state) {
	struct launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	struct kernel *k = load("reads_known");
	struct fake_module *twins;

	assert_null(kernel_refusal(k));
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE | CONFINED);
	k = kernel_of("reads_unknown");
	assert_non_null(strstr(kernel_refusal(k), "variable"));
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	twins = function_of(&program, "reads_known")[1].module;
	assert_true(twins->twins);
	assert_true(twins->vars[0] == (uintptr_t)&program.known);
	assert_true(twins->vars[1] == 0);
}

static void kernel_lives_on_when_the_driver_takes_no_twin(void **state) {
	struct launch l = launch_of("add");
	struct kernel *k;

	fake.no_loads = true;
	k = load("add");
	assert_string_equal(kernel_refusal(k),
			    "the driver does not take its rewritten form: "
			    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND: no compiler");
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	launch_gives(&half, &l, NONE, "add");
}

static void kernel_refuses_images_that_it_cannot_read(void **state) {
	static const struct {
		const char *image, *refusal;
	} cases[] = {
		{".version 7.0 garbage", "its PTX can't be read: line 1: garbage"},
		{PROGRAM_90, "the program carries no PTX of it for compute capability 7.5"},
		{"hello", "its image is of an unknown kind"},
	};

	for (size_t i = 0; i < 3; i++) {
		kernel_module_loaded((CUmodule)&program, cases[i].image, NULL);
		assert_string_equal(kernel_refusal(kernel_of("add")), cases[i].refusal);
		kernel_module_unloading((CUmodule)&program);
	}
	kernel_module_loaded((CUmodule)&program, NULL, "/nonexistent/file");
	assert_non_null(strstr(kernel_refusal(kernel_of("add")), "No such file"));
}

static void enforce_leaves_captures_alone(void **state) {
	struct launch l = launch_of("add");

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	fake.capturing = true;
	launch_gives(&half, &l, NONE, "add");
}

static void enforce_runs_the_original_without_memory(void **state) {
	struct launch l = launch_of("add");

	load("add");
	fake.no_memory = true;
	assert_int_equal(enforce_prepare(CONTEXT(0), &half), -ENOMEM);
	launch_gives(&half, &l, NONE, "add");
}

static void enforce_keeps_the_errors_of_the_original(void **state) {
	struct launch l = launch_of("add");
	Sbeet__Enforcement how;

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	fake.no_twin_launch = true;
	launch_gives(&half, &l, NONE, "add");
	fake.launch_result = CUDA_ERROR_LAUNCH_FAILED;
	assert_int_equal(enforce_launch(&half, kernel_find(l.function), &l, &how),
			 CUDA_ERROR_LAUNCH_FAILED);
	l.grid[1] = 0; /* for the driver to refuse */
	fake.no_twin_launch = false;
	assert_int_equal(enforce_launch(&half, kernel_find(l.function), &l, &how),
			 CUDA_ERROR_LAUNCH_FAILED);
	assert_string_equal(fake.launched->name, "add");
}

static void kernel_mask_depends_on_the_launch(void **state) {
	struct launch l = launch_of("add");
	struct kernel *k = load("add");

	l.block[0] = 1024; /* more than fits */
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	l.block[0] = 0x10000;
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	l.block[0] = 64;
	l.cooperative = true;
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
	l.cooperative = false;
	l.params = NULL;
	assert_int_equal(kernel_enforcement_mask(k, &l), WHOLE);
}

static void enforce_passes_the_configuration_on(void **state) {
	CUlaunchAttribute priority = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
	CUlaunchConfig config = {
		.gridDimX = 100,
		.gridDimY = 3,
		.gridDimZ = 2,
		.blockDimX = 256,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &priority,
		.numAttrs = 1,
	};
	struct launch l = launch_of("add");

	l.config = &config;
	load("add");
	enforce_prepare(CONTEXT(0), &half);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	assert_int_equal(fake.n_launches_ex, 1);
	assert_int_equal(fake.grid[0], fake.arg.n_workers);
	assert_int_equal(config.gridDimX, 100);
	priority.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	launch_gives(&half, &l, NONE, "add");
}

static CUdeviceptr control_of(CUstream s, bool per_thread) {
	struct launch l = launch_of("add");

	l.stream = s;
	l.per_thread_default = per_thread;
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	return fake.arg.ctl;
}

static void *control_of_a_thread(void *p) {
	*(CUdeviceptr *)p = control_of(NULL, true);
	return NULL;
}

static void enforce_keeps_streams_apart(void **state) {
	CUstream a = (CUstream)&fake.n_copies, b = (CUstream)&fake.n_allocs;
	CUdeviceptr legacy, mine, other = 0, of_a;
	pthread_t thread;

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	legacy = control_of(NULL, false);
	assert_true(control_of(CU_STREAM_LEGACY, true) == legacy);
	assert_true(control_of(NULL, false) == legacy);
	mine = control_of(NULL, true);
	assert_true(mine != legacy);
	assert_true(fake.stream == CU_STREAM_PER_THREAD);
	assert_true(control_of(CU_STREAM_PER_THREAD, false) == mine);
	of_a = control_of(a, false);
	assert_true(of_a != legacy && of_a != mine);
	assert_true(control_of(a, true) == of_a);
	assert_true(control_of(b, false) != of_a);
	assert_int_equal(pthread_create(&thread, NULL, control_of_a_thread, &other), 0);
	pthread_join(thread, NULL);
	assert_true(other && other != mine && other != legacy);
}

struct late {
	CUdeviceptr mine, other;
};

/* A destructor of the program's that runs after the shim's own, as any library may have one. */
static void launch_late(void *p) {
	struct late *late = p;
	pthread_t thread;

	late->mine = control_of(NULL, true);
	assert_int_equal(pthread_create(&thread, NULL, control_of_a_thread, &late->other), 0);
	pthread_join(thread, NULL);
}

static void *thread_with_destructor(void *p) {
	pthread_key_t key;

	control_of(NULL, true); /* the shim's key is there, so this one is behind it */
	assert_int_equal(pthread_key_create(&key, launch_late), 0);
	pthread_setspecific(key, p);
	return NULL;
}

static void enforce_keeps_a_thread_that_ends_apart(void **state) {
	struct late late = {0};
	pthread_t thread;

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	assert_int_equal(pthread_create(&thread, NULL, thread_with_destructor, &late), 0);
	pthread_join(thread, NULL);
	assert_true(late.mine && late.other);
	assert_true(late.mine != late.other);
}

/* A library's kernel runs where its stream is, and device memory of the current context is not
 * there. */
static void enforce_leaves_streams_of_other_contexts_alone(void **state) {
	struct launch l = launch_of("add");

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	l.stream = (CUstream)&fake.n_copies;
	fake.stream_context = &fake.contexts[1];
	assert_int_equal(kernel_enforcement_mask(kernel_find(l.function), &l), WHOLE);
	launch_gives(&half, &l, NONE, "add");
	fake.stream_context = &fake.contexts[0];
	assert_int_equal(kernel_enforcement_mask(kernel_find(l.function), &l), WHOLE | CONFINED);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
}

static void enforce_reuses_control_blocks_that_are_done(void **state) {
	CUstream a = (CUstream)&fake.n_copies;
	CUdeviceptr first, second;
	struct twin_arg arg;

	load("add");
	first = 0;
	enforce_prepare(CONTEXT(0), &half);
	first = control_of(a, false);
	arg = fake.arg;
	enforce_stream_destroying(CONTEXT(0), a);
	/* The launch is still running: a new stream, at the same address, must not share it. */
	second = control_of(a, false);
	assert_true(second != first);
	complete(&arg, 0);
	enforce_stream_destroying(NULL, (CUstream)&fake.n_allocs); /* not known: nothing happens */
	assert_true(control_of((CUstream)&fake.n_allocs, false) == first);
}

static void enforce_allocates_nothing_on_later_launches(void **state) {
	struct launch l = launch_of("add");
	unsigned allocs, copies;

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	allocs = fake.n_allocs;
	copies = fake.n_copies;
	for (unsigned i = 0; i < 100; i++) {
		l.grid[0] = 1 + i;
		launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	}
	assert_int_equal(enforce_prepare(CONTEXT(0), &half), 0);
	assert_int_equal(fake.n_copies, copies);
	assert_true(fake.n_allocs <= allocs + 1); /* a spare control block for the next stream */
}

static void enforce_reports_blocks_outside(void **state) {
	struct launch l = launch_of("add");

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 0);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	complete(&fake.arg, 5);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 5);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 0);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
	complete(&fake.arg, 2);
	fake.current = NULL; /* asked from a thread without a context */
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 2);
}

static void kernel_forgets_what_is_unloaded(void **state) {
	struct launch l = launch_of("add");

	load("add");
	assert_int_equal(fake.n_loads, 1);
	kernel_module_unloading((CUmodule)&program);
	assert_int_equal(fake.n_unloads, 1);
	assert_null(kernel_find(l.function));
	launch_gives(&half, &l, NONE, "add");
}

static void kernel_forgets_what_a_context_had(void **state) {
	struct launch l = launch_of("add");
	struct fake_module *twins;

	load("add");
	twins = function_of(&program, "add")[1].module;
	kernel_context_destroying(CONTEXT(0));
	enforce_context_destroying(CONTEXT(0));
	assert_null(kernel_find(l.function));
	assert_int_equal(fake.n_unloads, 0); /* the driver does that by itself */
	free(twins);
}

static void kernel_transforms_an_image_once(void **state) {
	struct fake_module copies[3] = {{0}};

	for (unsigned i = 0; i < 3; i++) {
		kernel_module_loaded((CUmodule)&copies[i], PROGRAM, NULL);
	}
	assert_int_equal(n_transforms, 1);
	assert_int_equal(fake.n_loads, 3);
	for (unsigned i = 0; i < 3; i++) {
		kernel_module_unloading((CUmodule)&copies[i]);
	}
	assert_int_equal(fake.n_unloads, 3);
	kernel_module_loaded((CUmodule)&copies[0], PROGRAM, NULL);
	assert_int_equal(n_transforms, 2);
	kernel_module_unloading((CUmodule)&copies[0]);
}

static void kernel_follows_a_library_to_every_gpu(void **state) {
	CUfunction kernel = (CUfunction)function_of(&program, "add"), function, other;
	struct fake_module module = {0};
	struct launch l = launch_of("add");

	fake.sm[1] = 90;
	fake.current = NULL; /* libraries are loaded without a context */
	kernel_library_loaded((CUlibrary)&program, PROGRAM, NULL);
	assert_int_equal(fake.n_loads, 2);
	assert_int_equal(n_transforms, 1);
	kernel_library_kernel_found((CUlibrary)&program, (CUkernel)kernel, "add");
	assert_non_null(kernel_find(kernel));
	function = (CUfunction)function_of(&module, "in context 0");
	kernel_kernel_function_found((CUkernel)kernel, function);
	assert_ptr_equal(kernel_find(function), kernel_find(kernel));
	kernel_library_module_found((CUlibrary)&program, (CUmodule)&module);
	other = (CUfunction)function_of(&module, "add");
	kernel_function_found((CUmodule)&module, other, "add");
	assert_ptr_equal(kernel_find(other), kernel_find(kernel));

	for (int i = 0; i < 2; i++) {
		struct fake_function *before = fake.launched;

		fake.current = &fake.contexts[i];
		assert_int_equal(enforce_prepare(CONTEXT(i), &half), 0);
		assert_int_equal(kernel_enforcement_mask(kernel_find(kernel), &l),
				 WHOLE | CONFINED);
		launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
		assert_ptr_not_equal(fake.launched, before);
	}
	kernel_attribute_set(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99000);
	assert_int_equal(fake.attribute_calls, 4); /* two twins on two GPUs */
	kernel_library_unloading((CUlibrary)&program);
	assert_int_equal(fake.n_unloads, 2);
	assert_null(kernel_find(function));
	assert_null(kernel_find(other));
}

/* The driver gives handles away again once their context is gone, whether or not we were told. */
static void kernel_is_what_the_handle_stands_for_now(void **state) {
	CUfunction add = (CUfunction)function_of(&program, "add"), handle;
	struct fake_module other = {0};
	struct launch l = launch_of("add");

	kernel_library_loaded((CUlibrary)&program, PROGRAM, NULL);
	kernel_library_kernel_found((CUlibrary)&program, (CUkernel)add, "add");
	handle = (CUfunction)function_of(&other, "any");
	kernel_kernel_function_found((CUkernel)add, handle);
	kernel_library_module_found((CUlibrary)&program, (CUmodule)&other);

	kernel_module_loaded((CUmodule)&other, PROGRAM_90, NULL);
	kernel_function_found((CUmodule)&other, handle, "grid_sync");
	assert_string_equal(kernel_name(kernel_find(handle)), "grid_sync");
	assert_string_equal(kernel_name(kernel_find(add)), "add"); /* the library is still there */

	kernel_kernel_function_found((CUkernel)add, handle);
	assert_ptr_equal(kernel_find(handle), kernel_find(add));
	kernel_module_unloading((CUmodule)&other);
	assert_ptr_equal(kernel_find(handle), kernel_find(add));
	assert_int_equal(enforce_prepare(CONTEXT(0), &half), 0);
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
}

/* A job is the GPU's, and made ready in the context that opened it. */
static void enforce_confines_in_every_context_of_a_job(void **state) {
	CUfunction add = (CUfunction)function_of(&program, "add");
	struct launch l = launch_of("add");

	kernel_library_loaded((CUlibrary)&program, PROGRAM, NULL);
	kernel_library_kernel_found((CUlibrary)&program, (CUkernel)add, "add");
	assert_int_equal(enforce_prepare(CONTEXT(0), &half), 0);
	fake.current = &fake.contexts[1];
	launch_gives(&half, &l, SMID, TWIN_PREFIX "add");
}

static void kernel_of_a_library_leaves_with_the_context(void **state) {
	CUfunction add = (CUfunction)function_of(&program, "add"), here, there;

	kernel_library_loaded((CUlibrary)&program, PROGRAM, NULL);
	kernel_library_kernel_found((CUlibrary)&program, (CUkernel)add, "add");
	here = (CUfunction)function_of(&program, "in context 0");
	kernel_kernel_function_found((CUkernel)add, here);
	fake.current = &fake.contexts[1];
	there = (CUfunction)function_of(&program, "in context 1");
	kernel_kernel_function_found((CUkernel)add, there);
	kernel_context_destroying(CONTEXT(1));
	assert_null(kernel_find(there));
	assert_non_null(kernel_find(here));
	assert_non_null(kernel_find(add));
}

static void kernel_gives_twins_the_attributes_of_the_original(void **state) {
	CUfunction f = (CUfunction)function_of(&program, "add");

	load("add");
	kernel_attribute_set(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99000);
	kernel_attribute_set(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2); /* not a twin's */
	kernel_cache_config_set(f, CU_FUNC_CACHE_PREFER_L1);
	assert_int_equal(fake.attribute_calls, 2);
	kernel_attribute_set(NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1);
}

static void kernel_numbers_are_never_used_twice(void **state) {
	uint32_t a = kernel_id(load("add")), b = kernel_id(kernel_of("grid_sync"));

	assert_true(a && b && a != b);
	assert_int_equal(kernel_id(kernel_of("add")), a);
	kernel_module_unloading((CUmodule)&program);
	assert_true(kernel_id(load("add")) > b);
}

static void enforce_forgets_after_fork(void **state) {
	struct launch l = launch_of("add");
	int status = 0;
	pid_t child;

	load("add");
	enforce_prepare(CONTEXT(0), &half);
	child = fork();
	if (!child) {
		unsigned unloads = fake.n_unloads;

		enforce_after_fork();
		_exit(kernel_find(l.function) || fake.n_unloads != unloads);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_non_null(kernel_find(l.function));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(enforce_launches_the_twin),
		TEST(enforce_runs_the_original_on_the_whole_gpu),
		TEST(enforce_counts_sms_from_0),
		TEST(enforce_takes_parameters_from_a_buffer),
		TEST(kernel_says_why_it_is_not_confined),
		TEST(kernel_refuses_users_of_unknown_variables_only),
		TEST(kernel_lives_on_when_the_driver_takes_no_twin),
		TEST(kernel_refuses_images_that_it_cannot_read),
		TEST(enforce_leaves_captures_alone),
		TEST(enforce_runs_the_original_without_memory),
		TEST(enforce_keeps_the_errors_of_the_original),
		TEST(kernel_mask_depends_on_the_launch),
		TEST(enforce_passes_the_configuration_on),
		TEST(enforce_keeps_streams_apart),
		TEST(enforce_keeps_a_thread_that_ends_apart),
		TEST(enforce_leaves_streams_of_other_contexts_alone),
		TEST(enforce_reuses_control_blocks_that_are_done),
		TEST(enforce_allocates_nothing_on_later_launches),
		TEST(enforce_reports_blocks_outside),
		TEST(kernel_forgets_what_is_unloaded),
		TEST(kernel_forgets_what_a_context_had),
		TEST(kernel_transforms_an_image_once),
		TEST(kernel_follows_a_library_to_every_gpu),
		TEST(kernel_is_what_the_handle_stands_for_now),
		TEST(kernel_of_a_library_leaves_with_the_context),
		TEST(enforce_confines_in_every_context_of_a_job),
		TEST(kernel_gives_twins_the_attributes_of_the_original),
		TEST(kernel_numbers_are_never_used_twice),
		TEST(enforce_forgets_after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
