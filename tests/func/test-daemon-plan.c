/*
 * test-daemon-plan.c: policies that plan with profiles, in a real sbeetd: from files to grants, and
 * what status tells of it. The programs are scripted, so their work takes as long as the test says.
 */
#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"

/* Alone on the GPU each meets its deadline with ease. More than half of the GPU gains the long one
 * next to nothing. */
#define LONG_DEADLINE  (10 * NSEC_PER_SEC)
#define SHORT_DEADLINE (2 * NSEC_PER_SEC)

static const char profiles[] =
	"{\"gpus\": [{\"name\": \"fixed\", \"static_w\": 10, \"idle_w_per_sm\": 0.5}],\n"
	" \"profiles\": [\n"
	"  {\"name\": \"long\", \"on\": {\"fixed\": {\"watts_per_sm\": 1, \"points\": [\n"
	"    {\"sms\": 1, \"worst\": \"16s\"}, {\"sms\": 2, \"worst\": \"8s\"},\n"
	"    {\"sms\": 4, \"worst\": \"4s\"}, {\"sms\": 8, \"worst\": \"3.9s\"}]}}},\n"
	"  {\"name\": \"b\", \"on\": {\"fixed\": {\"linear\": \"800ms\", \"watts_per_sm\": 1}}},\n"
	"  {\"name\": \"c\", \"on\": {\"fixed\": {\"linear\": \"800ms\", \"watts_per_sm\": "
	"1}}}]}\n";

static struct harness harness;
static const char *directory;

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void start(const char *policy) {
	directory = harness_write_profiles(&harness, profiles);
	harness_start(&harness,
		      (const char *[]){"--gpus", "8", "--sharing", "mps", "--drain", "1ms",
				       "--policy", policy, "--profile-dir", directory, NULL});
}

static nsec_t long_time(unsigned n_sms) {
	return n_sms >= 4 ? 4 * NSEC_PER_SEC : n_sms >= 2 ? 8 * NSEC_PER_SEC : 16 * NSEC_PER_SEC;
}

static struct shim open_task(const char *name, nsec_t deadline) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct shim s = {.fd = shim_connect()};
	Sbeet__ToShim *m;

	task.name = (char *)(uintptr_t)name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = 2 * deadline;
	task.deadline_ns = deadline;
	shim_hello(s.fd, "app", &task, MASK_ALL);
	m = shim_receive(s.fd);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	s.session = m->welcome->session;
	packet_free(&m->base);
	return s;
}

/* Of all sessions together. */
static uint64_t count_misses(void) {
	Sbeet__Control__Status *status = status_get();
	uint64_t misses = 0;

	for (size_t i = 0; i < status->n_sessions; i++) {
		misses += status->sessions[i]->misses;
	}
	status_free(status);
	return misses;
}

static void wait_until(uint64_t time) {
	while (nsec_now() <= time) {
		usleep(10000);
	}
}

/* While the long job runs, b and c have their deadlines. */
static uint64_t misses_under(const char *policy, bool side_by_side) {
	struct shim a, b, c;
	struct grant g;
	uint64_t misses;

	start(policy);
	a = open_task("long", LONG_DEADLINE);
	b = open_task("b", SHORT_DEADLINE);
	c = open_task("c", SHORT_DEADLINE);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	assert_int_equal(smset_count(&g.sms) < 8, side_by_side);
	shim_request(b.fd, 1, 0, MASK_ALL);
	if (side_by_side) {
		struct grant other = shim_granted(b.fd, 1);

		other.sms = smset_and(&other.sms, &g.sms);
		assert_true(smset_empty(&other.sms));
		shim_done(b.fd, 1);
		shim_request(c.fd, 1, 0, MASK_ALL);
		shim_granted(c.fd, 1);
		shim_done(c.fd, 1);
	} else {
		shim_request(c.fd, 1, 0, MASK_ALL);
		harness_settle();
		wait_until(nsec_now() + SHORT_DEADLINE);
	}
	shim_done(a.fd, 1);
	if (!side_by_side) {
		shim_granted(b.fd, 1);
		shim_done(b.fd, 1);
		shim_granted(c.fd, 1);
		shim_done(c.fd, 1);
	}
	harness_settle();
	misses = count_misses();
	shim_close(&a);
	shim_close(&b);
	shim_close(&c);
	assert_int_equal(harness_stop(&harness, 15), 0);
	return misses;
}

