/*
 * test-cli-bad-input.c: what sbeetctl says to scenarios and profiles that can't be: file, line or
 * JSON path, and what was expected; exit code 1, and nothing on standard output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "spawn.h"

static const char *sbeetctl;

#define GPU  "{\"name\": \"a\", \"sms\": 8, \"static_w\": 46, \"idle_w_per_sm\": 0.4}"
#define WORK "{\"name\": \"p\", \"on\": {\"a\": {\"linear\": \"60ms\", \"watts_per_sm\": 1}}}"
#define TASK "{\"name\": \"t\", \"profile\": \"p\", \"period\": \"20ms\"}"

#define DOCUMENT(gpus, profiles, tasks) \
	"{\"gpus\": [" gpus "],\n\"profiles\": [" profiles "],\n\"tasks\": [" tasks "]}\n"
#define WITH_GPU(rest)	DOCUMENT("{\"name\": \"a\", " rest "}", WORK, TASK)
#define WITH_WORK(rest) DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {\"a\": {" rest "}}}", TASK)
#define WITH_TASK(rest) DOCUMENT(GPU, WORK, "{\"name\": \"t\", " rest "}")
#define POINTS(points)	WITH_WORK("\"watts_per_sm\": 1, \"points\": [" points "]")

static const struct {
	const char *text, *expected; /* after the file's name */
	bool in_profile;	     /* so 'profile' finds it too; it reads nothing else */
} bad[] = {
	/* unknown keys */
	{WITH_TASK("\"profile\": \"p\", \"perod\": \"20ms\""),
	 ":3: tasks[0]: unknown key 'perod'. Did you mean 'period'?"},
	{WITH_GPU("\"sms\": 8, \"sm\": 8"), ":1: gpus[0]: unknown key 'sm'. Did you mean 'sms'?"},
	{WITH_WORK("\"linear\": \"60ms\", \"watts_per_sm\": 1, \"volts\": 2"),
	 ":2: profiles[0].on.a: unknown key 'volts'", true},
	/* missing profiles */
	{WITH_TASK("\"profile\": \"q\""), ":3: tasks[0].profile: no profile 'q'. Did you mean 'p'?"},
	{WITH_TASK("\"period\": \"20ms\""), ":3: tasks[0]: 'profile' is missing"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"b\": {\"linear\": \"4ms\", "
		  "\"watts_per_sm\": 1}}}",
		  TASK),
	 ":2: profiles[0].on.b: no GPU is of this type. Did you mean 'a'?"},
	{"{\"gpus\": [" GPU "], \"import\": [\"none.json\"]}", ":1: import[0]: cannot read"},
	/* zero SMs, and more than the GPU has */
	{WITH_GPU("\"sms\": 0"), ":1: gpus[0].sms: expected a whole number from 1 to 256, found 0"},
	{WITH_GPU("\"sms\": 300"),
	 ":1: gpus[0].sms: expected a whole number from 1 to 256, found 300"},
	{WITH_GPU("\"sms\": 8, \"limit\": 0"),
	 ":1: gpus[0].limit: expected a whole number from 1 to 8, found 0"},
	{WITH_GPU("\"sms\": 8, \"limit\": 9"),
	 ":1: gpus[0].limit: expected a whole number from 1 to 8, found 9"},
	{POINTS("{\"sms\": 0, \"worst\": \"4ms\"}"),
	 ":2: profiles[0].on.a.points[0].sms: expected a whole number from 1 to 256, found 0", true},
	{POINTS("{\"sms\": 9, \"worst\": \"4ms\"}"),
	 ": profile 'p' on 'a' has a point of 9 SMs, but GPU 'a' has only 8"},
	{WITH_TASK("\"profile\": \"p\", \"fixed\": {\"gpu\": \"a\", \"sms\": \"0-8\"}"),
	 ":3: tasks[0].fixed.sms: expected SMs such as \"0-3,8\", from 0 to 7, found \"0-8\""},
	/* negative and absurd times */
	{WITH_TASK("\"profile\": \"p\", \"period\": \"-20ms\""),
	 ":3: tasks[0].period: expected a time with its unit, such as \"2.5ms\", found \"-20ms\""},
	{WITH_TASK("\"profile\": \"p\", \"period\": \"99999h\""),
	 ":3: tasks[0].period: expected a time from 1us to 24h, found \"99999h\""},
	{WITH_TASK("\"profile\": \"p\", \"offset\": \"99999999999999999999h\""),
	 ":3: tasks[0].offset: expected a time"},
	{WITH_WORK("\"linear\": \"60h\", \"watts_per_sm\": 1"),
	 ":2: profiles[0].on.a.linear: expected a time from 1ns to 1h, found \"60h\"", true},
	{WITH_WORK("\"linear\": \"4ms\", \"watts_per_sm\": 1, \"copy_in\": \"-1ms\""),
	 ":2: profiles[0].on.a.copy_in: expected a time with its unit, such as \"2.5ms\", found "
	 "\"-1ms\"",
	 true},
	/* duplicate names */
	{DOCUMENT(GPU "," GPU, WORK, TASK), ":1: gpus[1].name: a second GPU 'a'"},
	{DOCUMENT(GPU, WORK "," WORK, TASK), ":2: profiles[1].name: a second profile 'p'", true},
	{DOCUMENT(GPU, WORK, TASK "," TASK), ":3: tasks[1].name: a second task 't'"},
	{POINTS("{\"sms\": 1, \"worst\": \"4ms\"}, {\"sms\": 1, \"worst\": \"4ms\"}"),
	 ":2: profiles[0].on.a.points[1]: a second point for 1 SMs", true},
	{"{\"gpus\": [],\n\"gpus\": []}", ":2:", true},
	/* deadlines beyond periods */
	{WITH_TASK("\"profile\": \"p\", \"period\": \"20ms\", \"deadline\": \"21ms\""),
	 ":3: tasks[0].deadline: expected a deadline not beyond the period"},
	/* no JSON at all */
	{"{\"gpus\": [\n", ":2:", true},
	{"gpu,app\n", ":1:", true},
};

