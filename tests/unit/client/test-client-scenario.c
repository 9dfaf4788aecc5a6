/*
 * test-client-scenario.c: scenarios and profiles: what is read, and what bad ones are told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sim/book-csv.h"
#include "client/sim/scenario.h"

#define MS NSEC_PER_MSEC

#define GPU	"{\"name\": \"a\", \"sms\": 8, \"static_w\": 46, \"idle_w_per_sm\": 0.445}"
#define POINTS	"\"points\": [{\"sms\": 2, \"worst\": \"4ms\"}], \"watts_per_sm\": 1.5"
#define PROFILE "{\"name\": \"p\", \"on\": {\"a\": {" POINTS "}}}"
/* 4 ms at least. */
#define KERNELS(what) "{\"name\": \"k\", \"on\": {\"a\": {" POINTS ", " what "}}}"
#define TASK	      "{\"name\": \"t\", \"profile\": \"p\", \"period\": \"20ms\"}"
#define DOCUMENT(gpus, profiles, tasks) \
	"{\"gpus\": [" gpus "], \"profiles\": [" profiles "], \"tasks\": [" tasks "]}"

static void read_good(const char *text, struct scenario *s) {
	char error[512] = "";

	if (scenario_init(s, "file", text, strlen(text), NULL, NULL, error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
}

static void scenario_reads_all_it_knows(void **state) {
	static const char text[] =
		"{\"description\": \"d\", \"duration\": \"15s\", \"gpus\": ["
		"{\"name\": \"a\", \"type\": \"x\", \"sms\": 46, \"limit\": 24, \"step\": 2,"
		" \"static_w\": 46, \"idle_w_per_sm\": 0.445},"
		"{\"name\": \"b\", \"sms\": 6, \"static_w\": 8, \"idle_w_per_sm\": 0.652}],"
		"\"profiles\": [{\"name\": \"p\", \"on\": {\"x\": {\"copy_in\": \"2.5ms\","
		" \"copy_out\": \"1ms\", \"points\": ["
		"{\"sms\": 46, \"worst\": \"10ms\", \"best\": \"9ms\", \"watts\": 100},"
		"{\"sms\": 16, \"worst\": \"21.55ms\", \"watts\": 60.32}]}}},"
		"{\"name\": \"q\", \"on\": {\"b\": {\"linear\": \"60ms\","
		" \"watts_per_sm\": 0.81}}}],"
		"\"tasks\": [{\"name\": \"t\", \"profile\": \"p\", \"period\": \"20ms\","
		" \"deadline\": \"15ms\", \"offset\": \"1ms\", \"priority\": -3,"
		" \"fixed\": {\"gpu\": \"a\", \"sms\": \"0-15,20\"}},"
		"{\"name\": \"u\", \"profile\": \"q\"},"
		"{\"name\": \"v\", \"profile\": \"q\", \"period\": \"9ms\", \"deadline\": "
		"\"none\"}]}";
	const struct sched_task *t;
	struct scenario s;

	read_good(text, &s);
	assert_int_equal(s.duration, 15 * NSEC_PER_SEC);
	assert_int_equal(s.n_gpus, 2);
	assert_string_equal(s.gpus[0].type, "x");
	assert_string_equal(s.gpus[1].type, "b");
	assert_int_equal(s.gpus[0].model.power.n_sms, 46);
	assert_int_equal(s.gpus[0].model.power.idle_mw_per_sm, 445);
	assert_int_equal(s.gpus[0].model.limit, 24);
	assert_int_equal(s.gpus[0].model.step, 2);
	assert_int_equal(s.gpus[1].model.limit, 6);
	assert_int_equal(s.n_tasks, 3);
	assert_int_equal(s.tasks[2].period, 9 * MS);
	assert_int_equal(s.tasks[2].deadline, 0);
	t = &s.tasks[0];
	assert_int_equal(t->period, 20 * MS);
	assert_int_equal(t->deadline, 15 * MS);
	assert_int_equal(t->first_release, MS);
	assert_int_equal(t->spec.priority, -3);
	assert_int_equal(t->fixed_gpu, 0);
	assert_int_equal(smset_count(&t->fixed_sms), 17);
	assert_null(t->profiles[1]);
	assert_int_equal(t->profiles[0]->copy_in, 2500000);
	assert_int_equal(t->profiles[0]->exec[16], 21550000);
	assert_int_equal(t->profiles[0]->exec_best[46], 9 * MS);
	assert_int_equal(t->profiles[0]->power_mw[16], 60320);
	t = &s.tasks[1];
	assert_int_equal(t->period, 0);
	assert_int_equal(t->fixed_gpu, -1);
	assert_int_equal(t->profiles[1]->exec[6], 10 * MS);
	scenario_deinit(&s);
}

static const struct {
	const char *text, *expected;
} bad[] = {
	{"", "file:"},
	{"[]", "file: expected an object, found an array"},
	{"{\"gpus\": [}", "file:1:11:"},
	{"{\"gpus\": [], \"gpus\": []}", "duplicate object key"},
	{"{}", "file: 'gpus' is missing"},
	{"{\"gpu\": []}", "file: unknown key 'gpu'. Did you mean 'gpus'?"},
	{DOCUMENT("", "", ""), "file:1: gpus: expected at least one GPU"},
	{DOCUMENT("7", "", ""), "gpus[0]: expected an object, found 7"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 0}", "", ""),
	 "gpus[0].sms: expected a whole number from 1 to 256, found 0"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 257}", "", ""), "from 1 to 256, found 257"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 4.5}", "", ""), "from 1 to 256, found 4.5"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 4, \"limit\": 5}", "", ""),
	 "gpus[0].limit: expected a whole number from 1 to 4, found 5"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 16, \"limit\": 2, \"group\": 4}", "", ""),
	 "gpus[0].limit: is below the group of 4 SMs"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 4, \"static_w\": -1}", "", ""),
	 "gpus[0].static_w: expected a number of watts from 0 to 10000, found -1"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 4, \"static_w\": 1e300}", "", ""), "found 1e+300"},
	{DOCUMENT("{\"name\": \"\", \"sms\": 4}", "", ""), "expected a name of 1 to 64 bytes"},
	{DOCUMENT("{\"name\": \"a\\n\", \"sms\": 4}", "", ""), "printable UTF-8"},
	{DOCUMENT(GPU "," GPU, "", ""), "gpus[1].name: a second GPU 'a'"},
	{DOCUMENT(GPU, PROFILE "," PROFILE, ""), "profiles[1].name: a second profile 'p'"},
	{DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {}}", ""),
	 "profiles[0].on: expected an object with an entry for each type of GPU"},
	{DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {\"b\": {" POINTS "}}}", ""),
	 "profiles[0].on.b: no GPU is of this type"},
	{DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {\"a\": {}}}", ""),
	 "profiles[0].on.a: expected either 'points'"},
	{DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {\"a\": {\"points\": []}}}", ""),
	 "profiles[0].on.a.points: expected at least one point"},
	{DOCUMENT(GPU, "{\"name\": \"p\", \"on\": {\"a\": {\"linear\": \"4ms\"}}}", ""),
	 "'watts_per_sm' is missing"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"points\": [{\"sms\": 2, "
		  "\"worst\": \"4ms\"}]}}}",
		  ""),
	 "profiles[0].on.a.points[0]: the power is missing"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "2, \"worst\": \"4ms\"}, {\"sms\": 2, \"worst\": \"4ms\"}]}}}",
		  ""),
	 "points[1]: a second point for 2 SMs"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "2, \"worst\": \"4ms\"}, {\"sms\": 4, \"worst\": \"3ms\"}, {\"sms\": 8, "
		  "\"worst\": "
		  "\"6ms\"}]}}}",
		  ""),
	 "profiles[0].on.a.points: the worst case on 8 SMs, 6ms, is longer by more than half than "
	 "on "
	 "4, 3ms: measure again"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "2, \"worst\": \"4ms\", \"mean\": \"2ms\", \"ci95\": \"1.1ms\"}]}}}",
		  ""),
	 "profiles[0].on.a.points: the mean on 2 SMs is 2ms, and may be off by 1.1ms"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"points\": [{\"sms\": 2, \"worst\": "
		  "\"4ms\", \"watts\": -3}]}}}",
		  ""),
	 "points[0].watts: expected a number of watts from 0 to 10000, found -3"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "9, \"worst\": \"4ms\"}]}}}",
		  ""),
	 "profile 'p' on 'a' has a point of 9 SMs, but GPU 'a' has only 8"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "6, \"worst\": \"4ms\"}]}}}",
		  "{\"name\": \"t\", \"profile\": \"p\", \"fixed\": {\"gpu\": \"a\", \"sms\": "
		  "\"0-4\"}}"),
	 "tasks[0].fixed.sms: 5 SMs are fewer than the profile was measured on, 6"},
	{DOCUMENT("{\"name\": \"a\", \"sms\": 8, \"limit\": 4, \"static_w\": 1, \"idle_w_per_sm\": "
		  "1}",
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "6, \"worst\": \"4ms\"}]}}}",
		  ""),
	 "profile 'p' on 'a' was measured on 6 SMs and more, but GPU 'a' has a limit of 4"},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "1, \"worst\": \"-4ms\"}]}}}",
		  ""),
	 "points[0].worst: expected a time with its unit, such as \"2.5ms\", found \"-4ms\""},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "1, \"worst\": \"2h\"}]}}}",
		  ""),
	 "expected a time from 1ns to 1h, found \"2h\""},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 1, \"points\": [{\"sms\": "
		  "1, \"worst\": \"2ms\", \"best\": \"3ms\"}]}}}",
		  ""),
	 "points[0].best: expected a time from 1ns to 2ms, found \"3ms\""},
	{DOCUMENT(GPU,
		  "{\"name\": \"p\", \"on\": {\"a\": {\"watts_per_sm\": 9999, \"linear\": "
		  "\"4ms\"}}}",
		  ""),
	 "profile 'p' on 'a': expected at most 10000 W on 8 SMs"},
	{DOCUMENT(GPU, KERNELS("\"launches\": 0"), ""),
	 "on.a.launches: expected a whole number from 1 to 100000"},
	{DOCUMENT(GPU, KERNELS("\"launches\": 4001"), ""),
	 "on.a.launches: each launch would take less than 1 us"},
	{DOCUMENT(GPU, KERNELS("\"block\": \"0ms\""), ""),
	 "on.a.block: expected a time from 1ns to 1h"},
	{DOCUMENT(GPU, KERNELS("\"launches\": 4, \"block\": \"1001us\""), ""),
	 "on.a.block: a block runs longer than one launch, 1ms"},
	{DOCUMENT(GPU, PROFILE, TASK "," TASK), "tasks[1].name: a second task 't'"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\"}"), "tasks[0]: 'profile' is missing"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\", \"profile\": \"pp\"}"),
	 "tasks[0].profile: no profile 'pp'. Did you mean 'p'?"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\", \"profile\": \"p\", \"period\": \"0ms\"}"),
	 "tasks[0].period: expected a time from 1us to"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\", \"profile\": \"p\", \"period\": 20}"),
	 "tasks[0].period: expected a time with its unit, such as \"2.5ms\", found 20"},
	{DOCUMENT(GPU, PROFILE,
		  "{\"name\": \"t\", \"profile\": \"p\", \"period\": \"2ms\", \"deadline\": "
		  "\"3ms\"}"),
	 "tasks[0].deadline: expected a deadline not beyond the period"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\", \"profile\": \"p\", \"offset\": \"99999h\"}"),
	 "tasks[0].offset: expected a time from 0s to 24h"},
	{DOCUMENT(GPU, PROFILE, "{\"name\": \"t\", \"profile\": \"p\", \"priority\": 5000}"),
	 "tasks[0].priority: expected a whole number from -1000 to 1000"},
	{DOCUMENT(GPU, PROFILE,
		  "{\"name\": \"t\", \"profile\": \"p\", \"fixed\": {\"gpu\": \"z\", \"sms\": "
		  "\"0\"}}"),
	 "tasks[0].fixed.gpu: no GPU 'z'"},
	{DOCUMENT(GPU, PROFILE,
		  "{\"name\": \"t\", \"profile\": \"p\", \"fixed\": {\"gpu\": \"a\", \"sms\": "
		  "\"0-8\"}}"),
	 "tasks[0].fixed.sms: expected SMs such as \"0-3,8\", from 0 to 7"},
	{"{\"gpus\": [" GPU "], \"import\": [\"/etc/passwd\"]}",
	 "import[0]: cannot read '/etc/passwd'"},
	{"{\"gpus\": [" GPU "], \"import\": [7]}", "import[0]: expected the name of a JSON file"},
	{"{\"gpus\": [" GPU "], \"import\": [{\"wcet\": \"x\"}]}", "import[0].wcet: cannot read"},
};

