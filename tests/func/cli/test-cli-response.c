/*
 * test-cli-response.c: `sbeetctl response-time` as users run it: sweeps over random sets of tasks.
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

#include <cmocka.h>
#include <jansson.h>

#include "spawn.h"

static const char *sbeetctl;

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

/* What a sweep says, with this many workers. */
static char *sweep(const char *form, const char *workers, const char *seed) {
	struct spawned s = spawn(ARGS(sbeetctl, "response-time", "--sweep=utilisation=0.3:0.6:0.1",
				      "--tasksets=40", form, workers, seed),
				 NULL);
	char *out;

	assert_string_equal(s.err, "");
	assert_int_equal(s.code, 0);
	out = strdup(s.out);
	assert_non_null(out);
	spawned_deinit(&s);
	return out;
}

static void sweeps_do_not_depend_on_workers(void **state) {
	char *one = sweep("--csv=-", "--workers=1", "--seed=3");
	char *many = sweep("--csv=-", "--workers=7", "--seed=3");
	char *other = sweep("--csv=-", "--workers=2", "--seed=4");

	assert_contains(one, "method,utilisation,tasksets,schedulable\n");
	assert_contains(one, "\nkthread-busy+gpu-priorities,0.3,40,");
	assert_contains(one, "\nfmlp-suspend,0.6,40,");
	assert_string_equal(one, many);
	assert_string_not_equal(one, other);
	free(one);
	free(many);
	free(other);
}

/* CSV and JSON have the same numbers. */
static void sweeps_say_the_same_in_json(void **state) {
	char *csv = sweep("--csv=-", "--workers=2", "--seed=3");
	char *text = sweep("--json", "--workers=2", "--seed=3");
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *cells = json_object_get(o, "sweep"), *cell;
	size_t i;

	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "parameter")), "utilisation");
	assert_int_equal(json_array_size(cells), 7 * 4);
	json_array_foreach(cells, i, cell) {
		bool assign = json_is_true(json_object_get(cell, "gpu_priorities"));
		char line[128];

		snprintf(line, sizeof(line), "\n%s%s,%g,40,%d\n",
			 json_string_value(json_object_get(cell, "method")),
			 assign ? "+gpu-priorities" : "",
			 json_number_value(json_object_get(cell, "x")),
			 (int)json_integer_value(json_object_get(cell, "schedulable")));
		assert_contains(csv, line);
	}
	json_decref(o);
	free(csv);
	free(text);
}

static void sweeps_are_drawn(void **state) {
	struct spawned s =
		spawn(ARGS(sbeetctl, "response-time", "--sweep=best-effort",
			   "--generator=figure-4.13", "--tasksets=5", "-m", "ioctl-busy", "-m",
			   "ioctl-busy+gpu-priorities", "--note=a note", "--plot=-"),
		      NULL);

	assert_string_equal(s.err, "");
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "<svg ");
	assert_contains(s.out, ">5 sets of tasks a point<");
	assert_contains(s.out, ">share of best-effort tasks<");
	assert_contains(s.out, ">ioctl-busy+gpu-priorities<");
	assert_contains(s.out, ">a note<");
	assert_contains(s.out, "</svg>\n");
	spawned_deinit(&s);
}

/* What is seen lies below the safe bounds, and the same seed gives the same. */
static void schedules_are_shown_beside_bounds(void **state) {
	char path[512];
	const char *const argv[] = {
		sbeetctl,	 "response-time", "--simulate", "--runs=20", "-mioctl-busy",
		"--duration=2s", "--json",	  "--seed=3",	path,	     NULL};
	struct spawned s, again;
	const json_t *task, *simulation;
	size_t i, n = 0;
	json_t *o;

	snprintf(path, sizeof(path), "%s/segments/table-4.4.json", getenv("TEST_SCENARIOS"));
	s = spawn((const char **)argv, NULL);
	again = spawn((const char **)argv, NULL);
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	simulation = json_object_get(o, "simulation");
	assert_int_equal(s.code, 3);
	assert_string_equal(s.err, "");
	assert_string_equal(s.out, again.out);
	assert_int_equal(json_integer_value(json_object_get(simulation, "seed")), 3);
	assert_int_equal(json_integer_value(json_object_get(simulation, "schedules")), 1 + 20 * 6);
	json_array_foreach(json_object_get(o, "tasks"), i, task) {
		const json_t *seen = json_object_get(task, "seen_ns");
		const json_t *safe = json_object_get(task, "safe_bound_ns");

		if (seen) {
			n++;
			assert_true(json_integer_value(seen) > 0);
			assert_true(json_is_null(safe) ||
				    json_integer_value(seen) <= json_integer_value(safe));
		}
	}
	assert_int_equal(n, 5);
	json_decref(o);
	spawned_deinit(&s);
	spawned_deinit(&again);
}

