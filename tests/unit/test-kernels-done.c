/*
 * test-kernels-done.c: when the end of a job's kernels is told, the driver and the keeper in the
 * test's hands.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/keeper.h"
#include "shim/kernels-done.h"

static struct lane lane;
static unsigned n_written, n_watched, n_forgotten;
static bool refuses, one_job;

static CUresult write_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
	n_written += at == 0x1000 && value == 7;
	return refuses ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult wait_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuStreamWaitValue32_v2 = wait_value,
		.cuStreamWriteValue32_v2 = write_value,
	};

	return &real;
}

bool __wrap_keeper_kernels_end(CUcontext context, CUdevice device, struct keeper_word *ret);
bool __wrap_keeper_kernels_end(CUcontext context, CUdevice device, struct keeper_word *ret) {
	*ret = (struct keeper_word){.at = 0x1000, .value = 7, .job = 3};
	return one_job;
}

void __wrap_keeper_kernels_watch(CUcontext context, const struct keeper_word *word);
void __wrap_keeper_kernels_watch(CUcontext context, const struct keeper_word *word) {
	assert_int_equal(word->job, 3);
	n_watched++;
}

void __wrap_keeper_kernels_go_on(CUcontext context, CUdevice device);
void __wrap_keeper_kernels_go_on(CUcontext context, CUdevice device) {
	n_forgotten++;
}

static int setup(void **state) {
	atomic_store(&lane.kernels_done, false);
	n_written = n_watched = n_forgotten = 0;
	refuses = false;
	one_job = true;
	return 0;
}

static void launch(void) {
	kernels_done_not(&lane, NULL);
}

static void copy_back(void) {
	kernels_done_write(&lane, NULL, NULL, false);
}

static void the_first_copy_behind_kernels_tells(void **state) {
	launch();
	launch();
	copy_back();
	copy_back();
	assert_int_equal(n_written, 1);
	assert_int_equal(n_watched, 1);
	assert_int_equal(n_forgotten, 0);
	launch();
	launch();
	assert_int_equal(n_forgotten, 1);
	copy_back();
	assert_int_equal(n_written, 2);
	assert_int_equal(n_watched, 2);
}

static void nothing_is_told_of_one_of_several_jobs(void **state) {
	one_job = false;
	launch();
	copy_back();
	assert_int_equal(n_written, 0);
	assert_false(atomic_load(&lane.kernels_done));
}

static void what_the_driver_refuses_is_not_watched(void **state) {
	refuses = true;
	launch();
	copy_back();
	assert_int_equal(n_watched, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_copy_behind_kernels_tells, setup),
		cmocka_unit_test_setup(nothing_is_told_of_one_of_several_jobs, setup),
		cmocka_unit_test_setup(what_the_driver_refuses_is_not_watched, setup),
	};

	return cmocka_run_group_tests_name("kernels-done", tests, NULL, NULL);
}
