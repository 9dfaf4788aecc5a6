/*
 * test-kernel.c: the registry of kernels and their twins (kernel.c, build.c, twin.c, image.c) on a
 * made-up driver (fake-twins.h).
 */
#include "fake-twins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/enforce/dependent.h"

static void kernel_says_why_it_is_not_confined(void **state) {
	struct kernel *k = fake_load("grid_sync");
	struct launch l = fake_launch_of("grid_sync");

	assert_string_equal(kernel_refusal(k),
			    "it waits for the whole grid (line 12: barrier.cluster.arrive;)");
	assert_int_equal(fake_mask(k, &l), WHOLE);
	assert_int_equal(fake_mask(NULL, &l), WHOLE);
	k = fake_kernel_of("nowhere");
	assert_string_equal(kernel_refusal(k), "it is not in the image's PTX");
}

static void kernel_refuses_users_of_unknown_variables_only(void **state) {
	struct launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	struct kernel *k = fake_load("reads_known");
	struct fake_module *twins;

	assert_null(kernel_refusal(k));
	assert_int_equal(fake_mask(k, &l), WHOLE | CONFINED);
	k = fake_kernel_of("reads_unknown");
	assert_non_null(strstr(kernel_refusal(k), "variable"));
	assert_int_equal(fake_mask(k, &l), WHOLE);
	twins = fake_function_of(&fake_program, "reads_known")[1].module;
	assert_true(twins->twins);
	assert_true(twins->vars[0] == (uintptr_t)&fake_program.known);
	assert_true(twins->vars[1] == 0);
}

static void kernel_lives_on_when_the_driver_takes_no_twin(void **state) {
	struct launch l = fake_launch_of("add");
	struct kernel *k;

	fake.no_loads = true;
	k = fake_load("add");
	assert_string_equal(kernel_refusal(k),
			    "the driver does not take its rewritten form: "
			    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND: no compiler");
	assert_int_equal(fake_mask(k, &l), WHOLE);
	fake_launch_gives(&fake_half, &l, NONE, "add");
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
		kernel_module_loaded((CUmodule)&fake_program, cases[i].image, NULL, NULL);
		assert_string_equal(kernel_refusal(fake_kernel_of("add")), cases[i].refusal);
		kernel_module_unloading((CUmodule)&fake_program);
	}
	kernel_module_loaded((CUmodule)&fake_program, NULL, "/nonexistent/file", NULL);
	assert_non_null(strstr(kernel_refusal(fake_kernel_of("add")), "No such file"));
}

static void kernel_compiles_twins_as_the_program_wants(void **state) {
	CUjit_option options[] = {CU_JIT_LOG_VERBOSE,	   CU_JIT_MAX_REGISTERS,
				  CU_JIT_ERROR_LOG_BUFFER, CU_JIT_OPTIMIZATION_LEVEL,
				  CU_JIT_CACHE_MODE,	   CU_JIT_MAX_REGISTERS};
	void *values[] = {(void *)1, (void *)24, NULL, (void *)0, (void *)1, (void *)32};
	struct jit jit = {0};

	jit_add(&jit, 6, options, values);
	for (unsigned library = 0; library < 2; library++) {
		if (library) {
			kernel_library_loaded((CUlibrary)&fake_program, PROGRAM, NULL, &jit);
		} else {
			kernel_module_loaded((CUmodule)&fake_program, PROGRAM, NULL, &jit);
		}
		assert_int_equal(fake.jit.n, 3);
		assert_int_equal(fake.jit.options[0], CU_JIT_MAX_REGISTERS);
		assert_int_equal((uintptr_t)fake.jit.values[0], 32); /* the last one holds */
		assert_int_equal(fake.jit.options[1], CU_JIT_OPTIMIZATION_LEVEL);
		assert_int_equal((uintptr_t)fake.jit.values[1], 0);
		assert_int_equal(fake.jit.options[2], CU_JIT_CACHE_MODE);
		kernel_module_unloading((CUmodule)&fake_program);
		kernel_library_unloading((CUlibrary)&fake_program);
	}
	jit_add(&jit, 3, NULL, NULL); /* what a driver refuses */
	assert_int_equal(jit.n, 3);
}

