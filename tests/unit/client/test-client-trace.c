/*
 * test-client-trace.c: what events amount to, what is missing from them, and hostile files.
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

#include "client/live/trace-export.h"

#define START                                                                           \
	"{\"event\":\"start\",\"sbeet_trace\":1,\"time_ns\":1000,\"wall_offset_ns\":5," \
	"\"version\":\"0.1.0\",\"policy\":\"even\"}\n"
#define GPU                                                                                        \
	"{\"event\":\"gpu\",\"time_ns\":900,\"before\":true,\"gpu\":0,\"name\":\"A\",\"n_sms\":8," \
	"\"sharing\":\"exclusive\"}\n"
#define JOB(kind, n, rest)                                                                       \
	"{\"event\":\"job-" kind "\",\"session\":1,\"job\":" #n ",\"task\":\"t\",\"gpu\":0" rest \
	"}\n"
#define RELEASE ",\"release_ns\":2000"
#define HELD	RELEASE ",\"sms\":\"0-3\",\"enforcement\":\"smid\",\"granted_ns\":2100"

static int read_text(const char *text, struct trace *t, char error[512]) {
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(in);
	*t = (struct trace){0};
	*error = '\0';
	r = trace_read(t, in, error, 512);
	fclose(in);
	return r;
}

static char *export(const struct trace *t, int (*how)(const struct trace *t, FILE *out)) {
	static char *text; /* static: gcc thinks that the stream keeps what would be gone */
	static size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(how(t, out), 0);
	fclose(out);
	return text;
}

static int as_html(const struct trace *t, FILE *out) {
	return trace_export_html(t, "</script><b>x", out);
}

static void a_job_is_put_together_from_its_events(void **state) {
	char error[512], *csv;
	struct trace t;

	assert_int_equal(read_text(START GPU JOB("request", 1, ",\"time_ns\":2000" RELEASE)
					   JOB("grant", 1, ",\"time_ns\":2100" HELD)
						   JOB("done", 1,
						       ",\"time_ns\":2500,\"deadline_ns\":2300,"
						       "\"finished_ns\":2400,\"launches\":3" HELD),
				   &t, error),
			 0);
	assert_int_equal(t.n_jobs, 1);
	assert_int_equal(t.jobs[0].state, TRACE_DONE);
	assert_true(trace_job_missed(&t.jobs[0]));
	assert_int_equal(t.tasks[0].n_missed, 1);
	assert_int_equal(t.tasks[0].max_wait, 100);
	assert_int_equal(t.first, 1000);
	assert_int_equal(t.last, 2500);
	assert_int_equal(t.gpus[0].n_sms, 8);
	csv = export(&t, trace_export_csv);
	assert_string_equal(strchr(csv, '\n') + 1,
			    "1,1,\"t\",done,0,0,\"0-3\",4,smid,1,2000,2100,"
			    "2400,2300,,1,3,2000,0,100\n");
	free(csv);
	trace_deinit(&t);
}

static void a_late_start_and_a_wait_are_two_figures(void **state) {
	char error[512], *text;
	struct trace t;

	assert_int_equal(read_text(START GPU JOB("done", 1,
						 ",\"time_ns\":2500,\"requested_ns\":2070,"
						 "\"finished_ns\":2400,\"launches\":3" HELD),
				   &t, error),
			 0);
	assert_int_equal(t.tasks[0].max_wait, 30);
	assert_int_equal(t.tasks[0].max_response, 400);
	text = export(&t, trace_export_csv);
	assert_non_null(strstr(text, "launches,requested_ns,started_late_ns,waited_ns\n"));
	assert_non_null(strstr(text, ",2000,2100,2400,,,0,3,2070,70,30\n"));
	free(text);
	text = export(&t, trace_export_chrome);
	assert_non_null(strstr(text, "\"starts late\""));
	assert_non_null(strstr(text, "\"started_late_us\":0.07"));
	assert_non_null(strstr(text, "\"waited_us\":0.03"));
	free(text);
	text = export(&t, as_html);
	assert_non_null(strstr(text, ",3,1070]"));
	free(text);
	trace_deinit(&t);
}

