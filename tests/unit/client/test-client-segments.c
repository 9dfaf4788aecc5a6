/*
 * test-client-segments.c: sets of tasks for response-time: what is read, and what bad ones are
 * told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sim/segments.h"

#define SEGMENT		 "{\"cpu\": \"1ms\"}"
#define TASK(name, rest) "{\"name\": \"" name "\", \"cpu\": 0, \"period\": \"20ms\", " rest "}"
#define SEGMENTS(list)	 "\"segments\": [" list "]"
#define FIRST		 TASK("a", "\"priority\": 1, " SEGMENTS(SEGMENT))
#define DOCUMENT(tasks)	 "{\"cpus\": 2, \"epsilon\": \"1ms\", \"tasks\": [" tasks "]}"
#define GPU(rest)	 DOCUMENT(TASK("a", "\"priority\": 1, " SEGMENTS("{" rest "}")))

/* A file that sets of tasks import. */
static int give_profiles(void *userdata, const char *path, char **ret_text, size_t *ret_size) {
	static const char text[] =
		"{\"profiles\": [\n"
		"{\"name\": \"detect\", \"on\": {\"orin\": {\"copy_in\": \"1ms\", \"copy_out\": "
		"\"500us\", \"watts_per_sm\": 1, \"points\": ["
		"{\"sms\": 4, \"best\": \"10ms\", \"worst\": \"12ms\"},"
		"{\"sms\": 8, \"best\": \"5ms\", \"worst\": \"6ms\"}]}}},\n"
		"{\"name\": \"two\", \"on\": {\"orin\": {\"linear\": \"8ms\", \"watts_per_sm\": "
		"1}, "
		"\"xavier\": {\"linear\": \"16ms\", \"watts_per_sm\": 1}}}]}";

	if (strcmp(path, "camera.json") != 0) {
		return -ENOENT;
	}
	*ret_text = strdup(text);
	*ret_size = strlen(text);
	return *ret_text ? 0 : -ENOMEM;
}

static const struct imports files = {give_profiles, NULL};

#define WITH_PROFILES(top, rest)                                                  \
	"{\"cpus\": 1, \"epsilon\": \"1ms\", \"import\": [\"camera.json\"], " top \
	"\n\"tasks\": [" TASK(                                                    \
		"a", "\"priority\": 1, \n" SEGMENTS("{\"misc\": \"1ms\", " rest "}")) "]}"

