/*
 * test-cli-daemon.c: sbeetctl against the real sbeetd, with scripted programs at work.
 */
#include "harness.h"

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/enforcement.h"
#include "proto/packet.h"
#include "spawn.h"

static const char *sbeetctl;

static json_t *status_json(void) {
	struct spawned s = spawn(ARGS(sbeetctl, "--json"), NULL);
	json_t *o;

	assert_int_equal(s.code, 0);
	assert_string_equal(s.err, "");
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	spawned_deinit(&s);
	return o;
}

static json_t *job(const json_t *status, size_t i, const char *key) {
	json_t *value = json_object_get(json_array_get(json_object_get(status, "jobs"), i), key);

	assert_non_null(value);
	return value;
}

static void assert_contains(const char *text, const char *part) {
	if (!strstr(text, part)) {
		fail_msg("expected '%s' in:\n%s", part, text);
	}
}

/* Two programs on a GPU under MPS hold a number of SMs, and that is what is shown. */
static void status_shows_jobs_side_by_side(void **state) {
	static const char *const args[] = {"--gpus", "46", "--sharing", "mps", NULL};
	struct harness h = {0};
	struct shim a, b, c;
	struct spawned s;
	json_t *o;

	harness_start(&h, args);
	a = shim_open("first", MASK_ALL);
	b = shim_open("second", MASK_ALL);
	c = shim_open("third", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	shim_granted(b.fd, 1);
	shim_request(c.fd, 1, 0, MASK_ALL);
	shim_expect_silence(c.fd);

	o = status_json();
	assert_int_equal(json_array_size(json_object_get(o, "sessions")), 3);
	assert_int_equal(json_array_size(json_object_get(o, "jobs")), 3);
	assert_string_equal(json_string_value(job(o, 0, "sms")), "0-22");
	assert_string_equal(json_string_value(job(o, 1, "sms")), "23-45");
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(json_string_value(job(o, i, "state")), "running");
		assert_string_equal(json_string_value(job(o, i, "enforcement")), "count");
		assert_true(json_is_false(job(o, i, "exact")));
	}
	assert_string_equal(json_string_value(job(o, 2, "state")), "waiting");
	assert_true(json_is_null(job(o, 2, "sms")));
	json_decref(o);

	s = spawn(ARGS(sbeetctl, "status"), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "any 23  count    no ");
	assert_contains(s.out, "[fffffffffffffffffffffffsssssssssssssssssssssss]");
	assert_null(strstr(s.out, "0-22"));
	spawned_deinit(&s);
	shim_close(&a);
	shim_close(&b);
	shim_close(&c);
	assert_int_equal(harness_stop(&h, SIGTERM), 0);
	harness_clean(&h);
}

/* One process, two jobs: exactly these SMs. */
static void status_shows_exact_sets_in_one_process(void **state) {
	static const char *const args[] = {"--gpus", "46", "--sharing", "exclusive", NULL};
	struct harness h = {0};
	struct shim a;
	struct spawned s;
	json_t *o;

	harness_start(&h, args);
	a = shim_open("lanes", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(a.fd, 2, 0, MASK_ALL);
	shim_granted(a.fd, 2);
	o = status_json();
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(json_string_value(job(o, i, "sms")), i ? "23-45" : "0-22");
		assert_string_equal(json_string_value(job(o, i, "enforcement")), "smid");
		assert_true(json_is_true(job(o, i, "exact")));
	}
	json_decref(o);
	s = spawn(ARGS(sbeetctl, "status"), NULL);
	assert_contains(s.out, "0-22   smid     yes");
	assert_contains(s.out, "23-45  smid     yes");
	spawned_deinit(&s);
	shim_close(&a);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

static void status_tells_when_the_daemon_has_stopped(void **state) {
	static const char *const args[] = {"--gpus", "4", NULL};
	struct harness h = {0};
	struct spawned s;

	harness_start(&h, args);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 0);
	spawned_deinit(&s);
	harness_stop(&h, SIGTERM);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 3);
	spawned_deinit(&s);
	harness_clean(&h);
	h = (struct harness){0};

	/* killed, it leaves its socket behind */
	harness_start(&h, args);
	harness_stop(&h, SIGKILL);
	s = spawn(ARGS(sbeetctl), NULL);
	assert_int_equal(s.code, 3);
	assert_contains(s.err, "nothing is listening there");
	spawned_deinit(&s);
	harness_clean(&h);
}

