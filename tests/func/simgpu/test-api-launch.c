/*
 * test-api-launch.c: the simulated driver, as one process sees it: modules, libraries, launches and
 * what fails in them.
 */
#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels.h"

static void api_adds_small_and_large_vectors(void **state) {
	struct fixture *f = *state;

	run_add(f->add, NULL, 100, 1);
	run_add(f->add, NULL, 300000, 2); /* beyond what a packet carries */
	run_add(f->add, CU_STREAM_PER_THREAD, 1000, 3);
}

static void api_takes_parameters_in_a_buffer(void **state) {
	struct fixture *f = *state;
	struct {
		CUdeviceptr where;
		uint32_t value;
	} packed = {.value = 77};
	size_t size = sizeof(packed);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};
	unsigned got = 0;
	size_t offset, param_size;

	OK(cuMemAlloc(&packed.where, 4));
	OK(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	OK(cuMemcpyDtoH(&got, packed.where, 4));
	assert_int_equal(got, 77);
	OK(cuFuncGetParamInfo(f->poke, 1, &offset, &param_size));
	assert_int_equal(offset, 8);
	assert_int_equal(param_size, 4);
	assert_int_equal(cuFuncGetParamInfo(f->poke, 2, &offset, &param_size),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(packed.where));
}

static void api_compiles_for_fewer_registers(void **state) {
	char text[8192] =
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry big() .maxntid 512 { .reg .b32 %r<80>;\n";
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)32;
	int any, few, n_any, n_few;
	CUmodule modules[2];
	CUfunction f[2];

	/* all alive at once */
	for (int i = 0; i < 160; i++) {
		sprintf(text + strlen(text),
			i < 80 ? "mov.u32 %%r%d, %%clock;\n" : "add.u32 %%r0, %%r0, %%r%d;\n",
			i % 80);
	}
	strcat(text, "ret; }\n");
	OK(cuModuleLoadData(&modules[0], text));
	OK(cuModuleLoadDataEx(&modules[1], text, 1, &option, &value));
	for (int i = 0; i < 2; i++) {
		OK(cuModuleGetFunction(&f[i], modules[i], "big"));
	}
	OK(cuFuncGetAttribute(&any, CU_FUNC_ATTRIBUTE_NUM_REGS, f[0]));
	OK(cuFuncGetAttribute(&few, CU_FUNC_ATTRIBUTE_NUM_REGS, f[1]));
	assert_true(any >= 80);
	assert_int_equal(few, 32);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n_any, f[0], 512, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n_few, f[1], 512, 0));
	assert_true(n_few > n_any);
	for (int i = 0; i < 2; i++) {
		OK(cuLaunchKernel(f[i], 10, 1, 1, 512, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		OK(cuModuleUnload(modules[i]));
	}
}

static void api_runs_kernels_of_libraries(void **state) {
	struct fixture *f = *state;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUdeviceptr d, counter;
	unsigned n, value = 9, got;
	void *params[] = {&d, &value};
	CUlaunchConfig config = {.gridDimX = 1,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1};
	const char *name;

	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&n, library));
	assert_int_equal(n, 5);
	OK(cuLibraryGetKernel(&kernel, library, "poke"));
	OK(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "poke");
	OK(cuKernelGetFunction(&function, kernel));
	assert_ptr_not_equal(function, f->poke);
	OK(cuMemAlloc(&d, 4));
	OK(cuLaunchKernelEx(&config, (CUfunction)kernel, params, NULL));
	OK(cuMemcpyDtoH(&got, d, 4));
	assert_int_equal(got, 9);
	OK(cuLibraryGetGlobal(&counter, NULL, library, "counter"));
	OK(cuMemcpyDtoH(&got, counter, 4));
	assert_int_equal(got, 41);
	assert_int_equal(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	OK(cuLibraryUnload(library));
	OK(cuMemFree(d));
}

