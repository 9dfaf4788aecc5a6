/*
 * test-taskvars.c: variables and options mean the same, and are refused in the same words.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/taskvars.h"

#define REALTIME    SBEET__TASK_CLASS__TASK_CLASS_REALTIME
#define BEST_EFFORT SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT

struct pair {
	enum task_field field;
	const char *text;
};

#define PAIRS_MAX 4

/* As options, or as variables. @pairs: up to the first without a text. */
static int read_pairs(const struct pair pairs[PAIRS_MAX], bool options, struct task_spec *ret,
		      enum task_field *ret_wrong, char why[512]) {
	struct taskvar_source from[_TASK_FIELD_N] = {{0}};

	for (size_t i = 0; i < PAIRS_MAX && pairs[i].text; i++) {
		enum task_field field = pairs[i].field;

		from[field].name =
			options ? task_fields[field].option : task_fields[field].variable;
		from[field].text = pairs[i].text;
	}
	return taskvars_read(ret, from, ret_wrong, why, 512);
}

static void class_follows_from_times(void **state) {
	static const struct {
		struct pair pairs[PAIRS_MAX];
		Sbeet__TaskClass task_class;
	} cases[] = {
		{{{TASK_FIELD_PERIOD, "33ms"}}, REALTIME},
		{{{TASK_FIELD_DEADLINE, "20ms"}}, REALTIME},
		{{{TASK_FIELD_PERIOD, "33ms"}, {TASK_FIELD_CLASS, "best-effort"}}, BEST_EFFORT},
		{{{TASK_FIELD_CLASS, "realtime"}}, REALTIME},
		{{{TASK_FIELD_PRIORITY, "5"}, {TASK_FIELD_MAX_SMS, "8"}}, BEST_EFFORT},
		{{{0, NULL}}, BEST_EFFORT},
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct task_spec vars;
		enum task_field wrong;
		char why[512];

		assert_int_equal(read_pairs(cases[i / 2].pairs, i % 2, &vars, &wrong, why), 0);
		assert_int_equal(vars.task_class, cases[i / 2].task_class);
	}
}

static void all_values_are_read(void **state) {
	struct taskvar_source from[_TASK_FIELD_N] = {
		[TASK_FIELD_TASK] = {"--task", "camera"},
		[TASK_FIELD_CLASS] = {"--class", "realtime"},
		[TASK_FIELD_PERIOD] = {"--period", "33ms"},
		[TASK_FIELD_DEADLINE] = {"--deadline", "20ms"},
		[TASK_FIELD_OFFSET] = {"--offset", "500us"},
		[TASK_FIELD_PRIORITY] = {"--priority", "-7"},
		[TASK_FIELD_MIN_SMS] = {"--min-sms", "4"},
		[TASK_FIELD_MAX_SMS] = {"--max-sms", "16"},
		[TASK_FIELD_SCOPE] = {"--scope", "thread"},
	};
	struct task_spec vars;
	enum task_field wrong;
	char why[512];

	assert_int_equal(taskvars_read(&vars, from, &wrong, why, sizeof(why)), 0);
	assert_string_equal(vars.name, "camera");
	assert_int_equal(vars.task_class, REALTIME);
	assert_int_equal(vars.scope, SBEET__SCOPE__SCOPE_THREAD);
	assert_int_equal(vars.period, 33 * NSEC_PER_MSEC);
	assert_int_equal(vars.deadline, 20 * NSEC_PER_MSEC);
	assert_int_equal(vars.offset, 500 * NSEC_PER_USEC);
	assert_int_equal(vars.job.priority, -7);
	assert_int_equal(vars.job.min_sms, 4);
	assert_int_equal(vars.job.max_sms, 16);
}

