/*
 * test-interp-kernels.c: kernels as nvcc makes them (tests/unit/ptx/), against the CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-harness.h"

static void kernels_vadd_adds(void **state) {
	struct harness h;
	float *a, *b, *c;
	struct {
		uint64_t a, b, c;
		int32_t n;
	} params = {.n = 1000};

	harness_init_file(&h, "interp-vadd.ptx");
	params.a = harness_alloc(&h, 4000, &a);
	params.b = harness_alloc(&h, 4000, &b);
	params.c = harness_alloc(&h, 4000, &c);
	for (int i = 0; i < 1000; i++) {
		a[i] = (float)i * 1.25f;
		b[i] = 1.0f / (float)(i + 1);
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "vadd",
						    .grid = {8},
						    .block = {128},
						    .params = &params,
						    .params_size = 28});
	for (int i = 0; i < 1000; i++) {
		assert_true(c[i] == a[i] + b[i]);
	}
	harness_deinit(&h);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_vadd_adds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
