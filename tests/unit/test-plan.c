/*
 * test-plan.c: how many workers, which launches may be twins, and where parameters are found.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/enforce/plan.h"

static void plan_fills_every_sm_with_a_margin(void **state) {
	const unsigned grid[3] = {100000, 1, 1};
	struct plan p;

	/* gpu-facts.md: 132 SMs, 8 blocks each, and as many again. */
	assert_int_equal(plan_make(&p, grid, 66, 132, 8, plan_workers_max(132, 32)), 0);
	assert_int_equal(p.n_blocks, 100000);
	assert_int_equal(p.n_workers, 2112);
}

static void plan_sends_few_workers_for_few_blocks(void **state) {
	const unsigned ten[3] = {10, 1, 1}, one[3] = {1, 1, 1}, hundred[3] = {5, 5, 4};
	struct plan p;

	assert_int_equal(plan_make(&p, ten, 40, 80, 8, 10000), 0);
	assert_int_equal(p.n_workers, 100); /* one for each SM, and a quarter */
	assert_int_equal(plan_make(&p, one, 1, 1, 8, 10000), 0);
	assert_int_equal(p.n_workers, 2);
	assert_int_equal(plan_make(&p, hundred, 40, 80, 8, 10000), 0);
	assert_int_equal(p.n_blocks, 100);
	assert_int_equal(p.n_workers, 300); /* 3 blocks an SM: 240, and a quarter */
}

static void plan_reaches_each_sm_and_never_more_than_there_are_slots(void **state) {
	for (unsigned sms = 1; sms <= 256; sms += 5) {
		for (unsigned occupancy = 1; occupancy <= 32; occupancy++) {
			unsigned most = plan_workers_max(sms, 32);

			for (unsigned set = 1; set <= sms; set += 3) {
				const unsigned small[3] = {set, 1, 1}, big[3] = {1u << 30, 2, 2};
				struct plan p;

				assert_int_equal(plan_make(&p, small, set, sms, occupancy, most),
						 0);
				assert_in_range(p.n_workers, sms, most);
				assert_int_equal(plan_make(&p, big, set, sms, occupancy, most), 0);
				assert_in_range(p.n_workers, sms * occupancy, most);
			}
		}
	}
}

static void plan_counts_the_largest_grid(void **state) {
	const unsigned largest[3] = {0x7FFFFFFF, 0xFFFF, 1}, beyond[3] = {0x7FFFFFFF, 0xFFFF, 2};
	struct plan p = {.n_blocks = 77};

	assert_int_equal(plan_make(&p, beyond, 1, 1, 1, 10), -E2BIG);
	assert_int_equal(p.n_blocks, 77);
	assert_int_equal(plan_make(&p, largest, 1, 1, 1, 10), 0);
	assert_true(p.n_blocks == 0x7FFFFFFFull * 0xFFFF);
}

static void plan_refuses_grids_that_no_driver_takes(void **state) {
	static const unsigned wrong[][3] = {
		{0, 1, 1},	    {1, 0, 1},	     {1, 1, 0},
		{0x80000000, 1, 1}, {1, 0x10000, 1}, {1, 1, 0x10000},
	};
	struct plan p = {.n_blocks = 77};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(plan_make(&p, wrong[i], 1, 2, 1, 10), -EINVAL);
		assert_int_equal(p.n_blocks, 77);
	}
}

static bool allowed(CUlaunchAttributeID id, void (*set)(CUlaunchAttributeValue *v)) {
	CUlaunchAttribute list[2] = {{.id = CU_LAUNCH_ATTRIBUTE_IGNORE}, {.id = id}};
	CUlaunchConfig config = {.attrs = list, .numAttrs = 2};

	if (set) {
		set(&list[1].value);
	}
	return plan_attributes_allow(&config);
}

static void cooperative(CUlaunchAttributeValue *v) {
	v->cooperative = 1;
}

static void serialization(CUlaunchAttributeValue *v) {
	v->programmaticStreamSerializationAllowed = 1;
}

static void cluster_1(CUlaunchAttributeValue *v) {
	v->clusterDim.x = v->clusterDim.y = v->clusterDim.z = 1;
}

static void cluster_2(CUlaunchAttributeValue *v) {
	v->clusterDim.x = 2;
	v->clusterDim.y = v->clusterDim.z = 1;
}

