/*
 * test-config.c: reading sbeetd.conf: what is taken, what is warned of, what is refused and how.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include <errno.h>

#include "daemon/config.h"
#include "daemon/inifile.h"

static char warnings[2048];
static char why[512];

static void warn(const char *text) {
	size_t n = strlen(warnings);

	snprintf(warnings + n, sizeof(warnings) - n, "%s\n", text);
}

static int read_n(struct settings *s, const char *text, size_t n) {
	settings_init(s);
	warnings[0] = why[0] = '\0';
	return config_read(s, "F", text, n, warn, why, sizeof(why));
}

static int read_text(struct settings *s, const char *text) {
	return read_n(s, text, strlen(text));
}

static void config_has_defaults_for_everything(void **state) {
	struct settings s;

	assert_int_equal(read_text(&s, ""), 0);
	assert_string_equal(s.policy->name, "even");
	assert_int_equal(s.linger, 100 * NSEC_PER_USEC);
	assert_int_equal(s.drain, 60 * NSEC_PER_SEC);
	assert_int_equal(s.n_gpus, 0);
	assert_int_equal(s.log_level, LOG_LEVEL_INFO);
	for (int i = 0; i < _SETTING_N; i++) {
		assert_int_equal(s.origin[i].source, SETTING_DEFAULT);
		assert_string_equal(s.origin[i].text, settings_table[i].fallback);
	}
}

static void config_takes_values_and_remembers_lines(void **state) {
	struct settings s;

	assert_int_equal(read_text(&s,
				   "# comment\n"
				   "[sbeetd]\r\n"
				   "  policy = fcfs ; why not\n"
				   "\tlinger\t=\t3ms\n"
				   "gpus=80,40"),
			 0);
	assert_string_equal(warnings, "");
	assert_string_equal(s.policy->name, "fcfs");
	assert_int_equal(s.linger, 3 * NSEC_PER_MSEC);
	assert_int_equal(s.n_gpus, 2);
	assert_int_equal(s.gpu_sms[1], 40);
	assert_int_equal(s.origin[SETTING_POLICY].line, 3);
	assert_int_equal(s.origin[SETTING_GPUS].line, 5);
	assert_int_equal(s.origin[SETTING_GPUS].source, SETTING_FILE);
}

static void config_warns_of_what_it_does_not_know(void **state) {
	struct settings s;

	assert_int_equal(read_text(&s, "[sbeetd]\nliger = 3ms\n[sbetd]\ndrain = 1s\n"), 0);
	assert_string_equal(warnings,
			    "F:2: unknown key 'liger' (did you mean 'linger'?)\n"
			    "F:4: unknown section 'sbetd' (did you mean 'sbeetd'?)\n");
	assert_int_equal(s.drain, 60 * NSEC_PER_SEC);
}

static void config_refuses_bad_values_with_their_line(void **state) {
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"[sbeetd]\n\nlinger = 5\n",
		 "F:3: linger '5': expected a time with a unit, such as 100us"},
		{"[sbeetd]\npolicy = evn\n",
		 "F:2: policy 'evn': expected one of those that "
		 "--help lists. Did you mean 'even'?"},
		{"[sbeetd]\ndrain = 0s\n", "F:2: drain '0s': expected a time above 0"},
		{"[sbeetd]\nsharing = some\n", "F:2: sharing 'some': expected auto, mps"},
		{"[sbeetd]\ngpus =\n", "F:2: gpus '': expected 'nvml'"},
		{"[sbeetd]\nruntime-dir = here\n",
		 "F:2: runtime-dir 'here': expected an absolute path"},
		{"[sbeetd]\nlinger\n", "F:2: expected '[section]' or 'key = value'"},
		{"[sbeetd\n", "F:1: expected '[section]' or 'key = value'"},
		{"[sbeetd]\npolicy = \001\n", "F:2: the line has a byte"},
		{"[sbeetd]\npolicy = \xff\n", "F:2: the line has a byte"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct settings s;

		assert_int_equal(read_text(&s, bad[i].text), -EINVAL);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0) {
			fail_msg("'%s', expected '%s'", why, bad[i].why);
		}
	}
}

static void config_bounds_lines_and_files(void **state) {
	static char text[INIFILE_SIZE_MAX + 1];
	struct settings s;

	memset(text, '#', sizeof(text));
	assert_int_equal(read_n(&s, text, 4000), -EINVAL);
	assert_non_null(strstr(why, "F:1: the line has 4000 bytes"));
	for (size_t i = 99; i < sizeof(text); i += 100) {
		text[i] = '\n';
	}
	assert_int_equal(read_n(&s, text, INIFILE_SIZE_MAX), 0);
	assert_int_equal(read_n(&s, text, INIFILE_SIZE_MAX + 1), -EINVAL);
	assert_int_equal(read_n(&s, "[sbeetd]\npolicy = fcfs\0\n", 24), -EINVAL);
	assert_non_null(strstr(why, "F:2: the line has a NUL byte"));
}

/* A page that misses a key would fail here: it lists each as ".It Cm KEY". */
static void man_page_tells_of_every_key(void **state) {
	char *page = NULL;
	size_t size = 0;
	FILE *f = fopen(MAN_PAGE, "re");

	assert_non_null(f);
	assert_true(getdelim(&page, &size, '\0', f) > 0);
	for (int i = 0; i < _SETTING_N; i++) {
		char item[64];

		snprintf(item, sizeof(item), "\n.It Cm %s\n%s", settings_table[i].key,
			 settings_table[i].live ? "" : ".Pq restart\n");
		if (!strstr(page, item)) {
			fail_msg("sbeetd.conf(5) has no item '%s'", item);
		}
	}
	free(page);
	fclose(f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_has_defaults_for_everything),
		cmocka_unit_test(config_takes_values_and_remembers_lines),
		cmocka_unit_test(config_warns_of_what_it_does_not_know),
		cmocka_unit_test(config_refuses_bad_values_with_their_line),
		cmocka_unit_test(config_bounds_lines_and_files),
		cmocka_unit_test(man_page_tells_of_every_key),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
