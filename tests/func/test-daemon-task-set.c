/*
 * test-daemon-task-set.c: `sbeetctl task set`: what running programs become, what is kept for those
 * that come, and that it is all or nothing.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

static const char *const plain[] = {"--gpus", "8,8", "--sharing", "mps", NULL};

/* Bits of TaskChange.mask. */
enum {
	CLASS = 1 << 2,
	PERIOD = 1 << 3,
	DEADLINE = 1 << 4,
	OFFSET = 1 << 5,
	PRIORITY = 1 << 6,
	MAX_SMS = 1 << 7,
	MIN_SMS = 1 << 8,
	PROFILE = 1 << 9,
	GPU = 1 << 10,
	DEPENDENT = 1 << 11,
	ALL = CLASS | PERIOD | DEADLINE | OFFSET | PRIORITY | MAX_SMS | MIN_SMS | PROFILE | GPU |
	      DEPENDENT,
};

static int setup(void **state) {
	harness_prepare(&harness);
	return 0;
}

static int teardown(void **state) {
	harness_clean(&harness);
	return 0;
}

static void path_of(const char *name, char ret[static 160]) {
	snprintf(ret, 160, "%s/tasks.d/%s", harness.directory, name);
}

static void write_task(const char *name, const char *text) {
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tasks.d", harness.directory);
	mkdir(path, 0755);
	path_of(name, path);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Expects this text; NULL: no such file. */
static void expect_task(const char *name, const char *expected) {
	char path[160], text[1024];
	size_t n;
	FILE *f;

	path_of(name, path);
	f = fopen(path, "re");
	if (!expected) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_string_equal(text, expected);
}

/* What is asked for. */
struct change {
	Sbeet__Control__TaskChange m;
	Sbeet__TaskSpec spec;
};

/* Asks for it; expects this error, and this in its text. */
static void set(struct change *change, Sbeet__ErrorCode code, const char *text) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	change->m.spec = &change->spec;
	request.task_change = &change->m;
	reply = control_ask(&request);
	if (code == SBEET__ERROR_CODE__ERROR_CODE_NONE) {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_DONE);
	} else {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
		assert_int_equal(reply->error->code, code);
		assert_non_null(strstr(reply->error->text, text));
	}
	packet_free(&reply->base);
}

static struct change change_of(const char *name, uint32_t mask, bool save) {
	struct change change = {SBEET__CONTROL__TASK_CHANGE__INIT, SBEET__TASK_SPEC__INIT};

	change.m.task = (char *)(uintptr_t)name;
	change.m.mask = mask;
	change.m.save = save;
	return change;
}

static const Sbeet__Control__Session *only_session(const Sbeet__Control__Status *status) {
	assert_int_equal(status->n_sessions, 1);
	return status->sessions[0];
}

static void expect_session(Sbeet__TaskClass task_class, uint64_t period_ms, uint64_t deadline_ms,
			   int priority) {
	Sbeet__Control__Status *status = status_get();
	const Sbeet__Control__Session *s = only_session(status);

	assert_int_equal(s->task_class, task_class);
	assert_int_equal(s->period_ns, period_ms * NSEC_PER_MSEC);
	assert_int_equal(s->deadline_ns, deadline_ms * NSEC_PER_MSEC);
	assert_int_equal(s->priority, priority);
	status_free(status);
}

static unsigned granted_sms(struct shim *s, uint64_t job, unsigned gpu) {
	struct grant g;

	shim_request(s->fd, job, gpu, MASK_ALL);
	g = shim_granted(s->fd, job);
	shim_done(s->fd, job);
	return smset_count(&g.sms);
}

static const char every_key[] =
	"# By 'sbeetctl task set camera --save'.\n"
	"[task]\n"
	"class = realtime\n"
	"period = 33ms\n"
	"deadline = 20500us\n"
	"offset = 1s\n"
	"priority = -3\n"
	"profile = cam-v2\n"
	"gpu = 1\n"
	"min-sms = 5\n"
	"max-sms = 6\n"
	"dependent = yes\n";