static json_t *explain_json(const char *id) {
	struct spawned s = spawn(ARGS(sbeetctl, "job", "explain", "--json", id), NULL);
	json_t *o, *decisions;

	assert_string_equal(s.err, "");
	assert_int_equal(s.code, 0);
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_true(json_is_true(json_object_get(o, "complete")));
	decisions = json_incref(json_object_get(o, "decisions"));
	json_decref(o);
	spawned_deinit(&s);
	return decisions;
}

static const char *reason(const json_t *decisions, size_t i) {
	return json_string_value(json_object_get(json_array_get(decisions, i), "reason"));
}

static json_int_t number(const json_t *object, const char *key) {
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

/* With an offset the release is certain: what a program is late by is no waiting. */
static void job_explain_tells_a_late_start_from_a_wait(void **state) {
	static const char *const args[] = {"--gpus", "8", "--policy", "fcfs", NULL};
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct harness h = {0};
	struct spawned s;
	json_t *o, *last;
	int fd;

	harness_start(&h, args);
	fd = shim_connect();
	spec.period_ns = 3600 * NSEC_PER_SEC;
	spec.offset_ns = 1;
	shim_hello(fd, "camera", &spec, MASK_ALL);
	packet_free(&shim_receive(fd)->base);
	shim_request(fd, 1, 0, MASK_ALL);
	shim_granted(fd, 1);
	o = explain_json("1.1");
	last = json_array_get(o, 0);
	assert_true(number(last, "started_late_ns") > 0);
	assert_int_equal(number(last, "requested_ns"),
			 number(last, "release_ns") + number(last, "started_late_ns"));
	assert_int_equal(number(last, "waited_ns"),
			 number(last, "last_ns") - number(last, "requested_ns"));
	json_decref(o);
	s = spawn(ARGS(sbeetctl, "job", "explain", "1.1"), NULL);
	assert_contains(s.out, "  started ");
	assert_contains(s.out, " ms late, waited ");
	spawned_deinit(&s);
	close(fd);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

/* What is listed for @what, in the order of the list: the kernels' names, each behind a space. */
static void check_kernels(const char *what, const char *names) {
	struct spawned s = spawn(ARGS(sbeetctl, "kernel", "--json", what), NULL);
	json_t *o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL), *one;
	char found[256] = "";
	size_t i;

	assert_int_equal(s.code, 0);
	assert_non_null(o);
	json_array_foreach(json_object_get(o, "kernels"), i, one) {
		strcat(strcat(found, " "), json_string_value(json_object_get(one, "name")));
	}
	assert_string_equal(found, names);
	json_decref(o);
	spawned_deinit(&s);
}

static void kernel_lists_what_programs_launch(void **state) {
	static const char *const args[] = {"--gpus", "8", NULL};
	struct harness h = {0};
	struct shim a, b;
	struct spawned s;
	json_t *o, *one;
	char pid[16];

	harness_start(&h, args);
	a = shim_open("detect", MASK_ALL);
	b = shim_open("train", MASK_ALL);
	shim_declare(a.fd, 1, "_Z4scanPi", "it synchronises its grid");
	shim_declare(a.fd, 2, "add", "");
	shim_count(a.fd, 1, 3, 30);
	shim_count(a.fd, 2, 40, 100);
	shim_declare(b.fd, 1, "other", "");
	harness_settle();
	check_kernels("detect", " add _Z4scanPi"); /* the more often launched one first */
	check_kernels("train", " other");
	snprintf(pid, sizeof(pid), "%d", getpid());
	check_kernels(pid, " add _Z4scanPi other");
	s = spawn(ARGS(sbeetctl, "kernel", "--json"), NULL);
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	one = json_array_get(json_object_get(o, "kernels"), 0);
	assert_int_equal(number(one, "launches"), 40);
	assert_true(json_real_value(json_object_get(one, "mean_blocks")) == 2.5);
	assert_int_equal(number(one, "block_threads"), 64);
	assert_true(json_is_true(json_object_get(one, "confinable")));
	assert_true(json_is_null(json_object_get(one, "why_not")));
	assert_true(json_is_true(json_object_get(one, "dependent")));
	one = json_array_get(json_object_get(o, "kernels"), 1);
	assert_true(json_is_false(json_object_get(one, "confinable")));
	assert_true(json_is_false(json_object_get(one, "dependent")));
	assert_string_equal(json_string_value(json_object_get(one, "why_not")),
			    "it synchronises its grid");
	one = json_array_get(json_object_get(o, "kernels"), 2);
	assert_true(json_is_null(json_object_get(one, "mean_blocks")));
	json_decref(o);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "kernel", "detect"), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "_Z4scanPi");
	assert_contains(s.out, "it synchronises its grid");
	assert_contains(s.out, "2 kernels.");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "kernel", "nobody"), NULL);
	assert_int_equal(s.code, 4);
	assert_contains(s.err, "session list");
	spawned_deinit(&s);
	shim_close(&a);
	shim_close(&b);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

