/*
 * test-daemon-crowd.c: policy `steer` with more programs than are planned for: who connects or
 * leaves then, or runs elsewhere, costs no look at all the others.
 */
#include "harness.h"

#include <stdlib.h>

#include "daemon/core/steer/model.h"
#include "proto/enforcement.h"
#include "proto/packet.h"

#define MASK_GREEN (MASK_WHOLE | ENFORCEMENT_BIT(GREEN))

/* Beyond those that are planned for. */
#define MORE 8

static struct harness harness;

static int setup(void **state) {
	harness_prepare(&harness);
	setenv("SIMGPU", "h200:mps,h200:mps", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_listen(&harness);
	harness_start(&harness,
		      (const char *[]){"--policy", "steer", "--log-level", "debug", NULL});
	harness_settle();
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

/* How often sbeetd has looked at all programs of a GPU. */
static unsigned looks(void) {
	return harness_said(&harness, "programs are there");
}

/* It may run on both GPUs. */
static struct steered open_program(void) {
	return steered_open("app", NULL, MASK_GREEN);
}

static void nobody_else_is_looked_at_for_one_too_many(void **state) {
	struct steered planned[MODEL_TASKS_MAX], more[MORE];
	unsigned before;

	for (size_t i = 0; i < MODEL_TASKS_MAX; i++) {
		before = looks();
		planned[i] = open_program();
		assert_int_equal(looks(), before + 2); /* at each GPU, when it was welcomed */
	}
	before = looks();
	for (size_t i = 0; i < MORE; i++) {
		more[i] = open_program();
		assert_true(steered_terms(&more[i], 0).steered);
		assert_true(steered_terms(&more[i], 1).steered);
	}
	for (size_t i = 1; i < MORE; i++) {
		steered_leave(&more[i]);
	}
	assert_int_equal(looks(), before);
	/* There is room for it now. */
	steered_leave(&planned[0]);
	assert_int_equal(looks(), before + 2);
	assert_true(harness_said(&harness, "GPU 1: 32 programs are there") >= 2);
	steered_close(&more[0]);
	for (size_t i = 1; i < MODEL_TASKS_MAX; i++) {
		steered_close(&planned[i]);
	}
}

static void a_program_matters_where_it_was_told_to_run(void **state) {
	static const char *const features[] = {PROTO_FEATURE_TERMS, PROTO_FEATURE_CHOOSE_GPU,
					       PROTO_FEATURE_ANY_GPU};
	const unsigned n = sizeof(features) / sizeof(features[0]);
	unsigned before = looks();
	struct shim a, b;

	a = shim_open_with("first", NULL, features, n, MASK_GREEN);
	harness_settle();
	assert_int_equal(harness_said(&harness, "GPU 0: 1 programs are there"), 1);
	b = shim_open_with("second", NULL, features, n, MASK_GREEN);
	harness_settle();
	assert_int_equal(harness_said(&harness, "GPU 1: 1 programs are there"), 1);
	assert_int_equal(looks(), before + 2);
	shim_close(&a);
	shim_close(&b);
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		STARTED(nobody_else_is_looked_at_for_one_too_many),
		STARTED(a_program_matters_where_it_was_told_to_run),
	};

	return cmocka_run_group_tests_name("daemon-crowd", tests, NULL, NULL);
}
