/*
 * test-twin.c: what is remembered of occupancy. The driver is two functions here; one may be
 * overtaken by a change of attributes while it is asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/enforce/twin.h"

static struct real driver;
static struct twin twin;
static struct build build;
static int answer, n_asked;
static bool overtaken;

const struct real *__wrap_real_get(void);
CUdevice __wrap_context_device(const struct context *c);

const struct real *__wrap_real_get(void) {
	return &driver;
}

CUdevice __wrap_context_device(const struct context *c) {
	(void)c;
	return 3;
}

static CUresult attribute(int *ret, CUfunction_attribute what, CUfunction f) {
	(void)what;
	(void)f;
	*ret = 1024;
	return CUDA_SUCCESS;
}

static CUresult occupancy(int *ret, CUfunction f, int threads, size_t shared) {
	(void)f;
	(void)threads;
	(void)shared;
	n_asked++;
	*ret = answer;
	if (overtaken) {
		overtaken = false;
		answer = 2;
		twin_forget_shapes(&twin);
	}
	return CUDA_SUCCESS;
}

static int setup(void **state) {
	(void)state;
	memset(&twin, 0, sizeof(twin));
	twin.build = &build;
	driver.cuFuncGetAttribute = attribute;
	driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy;
	answer = 8;
	n_asked = 0;
	overtaken = false;
	return 0;
}

static unsigned ask(unsigned threads) {
	const struct launch l = {.block = {threads, 1, 1}, .shared_bytes = 1000};

	return twin_occupancy(&twin, NULL, &l);
}

static void twin_asks_once_for_each_shape(void **state) {
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(128), 8);
	}
	assert_int_equal(n_asked, 1);
	assert_int_equal(ask(1024), 8);
	assert_int_equal(n_asked, 2);
	assert_int_equal(ask(1025), 0);
	assert_int_equal(n_asked, 2);
}

static void twin_asks_again_after_a_change(void **state) {
	(void)state;
	assert_int_equal(ask(128), 8);
	answer = 4;
	assert_int_equal(ask(128), 8);
	twin_forget_shapes(&twin);
	assert_int_equal(ask(128), 4);
	for (unsigned i = 0; i < 70000; i++) { /* ages begin again, twice */
		twin_forget_shapes(&twin);
	}
	answer = 1;
	assert_int_equal(ask(128), 1);
}

static void twin_does_not_keep_an_answer_that_was_overtaken(void **state) {
	(void)state;
	overtaken = true;
	assert_int_equal(ask(128), 8);
	assert_int_equal(ask(128), 2);
	assert_int_equal(ask(128), 2);
	assert_int_equal(n_asked, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(twin_asks_once_for_each_shape, setup),
		cmocka_unit_test_setup(twin_asks_again_after_a_change, setup),
		cmocka_unit_test_setup(twin_does_not_keep_an_answer_that_was_overtaken, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