/* A job that waits for another, starts, and ends; one that waits for a drained GPU. */
static void job_explain_tells_why(void **state) {
	static const char *const args[] = {"--gpus", "8", "--policy", "fcfs", NULL};
	struct harness h = {0};
	struct shim a, b;
	struct spawned s;
	json_t *o, *last;
	char id[48], drained[48];

	harness_start(&h, args);
	a = shim_open("first", MASK_ALL);
	b = shim_open("second", MASK_ALL);
	shim_request(a.fd, 5, 0, MASK_ALL);
	shim_granted(a.fd, 5);
	shim_request(b.fd, 6, 0, MASK_ALL);
	shim_expect_silence(b.fd);
	snprintf(id, sizeof(id), "%llu.6", (unsigned long long)b.session);
	o = explain_json(id);
	assert_int_equal(json_array_size(o), 1);
	assert_string_equal(reason(o, 0), "wait-owner");
	json_decref(o);

	shim_done(a.fd, 5);
	shim_granted(b.fd, 6);
	shim_done(b.fd, 6);
	harness_settle();
	o = explain_json(id);
	assert_int_equal(json_array_size(o), 2);
	assert_string_equal(reason(o, 1), "start-next");
	last = json_array_get(o, 1);
	assert_string_equal(json_string_value(json_object_get(last, "task")), "second");
	assert_string_equal(json_string_value(json_object_get(last, "sms")), "0-7");
	assert_true(json_is_true(json_object_get(last, "completed")));
	assert_int_equal(number(last, "requested_ns"), number(last, "release_ns"));
	assert_int_equal(number(last, "started_late_ns"), 0);
	assert_int_equal(number(last, "waited_ns"),
			 number(last, "last_ns") - number(last, "requested_ns"));
	json_decref(o);

	s = spawn(ARGS(sbeetctl, "gpu", "drain", "0"), NULL);
	assert_int_equal(s.code, 0);
	spawned_deinit(&s);
	shim_request(a.fd, 7, 0, MASK_ALL);
	shim_expect_silence(a.fd);
	snprintf(drained, sizeof(drained), "%llu.7", (unsigned long long)a.session);
	o = explain_json(drained);
	assert_int_equal(json_array_size(o), 1);
	assert_string_equal(reason(o, 0), "wait-drained");
	json_decref(o);

	s = spawn(ARGS(sbeetctl, "job", "explain", id), NULL);
	assert_contains(s.out, "  waited ");
	assert_contains(s.out, "another process runs on the GPU");
	assert_contains(s.out, "it starts on GPU 0 with 8 SMs (0-7):");
	assert_contains(s.out, "; it ended after ");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "job", "explain", "77"), NULL);
	assert_int_equal(s.code, 4);
	assert_contains(s.err, "there was no such job");
	spawned_deinit(&s);
	shim_close(&a);
	shim_close(&b);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