/* Without any program, and for the next daemon too. */
static void saved_keys_hold_for_who_comes(void **state) {
	struct change all = change_of("camera", ALL, true);
	struct shim s;

	all.spec.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	all.spec.period_ns = 33 * NSEC_PER_MSEC;
	all.spec.deadline_ns = 20500 * NSEC_PER_USEC;
	all.spec.offset_ns = NSEC_PER_SEC;
	all.spec.priority = -3;
	all.spec.profile = (char[]){"cam-v2"};
	all.spec.min_sms = 5;
	all.spec.dependent = 1;
	all.spec.max_sms = 6;
	harness_start(&harness, plain);
	all.spec.gpu = 99 + 1;
	set(&all, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT, "there is no GPU 99");
	expect_task("camera.conf", NULL);
	all.spec.gpu = 1 + 1;
	set(&all, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	expect_task("camera.conf", every_key);
	expect_task("camera.conf.new", NULL);
	for (int daemons = 0; daemons < 2; daemons++) {
		Sbeet__Control__Status *status;

		s = shim_open("camera", MASK_ALL);
		status = status_get();
		assert_int_equal(only_session(status)->deadline_ns, 20500 * NSEC_PER_USEC);
		assert_int_equal(only_session(status)->period_ns, 33 * NSEC_PER_MSEC);
		assert_int_equal(only_session(status)->priority, -3);
		status_free(status);
		shim_request(s.fd, 1, 0, MASK_ALL);
		shim_error(s.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_DENIED);
		assert_int_equal(granted_sms(&s, 2, 1), 6);
		shim_close(&s);
		assert_int_equal(harness_stop(&harness, SIGTERM), 0);
		if (daemons == 0) {
			harness_start(&harness, plain);
		}
	}
}

/* And what was set is taken away again. */
static void saved_keys_are_taken_away(void **state) {
	struct change none =
		change_of("camera", PERIOD | DEADLINE | OFFSET | GPU | MIN_SMS | MAX_SMS, true);
	struct shim s;

	write_task("camera.conf", every_key);
	harness_start(&harness, plain);
	set(&none, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	expect_task("camera.conf",
		    "# By 'sbeetctl task set camera --save'.\n[task]\nperiod = none\n"
		    "deadline = none\noffset = none\ngpu = any\nmin-sms = none\nmax-sms = none\n"
		    "class = realtime\npriority = -3\nprofile = cam-v2\ndependent = yes\n");
	s = shim_open("camera", MASK_ALL);
	expect_session(SBEET__TASK_CLASS__TASK_CLASS_REALTIME, 0, 0, -3);
	assert_int_equal(granted_sms(&s, 1, 0), 4);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void saving_keeps_what_was_written_by_hand(void **state) {
	struct change change = change_of("camera", DEADLINE, true);
	struct shim s;

	write_task("camera.conf",
		   "# front\n[match]\nname = cam*\n\n[task]\nperiod = 40ms ; slow\n");
	harness_start(&harness, plain);
	s = shim_open("cam7", MASK_ALL);
	change.spec.deadline_ns = 30 * NSEC_PER_MSEC;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	expect_task("camera.conf",
		    "# front\n[match]\nname = cam*\n\n[task]\ndeadline = 30ms\n"
		    "period = 40ms ; slow\n");
	expect_session(SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT, 40, 30, 0);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Neither the file, nor running programs, nor what comes. */
static void what_cannot_be_changes_nothing(void **state) {
	static const char before[] = "[task]\nperiod = 40ms\n";
	struct change late = change_of("camera", DEADLINE, true);
	struct change odd = change_of("other", MIN_SMS | MAX_SMS, true);
	struct shim s;

	write_task("camera.conf", before);
	harness_start(&harness, plain);
	late.spec.deadline_ns = 50 * NSEC_PER_MSEC;
	set(&late, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "expected at most the period, 40ms");
	s = shim_open("camera", MASK_ALL);
	set(&late, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "beyond the period");
	late.m.save = false;
	set(&late, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "beyond the period");
	expect_task("camera.conf", before);
	expect_session(SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT, 40, 40, 0);
	odd.spec.min_sms = 5;
	odd.spec.max_sms = 4;
	set(&odd, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "expected at most max-sms");
	expect_task("other.conf", NULL);
	odd.m.save = false;
	set(&odd, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT, "no program");
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void a_file_that_is_broken_is_left_alone(void **state) {
	static const char broken[] = "[task]\nperiod = soon\n";
	struct change change = change_of("camera", PRIORITY, true);

	harness_start(&harness, plain);
	write_task("camera.conf", broken);
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "camera.conf:3: period 'soon'");
	expect_task("camera.conf", broken);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void what_cannot_be_written_changes_nothing(void **state) {
	struct change change = change_of("camera", PRIORITY, true);
	char path[160];
	struct shim s;

	change.spec.priority = 7;
	write_task("camera.conf", "[task]\npriority = 1\n");
	path_of("camera.conf.new", path);
	assert_int_equal(mkdir(path, 0755), 0);
	harness_start(&harness, plain);
	s = shim_open("camera", MASK_ALL);
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "/tasks.d/camera.conf': Is a directory");
	expect_task("camera.conf", "[task]\npriority = 1\n");
	expect_session(SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT, 0, 0, 1);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void running_programs_change_from_their_next_job_on(void **state) {
	struct change change = change_of("t", MIN_SMS | MAX_SMS, false);
	struct shim s;

	harness_start(&harness, plain);
	s = shim_open("t", MASK_ALL);
	assert_int_equal(granted_sms(&s, 1, 0), 4);
	change.spec.max_sms = 2;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	assert_int_equal(granted_sms(&s, 2, 0), 2);
	change.spec.min_sms = 7;
	change.spec.max_sms = 0;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	assert_true(granted_sms(&s, 3, 0) >= 7);
	expect_task("t.conf", NULL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A program can't move; its next start can. */
static void a_gpu_is_for_who_does_not_use_another(void **state) {
	struct change change = change_of("t", GPU, false);
	struct shim s, other;

	harness_start(&harness, plain);
	s = shim_open("t", MASK_ALL);
	granted_sms(&s, 1, 0);
	change.spec.gpu = 1 + 1;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "can't move");
	change.m.save = true;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	granted_sms(&s, 2, 0);
	other = shim_open("t", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_ALL);
	shim_error(other.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_DENIED);
	granted_sms(&other, 2, 1);
	shim_close(&other);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Whether a program of task "t" that starts now, and says this of itself, is told to launch its
 * kernels as dependent ones. */
static bool is_told_dependent(bool own) {
	Sbeet__TaskSpec spec = SBEET__TASK_SPEC__INIT;
	int fd = shim_connect();
	Sbeet__ToShim *m;
	bool ret;

	spec.dependent = own;
	shim_hello(fd, "t", &spec, MASK_ALL);
	m = shim_receive(fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	ret = packet_has_feature(m->welcome->features, m->welcome->n_features,
				 PROTO_FEATURE_DEPENDENT);
	packet_free(&m->base);
	close(fd);
	return ret;
}

/* By itself, by its task's file, or by a parameter of the policy. */
static void launches_are_dependent_where_that_is_asked_for(void **state) {
	static const char *const by_parameter[] = {"--gpus",   "8",	"--sharing", "mps",
						   "--policy", "steer", NULL};
	struct change change = change_of("t", DEPENDENT, true);

	harness_start(&harness, plain);
	assert_false(is_told_dependent(false));
	assert_true(is_told_dependent(true));
	change.spec.dependent = 1;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	assert_true(is_told_dependent(false));
	change.spec.dependent = 0;
	set(&change, SBEET__ERROR_CODE__ERROR_CODE_NONE, NULL);
	assert_false(is_told_dependent(true));
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);

	write_task("../sbeetd.conf", "[policy steer]\ndependent = on\n");
	harness_start(&harness, by_parameter);
	assert_true(is_told_dependent(false));
	policy_set("lookahead", SBEET__ERROR_CODE__ERROR_CODE_NONE);
	assert_false(is_told_dependent(false));
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(saved_keys_hold_for_who_comes),
		CASE(saved_keys_are_taken_away),
		CASE(saving_keeps_what_was_written_by_hand),
		CASE(what_cannot_be_changes_nothing),
		CASE(a_file_that_is_broken_is_left_alone),
		CASE(what_cannot_be_written_changes_nothing),
		CASE(running_programs_change_from_their_next_job_on),
		CASE(a_gpu_is_for_who_does_not_use_another),
		CASE(launches_are_dependent_where_that_is_asked_for),
	};

	return cmocka_run_group_tests_name("daemon-task-set", tests, NULL, NULL);
}
