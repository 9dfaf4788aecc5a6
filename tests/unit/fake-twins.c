/*
 * fake-twins.c: see fake-twins.h.
 */
#include "fake-twins.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/state.h"

#define TWIN_TEXT ".version 7.0 // twins"

/* The made-up rewriter. */

unsigned fake_n_transforms;
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
	{.name = "waits", .confinable = true, .block_multiple = 1, .waits = true},
};

int transform_new(struct transform **ret, const char *text, size_t size, char *error,
		  size_t error_size) {
	fake_n_transforms++;
	if (memmem(text, size, "garbage", 7)) {
		snprintf(error, error_size, "line 1: garbage");
		return -EINVAL;
	}
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	**ret = (struct transform){
		.kernels = made_up_kernels,
		.n_kernels = sizeof(made_up_kernels) / sizeof(made_up_kernels[0]),
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

struct fake fake;

STATE_TLS struct state_self state_self;

int state_enter(void) {
	state_self.depth++;
	return 0;
}

void state_leave(int token) {
	state_self.depth--;
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

/* Notes what the twins are compiled with. */
static void keep_options(unsigned n, const CUjit_option *options, void *const *values) {
	fake.jit = (struct jit){0};
	for (unsigned i = 0; i < n; i++) {
		if (options[i] != CU_JIT_ERROR_LOG_BUFFER &&
		    options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			fake.jit.options[fake.jit.n] = options[i];
			fake.jit.values[fake.jit.n++] = values[i];
		}
	}
}

static CUresult fake_ModuleLoadDataEx(CUmodule *m, const void *image, unsigned n,
				      CUjit_option *options, void **values) {
	assert_true(state_self.depth > 0);
	assert_string_equal(image, TWIN_TEXT);
	if (fake.no_loads) {
		snprintf(values[0], 20, "no compiler\nmore");
	}
	keep_options(n, options, values);
	return module_new((void **)m);
}

static CUresult fake_LibraryLoadData(CUlibrary *l, const void *image, CUjit_option *jo, void **jv,
				     unsigned nj, CUlibraryOption *lo, void **lv, unsigned nl) {
	assert_string_equal(image, TWIN_TEXT);
	keep_options(nj, jo, jv);
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

struct fake_function *fake_function_of(void *module, const char *name) {
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
	*f = (CUfunction)fake_function_of(m, name);
	return CUDA_SUCCESS;
}

static CUresult fake_LibraryGetKernel(CUkernel *k, CUlibrary l, const char *name) {
	*k = (CUkernel)fake_function_of(l, name);
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

static CUresult fake_FuncGetAttribute(int *value, CUfunction_attribute a, CUfunction f) {
	*value = fake.twin_threads;
	return a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_KernelGetAttribute(int *value, CUfunction_attribute a, CUkernel k,
					CUdevice device) {
	return fake_FuncGetAttribute(value, a, (CUfunction)k);
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
	fake.n_attributes = c->numAttrs;
	fake.first_attribute = c->numAttrs ? c->attrs[0].id : CU_LAUNCH_ATTRIBUTE_IGNORE;
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
	.cuMemAlloc_v2 = fake_MemAlloc,
	.cuMemsetD8Async = fake_MemsetD8Async,
	.cuMemcpyHtoDAsync_v2 = fake_MemcpyHtoDAsync,
	.cuMemcpyDtoHAsync_v2 = fake_MemcpyDtoHAsync,
	.cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_Occupancy,
	.cuLaunchKernel = fake_LaunchKernel,
	.cuLaunchKernel_ptsz = fake_LaunchKernel,
	.cuLaunchKernelEx = fake_LaunchKernelEx,
	.cuLaunchKernelEx_ptsz = fake_LaunchKernelEx,
	.cuFuncGetAttribute = fake_FuncGetAttribute,
	.cuKernelGetAttribute = fake_KernelGetAttribute,
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

struct fake_module fake_program;
static int a_number = 7;
static void *a_pointer = &a_number;
void *fake_params[] = {&a_pointer, &a_number};
const struct enforce_grant fake_half = {
	.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID,
	.sms = {.words = {0xFFFFF00000}},
	.gpu_sms = N_SMS,
};
int fake_setup(void **state) {
	memset(&fake, 0, sizeof(fake));
	memset(&fake_program, 0, sizeof(fake_program));
	fake.sm[0] = fake.sm[1] = 75;
	fake.contexts[1].device = 1;
	fake.current = &fake.contexts[0];
	fake.twin_threads = 1024;
	fake_n_transforms = 0;
	return 0;
}

int fake_teardown(void **state) {
	fake.current = &fake.contexts[0];
	kernel_module_unloading((CUmodule)&fake_program);
	kernel_library_unloading((CUlibrary)&fake_program);
	for (int i = 0; i < 2; i++) {
		kernel_context_destroying(CONTEXT(i));
		enforce_context_destroying(CONTEXT(i));
	}
	for (unsigned i = 0; i < fake.n_memory; i++) {
		free(fake.memory[i]);
	}
	return 0;
}

struct kernel *fake_kernel_of(const char *name) {
	CUfunction f = (CUfunction)fake_function_of(&fake_program, name);

	kernel_function_found((CUmodule)&fake_program, f, name);
	return kernel_find(f);
}

struct kernel *fake_load(const char *name) {
	kernel_module_loaded((CUmodule)&fake_program, PROGRAM, NULL, NULL);
	return fake_kernel_of(name);
}

struct launch fake_launch_of(const char *name) {
	return (struct launch){
		.function = (CUfunction)fake_function_of(&fake_program, name),
		.grid = {100, 3, 2},
		.block = {256, 1, 1},
		.params = fake_params,
	};
}

uint32_t fake_mask(const struct kernel *k, const struct launch *l) {
	struct kernel_use use;

	return kernel_enforcement_mask(k, l, (CUcontext)fake.current, &use);
}

CUresult fake_launch(const struct enforce_grant *g, const struct launch *l,
		     Sbeet__Enforcement *ret_how) {
	struct kernel_use use;

	kernel_enforcement_mask(kernel_find(l->function), l, (CUcontext)fake.current, &use);
	return enforce_launch(g, &use, l, ret_how);
}

void fake_launch_gives(const struct enforce_grant *g, const struct launch *l,
		       Sbeet__Enforcement expected, const char *function) {
	Sbeet__Enforcement how = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;

	assert_int_equal(fake_launch(g, l, &how), CUDA_SUCCESS);
	assert_int_equal(how, expected);
	assert_string_equal(fake.launched->name, function);
}