/* What the pages say, and what the jobs ran under that were told of. */
static void task_explain_tells_where_programs_run(void **state) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	struct harness h = {0};
	struct steered a, b;
	struct shim asks;
	struct spawned s;
	json_t *o, *terms;

	harness_prepare(&h);
	setenv("SIMGPU", "h200:mps", 1);
	setenv("SIMGPU_DIR", h.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	harness_start(&h, (const char *[]){"--policy", "steer", NULL});
	spec.name = (char[]){"camera"};
	spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	spec.deadline_ns = 50 * NSEC_PER_MSEC;
	b = steered_open("train", NULL, MASK_WHOLE | ENFORCEMENT_BIT(GREEN));
	steered_began(&b, 0, &(struct began){1, atomic_load(&b.page->gpu[0].word), nsec_now(), 0});
	harness_settle();
	a = steered_open("detect", &spec, MASK_WHOLE | ENFORCEMENT_BIT(GREEN));
	asks = shim_open("asks", MASK_ALL);

	s = spawn(ARGS(sbeetctl, "task", "explain", "train"), NULL);
	assert_int_equal(s.code, 0);
	assert_contains(s.out, "(train)\n");
	assert_contains(s.out, "  GPU 0: SMs 56-131, level 0, copies held, for ");
	assert_contains(s.out, "why: programs with a deadline are there");
	assert_contains(s.out, "its last job ran under: all SMs, level 0\n");
	assert_contains(s.out, "0 jobs, 0 too late\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "task", "explain", "camera"), NULL);
	assert_contains(s.out, "  GPU 0: all SMs, level 0");
	assert_contains(s.out, "0 jobs, 0 too late; deadline 50ms\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "task", "explain", "asks"), NULL);
	assert_contains(s.out, "asks for each job on every GPU");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "task", "explain", "nobody"), NULL);
	assert_int_equal(s.code, 4);
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "status"), NULL);
	assert_contains(s.out, "train     0  56-131      0  all SMs, level 0\n");
	assert_contains(s.out, "2 steered programs.\n");
	spawned_deinit(&s);

	s = spawn(ARGS(sbeetctl, "task", "explain", "--json", "train"), NULL);
	o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);
	terms = json_array_get(json_object_get(json_array_get(o, 0), "terms"), 0);
	assert_int_equal(number(terms, "gpu"), 0);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(terms, "now"), "sms")), "56-131");
	assert_int_equal(number(json_object_get(terms, "now"), "level"), 0);
	assert_int_equal(number(json_object_get(terms, "began"), "n_sms"), 132);
	json_decref(o);
	spawned_deinit(&s);
	o = status_json();
	assert_int_equal(json_integer_value(job(o, 0, "level")), 0);
	assert_int_equal(number(json_array_get(json_object_get(o, "gpus"), 0), "n_sms_busy"), 132);
	json_decref(o);
	shim_close(&asks);
	steered_close(&a);
	steered_close(&b);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
	unsetenv("SIMGPU");
	unsetenv("SIMGPU_DIR");
	unsetenv("LD_LIBRARY_PATH");
}

static void monitor_tells_of_jobs_under_terms(void **state) {
	struct harness h = {0};
	struct spawned s;
	struct steered a;
	nsec_t now;

	harness_start(
		&h, (const char *[]){"--gpus", "8", "--sharing", "mps", "--policy", "steer", NULL});
	a = steered_open("a", NULL, MASK_ALL);
	now = nsec_now();
	steered_began(&a, 0,
		      &(struct began){1, terms_pack(&(struct terms){.steered = true, .level = 3}),
				      now, 0});
	harness_settle();
	s = spawn(ARGS(sbeetctl, "monitor", "-d", "100ms"), NULL);
	assert_contains(s.out, "GPU 0, SMs 0-7 (whole), level 3, not asked for (already there)\n");
	spawned_deinit(&s);
	s = spawn(ARGS(sbeetctl, "monitor", "--json", "-d", "100ms"), NULL);
	assert_contains(s.out, "\"steered\":true");
	assert_contains(s.out, "\"level\":3");
	spawned_deinit(&s);
	steered_close(&a);
	harness_stop(&h, SIGTERM);
	harness_clean(&h);
}