/* G^e is that of the profile on so many SMs, copies included. */
static void segments_take_times_from_profiles(void **state) {
	static const struct {
		const char *text;
		nsec_t exec, best;
	} cases[] = {
		{WITH_PROFILES("", "\"profile\": \"detect\", \"sms\": 8"), 7500, 5000},
		{WITH_PROFILES("", "\"profile\": \"detect\", \"sms\": 4"), 13500, 10000},
		/* between two points the longer time holds */
		{WITH_PROFILES("\"gpu\": \"orin\",", "\"profile\": \"detect\", \"sms\": 6"), 13500,
		 0},
		{WITH_PROFILES("\"gpu\": \"xavier\",", "\"profile\": \"two\", \"sms\": 4"), 4000,
		 4000},
		{WITH_PROFILES("\"gpu\": \"orin\",",
			       "\"profile\": \"two\", \"sms\": 4, \"best\": \"1ms\""),
		 2000, 1000},
		{WITH_PROFILES("\"profiles\": [{\"name\": \"own\", \"on\": {\"x\": {\"linear\": "
			       "\"3ms\", \"watts_per_sm\": 1}}}],",
			       "\"profile\": \"own\", \"sms\": 1"),
		 3000, 3000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rta_segment *segment;
		char error[512] = "";
		struct segments s;

		if (segments_init(&s, "file", cases[i].text, strlen(cases[i].text), RTA_FOREVER,
				  &files, error, sizeof(error)) < 0) {
			fail_msg("%s", error);
		}
		segment = &s.set.tasks[0].segments[0];
		assert_int_equal(segment->exec, cases[i].exec * NSEC_PER_USEC);
		assert_int_equal(segment->total, (cases[i].exec + 1000) * NSEC_PER_USEC);
		assert_int_equal(segment->best_exec, cases[i].best * NSEC_PER_USEC);
		segments_deinit(&s);
	}
}

static void segments_read_all_they_know(void **state) {
	static const char text[] =
		"{\"description\": \"d\", \"cpus\": 4, \"epsilon\": \"500us\","
		" \"kernel_thread_cpu\": 2, \"tasks\": ["
		"{\"name\": \"rest\", \"cpu\": 3, \"period\": \"1s\","
		" \"segments\": [{\"misc\": \"0ms\", \"exec\": \"forever\"}]},"
		"{\"name\": \"low\", \"cpu\": 1, \"priority\": 3, \"period\": \"20ms\","
		" \"segments\": [{\"cpu\": \"1ms\"}]},"
		"{\"name\": \"high\", \"cpu\": 0, \"priority\": 9, \"period\": \"20ms\","
		" \"deadline\": \"15ms\", \"waiting\": \"busy\", \"segments\": ["
		"{\"cpu\": \"2ms\", \"best\": \"1ms\"},"
		"{\"misc\": \"1ms\", \"exec\": \"4ms\", \"total\": \"4.5ms\", \"best\": \"3ms\"},"
		"{\"misc\": \"1ms\", \"exec\": \"2ms\"}]}]}";
	const struct rta_task *high;
	char error[512] = "";
	struct segments s;

	assert_int_equal(segments_init(&s, "file", text, strlen(text), RTA_FOREVER, &files, error,
				       sizeof(error)),
			 0);
	assert_int_equal(s.set.epsilon, 500 * NSEC_PER_USEC);
	assert_int_equal(s.set.kthread_cpu, 2);
	assert_int_equal(s.set.n_tasks, 3);
	assert_int_equal(s.set.n_real_time, 2);
	assert_string_equal(s.names[0], "high");
	assert_string_equal(s.names[1], "low");
	assert_string_equal(s.names[2], "rest");
	high = &s.set.tasks[0];
	assert_int_equal(high->deadline, 15 * NSEC_PER_MSEC);
	assert_true(high->busy);
	assert_int_equal(high->c, 2 * NSEC_PER_MSEC);
	assert_int_equal(high->best_c, NSEC_PER_MSEC);
	assert_int_equal(high->gm, 2 * NSEC_PER_MSEC);
	assert_int_equal(high->ge, 6 * NSEC_PER_MSEC);
	assert_int_equal(high->g, 7500 * NSEC_PER_USEC);
	assert_int_equal(high->best_ge, 3 * NSEC_PER_MSEC);
	assert_int_equal(high->n_gpu, 2);
	assert_int_equal(s.set.tasks[1].deadline, 20 * NSEC_PER_MSEC);
	assert_false(s.set.tasks[1].busy);
	assert_int_equal(s.set.tasks[2].ge, RTA_FOREVER);
	segments_deinit(&s);

	/* --epsilon comes first. */
	assert_int_equal(
		segments_init(&s, "file", text, strlen(text), 7, &files, error, sizeof(error)), 0);
	assert_int_equal(s.set.epsilon, 7);
	segments_deinit(&s);
}

static void segments_tell_what_is_wrong(void **state) {
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"{", "file:1:1: "},
		{"[]", "expected an object, found an array"},
		{"{\"epsilon\": \"1ms\", \"tasks\": []}", "'cpus' is missing"},
		{"{\"cpus\": 1, \"tasks\": []}", "'epsilon' is missing"},
		{"{\"cpus\": 1, \"kernel_thread_cpu\": 1, \"epsilon\": \"1ms\", \"tasks\": []}",
		 "kernel_thread_cpu: expected a whole number from 0 to 0, found 1"},
		{DOCUMENT(""), "tasks: expected at least one task with a 'priority'"},
		{DOCUMENT(TASK("a", SEGMENTS(SEGMENT))),
		 "tasks: expected at least one task with a 'priority'"},
		{DOCUMENT(FIRST ", " TASK("a", SEGMENTS(SEGMENT))), "tasks[1]: a second task 'a'"},
		{DOCUMENT(FIRST ", " TASK("b", "\"priority\": 1, " SEGMENTS(SEGMENT))),
		 "tasks[1]: priority 1 is that of task 'a'"},
		{DOCUMENT(TASK("a", "\"priority\": -1, " SEGMENTS(SEGMENT))),
		 "tasks[0].priority: expected a whole number from 0 to 1000, found -1"},
		{DOCUMENT(TASK("a", "\"priority\": 1, \"deadline\": \"21ms\", " SEGMENTS(SEGMENT))),
		 "tasks[0].deadline: expected a time from 1ns to 20ms, found \"21ms\""},
		{DOCUMENT(TASK("a", "\"priority\": 1, \"waiting\": \"spin\", " SEGMENTS(SEGMENT))),
		 "tasks[0].waiting: expected \"busy\" or \"suspend\", found \"spin\""},
		{DOCUMENT(TASK("a", "\"priority\": 1, \"segment\": []")),
		 "unknown key 'segment'. Did you mean 'segments'?"},
		{DOCUMENT(TASK("a", "\"priority\": 1")), "tasks[0]: 'segments' is missing"},
		{DOCUMENT(TASK("a", "\"priority\": 1, " SEGMENTS(""))),
		 "tasks[0].segments: expected at least one segment"},
		{DOCUMENT(TASK("a", "\"priority\": 1, " SEGMENTS("3"))),
		 "segments[0]: expected an object"},
		{DOCUMENT(TASK("a", "\"priority\": 1, " SEGMENTS(SEGMENT ", " SEGMENT))),
		 "tasks[0].segments[1]: two CPU segments in a row"},
		{DOCUMENT("{\"name\": \"a\", \"cpu\": 2, \"period\": \"20ms\", " SEGMENTS(
			 SEGMENT) "}"),
		 "tasks[0].cpu: expected a whole number from 0 to 1, found 2"},
		{DOCUMENT("{\"name\": \"a\", \"cpu\": 0, \"period\": \"876000h\", " SEGMENTS(
			 SEGMENT) "}"),
		 "tasks[0].period: expected a time from 1ns to 24h"},
		{DOCUMENT("{\"name\": \"a\", \"cpu\": 0, \"period\": \"0ms\", " SEGMENTS(
			 SEGMENT) "}"),
		 "tasks[0].period: expected a time from 1ns"},
		{GPU("\"exec\": \"1ms\""), "tasks[0].segments[0]: 'misc' is missing"},
		{GPU("\"misc\": \"1ms\""), "tasks[0].segments[0]: 'exec' is missing"},
		{GPU("\"misc\": \"1ms\", \"exec\": \"forever\""),
		 "tasks[0].segments[0].exec: only a task of best effort"},
		{GPU("\"misc\": \"1ms\", \"exec\": \"2\""), "expected a time with its unit"},
		{GPU("\"misc\": \"1ms\", \"exec\": \"2ms\", \"total\": \"4ms\""),
		 "total: expected a time from 2ms to 3ms, found \"4ms\""},
		{GPU("\"misc\": \"1ms\", \"exec\": \"2ms\", \"best\": \"3ms\""),
		 "best: expected a time from 0s to 2ms"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[512] = "";
		struct segments s;

		assert_int_equal(segments_init(&s, "file", cases[i].text, strlen(cases[i].text),
					       RTA_FOREVER, &files, error, sizeof(error)),
				 -EINVAL);
		if (strncmp(error, "file:", 5) != 0 || !strstr(error, cases[i].message)) {
			fail_msg("expected '%s' for %s, got: %s", cases[i].message, cases[i].text,
				 error);
		}
	}
}

