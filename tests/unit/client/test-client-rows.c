/*
 * test-client-rows.c: what `sbeetctl profile run` makes of what it measured, and what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "client/live/rows.h"

/* A row of 30 jobs: 0.9 to 1.1 times @ms, give or take @half_ms. */
static struct row make_row(unsigned n_sms, double ms, double half_ms, double watts) {
	return (struct row){.n_sms = n_sms,
			    .asked = n_sms,
			    .exec = {.n = 30,
				     .mean = ms * 1e6,
				     .min = 0.9 * ms * 1e6,
				     .p99 = 1.1 * ms * 1e6,
				     .max = 1.1 * ms * 1e6,
				     .half = half_ms * 1e6},
			    .metered = true,
			    .watts = watts,
			    .watts_off = 2};
}

static unsigned doubt(const struct row *list, size_t n, char *why, size_t size) {
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46, .metered = true, .static_w = 40};
	struct book b;
	unsigned bad;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows_add(&rows, &list[i]), 0);
	}
	assert_int_equal(rows_profile(&rows, "p", 0, 0, &b), 0);
	bad = rows_doubt(&rows, &b, why, size);
	book_deinit(&b);
	rows_deinit(&rows);
	return bad;
}

static void rows_that_can_be_true_are_believed(void **state) {
	const struct row rows[] = {
		make_row(8, 10, 0.1, 60),
		make_row(20, 5, 2.4, 39),    /* meters err, and so may a mean */
		make_row(46, 7.4, 0.1, 120), /* just below half as much more */
	};
	char why[512];

	assert_int_equal(doubt(rows, 3, why, sizeof(why)), 0);
}

static void rows_that_cannot_be_true_are_refused(void **state) {
	struct row few = make_row(8, 10, 6, 60), tiny = make_row(46, 0.02, 0.001, 50);
	char why[512];

	assert_int_equal(
		doubt((struct row[]){make_row(8, 10, 0.1, 60), make_row(46, 17, 0.1, 90)}, 2, why,
		      sizeof(why)),
		46);
	assert_non_null(strstr(why, "the worst case on 46 SMs, 18.7"));
	assert_int_equal(doubt((struct row[]){make_row(8, 10, 5.1, 60)}, 1, why, sizeof(why)), 8);
	assert_non_null(strstr(why, "mean on 8 SMs is 10ms, and may be off by 5.1ms"));
	few.exec.n = 4;
	assert_int_equal(doubt(&few, 1, why, sizeof(why)), 0);
	assert_int_equal(doubt((struct row[]){make_row(8, 10, 0.1, 30)}, 1, why, sizeof(why)), 8);
	assert_non_null(strstr(why, "energy of a job would be negative"));
	/* what it takes to start is no longer small beside 10 us */
	assert_int_equal(
		doubt((struct row[]){make_row(8, 0.01, 0.0001, 50), tiny}, 2, why, sizeof(why)), 0);
}

static void worst_cases_have_a_margin(void **state) {
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46};
	struct row row = make_row(8, 10, 0.1, 60);
	struct book b;

	assert_int_equal(rows_add(&rows, &row), 0);
	assert_int_equal(rows_profile(&rows, "p", 0, 10, &b), 0);
	assert_int_equal(b.profiles[0].tables[0].points[0].worst, 12100000);
	assert_int_equal(b.profiles[0].tables[0].points[0].best, 9000000);
	assert_int_equal(b.profiles[0].tables[0].points[0].mean, 10000000);
	book_deinit(&b);
	rows_drop(&rows, 7);
	assert_int_equal(rows.n, 1);
	rows_drop(&rows, 8);
	assert_int_equal(rows.n, 0);
	rows_deinit(&rows);
}

/* All rows are made with static power: where that was too high, no single new row can be right. */
static void power_below_static_drops_all_rows(void **state) {
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46, .metered = true, .static_w = 70};
	struct row few = make_row(8, 10, 0.1, 60), many = make_row(46, 5, 0.1, 90);

	assert_int_equal(rows_add(&rows, &few), 0);
	assert_int_equal(rows_add(&rows, &many), 0);
	rows_drop(&rows, 8);
	assert_int_equal(rows.n, 0);
	few.watts = 80;
	assert_int_equal(rows_add(&rows, &few), 0);
	assert_int_equal(rows_add(&rows, &many), 0);
	rows_drop(&rows, 8);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.list[0].n_sms, 46);
	rows_deinit(&rows);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_can_be_true_are_believed),
		cmocka_unit_test(rows_that_cannot_be_true_are_refused),
		cmocka_unit_test(worst_cases_have_a_margin),
		cmocka_unit_test(power_below_static_drops_all_rows),
	};

	return cmocka_run_group_tests_name("client-rows", tests, NULL, NULL);
}
