/* test-client-sample.c: mean, confidence, the straight line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "client/live/sample.h"

static void is_near(double a, double b) {
	if (fabs(a - b) > 1e-3 * fabs(b) + 1e-9) {
		fail_msg("%g is not %g", a, b);
	}
}

static void a_sample_by_hand(void **state) {
	nsec_t times[] = {12, 10, 14, 8, 11};
	struct sample s = sample_of(times, 5);

	assert_int_equal(s.n, 5);
	is_near(s.mean, 11);
	is_near(s.min, 8);
	is_near(s.max, 14);
	is_near(s.p99, 14);
	is_near(s.half, 2.776 * sqrt(5.0) / sqrt(5.0)); /* variance 5, four degrees of freedom */
}

static void one_time_says_nothing_of_others(void **state) {
	struct sample s = sample_of(&(nsec_t){7}, 1);

	is_near(s.mean, 7);
	is_near(s.p99, 7);
	assert_true(s.half == 0);
}

static void the_99th_of_200_leaves_two_above(void **state) {
	nsec_t times[200];
	struct sample s;

	for (size_t i = 0; i < 200; i++) {
		times[i] = 200 - i;
	}
	s = sample_of(times, 200);
	is_near(s.p99, 198);
	is_near(s.half, 1.972 * 57.879 / sqrt(200)); /* 199 degrees of freedom */
}

static void a_line_is_found(void **state) {
	static const double x[] = {2, 3, 6}, y[] = {14, 16, 22}, bent[] = {14, 16, 20};
	struct line line = line_through(x, y, 3);

	is_near(line.at_0, 10);
	is_near(line.slope, 2);
	assert_true(line.off < 1e-9);
	assert_true(line_through(x, bent, 3).off > 0.01);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_by_hand),
		cmocka_unit_test(one_time_says_nothing_of_others),
		cmocka_unit_test(the_99th_of_200_leaves_two_above),
		cmocka_unit_test(a_line_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
