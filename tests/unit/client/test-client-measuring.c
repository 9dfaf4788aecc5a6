/*
 * test-client-measuring.c: which numbers of SMs `sbeetctl profile run` measures if nobody says,
 * what of a job is what, and what helps where something measured can't be true.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "client/measuring.h"

static void eighths_are_numbers_that_can_be_had(void **state) {
	static const struct {
		struct measuring_parts parts;
		size_t n;
		unsigned sms[8];
	} cases[] = {
		{{46, 1, 1, 46}, 8, {5, 11, 17, 23, 28, 34, 40, 46}},
		{{46, 4, 4, 36}, 7, {4, 8, 16, 20, 28, 32, 46}}, /* the last 10 are one group */
		{{132, 16, 16, 112}, 8, {16, 32, 48, 64, 80, 96, 112, 132}},
		{{24, 16, 16, 24}, 2, {16, 24}},
		{{8, 8, 8, 8}, 1, {8}},
		{{3, 1, 1, 3}, 3, {1, 2, 3}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned sms[PROTO_SMS_MAX];

		assert_int_equal(measuring_eighths(&cases[i].parts, sms), cases[i].n);
		for (size_t k = 0; k < cases[i].n; k++) {
			assert_int_equal(sms[k], cases[i].sms[k]);
		}
	}
}

/* What sbeetd tells of a job from 100 to 200 on 2 SMs. */
static struct measure_job job_of(nsec_t launched, nsec_t kernel_end) {
	struct event e = {.kind = EVENT_JOB_DONE,
			  .granted = 100,
			  .launched = launched,
			  .kernel_end = kernel_end,
			  .finished = 200};

	e.sms = smset_range(0, 2);
	return measure_job_of(&e);
}

static void a_job_is_copy_in_and_kernels_and_copy_out(void **state) {
	static const struct {
		nsec_t launched, kernel_end, copy_in, exec, copy_out;
	} cases[] = {
		{110, 170, 10, 60, 30},
		{110, 0, 10, 90, 0}, /* where the kernels ended is not known */
		{0, 170, 0, 70, 30},
		{0, 0, 0, 100, 0},
		/* what no program should say */
		{90, 170, 0, 70, 30},
		{300, 170, 0, 70, 30},
		{110, 110, 10, 90, 0},
		{110, 105, 10, 90, 0},
		{110, 200, 10, 90, 0},
		{110, UINT64_MAX, 10, 90, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct measure_job j = job_of(cases[i].launched, cases[i].kernel_end);

		assert_int_equal(j.n_sms, 2);
		assert_int_equal(j.copy_in, cases[i].copy_in);
		assert_int_equal(j.exec, cases[i].exec);
		assert_int_equal(j.copy_out, cases[i].copy_out);
	}
}

/* What a user is told of a row in doubt. */
static const char *advice(bool power, nsec_t power_time) {
	static char text[512];
	struct measuring w = {.o.power_time = power_time};
	int real = dup(STDERR_FILENO);
	FILE *file = tmpfile();

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	assert_int_equal(measuring_doubt(&w, 8, power, "no"), CTL_EXIT_FAILED);
	dup2(real, STDERR_FILENO);
	close(real);
	rewind(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return text;
}

static void a_doubt_names_the_option_that_helps(void **state) {
	assert_non_null(strstr(advice(false, 100 * NSEC_PER_MSEC), "--warm-up"));
	assert_null(strstr(advice(false, 100 * NSEC_PER_MSEC), "--power-time"));
	assert_non_null(strstr(advice(true, 100 * NSEC_PER_MSEC), "--power-time of 2s"));
	assert_null(strstr(advice(true, 2 * NSEC_PER_SEC), "--power-time"));
	assert_null(strstr(advice(true, 2 * NSEC_PER_SEC), "--warm-up"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eighths_are_numbers_that_can_be_had),
		cmocka_unit_test(a_job_is_copy_in_and_kernels_and_copy_out),
		cmocka_unit_test(a_doubt_names_the_option_that_helps),
	};

	return cmocka_run_group_tests_name("client-measuring", tests, NULL, NULL);
}