static const struct {
	const char *argv[6];
	int code;
	const char *expected;
} refused[] = {
	{{NULL}, 2, "'response-time' needs FILE.json, or --sweep"},
	{{"--sweep=cpus", "x.json", NULL}, 2, "leave out 'x.json', or --sweep"},
	{{"--sweep=cpu", NULL}, 2, "no parameter 'cpu'. Did you mean 'cpus'?"},
	{{"--sweep=period", NULL}, 2, "'period' needs a range"},
	{{"--sweep=cpus=1:2", NULL}, 2, "bad value '1:2' of parameter 'cpus'"},
	{{"--sweep=cpus=2:1:1", NULL}, 2, "bad value '2:1:1'"},
	{{"--sweep=cpus=0:4:1", NULL}, 2, "expected whole numbers from 1 to 64"},
	{{"--sweep=cpus=1:4:0.5", NULL}, 2, "expected whole numbers from 1 to 64"},
	{{"--sweep=cpus=60:64:1", NULL}, 2, "sets of up to 360 tasks: at most 256"},
	{{"--sweep=utilisation=0.001:1:0.001", NULL}, 2, "more than 200 points"},
	{{"--sweep=cpus", "--param=best=2", NULL}, 2, "bad value '2' of parameter 'best'"},
	{{"--sweep=cpus", "--param=best", NULL}, 2, "bad value '' of parameter 'best'"},
	{{"--sweep=cpus", "--param=nothing=1", NULL}, 2, "no parameter 'nothing'"},
	{{"--sweep=cpus", "-mnothing", NULL}, 2, "no method 'nothing'"},
	{{"--sweep=cpus", "-mmpcp-busy+gpu-priorities", NULL},
	 2,
	 "has no GPU priorities to assign"},
	{{"--sweep=cpus", "-mioctl-busy+x", NULL}, 2, "only '+gpu-priorities' may follow"},
	{{"--sweep=cpus", "--generator=x", NULL}, 2, "no generator 'x'"},
	{{"--sweep=cpus", "--slack", NULL}, 2, "'--slack' applies to one set of tasks"},
	{{"--sweep=cpus", "--note=x", NULL}, 2, "option '--note' needs --plot"},
	{{"--sweep=cpus", "--simulate", NULL}, 2, "'--simulate' applies to one set of tasks"},
	{{"x.json", "--runs=3", NULL}, 2, "option '--runs' needs --simulate"},
	{{"x.json", "--simulate", "--duration=0s", NULL}, 2, "a time from 1ns to 24h"},
	{{"x.json", "--simulate", "--compare", NULL}, 2, "leave out --compare"},
	{{"x.json", "--csv=x", NULL}, 2, "option '--csv' needs --sweep"},
	{{"x.json", "-msafe", "-mioctl-busy", NULL}, 2, "may be repeated with --sweep only"},
};

static void bad_calls_are_told_what_was_expected(void **state) {
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *argv[9] = {sbeetctl, "response-time"};
		struct spawned s;

		memcpy(&argv[2], refused[i].argv, sizeof(refused[i].argv));
		s = spawn(argv, NULL);
		assert_contains(s.err, refused[i].expected);
		assert_int_equal(s.code, refused[i].code);
		assert_string_equal(s.out, "");
		spawned_deinit(&s);
	}
}

/* What is wrong in a file is told with its line, and nothing is analysed. */
static void bad_files_are_told_where_and_what(void **state) {
	static const struct {
		const char *text, *expected; /* after the file's name */
	} bad[] = {
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"tasks\": [\n"
		 "{\"name\": \"a\", \"cpu\": 1, \"period\": \"9ms\"}]}",
		 ":2: tasks[0].cpu: expected a whole number from 0 to 0, found 1"},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\",\n \"import\": [\"none.json\"], \"tasks\": "
		 "[]}",
		 ":2: import[0]: cannot read 'none.json': No such file or directory"},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"tasks\": [\n{\"name\": \"a\", \"cpu\": 0,\n"
		 "\"period\": \"9ms\", \"segments\": [{\"misc\": \"1ms\", \"profile\": \"p\"}]}]}",
		 ":3: tasks[0].segments[0].profile: no profile 'p'"},
		{"{\"cpus\": 1,\n\"epsilon\": 1,\n\"tasks\"}", ":3:8: "},
	};
	char path[] = "/tmp/sbeet-response-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		FILE *out = fopen(path, "we");
		char message[512];
		struct spawned s;

		assert_non_null(out);
		assert_true(fputs(bad[i].text, out) >= 0);
		assert_int_equal(fclose(out), 0);
		s = spawn(ARGS(sbeetctl, "response-time", "--compare", path), NULL);
		snprintf(message, sizeof(message), "sbeetctl: %s%s", path, bad[i].expected);
		assert_contains(s.err, message);
		assert_int_equal(s.code, 1);
		assert_string_equal(s.out, "");
		spawned_deinit(&s);
	}
	unlink(path);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeps_do_not_depend_on_workers),
		cmocka_unit_test(sweeps_say_the_same_in_json),
		cmocka_unit_test(sweeps_are_drawn),
		cmocka_unit_test(schedules_are_shown_beside_bounds),
		cmocka_unit_test(bad_calls_are_told_what_was_expected),
		cmocka_unit_test(bad_files_are_told_where_and_what),
	};

	sbeetctl = getenv("SBEETCTL");
	return sbeetctl ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