/* What the kernels of a profile are made of; written as it was read. */
static void scenario_reads_launches_and_blocks(void **state) {
	static const char text[] =
		DOCUMENT(GPU, KERNELS("\"launches\": 4, \"block\": \"1ms\"") "," PROFILE, "");
	const struct profile_table *t;
	struct scenario s;
	json_t *book, *on;

	read_good(text, &s);
	t = s.profiles[0].tables[0];
	assert_int_equal(t->launches, 4);
	assert_int_equal(t->block, MS);
	/* Where nothing is said: one kernel, and nothing is known of its blocks. */
	t = s.profiles[1].tables[0];
	assert_int_equal(t->launches, 1);
	assert_int_equal(t->block, 0);
	book = book_json(&s.book);
	on = json_object_get(json_array_get(json_object_get(book, "profiles"), 0), "on");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(on, "a"), "launches")),
			 4);
	assert_string_equal(json_string_value(json_object_get(json_object_get(on, "a"), "block")),
			    "1ms");
	json_decref(book);
	scenario_deinit(&s);
}

static void scenario_tells_where_and_what_was_expected(void **state) {
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scenario s = {.n_tasks = 77};
		char error[512] = "";

		assert_int_equal(scenario_init(&s, "file", bad[i].text, strlen(bad[i].text), NULL,
					       NULL, error, sizeof(error)),
				 -EINVAL);
		if (!strstr(error, bad[i].expected) || strncmp(error, "file:", 5) != 0) {
			fail_msg("%s\ngave: %s\nexpected: %s", bad[i].text, error, bad[i].expected);
		}
		assert_int_equal(s.n_tasks, 77);
	}
}