static void job_explain_says_what_an_id_is(void **state) {
	static const char *const wrong[] = {"x", "1.", ".1", "1.x", "0", "1.2.3", ""};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct spawned s = spawn(ARGS(sbeetctl, "job", "explain", wrong[i]), NULL);

		assert_int_equal(s.code, 2);
		assert_contains(s.err, "expected SESSION.JOB");
		spawned_deinit(&s);
	}
}

/* Runs sbeetctl, which must end with @code. */
static struct spawned run(int code, const char *const *argv) {
	struct spawned s = spawn(argv, NULL);

	if (s.code != code) {
		fail_msg("%s %s: exit code %d, expected %d: %s", argv[1], argv[2] ? argv[2] : "",
			 s.code, code, s.err);
	}
	return s;
}

static void expect_out(const char *out, const char *const *argv) {
	struct spawned s = run(0, argv);

	assert_string_equal(s.out, out);
	assert_string_equal(s.err, "");
	spawned_deinit(&s);
}

static void expect_error(int code, const char *part, const char *const *argv) {
	struct spawned s = run(code, argv);

	assert_string_equal(s.out, "");
	assert_contains(s.err, part);
	spawned_deinit(&s);
}

static json_t *run_json(const char *const *argv) {
	struct spawned s = run(0, argv);
	json_t *o = json_loads(s.out, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(o);
	spawned_deinit(&s);
	return o;
}

/* Each noun's list and show, for people and as JSON, and what is wrong with a command line. */
static void lists_tell_of_each_kind_of_object(void **state) {
	static const char *const args[] = {"--gpus", "46,6", "--sharing", "mps", NULL};
	struct harness h = {0};
	struct shim a, b;
	struct spawned s;
	json_t *o;

	harness_start(&h, args);
	expect_error(0, "No programs connected", ARGS(sbeetctl, "session", "list"));
	expect_out("", ARGS(sbeetctl, "job", "list", "-q"));
	a = shim_open("first", MASK_ALL);
	b = shim_open("second", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_WHOLE);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 7, 0, MASK_WHOLE);
	harness_settle();

	expect_out("GPU  SMS  BUSY\n  0   46    46\n  1    6     0\n2 GPUs.\n",
		   ARGS(sbeetctl, "gpu", "list", "--columns=index,n_sms,n_sms_busy"));
	expect_out("1\n0\n", ARGS(sbeetctl, "gpu", "list", "--columns=index", "--sort=-index",
				  "--no-legend"));
	expect_out(
		"TASK    RUNNING  WAITING\nfirst         1        0\nsecond        0        1\n"
		"2 tasks.\n",
		ARGS(sbeetctl, "task", "list", "--columns=task,running,waiting"));
	expect_out("JOB  STATE    SMS\n1.1  running  0-45\n2.7  waiting  -\n2 jobs.\n",
		   ARGS(sbeetctl, "job", "list", "--columns=id,state,sms"));
	s = run(0, ARGS(sbeetctl, "session", "show", "2"));
	assert_contains(s.out, "       TASK  second\n");
	assert_contains(s.out, "      SCOPE  process\n");
	spawned_deinit(&s);

	o = run_json(ARGS(sbeetctl, "session", "list", "--json"));
	assert_int_equal(json_array_size(o), 2);
	json_decref(o);
	o = run_json(ARGS(sbeetctl, "task", "show", "second", "--json"));
	assert_int_equal(json_integer_value(json_object_get(o, "jobs_waiting")), 1);
	json_decref(o);
	o = run_json(ARGS(sbeetctl, "job", "show", "1.1", "--json"));
	assert_string_equal(json_string_value(json_object_get(o, "sms")), "0-45");
	json_decref(o);

	expect_error(4, "no session '9'; 'sbeetctl session list' lists them",
		     ARGS(sbeetctl, "session", "show", "9"));
	expect_error(4, "no job '1'", ARGS(sbeetctl, "job", "show", "1"));
	expect_error(4, "no gpu 'x'", ARGS(sbeetctl, "gpu", "show", "x", "--json"));
	expect_error(4, "no task 'secon'", ARGS(sbeetctl, "task", "show", "secon"));
	expect_error(2, "task", ARGS(sbeetctl, "task", "list", "--columns=tusk"));
	expect_error(2, "task", ARGS(sbeetctl, "task", "list", "--sort=tusk"));
	expect_error(2, "", ARGS(sbeetctl, "gpu", "show"));
	shim_close(&a);
	shim_close(&b);
	harness_stop(&h, SIGTERM);
	expect_error(3, "cannot reach sbeetd", ARGS(sbeetctl, "job", "list"));
	harness_clean(&h);
}