static void kernel_mask_depends_on_the_launch(void **state) {
	struct launch l = fake_launch_of("add");
	struct kernel *k = fake_load("add");

	l.block[0] = 1024; /* more than fits */
	assert_int_equal(fake_mask(k, &l), WHOLE);
	l.block[0] = 0x10000;
	assert_int_equal(fake_mask(k, &l), WHOLE);
	l.block[0] = 64;
	l.cooperative = true;
	assert_int_equal(fake_mask(k, &l), WHOLE);
	l.cooperative = false;
	l.params = NULL;
	assert_int_equal(fake_mask(k, &l), WHOLE);
}

/* It takes more registers than the original, for one. Whatever fits on an SM. */
static void twins_that_take_no_block_of_that_size_are_not_used(void **state) {
	struct launch l = fake_launch_of("add");
	struct kernel *k;

	fake.twin_threads = 384;
	k = fake_load("add");
	l.block[0] = 384;
	assert_int_equal(fake_mask(k, &l), WHOLE | CONFINED);
	l.block[0] = 385;
	assert_int_equal(fake_mask(k, &l), WHOLE);
	l.block[0] = 192;
	l.block[1] = 2;
	assert_int_equal(fake_mask(k, &l), WHOLE | CONFINED);
	l.block[1] = 3;
	assert_int_equal(fake_mask(k, &l), WHOLE);
}

/* Blocks that wait for each other are let alone where all of them fit on the GPU. */
static void kernel_waits_where_its_grid_fits_at_once(void **state) {
	struct launch l = fake_launch_of("waits"), other = fake_launch_of("add");
	struct kernel *k = fake_load("waits");
	unsigned wave;

	wave = (unsigned)kernel_wave_blocks(&l);
	assert_true(wave > 1);
	l.grid[0] = wave;
	l.grid[1] = l.grid[2] = 1;
	assert_true(kernel_waits_at_once(k, &l));
	assert_true(kernel_waits_at_once(k, &l)); /* as it is remembered */
	l.grid[1] = 2;				  /* it would hang without us */
	assert_false(kernel_waits_at_once(k, &l));
	l.grid[0] = l.grid[1] = 1; /* for nobody */
	assert_false(kernel_waits_at_once(k, &l));
	l.grid[0] = 2;
	l.block[0] = 1024; /* no block fits */
	assert_false(kernel_waits_at_once(k, &l));
	l.block[0] = 256;
	assert_true(kernel_waits_at_once(k, &l));
	other.grid[0] = 2;
	other.grid[1] = other.grid[2] = 1;
	assert_false(kernel_waits_at_once(fake_kernel_of("add"), &other));
}

/* What threads remember of kernels counts no longer: see route.h. */
static void assert_epoch_changed(void) {
	static uint32_t last;
	uint32_t now = atomic_load(&kernel_epoch);

	assert_int_not_equal(now, last);
	last = now;
}

static void kernel_forgets_what_is_unloaded(void **state) {
	struct launch l = fake_launch_of("add");

	fake_load("add");
	assert_int_equal(fake.n_loads, 1);
	assert_epoch_changed();
	kernel_module_unloading((CUmodule)&fake_program);
	assert_epoch_changed();
	assert_int_equal(fake.n_unloads, 1);
	assert_null(kernel_find(l.function));
	fake_launch_gives(&fake_half, &l, NONE, "add");
}

static void kernel_forgets_what_a_context_had(void **state) {
	struct launch l = fake_launch_of("add");
	struct fake_module *twins;

	fake_load("add");
	twins = fake_function_of(&fake_program, "add")[1].module;
	kernel_context_destroying(CONTEXT(0));
	enforce_context_destroying(CONTEXT(0));
	assert_null(kernel_find(l.function));
	assert_int_equal(fake.n_unloads, 0); /* the driver does that by itself */
	free(twins);
}

static void kernel_transforms_an_image_once(void **state) {
	struct fake_module copies[3] = {{0}};

	for (unsigned i = 0; i < 3; i++) {
		kernel_module_loaded((CUmodule)&copies[i], PROGRAM, NULL, NULL);
	}
	assert_int_equal(fake_n_transforms, 1);
	assert_int_equal(fake.n_loads, 3);
	for (unsigned i = 0; i < 3; i++) {
		kernel_module_unloading((CUmodule)&copies[i]);
	}
	assert_int_equal(fake.n_unloads, 3);
	kernel_module_loaded((CUmodule)&copies[0], PROGRAM, NULL, NULL);
	assert_int_equal(fake_n_transforms, 2);
	kernel_module_unloading((CUmodule)&copies[0]);
}