static void fcfs_misses_what_waits_for_a_long_job(void **state) {
	assert_int_equal(misses_under("fcfs", false), 2);
}

static void sbeet_meets_deadlines_that_fcfs_misses(void **state) {
	assert_int_equal(misses_under("sbeet", true), 0);
}

static void sbeet_mg_meets_deadlines_that_fcfs_misses(void **state) {
	assert_int_equal(misses_under("sbeet-mg", true), 0);
}

static void lookahead_meets_deadlines_that_fcfs_misses(void **state) {
	assert_int_equal(misses_under("lookahead", true), 0);
}

/* However late: the program waits. */
static void no_policy_gives_up_a_late_job(void **state) {
	static const char *const policies[] = {"even",
					       "fcfs",
					       "rm",
					       "stgm",
					       "load-dist",
					       "bcf",
					       "lcf",
					       "sbeet",
					       "bfd-sbeet",
					       "ffd-sbeet",
					       "wfd-sbeet",
					       "sbeet-mg",
					       "sbeet-mg-offline",
					       "lookahead"};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct shim a, b;

		start(policies[i]);
		a = open_task("long", 1); /* can't be met by anything */
		b = open_task("b", 1);
		shim_request(a.fd, 1, 0, MASK_ALL);
		shim_request(b.fd, 1, 0, MASK_ALL);
		/* Side by side or one after the other, in either order. */
		for (int turn = 0; turn < 2; turn++) {
			struct pollfd p[] = {{a.fd, POLLIN, 0}, {b.fd, POLLIN, 0}};
			int fd;

			assert_true(poll(p, 2, 30000) > 0);
			fd = p[0].revents ? a.fd : b.fd;
			shim_granted(fd, 1);
			shim_done(fd, 1);
		}
		shim_close(&a);
		shim_close(&b);
		assert_int_equal(harness_stop(&harness, 15), 0);
		clean(NULL);
	}
}