/* What is recorded while a program works is what `trace export` makes a table of. */
static void traces_have_what_happened(void **state) {
	static const char *const args[] = {"--gpus", "46", "--sharing", "mps", NULL};
	char path[128], missing[160];
	struct harness h = {0};
	struct spawned s;
	struct shim a;

	harness_start(&h, args);
	a = shim_open("first", MASK_ALL);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	harness_settle();
	snprintf(path, sizeof(path), "%s/trace", h.directory);
	s = run(0, ARGS(sbeetctl, "trace", "record", "-d", "50ms", path));
	assert_contains(s.err, "4 events, 0 jobs done.\n"); /* start, GPU, session, grant */
	spawned_deinit(&s);
	s = run(0, ARGS(sbeetctl, "trace", "export", "--format=csv", path));
	assert_contains(s.out, "\n1,1,\"first\",running,0,0,\"0-22\",23,count,0,");
	spawned_deinit(&s);
	s = run(0, ARGS(sbeetctl, "monitor", "--json", "--kind=job", "--number=1"));
	assert_contains(s.out, "{\"event\":\"job-grant\",");
	spawned_deinit(&s);

	snprintf(missing, sizeof(missing), "%s/none/x", h.directory);
	expect_error(1, "cannot write", ARGS(sbeetctl, "trace", "record", "-d", "1ms", missing));
	expect_error(1, "cannot read", ARGS(sbeetctl, "trace", "export", missing));
	expect_error(2, "expected chrome, csv or html",
		     ARGS(sbeetctl, "trace", "export", "-f", "pdf", path));
	expect_error(1, "line 1", ARGS(sbeetctl, "trace", "export", sbeetctl));
	expect_error(2, "Did you mean 'job-miss'?", ARGS(sbeetctl, "monitor", "-k", "job-mis"));
	expect_error(2, "", ARGS(sbeetctl, "monitor", "--gpu=16"));
	shim_close(&a);
	harness_stop(&h, SIGTERM);
	expect_error(3, "cannot reach sbeetd", ARGS(sbeetctl, "monitor"));
	expect_error(3, "cannot reach sbeetd", ARGS(sbeetctl, "trace", "record", missing));
	harness_clean(&h);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_shows_jobs_side_by_side),
		cmocka_unit_test(status_shows_exact_sets_in_one_process),
		cmocka_unit_test(status_tells_when_the_daemon_has_stopped),
		cmocka_unit_test(task_explain_tells_where_programs_run),
		cmocka_unit_test(monitor_tells_of_jobs_under_terms),
		cmocka_unit_test(job_explain_tells_why),
		cmocka_unit_test(kernel_lists_what_programs_launch),
		cmocka_unit_test(job_explain_tells_a_late_start_from_a_wait),
		cmocka_unit_test(job_explain_says_what_an_id_is),
		cmocka_unit_test(lists_tell_of_each_kind_of_object),
		cmocka_unit_test(traces_have_what_happened),
	};

	sbeetctl = getenv("SBEETCTL");
	if (!sbeetctl) {
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
