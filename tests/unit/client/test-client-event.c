/*
 * test-client-event.c: events as JSON, there and back, and what is refused on the way.
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

#include <cmocka.h>

#include "client/live/event.h"

static int read_text(const char *text, struct event *ret, char *why, size_t size) {
	json_t *o = json_loads(text, 0, NULL);
	int r;

	assert_non_null(o);
	r = event_from_json(o, ret, why, size);
	json_decref(o);
	return r;
}

/* Written, read and written again: the same text. */
static void each_line_survives_reading_and_writing(void **state) {
	static const char *const lines[] = {
		"{\"event\":\"start\",\"sbeet_trace\":1,\"time_ns\":17,\"wall_offset_ns\":-5,"
		"\"version\":\"0.1.0\",\"policy\":\"even\"}",
		"{\"event\":\"lost\",\"time_ns\":18,\"lost\":3}",
		"{\"event\":\"gpu\",\"time_ns\":0,\"before\":true,\"gpu\":0,\"name\":\"A\",\"n_"
		"sms\":46,"
		"\"sharing\":\"mps\",\"power_mw\":46000,\"energy_mj\":5}",
		"{\"event\":\"session-start\",\"time_ns\":20,\"session\":1,\"task\":\"camera\","
		"\"class\":\"realtime\",\"program\":\"detect\",\"pid\":12,\"uid\":0,"
		"\"period_ns\":33000000,\"deadline_ns\":20000000}",
		"{\"event\":\"job-request\",\"time_ns\":21,\"session\":1,\"job\":2,\"task\":"
		"\"camera\","
		"\"pid\":12,\"tid\":13,\"gpu\":1,\"release_ns\":20,\"deadline_ns\":40}",
		"{\"event\":\"job-done\",\"time_ns\":31,\"session\":1,\"job\":2,\"task\":"
		"\"camera\","
		"\"gpu\":0,\"slot\":1,\"sms\":\"0-22,30\",\"enforcement\":\"smid\",\"release_ns\":"
		"20,\"requested_ns\":21,"
		"\"granted_ns\":22,\"predicted_finish_ns\":29,\"finished_ns\":30,"
		"\"launched_ns\":23,\"kernel_end_ns\":28,\"launches\":4}",
		"{\"event\":\"policy\",\"time_ns\":32,\"policy\":\"fcfs\"}",
		"{\"event\":\"op\",\"time_ns\":33,\"session\":1,\"job\":2,\"op\":\"launch\","
		"\"kernel\":\"_Z3addPf\",\"blocks\":24,\"block_threads\":64,\"stream\":7,"
		"\"held\":\"none\"}",
		"{\"event\":\"op\",\"time_ns\":33,\"session\":1,\"job\":2,\"op\":\"copy-htod\","
		"\"bytes\":4096,\"held\":\"whole\"}",
		"{\"event\":\"ops-lost\",\"time_ns\":34,\"lost\":512}",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct event e;
		char why[128] = "";
		json_t *o;
		char *text;

		assert_int_equal(read_text(lines[i], &e, why, sizeof(why)), 0);
		o = event_json(&e);
		text = json_dumps(o, JSON_COMPACT);
		assert_string_equal(text, lines[i]);
		free(text);
		json_decref(o);
	}
}

