/* test-primary.c: which release takes a primary context down. */
#include "shim/primary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const CUcontext context = (CUcontext)0x1000;

static void primary_goes_with_the_last_release(void **state) {
	int cancel = primary_lock(0);

	(void)state;
	assert_null(primary_released(0)); /* none was seen yet */
	primary_retained(0, context);
	primary_retained(0, context);
	assert_null(primary_released(0));
	assert_ptr_equal(primary_context(0), context);
	assert_ptr_equal(primary_released(0), context);
	assert_ptr_equal(primary_released(0), context); /* one too many: whoever retained it */
	primary_unlock(0, cancel);
}

static void primary_may_be_counted_in_the_middle_of_a_release(void **state) {
	int cancel = primary_lock(1), again;

	(void)state;
	primary_retained(1, context);
	assert_ptr_equal(primary_released(1), context);
	again = primary_lock(1); /* as a tool does that the driver calls */
	primary_retained(1, context);
	primary_unlock(1, again);
	primary_unlock(1, cancel);
	cancel = primary_lock(1);
	primary_retained(1, context);
	assert_null(primary_released(1));
	primary_unlock(1, cancel);
}

static void primary_knows_nothing_of_devices_beyond_its_own(void **state) {
	(void)state;
	for (CUdevice device = -1; device <= 1000; device += 1001) {
		int cancel = primary_lock(device);

		primary_retained(device, context);
		assert_null(primary_released(device));
		assert_null(primary_context(device));
		primary_unlock(device, cancel);
	}
}

static void primary_forgets_all_after_fork(void **state) {
	int cancel;

	(void)state;
	(void)primary_lock(2);
	primary_retained(2, context);
	primary_after_fork(); /* the lock may have been another thread's */
	cancel = primary_lock(2);
	assert_null(primary_context(2));
	assert_null(primary_released(2));
	primary_unlock(2, cancel);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(primary_goes_with_the_last_release),
		cmocka_unit_test(primary_may_be_counted_in_the_middle_of_a_release),
		cmocka_unit_test(primary_knows_nothing_of_devices_beyond_its_own),
		cmocka_unit_test(primary_forgets_all_after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
