/* test-taskedit.c: other values in the text of a task's file, and all else as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "daemon/config/taskedit.h"

static const struct taskedit_value deadline[] = {{"deadline", "20ms"}};
static const struct taskedit_value both[] = {{"period", "33ms"}, {"deadline", "20ms"}};

static void check(const char *text, const struct taskedit_value *values, size_t n,
		  const char *expected) {
	char *result;
	size_t size;

	assert_int_equal(taskedit_apply(text, strlen(text), "head", values, n, &result, &size), 0);
	assert_string_equal(result, expected);
	assert_int_equal(size, strlen(expected));
	free(result);
}

static void edit_makes_a_file(void **state) {
	check("", both, 2, "# head\n[task]\nperiod = 33ms\ndeadline = 20ms\n");
}

static void edit_replaces_and_keeps_the_rest(void **state) {
	check("# the camera\n[match]\nunit = cam.service\n\n[task]\n# in ms\nperiod = 40ms\n"
	      "deadline=30ms\npriority = 3\n",
	      deadline, 1,
	      "# the camera\n[match]\nunit = cam.service\n\n[task]\ndeadline = 20ms\n# in ms\n"
	      "period = 40ms\npriority = 3\n");
}

static void edit_finds_keys_however_they_are_written(void **state) {
	check("  [task]\n\tdeadline : 1s\n deadline = 2s", deadline, 1,
	      "  [task]\ndeadline = 20ms\n");
}

/* What looks alike elsewhere is something else. */
static void edit_touches_its_section_alone(void **state) {
	check("[match]\ndeadline = 1s\n[task]\nx = [task]\n;deadline = 3s\n[other]\ndeadline = "
	      "2s\n",
	      deadline, 1,
	      "[match]\ndeadline = 1s\n[task]\ndeadline = 20ms\nx = [task]\n;deadline = 3s\n"
	      "[other]\ndeadline = 2s\n");
}

static void edit_adds_the_section(void **state) {
	check("[match]\nname = cam*", deadline, 1,
	      "[match]\nname = cam*\n\n[task]\ndeadline = 20ms\n");
}

static void edit_knows_a_section_that_is_there_twice(void **state) {
	check("[task]\ndeadline = 1s\n[match]\nname = x\n[task]\ndeadline = 2s\ngpu = 1\n",
	      deadline, 1, "[task]\ndeadline = 20ms\n[match]\nname = x\n[task]\ngpu = 1\n");
}

static void edit_again_changes_nothing(void **state) {
	check("# head\n[task]\nperiod = 33ms\ndeadline = 20ms\n", both, 2,
	      "# head\n[task]\nperiod = 33ms\ndeadline = 20ms\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edit_makes_a_file),
		cmocka_unit_test(edit_replaces_and_keeps_the_rest),
		cmocka_unit_test(edit_finds_keys_however_they_are_written),
		cmocka_unit_test(edit_touches_its_section_alone),
		cmocka_unit_test(edit_adds_the_section),
		cmocka_unit_test(edit_knows_a_section_that_is_there_twice),
		cmocka_unit_test(edit_again_changes_nothing),
	};

	return cmocka_run_group_tests_name("taskedit", tests, NULL, NULL);
}
