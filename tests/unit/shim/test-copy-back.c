/*
 * test-copy-back.c: which copies back a kernel makes, with the driver in the test's hands; and when
 * others are told that the job's kernels are done.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/terms.h"
#include "shim/copy-back.h"
#include "shim/hooks.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/worker.h"

#define CONTEXT ((CUcontext)0x10)
#define STREAM	((CUstream)0x20)
#define DEVICE	0x100000u /* device memory begins there */
#define HOST	0x900000u /* and pinned memory there */
#define BYTES	0x700000u /* of each */

/* The driver. */
static struct {
	unsigned loads, asked, launches, copies;
	bool refuses_module, refuses_launch;
	CUcontext owner; /* of the device memory */
	CUfunction kernel;
	unsigned blocks, words;
	CUdeviceptr to, from;
} gpu;

static struct lane lane;
static struct stream_id stream_id;
static char said[8]; /* what happened: the kernel's copy, the engine's, kernels are done */

static void say(char what) {
	said[strlen(said)] = what;
}

static CUresult load(CUmodule *module, const void *image) {
	gpu.loads++;
	*module = (CUmodule)0x30;
	return gpu.refuses_module ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

static CUresult find(CUfunction *function, CUmodule module, const char *name) {
	*function = (CUfunction)(uintptr_t)(strcmp(name, "sbeet_copy_16") == 0 ? 16 : 4);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
		       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
		       void **params, void **extra) {
	assert_ptr_equal(stream, STREAM);
	gpu.launches++;
	gpu.kernel = function;
	gpu.blocks = x;
	gpu.to = *(CUdeviceptr *)params[0];
	gpu.from = *(CUdeviceptr *)params[1];
	gpu.words = *(unsigned *)params[2];
	say('K');
	return gpu.refuses_launch ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

static CUresult ask(unsigned n, CUpointer_attribute *which, void **answers, CUdeviceptr p) {
	bool host = p >= HOST;

	gpu.asked++;
	assert_int_equal(n, 5);
	*(unsigned *)answers[0] = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	*(CUdeviceptr *)answers[2] = host ? HOST : DEVICE;
	*(size_t *)answers[3] = BYTES;
	*(CUcontext *)answers[4] = host ? NULL : gpu.owner;
	return CUDA_SUCCESS;
}

static CUresult flags_of(unsigned *flags, void *p) {
	*flags = 0;
	return CUDA_SUCCESS;
}

static CUresult device_pointer(CUdeviceptr *ret, void *p, unsigned flags) {
	*ret = (CUdeviceptr)(uintptr_t)p + 0x10000000;
	return CUDA_SUCCESS;
}

static CUresult engine(void *to, CUdeviceptr from, size_t n, CUstream stream) {
	gpu.copies++;
	say('E');
	return CUDA_SUCCESS;
}

static CUresult engine_to_gpu(CUdeviceptr to, const void *from, size_t n, CUstream stream) {
	say('E');
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuModuleLoadData = load,
		.cuModuleGetFunction = find,
		.cuLaunchKernel = launch,
		.cuPointerGetAttributes = ask,
		.cuMemHostGetFlags = flags_of,
		.cuMemHostGetDevicePointer_v2 = device_pointer,
		.cuMemcpyDtoHAsync_v2 = engine,
		.cuMemcpyHtoDAsync_v2 = engine_to_gpu,
	};

	return &real;
}

int __wrap_state_enter(void);
int __wrap_state_enter(void) {
	return 0;
}

void __wrap_state_leave(int token);
void __wrap_state_leave(int token) {
}

/* In the job's own stream. */
enum op_verdict __wrap_op_begin(struct op *op, CUresult *ret_rc);
enum op_verdict __wrap_op_begin(struct op *op, CUresult *ret_rc) {
	assert_true(op->traits & OP_BACK);
	op->lane = &lane;
	op->id = &stream_id;
	return OP_GO;
}

void __wrap_op_end(struct op *op, CUresult rc);
void __wrap_op_end(struct op *op, CUresult rc) {
	assert_int_equal(rc, CUDA_SUCCESS);
}

void __wrap_op_kernels_done(const struct op *op);
void __wrap_op_kernels_done(const struct op *op) {
	say('D');
}

static void set_terms(bool by_kernel) {
	const struct terms t = {.steered = true, .back_by_kernel = by_kernel};

	atomic_store(&lane.terms, terms_pack(&t));
}

static int setup(void **state) {
	memset(&gpu, 0, sizeof(gpu));
	memset(said, 0, sizeof(said));
	gpu.owner = CONTEXT;
	stream_id.context = CONTEXT;
	set_terms(true);
	return 0;
}

static int teardown(void **state) {
	copy_back_context_destroying(CONTEXT);
	return 0;
}

static void copy(CUdeviceptr to, CUdeviceptr from, size_t n) {
	memset(said, 0, sizeof(said));
	assert_int_equal(on_cuMemcpyDtoHAsync_v2((void *)(uintptr_t)to, from, n, STREAM),
			 CUDA_SUCCESS);
}

static void a_kernel_copies_whole_words(void **state) {
	copy(HOST + 32, DEVICE + 16, 4096);
	assert_ptr_equal(gpu.kernel, (CUfunction)16);
	assert_int_equal(gpu.words, 256);
	assert_int_equal(gpu.blocks, 1);
	assert_int_equal(gpu.to, HOST + 32 + 0x10000000);
	assert_int_equal(gpu.from, DEVICE + 16);
	copy(HOST + 32, DEVICE + 16, 4100);
	assert_ptr_equal(gpu.kernel, (CUfunction)4);
	assert_int_equal(gpu.words, 1025);
	assert_int_equal(gpu.blocks, 5);
	copy(HOST, DEVICE, TERMS_BACK_MAX);
	assert_int_equal(gpu.blocks, 32);
	assert_int_equal(gpu.words, TERMS_BACK_MAX / 16);
	assert_int_equal(gpu.launches, 3);
	assert_int_equal(gpu.copies, 0);
	assert_int_equal(gpu.loads, 1);
}

static void others_hear_of_the_kernels_when_the_copy_is_one(void **state) {
	copy(HOST, DEVICE, 64);
	assert_string_equal(said, "KD");
	copy(HOST, DEVICE, 63);
	assert_string_equal(said, "DE");
	memset(said, 0, sizeof(said));
	assert_int_equal(on_cuMemcpyHtoDAsync_v2(DEVICE, (void *)(uintptr_t)HOST, 64, STREAM),
			 CUDA_SUCCESS);
	assert_string_equal(said, "DE"); /* op_kernels_done() knows that it is none back */
}

static void the_engine_makes_what_a_kernel_can_not(void **state) {
	copy(HOST, DEVICE, TERMS_BACK_MAX + 16);
	copy(HOST, DEVICE, 0);
	copy(HOST + 1, DEVICE, 16);
	copy(HOST, DEVICE + 2, 16);
	copy(HOST + BYTES - 8, DEVICE, 16); /* the driver's to refuse */
	copy(HOST, DEVICE + BYTES - 8, 16);
	gpu.owner = NULL;
	copy(HOST, DEVICE, 16);
	gpu.owner = (CUcontext)0x11;
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.launches, 0);
	assert_int_equal(gpu.copies, 8);
}