static void kernel_follows_a_library_to_every_gpu(void **state) {
	CUfunction kernel = (CUfunction)fake_function_of(&fake_program, "add"), function, other;
	struct fake_module module = {0};
	struct launch l = fake_launch_of("add");

	fake.sm[1] = 90;
	fake.current = NULL; /* libraries are loaded without a context */
	kernel_library_loaded((CUlibrary)&fake_program, PROGRAM, NULL, NULL);
	assert_int_equal(fake.n_loads, 2);
	assert_int_equal(fake_n_transforms, 1);
	kernel_library_kernel_found((CUlibrary)&fake_program, (CUkernel)kernel, "add");
	assert_non_null(kernel_find(kernel));
	function = (CUfunction)fake_function_of(&module, "in context 0");
	assert_false(kernel_function_is_known((CUkernel)kernel, function));
	kernel_kernel_function_found((CUkernel)kernel, function);
	assert_true(kernel_function_is_known((CUkernel)kernel, function));
	assert_ptr_equal(kernel_find(function), kernel_find(kernel));
	kernel_library_module_found((CUlibrary)&fake_program, (CUmodule)&module);
	other = (CUfunction)fake_function_of(&module, "add");
	kernel_function_found((CUmodule)&module, other, "add");
	assert_ptr_equal(kernel_find(other), kernel_find(kernel));

	for (int i = 0; i < 2; i++) {
		struct fake_function *before = fake.launched;

		fake.current = &fake.contexts[i];
		assert_int_equal(enforce_prepare(CONTEXT(i), &fake_half, NULL), 0);
		assert_int_equal(fake_mask(kernel_find(kernel), &l), WHOLE | CONFINED);
		fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
		assert_ptr_not_equal(fake.launched, before);
	}
	kernel_attribute_set(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99000);
	assert_int_equal(fake.attribute_calls, 4); /* two twins on two GPUs */
	kernel_library_unloading((CUlibrary)&fake_program);
	assert_int_equal(fake.n_unloads, 2);
	assert_null(kernel_find(function));
	assert_null(kernel_find(other));
}

/* The driver gives handles away again once their context is gone, whether or not we were told. */

static void kernel_is_what_the_handle_stands_for_now(void **state) {
	CUfunction add = (CUfunction)fake_function_of(&fake_program, "add"), handle;
	struct fake_module other = {0};
	struct launch l = fake_launch_of("add");

	kernel_library_loaded((CUlibrary)&fake_program, PROGRAM, NULL, NULL);
	kernel_library_kernel_found((CUlibrary)&fake_program, (CUkernel)add, "add");
	handle = (CUfunction)fake_function_of(&other, "any");
	kernel_kernel_function_found((CUkernel)add, handle);
	kernel_library_module_found((CUlibrary)&fake_program, (CUmodule)&other);

	kernel_module_loaded((CUmodule)&other, PROGRAM_90, NULL, NULL);
	assert_epoch_changed();
	kernel_function_found((CUmodule)&other, handle, "grid_sync");
	assert_epoch_changed();
	assert_string_equal(kernel_name(kernel_find(handle)), "grid_sync");
	assert_string_equal(kernel_name(kernel_find(add)), "add"); /* the library is still there */
	assert_false(kernel_function_is_known((CUkernel)add, handle));

	kernel_kernel_function_found((CUkernel)add, handle);
	assert_epoch_changed();
	assert_ptr_equal(kernel_find(handle), kernel_find(add));
	kernel_module_unloading((CUmodule)&other);
	assert_ptr_equal(kernel_find(handle), kernel_find(add));
	assert_int_equal(enforce_prepare(CONTEXT(0), &fake_half, NULL), 0);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");

	/* of a library that we don't know */
	assert_false(kernel_function_is_known((CUkernel)&other, handle));
	kernel_kernel_function_found((CUkernel)&other, handle);
	assert_epoch_changed();
	assert_null(kernel_find(handle));
	assert_true(kernel_function_is_known((CUkernel)&other, handle));
}

