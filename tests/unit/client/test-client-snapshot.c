/*
 * test-client-snapshot.c: what sbeetctl makes of sbeetd's answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/live/snapshot.h"

/* The longest of all GPUs; those that say nothing are not measured. */
static void snapshot_finds_the_longest_preemption(void **state) {
	Sbeet__Control__Gpu gpus[3] = {SBEET__CONTROL__GPU__INIT, SBEET__CONTROL__GPU__INIT,
				       SBEET__CONTROL__GPU__INIT};
	Sbeet__Control__Gpu *list[3] = {&gpus[0], &gpus[1], &gpus[2]};
	struct snapshot s = {.gpus = list, .n_gpus = 3};
	json_t *o;

	assert_int_equal(snapshot_preempt_ns(&s), 0);
	gpus[1].preempt_ns = 476000;
	gpus[2].preempt_ns = 333000;
	assert_int_equal(snapshot_preempt_ns(&s), 476000);
	o = snapshot_gpu_json(&s, 1);
	assert_int_equal(json_integer_value(json_object_get(o, "preempt_ns")), 476000);
	json_decref(o);
	o = snapshot_gpu_json(&s, 0);
	assert_true(json_is_null(json_object_get(o, "preempt_ns")));
	json_decref(o);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshot_finds_the_longest_preemption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
