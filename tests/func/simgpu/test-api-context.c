/*
 * test-api-context.c: the simulated driver, as one process sees it: contexts and processes.
 */
#include "api.h"

#include <sys/wait.h>
#include <unistd.h>

static void api_keeps_a_stack_of_contexts(void **state) {
	struct fixture *f = *state;
	CUcontext second, got;
	CUdevice device;
	CUdeviceptr d;
	unsigned char uuid[2][16];
	unsigned flags;
	int active;

	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxPushCurrent(second));
	OK(cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	OK(cuMemAlloc(&d, 4));
	OK(cuCtxPopCurrent(&got));
	assert_ptr_equal(got, second);
	OK(cuCtxGetCurrent(&got));
	assert_ptr_equal(got, f->context);
	/* Memory belongs to its context. */
	assert_int_equal(cuMemcpyDtoH(&flags, d, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 1);
	OK(cuDevicePrimaryCtxRelease(1));
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDeviceGetUuid((CUuuid *)uuid[0], 0));
	OK(cuDeviceGetUuid((CUuuid *)uuid[1], 1));
	assert_memory_not_equal(uuid[0], uuid[1], 16);
}

static void api_does_not_work_after_fork(void **state) {
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		CUdevice device;
		CUdeviceptr d;

		_exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuMemAlloc(&d, 4) == CUDA_ERROR_NOT_INITIALIZED
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(cuCtxSynchronize()); /* the parent goes on */
}

/* As measured on a real driver: what was retained before a reset has to be released after it. */
static void api_counts_holders_of_a_context_through_a_reset(void **state) {
	CUcontext context;
	unsigned flags;
	int active;

	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuDevicePrimaryCtxReset(1));
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	assert_int_equal(active, 0);
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	for (int i = 2; i >= 0; i--) {
		OK(cuDevicePrimaryCtxRelease(1));
		OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
		assert_int_equal(active, i > 0);
	}
	assert_int_equal(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_keeps_a_stack_of_contexts),
		api_test(api_does_not_work_after_fork),
		api_test(api_counts_holders_of_a_context_through_a_reset),
	};

	return cmocka_run_group_tests(tests, api_setup, api_teardown);
}