/* Every beginning of a good document, and every document with one byte changed, is read or
 * refused with a message. Under the sanitizers this is where overruns show. */
static void scenario_survives_damage(void **state) {
	static const char good[] = DOCUMENT(GPU, PROFILE, TASK);
	size_t n = strlen(good);
	char text[sizeof(good)];

	for (size_t i = 0; i < n; i++) {
		static const char changes[] = {0, '"', '{', '-', '9', ','};

		for (size_t c = 0; c <= sizeof(changes); c++) {
			struct scenario s;
			char error[512] = "";
			size_t size = c < sizeof(changes) ? n : i;
			int r;

			memcpy(text, good, n);
			if (c < sizeof(changes)) {
				text[i] = changes[c];
			}
			r = scenario_init(&s, "file", text, size, NULL, NULL, error, sizeof(error));
			assert_true(r == 0 || (r == -EINVAL && *error));
			if (r == 0) {
				scenario_deinit(&s);
			}
		}
	}
}

static int give_csv(void *userdata, const char *path, char **ret_text, size_t *ret_size) {
	const char *text =
		strcmp(path, "w.csv") == 0
			? "gpu,app,app_id,sm,avg_ms,min_ms,max_ms\n"
			  "a,mm,0,1,4,3.5,4.25\na,mm,0,2,2,2,2.1\nzz,mm,0,6,9,9,9\n"
			: "app_id,app,gpu,power_dynamic_w_per_sm,ghd_ms,gdh_ms,workload\n"
			  "0,mm,a,3.77,2.5,1,\"with, a comma\"\n0,mm,zz,1,0,0,\n";

	*ret_text = strdup(text);
	*ret_size = strlen(text);
	return 0;
}