/* What a kernel will need is loaded ahead, and nothing else is done. */
static void without_such_terms_the_driver_is_asked_once(void **state) {
	unsigned asked;

	set_terms(false);
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.loads, 1);
	asked = gpu.asked;
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.asked, asked);
	atomic_store(&lane.terms, 0);
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.asked, asked);
	assert_int_equal(gpu.launches, 0);
	assert_int_equal(gpu.copies, 3);
}

static void a_driver_that_refuses_is_not_asked_again(void **state) {
	gpu.refuses_module = true;
	copy(HOST, DEVICE, 16);
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.loads, 1);
	assert_int_equal(gpu.copies, 2);
	copy_back_context_destroying(CONTEXT);
	gpu.refuses_module = false;
	gpu.refuses_launch = true;
	copy(HOST, DEVICE, 16);
	assert_int_equal(gpu.loads, 2);
	assert_int_equal(gpu.launches, 1);
	assert_int_equal(gpu.copies, 3); /* the driver says what is wrong */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(a_kernel_copies_whole_words),
		CASE(others_hear_of_the_kernels_when_the_copy_is_one),
		CASE(the_engine_makes_what_a_kernel_can_not),
		CASE(without_such_terms_the_driver_is_asked_once),
		CASE(a_driver_that_refuses_is_not_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