/* Each time that it held SMs is an entry; it is done once. */
static void a_job_that_was_stopped_is_shown_in_parts(void **state) {
	char error[512], *csv;
	struct trace t;

	assert_int_equal(
		read_text(START GPU JOB("request", 1, ",\"time_ns\":2000" RELEASE)
				  JOB("grant", 1, ",\"time_ns\":2100" HELD) JOB(
					  "revoke", 1, ",\"time_ns\":2200" HELD)
					  JOB("stop", 1, ",\"time_ns\":2300" HELD) JOB(
						  "request", 1, ",\"time_ns\":2310" RELEASE)
						  JOB("done", 1,
						      ",\"time_ns\":2900,\"finished_ns\":2800,"
						      "\"launches\":3,\"sms\":\"0-3\","
						      "\"enforcement\":\"smid\","
						      "\"granted_ns\":2600" RELEASE),
			  &t, error),
		0);
	assert_int_equal(t.n_jobs, 2);
	assert_int_equal(t.jobs[0].state, TRACE_STOPPED);
	assert_int_equal(t.jobs[0].granted, 2100);
	assert_int_equal(t.jobs[0].finished, 2300);
	assert_int_equal(t.jobs[1].state, TRACE_DONE);
	assert_int_equal(t.jobs[1].granted, 2600);
	assert_int_equal(t.jobs[1].release, 2000);
	assert_int_equal(t.tasks[0].n_done, 1);
	csv = export(&t, trace_export_csv);
	assert_non_null(strstr(csv, "1,1,\"t\",stopped,"));
	free(csv);
	csv = export(&t, as_html);
	free(csv);
	trace_deinit(&t);
}

/* The end of a job may be among the events that were lost; or its beginning. */
static void what_was_lost_is_not_made_up(void **state) {
	char error[512];
	struct trace t;

	assert_int_equal(
		read_text(START JOB("grant", 1, ",\"time_ns\":2100" HELD)
				  JOB("grant", 2,
				      ",\"time_ns\":2200" HELD) "{\"event\":\"lost\",\"time_"
								"ns\":9000,\"lost\":7}"
								"\n" JOB("done", 2,
									 ",\"time_ns\":"
									 "9100,"
									 "\"finished_"
									 "ns\":"
									 "9050" HELD)
									JOB("done", 3,
									    ",\"time_ns\":9200,"
									    "\"finished_ns\":"
									    "9150" HELD),
			  &t, error),
		0);
	assert_int_equal(t.n_lost, 7);
	assert_int_equal(t.n_jobs, 3);
	assert_int_equal(t.jobs[0].state, TRACE_UNSURE);
	assert_int_equal(t.jobs[0].finished, 9000);
	assert_int_equal(t.jobs[1].state, TRACE_DONE);
	assert_int_equal(t.jobs[1].finished, 9050);
	assert_int_equal(t.jobs[2].granted, 2100);
	trace_deinit(&t);
}

static void what_runs_at_the_end_has_run_until_then(void **state) {
	char error[512];
	struct trace t;

	assert_int_equal(read_text(START JOB("grant", 1, ",\"time_ns\":2100" HELD)
					   JOB("request", 2, ",\"time_ns\":5000" RELEASE),
				   &t, error),
			 0);
	assert_int_equal(t.jobs[0].state, TRACE_RUNNING);
	assert_int_equal(t.jobs[0].finished, 5000);
	assert_int_equal(t.jobs[1].state, TRACE_WAITING);
	assert_int_equal(t.jobs[1].finished, 0);
	trace_deinit(&t);
}

static void errors_name_the_line(void **state) {
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"\n", "it is empty"},
		{GPU, "line 1: a trace begins with an event \"start\""},
		{START "{\"event\":", "line 2: not valid JSON"},
		{START GPU "[1]\n", "line 3: not an object"},
		{START JOB("grant", 0, ""), "line 2: \"session\" and \"job\" are missing"},
		{START "{\"event\":\"policy\",\"event\":\"gpu\"}\n", "line 2: not valid JSON"},
		{"{\"event\":\"start\",\"sbeet_trace\":9}\n", "this sbeetctl reads format 1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char error[512];
		struct trace t;

		assert_int_equal(read_text(cases[i].text, &t, error), -EBADMSG);
		if (!strstr(error, cases[i].error)) {
			fail_msg("expected '%s', got '%s'", cases[i].error, error);
		}
		trace_deinit(&t);
	}
}

static void a_line_without_end_is_refused(void **state) {
	char *text = malloc(200001), error[512];
	struct trace t;

	assert_non_null(text);
	memset(text, ' ', 200000);
	text[200000] = '\0';
	assert_int_equal(read_text(text, &t, error), -EBADMSG);
	assert_string_equal(error, "line 1: it is too long");
	trace_deinit(&t);
	free(text);
}