/* A program that says nothing declares no releases; one that says 0 does. */
static void offset_of_zero_is_one(void **state) {
	struct taskvar_source from[_TASK_FIELD_N] = {
		[TASK_FIELD_PERIOD] = {"--period", "33ms"},
	};
	struct task_spec vars;
	enum task_field wrong;
	char why[512];

	(void)state;
	assert_int_equal(taskvars_read(&vars, from, &wrong, why, sizeof(why)), 0);
	assert_int_equal(vars.offset, 0);
	from[TASK_FIELD_OFFSET] = (struct taskvar_source){"--offset", "0ms"};
	assert_int_equal(taskvars_read(&vars, from, &wrong, why, sizeof(why)), 0);
	assert_int_equal(vars.offset, 1);
}

static void what_is_wrong_is_named(void **state) {
	static const struct {
		struct pair pairs[PAIRS_MAX];
		enum task_field wrong;
		const char *options, *variables;
	} cases[] = {
		{{{TASK_FIELD_PERIOD, "33"}},
		 TASK_FIELD_PERIOD,
		 "bad value '33' of option '--period': expected a time above 0",
		 "bad value '33' of SBEET_PERIOD: expected a time above 0"},
		{{{TASK_FIELD_DEADLINE, "0ms"}},
		 TASK_FIELD_DEADLINE,
		 "value out of range '0ms' of option '--deadline': expected a time above 0",
		 "value out of range '0ms' of SBEET_DEADLINE: expected a time above 0"},
		{{{TASK_FIELD_PRIORITY, "1001"}},
		 TASK_FIELD_PRIORITY,
		 "value out of range '1001' of option '--priority': expected a whole number",
		 "value out of range '1001' of SBEET_PRIORITY: expected a whole number"},
		{{{TASK_FIELD_CLASS, "fast"}},
		 TASK_FIELD_CLASS,
		 "bad value 'fast' of option '--class': expected realtime or best-effort",
		 "bad value 'fast' of SBEET_CLASS: expected realtime or best-effort"},
		{{{TASK_FIELD_TASK, ""}},
		 TASK_FIELD_TASK,
		 "bad value '' of option '--task': expected 1 to 64 of",
		 "bad value '' of SBEET_TASK: expected 1 to 64 of"},
		{{{TASK_FIELD_OFFSET, "5ms"}, {TASK_FIELD_DEADLINE, "5ms"}},
		 TASK_FIELD_OFFSET,
		 "--offset=5ms needs a period",
		 "SBEET_OFFSET=5ms needs a period"},
		{{{TASK_FIELD_PERIOD, "33ms"}, {TASK_FIELD_DEADLINE, "50ms"}},
		 TASK_FIELD_DEADLINE,
		 "--deadline=50ms is longer than --period=33ms: ",
		 "SBEET_DEADLINE=50ms is longer than SBEET_PERIOD=33ms: "},
		{{{TASK_FIELD_MIN_SMS, "20"}, {TASK_FIELD_MAX_SMS, "10"}},
		 TASK_FIELD_MIN_SMS,
		 "--min-sms=20 is more than --max-sms=10",
		 "SBEET_MIN_SMS=20 is more than SBEET_MAX_SMS=10"},
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *expected = i % 2 ? cases[i / 2].options : cases[i / 2].variables;
		struct task_spec vars = {.job.priority = 77};
		enum task_field wrong;
		char why[512];

		assert_int_equal(read_pairs(cases[i / 2].pairs, i % 2, &vars, &wrong, why),
				 -EINVAL);
		assert_int_equal(wrong, cases[i / 2].wrong);
		if (strncmp(why, expected, strlen(expected)) != 0) {
			fail_msg("expected '%s', got '%s'", expected, why);
		}
		assert_int_equal(vars.job.priority, 77); /* untouched */
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_follows_from_times),
		cmocka_unit_test(all_values_are_read),
		cmocka_unit_test(offset_of_zero_is_one),
		cmocka_unit_test(what_is_wrong_is_named),
	};

	return cmocka_run_group_tests_name("taskvars", tests, NULL, NULL);
}