static void scenario_imports_csv(void **state) {
	static const char text[] =
		"{\"gpus\": [" GPU
		"], \"import\": [{\"wcet\": \"w.csv\", \"apps\": \"a.csv\"}],"
		" \"tasks\": [{\"name\": \"t\", \"profile\": \"mm\", \"period\": \"20ms\"}]}";
	const struct profile_table *p;
	char error[512] = "";
	struct scenario s;

	assert_int_equal(
		scenario_init(&s, "file", text, strlen(text), give_csv, NULL, error, sizeof(error)),
		0);
	p = s.tasks[0].profiles[0];
	assert_int_equal(p->copy_in, 2500000);
	assert_int_equal(p->copy_out, MS);
	assert_int_equal(p->exec[1], 4250000);
	assert_int_equal(p->exec_best[1], 3500000);
	assert_int_equal(p->power_mw[2], 7540);
	scenario_deinit(&s);
}

#define WCET "gpu,app,sm,min_ms,max_ms\n"
#define APPS "app,gpu,power_dynamic_w_per_sm,ghd_ms,gdh_ms\n"

static const struct {
	const char *wcet, *apps, *expected;
} bad_csv[] = {
	{"", APPS, "w:1: expected a line with the columns' names"},
	{"gpu,app\n", APPS, "w:1: the column 'sm' is missing"},
	{WCET "a,mm,1,2\n", APPS, "w:2: expected at least 5 cells, found 4"},
	{WCET "a,mm,0,2,2\n", APPS, "w:2: expected 1 to 256 SMs, found '0'"},
	{WCET "a,mm,1,x,2\n", APPS, "w:2: expected milliseconds, at most an hour of them"},
	{WCET "a,mm,1,-1,2\n", APPS, "w:2: expected milliseconds"},
	{WCET "a,mm,1,3,2\n", APPS, "w:2: expected 0 < min_ms <= max_ms"},
	{WCET "a,mm,1,0,2\n", APPS, "w:2: expected 0 < min_ms <= max_ms"},
	{WCET "a,mm,1,1,2\n\na,mm,1,1,2\n", APPS, "w:4: a second line for 'mm' on 1 SMs of 'a'"},
	{WCET "a,\"mm,1,1,2\n", APPS, "w:2: a quote that does not end on its line"},
	{WCET "a,mm,1,1,2\n", APPS "nn,a,1,1,1\n", "a:2: no times of 'nn' on 'a'"},
	{WCET "a,mm,1,1,2\n", APPS "mm,a,1e3,1,1\n", "a:2: expected a number from 0 to"},
	{WCET "a,mm,1,1,2\n", APPS "mm,a,.,1,1\n", "a:2: expected a number from 0 to"},
	{WCET "a,mm,1,1,2\n", APPS "mm,a,1,1,1\nmm,a,1,1,1\n", "a:3: a second line for 'mm'"},
	{WCET "a,mm,1,1,2\n", APPS, "no line for 'mm' on 'a'"},
};