static void api_refuses_bad_images_with_a_log(void **state) {
	static const struct {
		const char *text, *told;
	} bodies[] = {
		{"add.u32 %r0, %r1, %r2;", "%r2"}, /* one beyond the range */
		{"add.u32 %x, %r1, %r1;", "%x"},
		{"@%q add.u32 %r0, %r1, %r1;", "%q"},
		{"setp.eq.u32 %p|%q, %r0, %r1;", "%q"},
		{"st.global.v2.u32 [%rd1], {%r0, %r1};", "%rd1"},
		{"st.shared.v2.u32 [0], {%r0, %y};", "%y"},
		{"mov.u32 %r0, %nobody.x;", "%nobody"},
		{"mov.u32 %r0, nowhere;", "nowhere"},
		{"bra nowhere;", "nowhere"},
		{"frobnicate.u32 %r0, %r1;", "frobnicate"},
	};
	char log[256] = "", ptx[512];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule m;

	assert_int_equal(cuModuleLoadDataEx(&m,
					    ".version 7.5\n.target sm_75\n.address_size 64\n"
					    ".entry x() { add.u32 ",
					    2, options, values),
			 CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "4"));
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		snprintf(ptx, sizeof(ptx),
			 ".version 7.5\n.target sm_75\n.address_size 64\n.entry x() {\n"
			 ".reg .b32 %%r<2>; .reg .pred %%p;\n%s\nret;\n}\n",
			 bodies[i].text);
		log[0] = '\0';
		assert_int_equal(cuModuleLoadDataEx(&m, ptx, 2, options, values),
				 CUDA_ERROR_INVALID_PTX);
		assert_non_null(strstr(log, "line 6"));
		assert_non_null(strstr(log, bodies[i].told));
	}
	assert_int_equal(cuModuleLoad(&m, "/nowhere"), CUDA_ERROR_FILE_NOT_FOUND);
	assert_int_equal(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void api_checks_launches(void **state) {
	struct fixture *f = *state;
	CUdeviceptr d = 0;
	unsigned v = 0;
	void *params[] = {&d, &v}, *missing[] = {&d, NULL};
	int n;

	assert_int_equal(cuLaunchKernel(f->poke, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(f->poke, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(
		cuLaunchCooperativeKernel(f->count, 100000, 1, 1, 1024, 1, 1, 0, NULL, NULL),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f->poke, 1024, 0));
	assert_int_equal(n, 2);
	OK(cuFuncSetAttribute(f->poke, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f->poke, 32, 100000));
	assert_int_equal(n, 2);
	OK(cuFuncSetAttribute(f->poke, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152));
}

/* What the shim rests on: a function found by name is the exported one. */
static void api_finds_exactly_the_exported_functions(void **state) {
	static const struct {
		const char *name;
		int version;
		cuuint64_t flags;
		const char *symbol;
	} cases[] = {
		{"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
		{"cuCtxCreate", 3020, 0, "cuCtxCreate_v2"},
		{"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
		{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
		{"cuLaunchKernel", 13000, 0, "cuLaunchKernel"},
		{"cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz"},
		{"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
		{"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
		{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
	};
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *p = &p;
	CUdriverProcAddressQueryResult status;

	assert_non_null(libcuda);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		OK(cuGetProcAddress(cases[i].name, &p, cases[i].version, cases[i].flags, &status));
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
		assert_ptr_equal(p, dlsym(libcuda, cases[i].symbol));
	}
	OK(cuGetProcAddress("cuMemAlloc", &p, 1000, 0, &status));
	assert_null(p);
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress("cuNothing", &p, 13000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	dlclose(libcuda);
}

static void api_remembers_a_fault(void **state) {
	struct fixture *f = *state;
	CUcontext other;
	CUmodule m;
	CUdeviceptr d;
	struct fixture g = {0};
	unsigned value;

	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuModuleLoadData(&m, kernels_ptx));
	OK(cuModuleGetFunction(&g.poke, m, "poke"));
	OK(cuMemAlloc(&d, 4));
	poke(&g, NULL, d + 4096, 1);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemcpyDtoH(&value, d, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(cuMemAlloc(&d, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context)); /* the other context is well */
	run_add(f->add, NULL, 100, 1);
}

static void api_tells_misaligned_accesses(void **state) {
	struct fixture *f = *state, g = {0};
	CUcontext other;
	CUmodule m;
	CUdeviceptr d;

	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuModuleLoadData(&m, kernels_ptx));
	OK(cuModuleGetFunction(&g.poke, m, "poke"));
	OK(cuMemAlloc(&d, 16));
	poke(&g, NULL, d + 2, 1);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_MISALIGNED_ADDRESS);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(f->context));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_adds_small_and_large_vectors),
		api_test(api_takes_parameters_in_a_buffer),
		api_test(api_compiles_for_fewer_registers),
		api_test(api_runs_kernels_of_libraries),
		api_test(api_refuses_bad_images_with_a_log),
		api_test(api_checks_launches),
		api_test(api_finds_exactly_the_exported_functions),
		api_test(api_remembers_a_fault),
		api_test(api_tells_misaligned_accesses),
	};

	return cmocka_run_group_tests(tests, api_setup, api_teardown);
}