static void status_tells_what_is_predicted(void **state) {
	Sbeet__Control__Status *status;
	struct shim a, b;
	struct grant g;

	start("sbeet");
	a = open_task("long", LONG_DEADLINE);
	b = open_task("nobody-knows", LONG_DEADLINE);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	assert_true(smset_count(&g.sms) < 8);
	status = status_get();
	assert_int_equal(status->n_sessions, 2);
	assert_true(status->sessions[0]->planned);
	assert_false(status->sessions[1]->planned);
	assert_int_equal(status->n_jobs, 1);
	assert_int_equal(status->jobs[0]->predicted_finish_ns - status->jobs[0]->granted_ns,
			 long_time(smset_count(&g.sms)));
	assert_false(status->jobs[0]->overrun);
	status_free(status);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

static bool is_marked(const Sbeet__Control__Status *status, void *data) {
	return status->n_jobs == 1 && status->jobs[0]->overrun;
}

/* The daemon itself finds out; the job keeps its SMs, and what is predicted moves on. */
static void a_job_beyond_its_time_is_marked_and_keeps_its_sms(void **state) {
	Sbeet__Control__Status *status;
	struct shim a, b;
	struct grant g, h;
	uint64_t predicted;

	start("sbeet");
	a = open_task("b", SHORT_DEADLINE);
	b = open_task("c", SHORT_DEADLINE);
	shim_request(a.fd, 1, 0, MASK_ALL);
	g = shim_granted(a.fd, 1);
	status = status_get();
	assert_false(status->jobs[0]->overrun);
	predicted = status->jobs[0]->predicted_finish_ns;
	status_free(status);
	status_until(is_marked, NULL);
	status = status_get();
	assert_true(status->jobs[0]->predicted_finish_ns > predicted);
	assert_int_equal(
		smset_from_bytes(status->jobs[0]->sms.data, status->jobs[0]->sms.len, &h.sms), 0);
	assert_true(smset_equal(&h.sms, &g.sms));
	status_free(status);
	if (smset_count(&g.sms) < 8) { /* others go on beside it */
		shim_request(b.fd, 1, 0, MASK_ALL);
		h = shim_granted(b.fd, 1);
		h.sms = smset_and(&h.sms, &g.sms);
		assert_true(smset_empty(&h.sms));
	}
	shim_done(a.fd, 1);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

/* Nothing that runs is disturbed, and what waits is decided anew. */
static void policy_can_be_set_while_jobs_run(void **state) {
	Sbeet__Control__Status *status;
	struct shim a, b;

	start("fcfs");
	a = open_task("b", SHORT_DEADLINE);
	b = open_task("c", SHORT_DEADLINE);
	shim_request(a.fd, 1, 0, MASK_ALL);
	shim_granted(a.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	policy_set("sbeet-mg", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	policy_set("nonsense", SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY);
	shim_expect_silence(b.fd);
	shim_done(a.fd, 1);
	shim_granted(b.fd, 1);
	status = status_get();
	assert_string_equal(status->service->policy, "sbeet-mg");
	status_free(status);
	shim_close(&a);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

/* How often sbeetd has looked at this job. */
static uint64_t count_looks(uint64_t session, uint64_t job) {
	Sbeet__Control__ExplainRequest explain = SBEET__CONTROL__EXPLAIN_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;
	uint64_t n = 0;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_EXPLAIN;
	explain.session = session;
	explain.job = job;
	request.explain = &explain;
	reply = control_ask(&request);
	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_EXPLANATION);
	for (size_t i = 0; i < reply->explanation->n_decisions; i++) {
		n += reply->explanation->decisions[i]->times;
	}
	packet_free(&reply->base);
	return n;
}

/* Nobody knows when the job of no task ends, so there is nothing to look at before it does. */
static void nobody_looks_while_a_job_only_waits(void **state) {
	struct shim busy, b;
	uint64_t n;

	start("lookahead");
	busy = shim_open("busy", MASK_WHOLE);
	b = open_task("b", SHORT_DEADLINE);
	shim_request(busy.fd, 1, 0, MASK_WHOLE);
	shim_granted(busy.fd, 1);
	shim_request(b.fd, 1, 0, MASK_ALL);
	harness_settle();
	wait_until(nsec_now() + 300 * NSEC_PER_MSEC);
	n = count_looks(b.session, 1);
	assert_in_range(n, 1, 10);
	shim_done(busy.fd, 1);
	shim_granted(b.fd, 1);
	shim_done(b.fd, 1);
	shim_close(&busy);
	shim_close(&b);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void wrong_profiles_are_said_and_left_out(void **state) {
	struct shim s;

	directory = harness_write_profiles(&harness, "{\"profiles\": [{\"name\": 1}]}");
	harness_start(&harness, (const char *[]){"--gpus", "8", "--profile-dir", directory, NULL});
	s = shim_open("app", MASK_ALL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

/* Nobody plans with a profile that can't be true, nor with others of its file. */
static void impossible_profiles_are_not_planned_with(void **state) {
	static const char *const points[] = {
		"{\"sms\": 4, \"worst\": \"800ms\"}, {\"sms\": 8, \"worst\": \"400ms\"}",
		"{\"sms\": 4, \"worst\": \"400ms\"}, {\"sms\": 8, \"worst\": \"800ms\"}"};

	for (size_t i = 0; i < 2; i++) {
		Sbeet__Control__Status *status;
		struct shim b, c;
		char text[1024];

		snprintf(text, sizeof(text),
			 "{\"profiles\": [{\"name\": \"b\", \"on\": {\"fixed\": {\"linear\": "
			 "\"800ms\", \"watts_per_sm\": 1}}}, {\"name\": \"c\", \"on\": {\"fixed\": "
			 "{\"watts_per_sm\": 1, \"points\": [%s]}}}]}",
			 points[i]);
		directory = harness_write_profiles(&harness, text);
		harness_start(&harness, (const char *[]){"--gpus", "8", "--policy", "lookahead",
							 "--profile-dir", directory, NULL});
		b = open_task("b", SHORT_DEADLINE);
		c = open_task("c", SHORT_DEADLINE);
		status = status_get();
		assert_int_equal(status->n_sessions, 2);
		assert_int_equal(status->sessions[0]->planned, i == 0);
		assert_int_equal(status->sessions[1]->planned, i == 0);
		status_free(status);
		shim_close(&b);
		shim_close(&c);
		assert_int_equal(harness_stop(&harness, 15), 0);
		harness_clean(&harness);
	}
}

static void a_missing_folder_is_refused(void **state) {
	char errors[1024];

	harness_prepare(&harness);
	assert_int_equal(
		harness_run(&harness,
			    (const char *[]){"--gpus", "8", "--profile-dir", "/nonexistent", NULL},
			    errors, sizeof(errors)),
		1);
	assert_non_null(strstr(errors, "'/nonexistent': No such file"));
}

static const Sbeet__Control__Session *session_of(const Sbeet__Control__Status *status,
						 const char *task) {
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (strcmp(status->sessions[i]->task, task) == 0) {
			return status->sessions[i];
		}
	}
	fail_msg("no session of task '%s'", task);
	return NULL;
}

/* Who does not ask where to go is placed nowhere. */
static void status_tells_where_programs_were_placed(void **state) {
	static char *features[] = {(char *)PROTO_FEATURE_CHOOSE_GPU};
	static const char *const names[] = {"b", "c"};
	Sbeet__Control__Status *status;
	struct shim shims[2], plain;

	directory = harness_write_profiles(&harness, profiles);
	harness_start(&harness, (const char *[]){"--gpus", "8,8", "--policy", "sbeet-mg",
						 "--profile-dir", directory, NULL});
	for (int i = 0; i < 2; i++) {
		Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
		Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
		Sbeet__Hello hello = SBEET__HELLO__INIT;

		task.name = (char *)(uintptr_t)names[i];
		task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
		task.period_ns = task.deadline_ns = SHORT_DEADLINE;
		hello.version = PROTO_VERSION;
		hello.program = (char[]){"app"};
		hello.shim_version = (char[]){"test"};
		hello.enforcement_mask = MASK_ALL;
		hello.task = &task;
		hello.features = features;
		hello.n_features = 1;
		m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
		m.hello = &hello;
		shims[i].fd = shim_connect();
		shim_send(shims[i].fd, &m);
		packet_free(&shim_receive(shims[i].fd)->base);
	}
	plain = open_task("long", LONG_DEADLINE);
	status = status_get();
	assert_true(session_of(status, "b")->placed > 0 && session_of(status, "c")->placed > 0);
	assert_int_equal(session_of(status, "long")->placed, 0);
	status_free(status);
	shim_close(&shims[0]);
	shim_close(&shims[1]);
	shim_close(&plain);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

#define HYPERPERIOD (400 * NSEC_PER_MSEC)

/* b at 200 ms of 400, on the upper half. */
static const char table[] =
	"{\"hyperperiod_ns\": 400000000, \"jobs\": [{\"task\": \"b\", \"gpu\": 0, "
	"\"sms\": \"4-7\", \"start_ns\": 200000000, \"length_ns\": 200000000}]}\n";

static const char *write_table(const char *text) {
	static char file[256];
	FILE *f;

	directory = harness_write_profiles(&harness, profiles);
	snprintf(file, sizeof(file), "%s/table.json", harness.directory);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return file;
}

static nsec_t granted_at(uint64_t session) {
	Sbeet__Control__Status *status = status_get();
	nsec_t granted = 0;

	for (size_t i = 0; i < status->n_jobs; i++) {
		if (status->jobs[i]->session == session) {
			granted = status->jobs[i]->granted_ns;
		}
	}
	status_free(status);
	return granted;
}

/* By the clock of the machine: between its time and the end of the repetition, whenever its program
 * asks. What is not in the table has the other half at once. */
static void table_starts_jobs_by_the_clock(void **state) {
	struct smset lower = smset_range(0, 4), upper = smset_range(4, 4);
	struct shim b, c;
	struct grant g;

	harness_start(&harness, (const char *[]){"--gpus", "8", "--sharing", "mps", "--policy",
						 "table", "--table", write_table(table),
						 "--profile-dir", directory, NULL});
	b = open_task("b", SHORT_DEADLINE);
	c = open_task("c", SHORT_DEADLINE);
	for (uint64_t job = 1; job <= 4; job++) {
		shim_request(b.fd, job, 0, MASK_ALL);
		shim_request(c.fd, job, 0, MASK_ALL);
		g = shim_granted(c.fd, job);
		assert_true(smset_equal(&g.sms, &lower));
		g = shim_granted(b.fd, job);
		assert_true(smset_equal(&g.sms, &upper));
		assert_true(granted_at(b.session) % HYPERPERIOD >= HYPERPERIOD / 2);
		shim_done(b.fd, job);
		shim_done(c.fd, job);
	}
	shim_close(&b);
	shim_close(&c);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

static void expect_start_refused(const char *text, const char *expected) {
	const char *file = write_table(text);
	char errors[2048];

	assert_int_equal(harness_run(&harness,
				     (const char *[]){"--gpus", "8", "--policy", "table", "--table",
						      file, NULL},
				     errors, sizeof(errors)),
			 1);
	if (!strstr(errors, expected)) {
		fail_msg("expected '%s' in: %s", expected, errors);
	}
	harness_clean(&harness);
}

static void tables_that_are_wrong_are_refused(void **state) {
	char errors[2048];

	expect_start_refused("{", "table.json");
	expect_start_refused("{\"hyperperiod_ns\": 100, \"jobs\": []}", "it has no jobs");
	expect_start_refused(
		"{\"hyperperiod_ns\": 100, \"jobs\": [{\"task\": \"b\", \"gpu\": 0, "
		"\"sms\": \"4-x\", \"start_ns\": 0, \"length_ns\": 10}]}",
		"jobs[0].sms: expected SMs such as '0-15,20', found '4-x'");
	expect_start_refused(
		"{\"hyperperiod_ns\": 100, \"jobs\": [{\"task\": \"b\", \"gpu\": 0, "
		"\"sms\": \"4\", \"start_ns\": 100, \"length_ns\": 10}]}",
		"jobs[0].start_ns: expected a whole number from 0 to 99, found 100");
	expect_start_refused(
		"{\"hyperperiod_ns\": 100, \"jobs\": [{\"task\": \"b\", \"gpu\": 3, "
		"\"sms\": \"4\", \"start_ns\": 0, \"length_ns\": 10}]}",
		"on these GPUs: job 0: there is no such GPU");
	harness_prepare(&harness);
	assert_int_equal(harness_run(&harness,
				     (const char *[]){"--gpus", "8", "--policy", "table", NULL},
				     errors, sizeof(errors)),
			 1);
	assert_non_null(strstr(errors, "policy 'table' needs a table"));
	harness_clean(&harness);

	start("even");
	policy_set("table", SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(fcfs_misses_what_waits_for_a_long_job),
		CASE(sbeet_meets_deadlines_that_fcfs_misses),
		CASE(sbeet_mg_meets_deadlines_that_fcfs_misses),
		CASE(lookahead_meets_deadlines_that_fcfs_misses),
		CASE(no_policy_gives_up_a_late_job),
		CASE(status_tells_what_is_predicted),
		CASE(a_job_beyond_its_time_is_marked_and_keeps_its_sms),
		CASE(policy_can_be_set_while_jobs_run),
		CASE(nobody_looks_while_a_job_only_waits),
		CASE(status_tells_where_programs_were_placed),
		CASE(table_starts_jobs_by_the_clock),
		CASE(tables_that_are_wrong_are_refused),
		CASE(wrong_profiles_are_said_and_left_out),
		cmocka_unit_test(impossible_profiles_are_not_planned_with),
		CASE(a_missing_folder_is_refused),
	};

	return cmocka_run_group_tests_name("daemon-plan", tests, NULL, NULL);
}
