/*
 * test-units.c: durations and numbers as users write them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/limits.h"
#include "proto/units.h"

static void units_parse_nsec_knows_its_units(void **state) {
	static const struct {
		const char *text;
		nsec_t t;
	} good[] = {
		{"33ms", 33 * NSEC_PER_MSEC},
		{"1.5s", 1500 * NSEC_PER_MSEC},
		{"200us", 200 * NSEC_PER_USEC},
		{"16ns", 16},
		{"2min", 120 * NSEC_PER_SEC},
		{"1h", 3600 * NSEC_PER_SEC},
		{"0s", 0},
		{"0.000000001s", 1},
		{"1.000ns", 1},
		{"24h", PROTO_PERIOD_MAX_NS},
		{"86400.000s", PROTO_PERIOD_MAX_NS},
		{"007ms", 7 * NSEC_PER_MSEC},
	};
	nsec_t t;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(units_parse_nsec(good[i].text, &t), 0);
		assert_int_equal(t, good[i].t);
	}
}

static void units_parse_nsec_refuses_anything_else(void **state) {
	static const struct {
		const char *text;
		int error;
	} bad[] = {
		{"", -EINVAL},
		{"33", -EINVAL},
		{"ms", -EINVAL},
		{"-1ms", -EINVAL},
		{"+1ms", -EINVAL},
		{" 1ms", -EINVAL},
		{"1 ms", -EINVAL},
		{"1ms ", -EINVAL},
		{"1msec", -EINVAL},
		{"1MS", -EINVAL},
		{"1e3ms", -EINVAL},
		{".5s", -EINVAL},
		{"1.s", -EINVAL},
		{"1.2.3s", -EINVAL},
		{"0.5ns", -EINVAL},
		{"1.0000000001s", -EINVAL},
		{"0x10ms", -EINVAL},
		{"1d", -EINVAL},
		{"1ms\n", -EINVAL},
		{"25h", -ERANGE},
		{"86400.000000001s", -ERANGE},
		{"18446744073709551615ns", -ERANGE},
		{"18446744073709551616ns", -ERANGE},
		{"5124095576030431h", -ERANGE},
		{"99999999999999999999999999s", -ERANGE},
	};
	nsec_t t = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(units_parse_nsec(bad[i].text, &t), bad[i].error);
		assert_int_equal(t, 42);
	}
}

static void units_print_nsec_is_short(void **state) {
	static const struct {
		nsec_t t;
		const char *text;
	} cases[] = {
		{0, "0s"},
		{1, "1ns"},
		{999, "999ns"},
		{1000, "1us"},
		{1234, "1.23us"},
		{1250000000, "1.25s"},
		{33 * NSEC_PER_MSEC, "33ms"},
		{33333333, "33.3ms"},
		{333333333, "333ms"},
		{999999, "1ms"},
		{999999999, "1s"},
		{90 * NSEC_PER_SEC, "90s"},
		{120 * NSEC_PER_SEC, "2min"},
		{3600 * NSEC_PER_SEC, "1h"},
		{3661 * NSEC_PER_SEC, "1.02h"},
		{1001 * NSEC_PER_SEC, "16.7min"},
	};
	char text[32], small[3];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(units_print_nsec(cases[i].t, text, sizeof(text)),
				 strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
	assert_int_equal(units_print_nsec(UINT64_MAX, small, sizeof(small)), strlen("5124096h"));
	assert_string_equal(small, "51");
}

static void units_print_nsec_can_be_read_back(void **state) {
	char text[32];
	nsec_t back;

	for (nsec_t t = 1; t < PROTO_PERIOD_MAX_NS / 4; t = t * 3 + 1) {
		nsec_t error;

		units_print_nsec(t, text, sizeof(text));
		assert_int_equal(units_parse_nsec(text, &back), 0);
		error = back > t ? back - t : t - back;
		assert_true(error <= t / 100);
	}
}

static void units_parse_int_takes_whole_numbers_only(void **state) {
	static const struct {
		const char *text;
		int r;
		int64_t value;
	} cases[] = {
		{"0", 0, 0},
		{"-0", 0, 0},
		{"-1000", 0, -1000},
		{"1000", 0, 1000},
		{"1001", -ERANGE, 0},
		{"-1001", -ERANGE, 0},
		{"9223372036854775808", -ERANGE, 0},
		{"-9223372036854775809", -ERANGE, 0},
		{"99999999999999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"-", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"0x1", -EINVAL, 0},
		{"--1", -EINVAL, 0},
		{"99999999999999999999999999999x", -EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 77;

		assert_int_equal(units_parse_int(cases[i].text, -1000, 1000, &value), cases[i].r);
		assert_int_equal(value, cases[i].r == 0 ? cases[i].value : 77);
	}
}

static void units_parse_int_reaches_both_ends(void **state) {
	int64_t value;

	assert_int_equal(units_parse_int("-9223372036854775808", INT64_MIN, INT64_MAX, &value), 0);
	assert_true(value == INT64_MIN);
	assert_int_equal(units_parse_int("9223372036854775807", INT64_MIN, INT64_MAX, &value), 0);
	assert_true(value == INT64_MAX);
}

static void nsec_now_never_goes_back(void **state) {
	nsec_t before = nsec_now();

	for (int i = 0; i < 1000; i++) {
		nsec_t now = nsec_now();

		assert_true(now >= before);
		before = now;
	}
}

static void nsec_becomes_what_calls_want(void **state) {
	assert_int_equal(nsec_timespec(3 * NSEC_PER_SEC + 999999999).tv_sec, 3);
	assert_int_equal(nsec_timespec(3 * NSEC_PER_SEC + 999999999).tv_nsec, 999999999);
	assert_int_equal(nsec_timeval(0).tv_usec, 0);
	assert_int_equal(nsec_timeval(1).tv_usec, 1); /* 0 may mean for ever */
	assert_int_equal(nsec_timeval(2 * NSEC_PER_SEC + 5000).tv_sec, 2);
	assert_int_equal(nsec_timeval(2 * NSEC_PER_SEC + 5000).tv_usec, 5);
	assert_int_equal(nsec_timeval(NSEC_PER_SEC - 1).tv_sec, 1); /* no call takes 1,000,000 us */
	assert_int_equal(nsec_timeval(NSEC_PER_SEC - 1).tv_usec, 0);
	assert_true(nsec_timeval(UINT64_MAX).tv_sec > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_parse_nsec_knows_its_units),
		cmocka_unit_test(units_parse_nsec_refuses_anything_else),
		cmocka_unit_test(units_print_nsec_is_short),
		cmocka_unit_test(units_print_nsec_can_be_read_back),
		cmocka_unit_test(units_parse_int_takes_whole_numbers_only),
		cmocka_unit_test(units_parse_int_reaches_both_ends),
		cmocka_unit_test(nsec_now_never_goes_back),
		cmocka_unit_test(nsec_becomes_what_calls_want),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