static void kernel_of_a_library_leaves_with_the_context(void **state) {
	CUfunction add = (CUfunction)fake_function_of(&fake_program, "add"), here, there;

	kernel_library_loaded((CUlibrary)&fake_program, PROGRAM, NULL, NULL);
	kernel_library_kernel_found((CUlibrary)&fake_program, (CUkernel)add, "add");
	here = (CUfunction)fake_function_of(&fake_program, "in context 0");
	kernel_kernel_function_found((CUkernel)add, here);
	fake.current = &fake.contexts[1];
	there = (CUfunction)fake_function_of(&fake_program, "in context 1");
	kernel_kernel_function_found((CUkernel)add, there);
	kernel_context_destroying(CONTEXT(1));
	assert_null(kernel_find(there));
	assert_non_null(kernel_find(here));
	assert_non_null(kernel_find(add));
}

static void kernel_gives_twins_the_attributes_of_the_original(void **state) {
	CUfunction f = (CUfunction)fake_function_of(&fake_program, "add");

	fake_load("add");
	kernel_attribute_set(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99000);
	kernel_attribute_set(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2); /* not a twin's */
	kernel_cache_config_set(f, CU_FUNC_CACHE_PREFER_L1);
	assert_int_equal(fake.attribute_calls, 2);
	kernel_attribute_set(NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1);
}

static void kernel_numbers_are_never_used_twice(void **state) {
	uint32_t a = kernel_id(fake_load("add")), b = kernel_id(fake_kernel_of("grid_sync"));

	assert_true(a && b && a != b);
	assert_int_equal(kernel_id(fake_kernel_of("add")), a);
	kernel_module_unloading((CUmodule)&fake_program);
	assert_true(kernel_id(fake_load("add")) > b);
}

/* Whether the PTX is loaded in a form for dependent launches, on GPUs of compute capability @a and
 * @b. */
static bool is_dependent(bool is_library, int a, int b) {
	static const char text[] =
		".version 7.8 .target sm_90 .address_size 64 .entry k() { ret; }";
	char *ptx;

	fake_teardown(NULL);
	fake_setup(NULL);
	fake.sm[0] = a;
	fake.sm[1] = b;
	dependent_allow(true);
	ptx = dependent_image(is_library, text, NULL);
	free(ptx);
	return ptx != NULL;
}

static void only_new_gpus_have_dependent_launches(void **state) {
	assert_true(is_dependent(false, 90, 75)); /* the current context is on the first */
	assert_false(is_dependent(false, 89, 90));
	assert_true(is_dependent(true, 90, 90));
	assert_false(is_dependent(true, 90, 120)); /* PTX is compiled for each */
	assert_false(is_dependent(true, 90, 75));  /* a library belongs to all */
	assert_false(is_dependent(true, 75, 90));
}

static void kernels_are_known_to_wait_first(void **state) {
	struct kernel *k = fake_load("add");

	assert_false(kernel_waits_first(k));
	kernel_module_unloading((CUmodule)&fake_program);
	kernel_module_loaded((CUmodule)&fake_program, PROGRAM, NULL, NULL);
	kernel_module_waits_first((CUmodule)&fake_program);
	assert_true(kernel_waits_first(fake_kernel_of("add")));
	kernel_module_waits_first((CUmodule)&fake); /* nobody has seen it */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(kernel_says_why_it_is_not_confined),
		TEST(kernel_refuses_users_of_unknown_variables_only),
		TEST(kernel_lives_on_when_the_driver_takes_no_twin),
		TEST(kernel_refuses_images_that_it_cannot_read),
		TEST(kernel_compiles_twins_as_the_program_wants),
		TEST(kernel_mask_depends_on_the_launch),
		TEST(twins_that_take_no_block_of_that_size_are_not_used),
		TEST(kernel_waits_where_its_grid_fits_at_once),
		TEST(kernel_forgets_what_is_unloaded),
		TEST(kernel_forgets_what_a_context_had),
		TEST(kernel_transforms_an_image_once),
		TEST(kernel_follows_a_library_to_every_gpu),
		TEST(kernel_is_what_the_handle_stands_for_now),
		TEST(kernel_of_a_library_leaves_with_the_context),
		TEST(kernel_gives_twins_the_attributes_of_the_original),
		TEST(kernel_numbers_are_never_used_twice),
		TEST(only_new_gpus_have_dependent_launches),
		TEST(kernels_are_known_to_wait_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
