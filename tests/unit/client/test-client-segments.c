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

	assert_int_equal(
		segments_init(&s, "file", text, strlen(text), RTA_FOREVER, error, sizeof(error)),
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
	assert_int_equal(segments_init(&s, "file", text, strlen(text), 7, error, sizeof(error)), 0);
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
					       RTA_FOREVER, error, sizeof(error)),
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
		/* a key with an escape: the value around it */
		{"{\n\"cpu\\u0073\": 0}", "file:1: cpus: expected"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[512] = "";
		struct segments s;

		assert_int_equal(segments_init(&s, "file", cases[i].text, strlen(cases[i].text),
					       RTA_FOREVER, error, sizeof(error)),
				 -EINVAL);
		if (strncmp(error, cases[i].message, strlen(cases[i].message)) != 0) {
			fail_msg("expected '%s', got: %s", cases[i].message, error);
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_read_all_they_know),
		cmocka_unit_test(segments_tell_what_is_wrong),
		cmocka_unit_test(segments_tell_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