/* Runs `sbeetctl WORDS`; the file's name and @expected must be what it says. */
static void refuse(const char *const *words, const char *path, const char *expected) {
	const char *argv[8] = {sbeetctl};
	char message[1024];
	struct spawned s;

	for (size_t i = 0; words[i]; i++) {
		argv[i + 1] = words[i];
	}
	s = spawn(argv, NULL);
	snprintf(message, sizeof(message), "sbeetctl: %s%s", path, expected);
	if (strncmp(s.err, message, strlen(message)) != 0) {
		fail_msg("%s %s said: %s\nexpected: %s", words[0], words[1], s.err, message);
	}
	assert_string_equal(s.out, "");
	assert_int_equal(s.code, 1);
	spawned_deinit(&s);
}

static void write_file(const char *path, const char *text) {
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void bad_files_are_told_where_and_what(void **state) {
	char path[] = "/tmp/sbeet-bad-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(path, bad[i].text);
		refuse(ARGS("simulate", path), path, bad[i].expected);
		refuse(ARGS("simulate", "--sweep=1", path), path, bad[i].expected);
		refuse(ARGS("plan", path), path, bad[i].expected);
		if (bad[i].in_profile) {
			refuse(ARGS("profile", "list", path), path, bad[i].expected);
			refuse(ARGS("profile", "show", path, "p"), path, bad[i].expected);
			refuse(ARGS("profile", "export", path, "wcet"), path, bad[i].expected);
		}
	}
	unlink(path);
}

#define WCET "gpu,app,sm,min_ms,max_ms\n"
#define APPS "app,gpu,power_dynamic_w_per_sm,ghd_ms,gdh_ms\n"

static const struct {
	const char *wcet, *apps;
	bool in_apps;
	const char *expected;
} bad_csv[] = {
	{"gpu,app\n", APPS, false, ":1: the column 'sm' is missing"},
	{WCET "a,p,0,1,2\n", APPS, false, ":2: expected 1 to 256 SMs, found '0'"},
	{WCET "a,p,300,1,2\n", APPS, false, ":2: expected 1 to 256 SMs, found '300'"},
	{WCET "a,p,1,-1,2\n", APPS, false, ":2: expected milliseconds, at most an hour of them"},
	{WCET "a,p,1,1,99999999\n", APPS, false, ":2: expected milliseconds, at most an hour"},
	{WCET "a,p,1,1,2\na,p,1,1,2\n", APPS, false, ":3: a second line for 'p' on 1 SMs of 'a'"},
	{WCET "a,p,1,1,2\n", APPS "q,a,1,1,1\n", true, ":2: no times of 'q' on 'a' in the other"},
	{WCET "a,p,1,1,2\n", APPS "p,a,-1,1,1\n", true, ":2: expected a number from 0 to"},
	{WCET "a,p,1,1,2\n", APPS, true, ":2: no line for 'p' on 'a'"},
};

static void bad_tables_are_told_where_and_what(void **state) {
	char wcet[] = "/tmp/sbeet-bad-XXXXXX", apps[] = "/tmp/sbeet-bad-XXXXXX";
	int a = mkstemp(wcet), b = mkstemp(apps);

	assert_true(a >= 0 && b >= 0);
	close(a);
	close(b);
	for (size_t i = 0; i < sizeof(bad_csv) / sizeof(bad_csv[0]); i++) {
		write_file(wcet, bad_csv[i].wcet);
		write_file(apps, bad_csv[i].apps);
		refuse(ARGS("profile", "import", wcet, apps), bad_csv[i].in_apps ? apps : wcet,
		       bad_csv[i].expected);
	}
	unlink(wcet);
	unlink(apps);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_files_are_told_where_and_what),
		cmocka_unit_test(bad_tables_are_told_where_and_what),
	};

	sbeetctl = getenv("SBEETCTL");
	if (!sbeetctl) {
		return 77;
	}
	return cmocka_run_group_tests_name("cli-bad-input", tests, NULL, NULL);
}