static void book_tells_file_and_line_of_bad_csv(void **state) {
	for (size_t i = 0; i < sizeof(bad_csv) / sizeof(bad_csv[0]); i++) {
		struct book_csv wcet = {"w", bad_csv[i].wcet}, apps = {"a", bad_csv[i].apps};
		struct book b = {0};
		char error[512] = "";

		assert_int_equal(book_csv_read(&b, &wcet, &apps, error, sizeof(error)), -EINVAL);
		if (!strstr(error, bad_csv[i].expected)) {
			fail_msg("gave: %s\nexpected: %s", error, bad_csv[i].expected);
		}
		book_deinit(&b);
	}
}

/* What is written as JSON is the same when it is read again. */
static void book_writes_what_it_reads(void **state) {
	struct book_csv wcet = {"w", WCET "a,mm,3,1.000001,2\na,mm,1,0.00025,2.3\n"};
	struct book_csv apps = {"a", APPS "mm,a,3.77,2.5,0\n"};
	struct reader r = {.file = "again", .error = (char[512]){0}, .error_size = 512};
	struct reader_node root = {0}, node;
	struct book b = {0}, again = {0};

	assert_int_equal(book_csv_read(&b, &wcet, &apps, r.error, 512), 0);
	root.value = book_json(&b);
	assert_int_equal(reader_need(&r, &root, "profiles", &node), 0);
	assert_int_equal(book_read(&again, &r, &node), 0);
	assert_int_equal(again.n_profiles, 1);
	assert_int_equal(again.profiles[0].tables[0].n_points, 2);
	assert_memory_equal(again.profiles[0].tables[0].points, b.profiles[0].tables[0].points,
			    2 * sizeof(struct book_point));
	assert_int_equal(again.profiles[0].tables[0].copy_in, 2500000);
	assert_int_equal(b.profiles[0].tables[0].points[0].best, 250);
	assert_int_equal(b.profiles[0].tables[0].points[1].best, 1000001);
	json_decref(root.value);
	book_deinit(&b);
	book_deinit(&again);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scenario_reads_all_it_knows),
		cmocka_unit_test(scenario_reads_launches_and_blocks),
		cmocka_unit_test(scenario_tells_where_and_what_was_expected),
		cmocka_unit_test(scenario_survives_damage),
		cmocka_unit_test(scenario_imports_csv),
		cmocka_unit_test(book_tells_file_and_line_of_bad_csv),
		cmocka_unit_test(book_writes_what_it_reads),
	};

	return cmocka_run_group_tests_name("client-scenario", tests, NULL, NULL);
}
