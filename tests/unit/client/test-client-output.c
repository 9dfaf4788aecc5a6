/*
 * test-client-output.c: the forms of JSON, colour and access to the control socket.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/base/csv.h"
#include "client/base/ctl.h"
#include "client/base/terminal.h"
#include "client/live/control.h"

static void expect(json_t *object, enum json_mode mode, const char *expected) {
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(json_write(object, mode, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void json_is_short_or_pretty(void **state) {
	expect(json_pack("{s:i}", "a", 1), JSON_SHORT, "{\"a\":1}\n");
	expect(json_pack("{s:i}", "a", 1), JSON_AUTO, "{\"a\":1}\n"); /* no terminal */
	expect(json_pack("{s:i}", "a", 1), JSON_PRETTY, "{\n  \"a\": 1\n}\n");
	assert_int_equal(json_write(NULL, JSON_SHORT, stdout), -ENOMEM);
}

static void json_form_has_three_names(void **state) {
	enum json_mode mode = JSON_OFF;

	assert_int_equal(json_mode_parse(NULL, &mode), 0);
	assert_int_equal(mode, JSON_AUTO);
	assert_int_equal(json_mode_parse("pretty", &mode), 0);
	assert_int_equal(mode, JSON_PRETTY);
	assert_int_equal(json_mode_parse("", &mode), -EINVAL);
	assert_int_equal(json_mode_parse("Short", &mode), -EINVAL);
	assert_int_equal(mode, JSON_PRETTY);
}

static void json_numbers_stay_what_readers_take(void **state) {
	expect(json_pack("[o, o, o, o]", json_u64(0), json_u64(UINT64_MAX), json_u64_known(0),
			 json_u64_known(7)),
	       JSON_SHORT, "[0,9223372036854775807,null,7]\n");
}

static void json_text_is_always_utf8(void **state) {
	expect(json_pack("[o, o, o]", json_text("größer"), json_text("bad\xff"), json_text(NULL)),
	       JSON_SHORT, "[\"größer\",\"bad?\",null]\n");
}

static void colour_follows_its_rules(void **state) {
	enum colour_mode mode;
	int null = STDIN_FILENO;

	assert_int_equal(colour_mode_parse("blue", &mode), -EINVAL);
	assert_int_equal(colour_mode_parse("never", &mode), 0);
	assert_false(terminal_colour(mode, null));
	assert_int_equal(colour_mode_parse("always", &mode), 0);
	setenv("NO_COLOR", "1", 1);
	assert_true(terminal_colour(mode, null)); /* the option wins */
	assert_int_equal(colour_mode_parse("auto", &mode), 0);
	assert_false(terminal_colour(mode, null));
	unsetenv("NO_COLOR");
}

/* Whoever is not in the group is told so. */
static void control_says_that_access_is_denied(void **state) {
	char folder[] = "/tmp/sbeet-cli-XXXXXX", error[512];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct control *control = NULL;
	bool root = geteuid() == 0;
	int fd, r;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", folder);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(chmod(address.sun_path, 0), 0);
	assert_int_equal(listen(fd, 1), 0);
	setenv("SBEET_RUNTIME_DIR", folder, 1);
	assert_int_equal(root ? seteuid(65534) : 0, 0);
	r = control_open(&control, error, sizeof(error));
	assert_int_equal(root ? seteuid(0) : 0, 0);
	assert_int_equal(r, CTL_EXIT_DENIED);
	assert_null(control);
	assert_non_null(strstr(error, "permission denied; members of group 'sbeet' may"));
	close(fd);
	unlink(address.sun_path);
	rmdir(folder);
}

static void control_says_that_the_folder_is_too_long(void **state) {
	char folder[4096], error[512];
	struct control *control = NULL;

	memset(folder, 'x', sizeof(folder) - 1);
	folder[0] = '/';
	folder[sizeof(folder) - 1] = '\0';
	setenv("SBEET_RUNTIME_DIR", folder, 1);
	assert_int_equal(control_open(&control, error, sizeof(error)), CTL_EXIT_FAILED);
	assert_non_null(strstr(error, "SBEET_RUNTIME_DIR"));
	folder[200] = '\0'; /* a path, but longer than a socket's may be */
	setenv("SBEET_RUNTIME_DIR", folder, 1);
	assert_int_equal(control_open(&control, error, sizeof(error)), CTL_EXIT_FAILED);
	assert_null(control_close(control));
	unsetenv("SBEET_RUNTIME_DIR");
}

static char *csv_cell(const char *text) {
	char *cell;
	size_t size;
	FILE *out = open_memstream(&cell, &size);

	csv_write_text(out, text);
	fclose(out);
	return cell;
}

/* And what is written is read as it was. */
static void csv_has_no_formulas(void **state) {
	static const struct {
		const char *text, *cell;
	} cases[] = {
		{"camera", "\"camera\""},
		{"", "\"\""},
		{"a,\"b\"", "\"a,\"\"b\"\"\""},
		{"=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""},
		{"+1", "\"'+1\""},
		{"-1", "\"'-1\""},
		{"@SUM(A1)", "\"'@SUM(A1)\""},
		{"\t=1", "\"'\t=1\""},
		{"'=1", "\"''=1\""},
		{"a=1", "\"a=1\""},
		{"'t", "\"''t\""},
	};
	static const char *const names[] = {"name", NULL};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *cell = csv_cell(cases[i].text), file[128], error[256] = "";
		size_t column;
		struct csv csv;

		assert_string_equal(cell, cases[i].cell);
		snprintf(file, sizeof(file), "name,n\n%s,1\n", cell);
		csv_begin(&csv, "f", file, error, sizeof(error));
		assert_int_equal(csv_read_header(&csv, names, &column), 0);
		assert_int_equal(csv_read_row(&csv, &column, 1), 1);
		assert_string_equal(csv.cells[column], cases[i].text);
		free(cell);
	}
}

static void nothing_unprintable_reaches_a_terminal(void **state) {
	char text[] =
		"a\x1b[2Jb\x7f"
		"c\xe2\x80\xae" /* right-to-left override */
		"d\xc2\x9b"	/* CSI in one character */
		"e\xff\xc3\xa9";

	terminal_clean(text);
	assert_string_equal(text, "a?[2Jb?c???d??e?\xc3\xa9");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_short_or_pretty),
		cmocka_unit_test(json_form_has_three_names),
		cmocka_unit_test(json_numbers_stay_what_readers_take),
		cmocka_unit_test(json_text_is_always_utf8),
		cmocka_unit_test(colour_follows_its_rules),
		cmocka_unit_test(control_says_that_access_is_denied),
		cmocka_unit_test(control_says_that_the_folder_is_too_long),
		cmocka_unit_test(csv_has_no_formulas),
		cmocka_unit_test(nothing_unprintable_reaches_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
