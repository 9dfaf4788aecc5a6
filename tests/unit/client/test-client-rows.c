/*
 * test-client-rows.c: what `sbeetctl profile run` makes of what it measured, and what it refuses.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
	bool power;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows_add(&rows, &list[i]), 0);
	}
	assert_int_equal(rows_profile(&rows, "p", 0, 0, &b), 0);
	bad = rows_doubt(&rows, &b, &power, why, size);
	assert_int_equal(power, bad > 0 && strstr(why, "energy"));
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

/* 10 ms of kernels, then 2 and 4 ms of copies, at 20 W above static power. */
static struct row make_measured(size_t n_parts) {
	struct measure_job jobs[] = {
		{.n_sms = 8, .copy_in = 1000000, .exec = 10000000, .copy_out = 2000000},
		{.n_sms = 8, .copy_in = 1000000, .exec = 10000000, .copy_out = 4000000},
	};
	struct measure_series series = {.jobs = jobs,
					.n_jobs = 2,
					.alone = true,
					.n_parts = n_parts,
					.time = 1000000000,
					.busy = 1000000000};
	struct rows rows = {.gpu_sms = 46, .metered = true, .static_w = 40};
	struct row row;

	series.energy_mj[0] = 60000;
	assert_int_equal(rows_make(&rows, &series, 8, &row), 0);
	return row;
}

/* 5 % of a second, and 0.1 s for each pair of readings. */
static void power_errs_more_with_more_readings(void **state) {
	assert_int_equal((int)(make_measured(1).watts_off * 10 + 0.5), 60);
	assert_int_equal((int)(make_measured(3).watts_off * 10 + 0.5), 140);
}

static void copies_are_apart_from_kernels(void **state) {
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46, .metered = true, .static_w = 40};
	struct row row = make_measured(1), without = make_row(46, 5, 0.1, 90);
	struct book b;

	assert_int_equal((int)row.exec.mean, 10000000);
	assert_int_equal((int)row.copy_out.mean, 3000000);
	assert_int_equal((int)(rows_job_j(&rows, &row) * 1e6 + 0.5), 20 * 13000);
	assert_int_equal(rows_add(&rows, &row), 0);
	assert_int_equal(rows_add(&rows, &without), 0);
	assert_int_equal(rows_profile(&rows, "p", 0, 10, &b), 0);
	assert_int_equal(b.profiles[0].tables[0].copy_in, 1000000);
	assert_int_equal(b.profiles[0].tables[0].copy_out, 4000000);
	assert_int_equal(b.profiles[0].tables[0].points[0].worst, 11000000);
	book_deinit(&b);
	rows_deinit(&rows);
}

/* What an interrupted run has left. */
static struct rows load(const char *text, int result) {
	char path[] = "/tmp/test-rows-XXXXXX";
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46};
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rows_load(&rows, path, "key"), result);
	unlink(path);
	return rows;
}

#define SAMPLE(ms)                                                                     \
	"{\"mean_ns\":" ms "e6,\"min_ns\":" ms "e6,\"p99_ns\":" ms "e6,\"max_ns\":" ms \
	"e6,\"ci95_ns\":0.0}"
#define PART(more)                                                                               \
	"{\"key\":\"key\",\"static_w\":40.0,\"metered\":false,\"rows\":[{\"sms\":8,\"sms_"       \
	"asked\":8,\"jobs\":3,\"gpu_w\":null,\"copy_in\":" SAMPLE("1") ",\"exec\":" SAMPLE("10") \
		more "}]}"

static void files_of_older_versions_go_on(void **state) {
	struct rows rows = load(PART(""), 0);

	assert_int_equal(rows.n, 1);
	assert_int_equal((int)rows.list[0].exec.max, 10000000);
	assert_int_equal((int)rows.list[0].copy_out.max, 0);
	rows_deinit(&rows);
	rows = load(PART(",\"copy_out\":" SAMPLE("2")), 0);
	assert_int_equal(rows.n, 1);
	assert_int_equal((int)rows.list[0].copy_out.max, 2000000);
	rows_deinit(&rows);
	rows = load(PART(",\"copy_out\":" SAMPLE("-2")), -EBADMSG);
	rows_deinit(&rows);
	rows = load(PART(",\"copy_out\":7"), -EBADMSG);
	rows_deinit(&rows);
}

static void rows_are_kept_as_they_are(void **state) {
	char path[] = "/tmp/test-rows-XXXXXX";
	struct rows rows = {.gpu = "gpu", .gpu_sms = 46, .metered = true, .static_w = 40};
	struct rows again = {.gpu = "gpu", .gpu_sms = 46};
	struct row row = make_measured(1);

	close(mkstemp(path));
	assert_int_equal(rows_add(&rows, &row), 0);
	assert_int_equal(rows_save(&rows, path, "key"), 0);
	assert_int_equal(rows_load(&again, path, "other"), -EKEYREJECTED);
	assert_int_equal(rows_load(&again, path, "key"), 0);
	unlink(path);
	assert_int_equal(again.n, 1);
	assert_int_equal((int)again.list[0].copy_in.max, (int)row.copy_in.max);
	assert_int_equal((int)again.list[0].exec.max, (int)row.exec.max);
	assert_int_equal((int)again.list[0].copy_out.max, (int)row.copy_out.max);
	rows_deinit(&again);
	rows_deinit(&rows);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_can_be_true_are_believed),
		cmocka_unit_test(rows_that_cannot_be_true_are_refused),
		cmocka_unit_test(worst_cases_have_a_margin),
		cmocka_unit_test(power_below_static_drops_all_rows),
		cmocka_unit_test(power_errs_more_with_more_readings),
		cmocka_unit_test(copies_are_apart_from_kernels),
		cmocka_unit_test(files_of_older_versions_go_on),
		cmocka_unit_test(rows_are_kept_as_they_are),
	};

	return cmocka_run_group_tests_name("client-rows", tests, NULL, NULL);
}