/* The line is the value's own, whatever stands before it. */
static void segments_tell_the_line(void **state) {
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"{\n\"cpus\":\n\n0}", "file:4: cpus: expected"},
		{"{\"cpus\": 2, \"epsilon\": \"1ms\",\n \"description\": \"a \\\"]}\\\\\",\n"
		 " \"tasks\": [\n  " FIRST ",\n  {\"name\": \"b\",\n   \"cpu\": 7}]}",
		 "file:6: tasks[1].cpu: expected"},
		{"{\"cpus\": 2, \"epsilon\": \"1ms\", \"tasks\": [\n" FIRST ",\n\n" FIRST "]}",
		 "file:4: tasks[1]: a second task 'a'"},
		{"{\"cpus\": 2, \"epsilon\": \"1ms\", \"tasks\": [\n{\"name\": \"a\", \"cpu\": 0,\n"
		 "\"period\": \"9ms\", \"priority\": 1, \"segments\": [\n{\"cpu\": \"1ms\"},\n"
		 "{\"exec\": \"1ms\"}\n]}]}",
		 "file:5: tasks[0].segments[1]: 'misc' is missing"},
		{WITH_PROFILES("", "\"profile\": \"detekt\", \"sms\": 4"),
		 "file:3: tasks[0].segments[0].profile: no profile 'detekt'. Did you mean "
		 "'detect'?"},
		{WITH_PROFILES("", "\"profile\": \"detect\""),
		 "file:3: tasks[0].segments[0]: 'sms' is missing"},
		{WITH_PROFILES("", "\"profile\": \"detect\", \"sms\": 3"),
		 "file:3: tasks[0].segments[0].sms: expected a whole number from 4 to 8, found 3"},
		{WITH_PROFILES("", "\"profile\": \"detect\", \"sms\": 9"),
		 "file:3: tasks[0].segments[0].sms: expected a whole number from 4 to 8, found 9"},
		{WITH_PROFILES("", "\"profile\": \"detect\", \"sms\": 4, \"exec\": \"1ms\""),
		 "file:3: tasks[0].segments[0].exec: 'profile' says how long it takes already"},
		{WITH_PROFILES("", "\"exec\": \"1ms\", \"sms\": 4"),
		 "file:3: tasks[0].segments[0].sms: SMs are those of a 'profile'"},
		{WITH_PROFILES("", "\"profile\": \"two\", \"sms\": 4"),
		 "file:3: tasks[0].segments[0].profile: profile 'two' is of 2 types of GPU: say "
		 "which"},
		{WITH_PROFILES("\"gpu\": \"orrin\",", "\"profile\": \"two\", \"sms\": 4"),
		 "file:3: tasks[0].segments[0].profile: profile 'two' is not of a 'orrin'. Did you "
		 "mean "
		 "'orin'?"},
		{WITH_PROFILES("\"import\": [],", "\"exec\": \"1ms\""), "file:1:"},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\",\n\"import\": [\"none.json\"], \"tasks\": []}",
		 "file:2: import[0]: cannot read 'none.json': No such file or directory"},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"profiles\": [\n{\"name\": \"p\", \"on\": "
		 "{\"x\": {\"linear\": \"9999h\", \"watts_per_sm\": 1}}}], \"tasks\": []}",
		 "file:2: profiles[0].on.x.linear: expected a time from 1ns to 1h"},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"tasks\": [\n{\"name\": \"a\", \"cpu\": 0,\n"
		 "\"period\": \"9ms\",\n\"deadline\": \"10ms\", \"segments\": [{\"cpu\": "
		 "\"1ms\"}]}]}",
		 "file:4: tasks[0].deadline: expected a time from 1ns to 9ms, found \"10ms\""},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"tasks\": [\n{\"name\": \"a\", \"cpu\": 0,\n"
		 "\"period\": \"876000h\"}]}",
		 "file:3: tasks[0].period: expected a time from 1ns to 24h, found \"876000h\""},
		{"{\"cpus\": 1,\n\"epsilon\": \"876000h\", \"tasks\": []}",
		 "file:2: epsilon: expected a time from 0s to 24h, found \"876000h\""},
		{"{\"cpus\": 1, \"epsilon\": \"1ms\", \"tasks\": [\n{\"name\": \"a\", \"cpu\": 0, "
		 "\"period\": "
		 "\"9ms\",\n\"segments\": [{\"misc\": \"1ms\",\n\"exec\": \"876000h\"}]}]}",
		 "file:4: tasks[0].segments[0].exec: expected a time from 1ns to 24h"},
		/* a key with an escape: the value around it */
		{"{\n\"cpu\\u0073\": 0}", "file:1: cpus: expected"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[512] = "";
		struct segments s;

		assert_int_equal(segments_init(&s, "file", cases[i].text, strlen(cases[i].text),
					       RTA_FOREVER, &files, error, sizeof(error)),
				 -EINVAL);
		if (strncmp(error, cases[i].message, strlen(cases[i].message)) != 0) {
			fail_msg("expected '%s', got: %s", cases[i].message, error);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_read_all_they_know),
		cmocka_unit_test(segments_take_times_from_profiles),
		cmocka_unit_test(segments_tell_what_is_wrong),
		cmocka_unit_test(segments_tell_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