static void nonsense_is_refused_by_the_key_that_has_it(void **state) {
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"[]", "\"event\""},
		{"{\"event\":7}", "\"event\""},
		{"{\"event\":\"start\"}", "\"sbeet_trace\""},
		{"{\"event\":\"start\",\"sbeet_trace\":2}", "reads format 1"},
		{"{\"event\":\"policy\",\"time_ns\":-1}", "\"time_ns\" is out of range"},
		{"{\"event\":\"policy\",\"time_ns\":1.5}", "\"time_ns\" is of the wrong form"},
		{"{\"event\":\"policy\",\"time_ns\":315360000000000001}", "\"time_ns\""},
		{"{\"event\":\"policy\",\"policy\":{}}", "\"policy\""},
		{"{\"event\":\"gpu\",\"gpu\":16}", "\"gpu\""},
		{"{\"event\":\"gpu\",\"n_sms\":257}", "\"n_sms\""},
		{"{\"event\":\"job-grant\",\"session\":1}", "\"session\" and \"job\""},
		{"{\"event\":\"job-grant\",\"session\":1,\"job\":1,\"sms\":\"\"}", "\"sms\""},
		{"{\"event\":\"job-grant\",\"session\":1,\"job\":1,\"sms\":\"0-256\"}", "\"sms\""},
		{"{\"event\":\"job-grant\",\"session\":1,\"job\":1,\"enforcement\":\"x\"}",
		 "\"enforcement\""},
		{"{\"event\":\"job-done\",\"session\":1,\"job\":1,\"granted_ns\":9,\"finished_ns\":"
		 "8}",
		 "\"finished_ns\" is before"},
		{"{\"event\":\"session-end\",\"class\":1}", "\"class\""},
		{"{\"event\":\"session-end\",\"pid\":4294967296}", "\"pid\""},
		{"{\"event\":\"lost\",\"before\":1}", "\"before\""},
		{"{\"event\":\"op\",\"session\":1,\"op\":\"launch\"}", "\"session\" and \"job\""},
		{"{\"event\":\"op\",\"session\":1,\"job\":1}", "\"op\" is missing"},
		{"{\"event\":\"op\",\"session\":1,\"job\":1,\"op\":\"none\"}", "\"op\""},
		{"{\"event\":\"op\",\"session\":1,\"job\":1,\"op\":\"launch\",\"kernel\":5}",
		 "\"kernel\" is of the wrong form"},
		{"{\"event\":\"op\",\"session\":1,\"job\":1,\"op\":\"launch\",\"blocks\":-1}",
		 "\"blocks\" is out of range"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event e = {.time = 4711};
		char why[256] = "";

		assert_int_equal(read_text(cases[i].text, &e, why, sizeof(why)), -EBADMSG);
		if (!strstr(why, cases[i].why)) {
			fail_msg("%s: expected '%s', got '%s'", cases[i].text, cases[i].why, why);
		}
		assert_int_equal(e.time, 4711); /* untouched */
	}
}

/* A newer daemon may say more. */
static void what_is_new_is_passed_over(void **state) {
	struct event e;
	char why[64];

	assert_int_equal(read_text("{\"event\":\"job-eaten\"}", &e, why, sizeof(why)), -ENOMSG);
	assert_int_equal(read_text("{\"event\":\"policy\",\"time_ns\":1,\"mood\":[1]}", &e, why,
				   sizeof(why)),
			 0);
}

static void texts_cannot_steer_a_terminal(void **state) {
	struct event e;
	char why[64], text[256];

	assert_int_equal(read_text("{\"event\":\"policy\",\"policy\":\"a\\u001b[2Jb\"}", &e, why,
				   sizeof(why)),
			 0);
	event_describe(&e, text, sizeof(text));
	assert_string_equal(text, "a?[2Jb");
}

/* From its release to its request, and from there to its grant. */
static void a_late_start_is_not_described_as_waiting(void **state) {
	struct event e = {.kind = EVENT_JOB_GRANT,
			  .sms = smset_range(0, 23),
			  .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID,
			  .release = 1000000,
			  .requested = 3100000,
			  .granted = 3500000};
	char text[256];

	event_describe(&e, text, sizeof(text));
	assert_string_equal(text, "GPU 0, SMs 0-22 (smid), started 2.1 ms late, waited 0.4 ms");
	e.kind = EVENT_JOB_REQUEST;
	event_describe(&e, text, sizeof(text));
	assert_string_equal(text, "GPU 0, started 2.1 ms late");
}

/* Where only the number of SMs holds, no SM is named. */
static void a_count_is_not_described_as_a_set(void **state) {
	struct event e = {.kind = EVENT_JOB_GRANT,
			  .sms = smset_range(0, 23),
			  .enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_COUNT,
			  .release = 1000000,
			  .granted = 3500000};
	char text[256];

	event_describe(&e, text, sizeof(text));
	assert_string_equal(text, "GPU 0, SMs any 23 (count), waited 2.5 ms");
	e.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_SMID;
	event_describe(&e, text, sizeof(text));
	assert_string_equal(text, "GPU 0, SMs 0-22 (smid), waited 2.5 ms");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_survives_reading_and_writing),
		cmocka_unit_test(nonsense_is_refused_by_the_key_that_has_it),
		cmocka_unit_test(what_is_new_is_passed_over),
		cmocka_unit_test(texts_cannot_steer_a_terminal),
		cmocka_unit_test(a_late_start_is_not_described_as_waiting),
		cmocka_unit_test(a_count_is_not_described_as_a_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
