/*
 * test-smset.c: sets of SMs: arithmetic, text, wire form.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/smset.h"

static void assert_text(const struct smset *set, const char *expected) {
	char text[SMSET_TEXT_MAX];

	assert_int_equal(smset_print(set, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void smset_range_cuts_off_beyond_the_last_sm(void **state) {
	struct smset all = smset_range(0, 256), tail = smset_range(250, 1000000);
	struct smset none = smset_range(256, 1), empty = smset_range(7, 0);

	assert_int_equal(smset_count(&all), 256);
	assert_int_equal(smset_count(&tail), 6);
	assert_true(smset_empty(&none));
	assert_true(smset_empty(&empty));
	assert_text(&tail, "250-255");
}

static void smset_arithmetic_agrees_with_single_sms(void **state) {
	struct smset a = smset_range(10, 100), b = smset_range(60, 100);
	struct smset and = smset_and(&a, &b), or = smset_or(&a, &b), minus = smset_minus(&a, &b);

	for (unsigned sm = 0; sm < 300; sm++) {
		bool in_a = sm >= 10 && sm < 110, in_b = sm >= 60 && sm < 160;

		assert_int_equal(smset_has(&and, sm), in_a && in_b);
		assert_int_equal(smset_has(& or, sm), in_a || in_b);
		assert_int_equal(smset_has(&minus, sm), in_a && !in_b);
	}
	assert_true(smset_within(&and, &a) && smset_within(&minus, &a));
	assert_false(smset_within(&a, &and));
	assert_true(smset_disjoint(&and, &minus));
	assert_false(smset_disjoint(&a, &b));
}

static void smset_add_ignores_impossible_sms(void **state) {
	struct smset set = SMSET_EMPTY;

	smset_add(&set, 256);
	smset_add(&set, UINT32_MAX);
	assert_true(smset_empty(&set));
	smset_add(&set, 255);
	assert_int_equal(smset_count(&set), 1);
	assert_false(smset_has(&set, 256));
}

static void smset_next_visits_each_sm_once(void **state) {
	static const unsigned sms[] = {0, 1, 63, 64, 127, 128, 191, 200, 255};
	struct smset set = SMSET_EMPTY;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(sms) / sizeof(sms[0]); i++) {
		smset_add(&set, sms[i]);
	}
	smset_for_each (sm, &set) {
		assert_int_equal(sm, sms[n++]);
	}
	assert_int_equal(n, sizeof(sms) / sizeof(sms[0]));
	assert_int_equal(smset_next(&set, 201), 255);
	assert_int_equal(smset_next(&set, 256), -1);
	assert_int_equal(smset_next(&set, UINT32_MAX), -1);
}

static void smset_lowest_takes_what_there_is(void **state) {
	struct smset set = smset_range(100, 10), two = smset_lowest(&set, 2);
	struct smset many = smset_lowest(&set, 1000), none = smset_lowest(&set, 0);

	assert_text(&two, "100-101");
	assert_true(smset_equal(&many, &set));
	assert_true(smset_empty(&none));
}

static void smset_print_cuts_but_terminates(void **state) {
	struct smset every_second = SMSET_EMPTY, set = smset_range(0, 16);
	char text[SMSET_TEXT_MAX], small[4];

	smset_add(&set, 32);
	assert_text(&set, "0-15,32");
	assert_text(&SMSET_EMPTY, "");
	assert_int_equal(smset_print(&set, small, sizeof(small)), 7);
	assert_string_equal(small, "0-1");
	assert_int_equal(smset_print(&set, NULL, 0), 7);
	for (unsigned sm = 1; sm < 256; sm += 2) {
		smset_add(&every_second, sm);
	}
	assert_true(smset_print(&every_second, text, sizeof(text)) < SMSET_TEXT_MAX);
}

static void smset_parse_reads_what_print_writes(void **state) {
	static const char *const texts[] = {"", "0", "255", "0-255", "0-15,32", "1,3,5,7", "62-65"};
	struct smset set;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(smset_parse(texts[i], &set), 0);
		assert_text(&set, texts[i]);
	}
	assert_int_equal(smset_parse(" 0 - 3 , 9 ", &set), 0);
	assert_text(&set, "0-3,9");
	assert_int_equal(smset_parse("5,4,3-4", &set), 0);
	assert_text(&set, "3-5");
}

static void smset_parse_refuses_anything_else(void **state) {
	static const struct {
		const char *text;
		int error;
	} bad[] = {
		{"256", -ERANGE},   {"0-256", -ERANGE}, {"99999999999999999999999", -ERANGE},
		{"-1", -EINVAL},    {"3-", -EINVAL},	{"5-3", -EINVAL},
		{",", -EINVAL},	    {"1,", -EINVAL},	{"1, ", -EINVAL},
		{"1,,2", -EINVAL},  {"1 2", -EINVAL},	{"0x1", -EINVAL},
		{"1-2-3", -EINVAL}, {"a", -EINVAL},	{"1\n", -EINVAL},
		{"\xff", -EINVAL},
	};
	struct smset set = smset_range(7, 1), before = set;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(smset_parse(bad[i].text, &set), bad[i].error);
		assert_true(smset_equal(&set, &before));
	}
}

static void smset_wire_form_drops_trailing_zeros_only(void **state) {
	struct smset set = SMSET_EMPTY, back;
	uint8_t bytes[32];

	assert_int_equal(smset_to_bytes(&set, bytes), 0);
	smset_add(&set, 8);
	assert_int_equal(smset_to_bytes(&set, bytes), 2);
	assert_int_equal(bytes[0], 0);
	assert_int_equal(bytes[1], 1);
	for (unsigned sm = 0; sm < 256; sm += 51) {
		size_t n;

		smset_add(&set, sm);
		n = smset_to_bytes(&set, bytes);
		assert_int_equal(smset_from_bytes(bytes, n, &back), 0);
		assert_true(smset_equal(&set, &back));
	}
}

static void smset_from_bytes_refuses_long_forms(void **state) {
	struct smset set = smset_range(3, 3), before = set;
	uint8_t bytes[33] = {0};

	assert_int_equal(smset_from_bytes(bytes, sizeof(bytes), &set), -EMSGSIZE);
	assert_true(smset_equal(&set, &before));
	assert_int_equal(smset_from_bytes(NULL, 0, &set), 0);
	assert_true(smset_empty(&set));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smset_range_cuts_off_beyond_the_last_sm),
		cmocka_unit_test(smset_arithmetic_agrees_with_single_sms),
		cmocka_unit_test(smset_add_ignores_impossible_sms),
		cmocka_unit_test(smset_next_visits_each_sm_once),
		cmocka_unit_test(smset_lowest_takes_what_there_is),
		cmocka_unit_test(smset_print_cuts_but_terminates),
		cmocka_unit_test(smset_parse_reads_what_print_writes),
		cmocka_unit_test(smset_parse_refuses_anything_else),
		cmocka_unit_test(smset_wire_form_drops_trailing_zeros_only),
		cmocka_unit_test(smset_from_bytes_refuses_long_forms),
	};

	return cmocka_run_group_tests_name("smset", tests, NULL, NULL);
}