/* A task's name, and the file's, are data wherever they go. */
static void names_do_not_become_part_of_the_page(void **state) {
	char error[512], *html, *csv, *chrome;
	struct trace t;
	json_t *o;

	assert_int_equal(
		read_text(START
			  "{\"event\":\"job-done\",\"time_ns\":9,\"session\":1,\"job\":1,\"gpu\":0,"
			  "\"task\":\"</script><i>\\\"\",\"sms\":\"0\",\"granted_ns\":7,"
			  "\"enforcement\":\"smid\",\"finished_ns\":8}\n",
			  &t, error),
		0);
	html = export(&t, as_html);
	assert_null(strstr(html, "</script><i>"));
	assert_null(strstr(html, "</script><b>"));
	assert_non_null(strstr(html,
			       "\\u003c/script>\\u003c"
			       "i>\\\""));
	free(html);
	csv = export(&t, trace_export_csv);
	assert_non_null(strstr(csv, "\"</script><i>\"\"\""));
	free(csv);
	chrome = export(&t, trace_export_chrome);
	o = json_loads(chrome, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_true(json_array_size(json_object_get(o, "traceEvents")) >= 4);
	json_decref(o);
	free(chrome);
	trace_deinit(&t);
}

/* Each group of SMs is a track, on which nothing overlaps; a set that is only a number says so. */
static void chrome_has_a_track_for_each_group_of_sms(void **state) {
	char error[512], *chrome;
	struct trace t;

	assert_int_equal(
		read_text(START JOB("done", 1, ",\"time_ns\":2500,\"finished_ns\":2400" HELD) JOB(
				  "done", 2, ",\"time_ns\":2900,\"finished_ns\":2800" HELD)
				  JOB("done", 3,
				      ",\"time_ns\":2900,\"finished_ns\":2800,\"granted_ns\":2700"
				      ",\"sms\":\"4-7\",\"enforcement\":\"count\",\"slot\":1"),
			  &t, error),
		0);
	chrome = export(&t, trace_export_chrome);
	assert_non_null(strstr(chrome, "\"SMs 0-3\""));
	assert_non_null(strstr(chrome, "\"any 4 SMs, slot 1\""));
	assert_null(strstr(chrome, "SMs 4-7"));
	free(chrome);
	trace_deinit(&t);
}

#define SESSION                                                                                 \
	"{\"event\":\"session-start\",\"time_ns\":1500,\"session\":1,\"task\":\"t\",\"class\":" \
	"\"realtime\"}\n"
#define OP(session, time, rest) \
	"{\"event\":\"op\",\"time_ns\":" #time ",\"session\":" #session ",\"job\":1," rest "}\n"

/* A row for each kernel of each task and each kind of copy. */
static void operations_are_rows_by_name(void **state) {
	char error[512], *chrome;
	struct trace t;
	json_t *o;

	assert_int_equal(
		read_text(START SESSION OP(1, 2200, "\"op\":\"copy-htod\",\"bytes\":9")
				  OP(1, 2201, "\"op\":\"launch\",\"kernel\":\"a\\\"<b\"") OP(
					  1, 2202, "\"op\":\"launch\",\"kernel\":\"c\"")
					  OP(1, 2203, "\"op\":\"launch\",\"kernel\":\"a\\\"<b\"")
						  OP(1, 2204, "\"op\":\"launch\"")
							  OP(2, 2205, "\"op\":\"launch\""),
			  &t, error),
		0);
	assert_int_equal(t.ops.n, 5); /* nobody has heard of session 2 */
	assert_int_equal(t.ops.n_rows, 4);
	assert_string_equal(t.ops.rows[0].name, "copy-htod");
	assert_string_equal(t.ops.rows[1].name, "a\"<b");
	assert_int_equal(t.ops.rows[1].n, 2);
	assert_string_equal(t.ops.rows[3].name, "launch"); /* of a kernel that is not known */
	assert_int_equal(t.ops.list[3].row, 1);
	assert_int_equal(t.ops.list[3].time, 2203);
	chrome = export(&t, trace_export_chrome);
	o = json_loads(chrome, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_non_null(strstr(chrome, "\"kernels and copies of t\""));
	json_decref(o);
	free(chrome);
	trace_deinit(&t);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_put_together_from_its_events),
		cmocka_unit_test(a_late_start_and_a_wait_are_two_figures),
		cmocka_unit_test(a_job_that_was_stopped_is_shown_in_parts),
		cmocka_unit_test(what_was_lost_is_not_made_up),
		cmocka_unit_test(what_runs_at_the_end_has_run_until_then),
		cmocka_unit_test(errors_name_the_line),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(names_do_not_become_part_of_the_page),
		cmocka_unit_test(chrome_has_a_track_for_each_group_of_sms),
		cmocka_unit_test(operations_are_rows_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
