/*
 * test-client-table.c: tables for people, byte for byte.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/base/table.h"

static const struct table_column columns[] = {
	{"name", "NAME", .elastic = true},
	{"size", "SIZE B", .right = true},
	{"note", "NOTE"},
	{"extra", "EXTRA", .hidden = true},
};

static struct table *sample(void) {
	struct table *t;

	assert_int_equal(table_new(&t, columns, 4), 0);
	table_text(t, "first");
	table_number(t, 9);
	table_text(t, "");
	table_text(t, "x");
	table_text(t, "a rather long name of something");
	table_number(t, 10000);
	table_text(t, "ok");
	table_text(t, NULL);
	table_text(t, "third");
	table_text(t, NULL);
	table_text(t, "late");
	table_text(t, "y");
	return t;
}

static void expect(const struct table *t, struct table_style style, const char *expected) {
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(table_print(t, &style, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void table_aligns_its_columns(void **state) {
	struct table *t = sample();

	assert_int_equal(table_rows(t), 3);
	expect(t, (struct table_style){0},
	       "NAME                             SIZE B  NOTE\n"
	       "first                                 9  -\n"
	       "a rather long name of something   10000  ok\n"
	       "third                                 -  late\n");
	table_free(t);
}

static void table_has_no_header_without_legend(void **state) {
	struct table *t = sample();
	char error[128];

	assert_int_equal(table_select(t, "size,extra", error, sizeof(error)), 0);
	expect(t, (struct table_style){.no_legend = true}, "    9  x\n10000  -\n    -  y\n");
	table_free(t);
}

static void table_is_cut_only_to_a_terminal(void **state) {
	struct table *t = sample();

	expect(t, (struct table_style){.width = 30},
	       "NAME              SIZE B  NOTE\n"
	       "first                  9  -\n"
	       "a rather long...   10000  ok\n"
	       "third                  -  late\n");
	/* never to nothing */
	expect(t, (struct table_style){.width = 3},
	       "NAME      SIZE B  NOTE\n"
	       "first          9  -\n"
	       "a rat...   10000  ok\n"
	       "third          -  late\n");
	table_free(t);
}

static void table_has_a_bold_header_in_colour(void **state) {
	struct table *t = sample();
	char error[128];

	assert_int_equal(table_select(t, "note", error, sizeof(error)), 0);
	expect(t, (struct table_style){.colour = true}, "\033[1mNOTE\033[0m\n-\nok\nlate\n");
	table_free(t);
}

static void table_sorts_numbers_by_value_and_keeps_ties(void **state) {
	struct table *t = sample();
	char error[128];

	assert_int_equal(table_sort(t, "-size", error, sizeof(error)), 0);
	assert_int_equal(table_select(t, "size,name", error, sizeof(error)), 0);
	expect(t, (struct table_style){.no_legend = true},
	       "10000  a rather long name of something\n    9  first\n    -  third\n");
	assert_int_equal(table_sort(t, "size", error, sizeof(error)), 0);
	expect(t, (struct table_style){.no_legend = true},
	       "    9  first\n10000  a rather long name of something\n    -  third\n");
	assert_int_equal(table_sort(t, "+name", error, sizeof(error)), 0);
	expect(t, (struct table_style){.no_legend = true},
	       "10000  a rather long name of something\n    9  first\n    -  third\n");
	table_free(t);
}

static void table_refuses_unknown_columns(void **state) {
	struct table *t = sample();
	char error[128];

	assert_int_equal(table_select(t, "name,siez", error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "no column 'siez'. Did you mean 'size'?");
	assert_int_equal(table_select(t, "", error, sizeof(error)), -EINVAL);
	assert_string_equal(error, "no column ''; there are: name size note extra");
	assert_int_equal(table_sort(t, "-", error, sizeof(error)), -EINVAL);
	assert_int_equal(table_select(t, "name,", error, sizeof(error)), -EINVAL);
	/* and stays as it was */
	expect(t, (struct table_style){.no_legend = true},
	       "first                                9  -\n"
	       "a rather long name of something  10000  ok\n"
	       "third                                -  late\n");
	table_free(t);
}

static void table_shows_times_in_ms(void **state) {
	static const struct table_column one[] = {{"t", "T ms", .right = true}};
	struct table *t;

	assert_int_equal(table_new(&t, one, 1), 0);
	table_msec(t, 0);
	table_msec(t, 1250000);
	table_msec(t, 1249999);
	table_msec(t, -15000000);
	table_msec(t, INT64_MIN);
	expect(t, (struct table_style){.no_legend = true},
	       "             0.0\n             1.3\n             1.2\n           -15.0\n"
	       "-9223372036854.8\n");
	table_free(t);
}

static void table_cells_cannot_steer_a_terminal(void **state) {
	static const struct table_column one[] = {{"t", "T"}};
	struct table *t;

	assert_int_equal(table_new(&t, one, 1), 0);
	table_text(t, "a\033[2J\nb\177");
	expect(t, (struct table_style){.no_legend = true}, "a?[2J?b?\n");
	table_free(t);
}

static void table_counts_characters_not_bytes(void **state) {
	static const struct table_column two[] = {{"a", "A", .elastic = true}, {"b", "B"}};
	struct table *t;

	assert_int_equal(table_new(&t, two, 2), 0);
	table_text(t, "größer");
	table_text(t, "x");
	table_text(t, "ääääääääääää");
	table_text(t, "y");
	expect(t, (struct table_style){.no_legend = true, .width = 11},
	       "größer    x\näääää...  y\n");
	table_free(t);
}

static void table_may_be_empty(void **state) {
	struct table *t;
	char error[128];

	assert_int_equal(table_new(&t, columns, 4), 0);
	assert_int_equal(table_sort(t, "size", error, sizeof(error)), 0);
	assert_int_equal(table_rows(t), 0);
	expect(t, (struct table_style){0}, "NAME  SIZE B  NOTE\n");
	table_free(t);
	assert_null(table_free(NULL));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_aligns_its_columns),
		cmocka_unit_test(table_has_no_header_without_legend),
		cmocka_unit_test(table_is_cut_only_to_a_terminal),
		cmocka_unit_test(table_has_a_bold_header_in_colour),
		cmocka_unit_test(table_sorts_numbers_by_value_and_keeps_ties),
		cmocka_unit_test(table_refuses_unknown_columns),
		cmocka_unit_test(table_shows_times_in_ms),
		cmocka_unit_test(table_cells_cannot_steer_a_terminal),
		cmocka_unit_test(table_counts_characters_not_bytes),
		cmocka_unit_test(table_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
