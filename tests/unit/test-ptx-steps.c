/*
 * test-ptx-steps.c: rewriting takes steps in proportion to the text's length, whatever its shape.
 * Steps, not time: the rewriter is built so that each basic block it runs is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim/ptx/transform.h"
#include "tests/bench/ptx-shapes.h"

#define SMALL	 (64u * 1024)
#define TIMES	 8
#define ROOM	 (4u * SMALL * TIMES)
#define PER_BYTE 400 /* twice what the slowest of them takes */

void __sanitizer_cov_trace_pc(void);

static uint64_t steps;

void __sanitizer_cov_trace_pc(void) {
	steps++;
}

static double steps_a_byte(struct ptx_shape_text *t, const struct ptx_shape *shape, size_t bytes) {
	struct transform *out = NULL;

	ptx_shape_write(t, shape, bytes);
	steps = 0;
	assert_int_equal(transform_new(&out, t->s, t->n, NULL, 0), 0);
	transform_free(out);
	assert_true(steps > t->n / 4); /* they are counted at all */
	return (double)steps / (double)t->n;
}

static void rewriting_takes_linear_steps(void **state) {
	struct ptx_shape_text t = {.s = malloc(ROOM), .size = ROOM};

	(void)state;
	assert_non_null(t.s);
	for (size_t i = 0; i < ptx_shapes_n; i++) {
		double small = steps_a_byte(&t, &ptx_shapes[i], SMALL);
		double large = steps_a_byte(&t, &ptx_shapes[i], SMALL * TIMES);

		print_message("%s: %.1f steps a byte, %.1f in %d times the length\n",
			      ptx_shapes[i].name, small, large, TIMES);
		assert_true(large < PER_BYTE);
		assert_true(large < small * 1.5);
	}
	free(t.s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rewriting_takes_linear_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