static void plan_knows_which_attributes_a_twin_can_have(void **state) {
	const CUlaunchConfig no_list = {.numAttrs = 3};

	assert_true(plan_attributes_allow(NULL));
	assert_false(plan_attributes_allow(&no_list));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, NULL));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, NULL));
	assert_false(allowed(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, NULL));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, serialization));
	assert_true(allowed(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster_1));
	assert_false(allowed(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster_2));
	assert_false(allowed(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, NULL));
	assert_false(allowed((CUlaunchAttributeID)1000, NULL));
}

static const size_t offsets[] = {0, 8, 12};
static const struct twin_kernel three = {
	.name = "three",
	.n_params = 3,
	.param_offsets = offsets,
	.params_size = 16,
	.block_multiple = 1,
};

static void plan_finds_parameters_by_pointers(void **state) {
	void *params[PLAN_PARAMS_MAX + 1], *given[3] = {&params[0], &params[1], &params[2]};
	struct launch l = {.block = {32, 1, 1}, .params = given};
	struct twin_arg arg;

	assert_true(plan_launch_allows(&three, &l));
	plan_params(&three, &l, &arg, params);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(params[i], given[i]);
	}
	assert_ptr_equal(params[3], &arg);
}

static void plan_finds_parameters_in_a_buffer(void **state) {
	char buffer[16];
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	void *params[PLAN_PARAMS_MAX + 1];
	struct launch l = {.block = {32, 1, 1}, .extra = extra};
	struct twin_arg arg;

	assert_true(plan_launch_allows(&three, &l));
	plan_params(&three, &l, &arg, params);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(params[i], buffer + offsets[i]);
	}
	assert_ptr_equal(params[3], &arg);

	size = 12; /* the last parameter is not in it: for the driver to refuse */
	assert_false(plan_launch_allows(&three, &l));
	extra[2] = CU_LAUNCH_PARAM_END;
	assert_false(plan_launch_allows(&three, &l));
	extra[0] = &size;
	assert_false(plan_launch_allows(&three, &l));
}

static void plan_passes_its_own_parameter_alone(void **state) {
	const struct twin_kernel none = {.name = "none", .block_multiple = 1};
	struct launch l = {.block = {1, 1, 1}};
	void *params[PLAN_PARAMS_MAX + 1];
	struct twin_arg arg;

	assert_true(plan_launch_allows(&none, &l));
	plan_params(&none, &l, &arg, params);
	assert_ptr_equal(params[0], &arg);
}

static void plan_leaves_wrong_launches_to_the_driver(void **state) {
	struct twin_kernel warps = three;
	struct launch l = {.block = {48, 1, 1}};
	void *given[3] = {NULL}, *extra[] = {CU_LAUNCH_PARAM_END};

	assert_false(plan_launch_allows(&three, &l)); /* no parameters at all */
	l.params = given;
	assert_true(plan_launch_allows(&three, &l));
	l.extra = extra;
	assert_false(plan_launch_allows(&three, &l)); /* both forms */
	l.extra = NULL;
	warps.block_multiple = 32;
	assert_false(plan_launch_allows(&warps, &l));
	l.block[0] = 64;
	assert_true(plan_launch_allows(&warps, &l));
	l.cooperative = true;
	assert_false(plan_launch_allows(&warps, &l));
	l.cooperative = false;
	l.block[1] = 0;
	assert_false(plan_launch_allows(&warps, &l));
	warps.n_params = PLAN_PARAMS_MAX + 1;
	l.block[1] = 1;
	assert_false(plan_launch_allows(&warps, &l));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_fills_every_sm_with_a_margin),
		cmocka_unit_test(plan_sends_few_workers_for_few_blocks),
		cmocka_unit_test(plan_reaches_each_sm_and_never_more_than_there_are_slots),
		cmocka_unit_test(plan_counts_the_largest_grid),
		cmocka_unit_test(plan_refuses_grids_that_no_driver_takes),
		cmocka_unit_test(plan_knows_which_attributes_a_twin_can_have),
		cmocka_unit_test(plan_finds_parameters_by_pointers),
		cmocka_unit_test(plan_finds_parameters_in_a_buffer),
		cmocka_unit_test(plan_passes_its_own_parameter_alone),
		cmocka_unit_test(plan_leaves_wrong_launches_to_the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
