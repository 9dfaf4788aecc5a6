/*
 * test-daemon-learn.c: `learn = yes` in a real sbeetd: which jobs it learns from, that a task
 * without a profile is planned with once enough is known, and that it is so after a restart.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

#define JOBS_MIN 8 /* LEARN_JOBS_MIN of daemon/gpu/learn.h */

static struct harness harness;
static char directory[128], file[256];

static void start(const char *learn) {
	if (*directory == '\0') {
		harness_prepare(&harness);
		snprintf(directory, sizeof(directory), "%s/profiles", harness.directory);
		snprintf(file, sizeof(file), "%s/learned-times", directory);
		assert_int_equal(mkdir(directory, 0700), 0);
	}
	unsetenv("STATE_DIRECTORY");
	harness_start(&harness, (const char *[]){"--gpus", "8", "--sharing", "mps", "--policy",
						 "sbeet", "--drain", "1ms", "--profile-dir",
						 directory, "--learn", learn, NULL});
}

static int clean(void **state) {
	harness_clean(&harness);
	*directory = '\0';
	return 0;
}

static struct shim open_task(bool realtime) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct shim s = {.fd = shim_connect()};

	task.name = (char *)(uintptr_t) "cam";
	if (realtime) {
		task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
		task.period_ns = task.deadline_ns = 60 * NSEC_PER_SEC;
	}
	shim_hello(s.fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(s.fd)->base);
	return s;
}

static bool is_planned(void) {
	Sbeet__Control__Status *status = status_get();
	bool planned = status->n_sessions > 0 && status->sessions[0]->planned;

	status_free(status);
	return planned;
}

enum how {
	HOW_WELL,
	HOW_CANCELLED,
	HOW_WITHOUT_KERNELS,
	HOW_OUTSIDE,
	HOW_UNCONFINED,
	HOW_UNCONFINED_COUNTED, /* told by the JobDone */
};

static void run_job(struct shim *s, uint64_t number, enum how how) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	shim_request(s->fd, number, 0, MASK_ALL);
	shim_granted(s->fd, number);
	if (how == HOW_UNCONFINED) {
		Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
		Sbeet__Op op = SBEET__OP__INIT, *ops[] = {&op};
		Sbeet__ToDaemon records = SBEET__TO_DAEMON__INIT;

		op.kind = SBEET__OP_KIND__OP_KIND_LAUNCH;
		op.time_ns = nsec_now();
		op.blocks = op.block_threads = 1;
		op.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
		batch.job = number;
		batch.ops = ops;
		batch.n_ops = 1;
		records.body_case = SBEET__TO_DAEMON__BODY_OPS;
		records.ops = &batch;
		shim_send(s->fd, &records);
	}
	done.job = number;
	done.cancelled = how == HOW_CANCELLED;
	done.launches = how != HOW_WITHOUT_KERNELS;
	done.outside_blocks = how == HOW_OUTSIDE;
	done.unconfined = how == HOW_UNCONFINED_COUNTED;
	done.finished_ns = nsec_now();
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	shim_send(s->fd, &m);
}

static void run_jobs(struct shim *s, uint64_t first, unsigned n, enum how how) {
	for (unsigned i = 0; i < n; i++) {
		run_job(s, first + i, how);
	}
	harness_settle();
}

static void tasks_are_planned_with_once_enough_is_known(void **state) {
	struct shim s;

	start("yes");
	s = open_task(true);
	run_jobs(&s, 1, JOBS_MIN - 1, HOW_WELL);
	run_jobs(&s, 100, JOBS_MIN, HOW_CANCELLED);
	run_jobs(&s, 200, JOBS_MIN, HOW_WITHOUT_KERNELS);
	run_jobs(&s, 300, JOBS_MIN, HOW_OUTSIDE);
	run_jobs(&s, 400, JOBS_MIN, HOW_UNCONFINED);
	run_jobs(&s, 450, JOBS_MIN, HOW_UNCONFINED_COUNTED);
	assert_false(is_planned());
	run_jobs(&s, 500, 2, HOW_WELL); /* the next job after the eighth is planned with */
	assert_true(is_planned());
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
	assert_int_equal(access(file, R_OK), 0);

	start("yes");
	s = open_task(true);
	assert_true(is_planned());
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);

	start("no");
	s = open_task(true);
	assert_false(is_planned());
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

static void write_profile(void) {
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cam.json", directory);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("{\"profiles\": [{\"name\": \"cam\", \"on\": {\"fixed\": "
			  "{\"watts_per_sm\": 1, "
			  "\"points\": [{\"sms\": 2, \"worst\": \"100ms\"}, {\"sms\": 8, "
			  "\"worst\": \"80ms\"}]}}}]}",
			  f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A job that takes 600 ms on fewer than 8 SMs, whatever its profile says. Return: how many it had.
 */
static unsigned run_slow_job(struct shim *s, uint64_t number) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	struct smset sms;
	unsigned n_sms;

	shim_request(s->fd, number, 0, MASK_ALL);
	sms = shim_granted(s->fd, number).sms;
	n_sms = smset_count(&sms);
	if (n_sms < 8) {
		usleep(600000);
	}
	done.job = number;
	done.launches = 1;
	done.finished_ns = nsec_now();
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	shim_send(s->fd, &m);
	return n_sms;
}

/* 2 SMs cost least, and are in time by the profile; they are not, so they are no longer given. */
static void a_profile_that_is_too_hopeful_is_corrected(void **state) {
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	struct shim s;
	unsigned n = 0;

	start("no");
	assert_int_equal(harness_stop(&harness, 15), 0);
	write_profile();
	harness_start(&harness,
		      (const char *[]){"--gpus", "8", "--sharing", "mps", "--policy", "lookahead",
				       "--drain", "1ms", "--profile-dir", directory, NULL});
	s.fd = shim_connect();
	task.name = (char *)(uintptr_t) "cam";
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = task.deadline_ns = 400 * NSEC_PER_MSEC;
	shim_hello(s.fd, "app", &task, MASK_ALL);
	packet_free(&shim_receive(s.fd)->base);
	assert_true(is_planned());
	assert_int_equal(run_slow_job(&s, 1), 2);
	while (n < 10 && run_slow_job(&s, 2 + n) < 8) {
		n++;
	}
	assert_in_range(n, 0, 9);
	assert_int_equal(run_slow_job(&s, 100), 8);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
	assert_int_equal(access(file, F_OK), -1); /* nothing is kept */
}

/* It had the whole GPU while it was alone; that it was never seen on fewer SMs is our doing. */
static void a_task_learnt_alone_shares_the_gpu(void **state) {
	struct shim s, other;
	struct smset sms;
	unsigned n_sms;

	start("yes");
	s = open_task(true);
	run_jobs(&s, 1, JOBS_MIN + 1, HOW_WELL);
	assert_true(is_planned());
	other = shim_open("other", MASK_ALL);
	shim_request(other.fd, 1, 0, MASK_ALL);
	sms = shim_granted(other.fd, 1).sms;
	n_sms = smset_count(&sms);
	assert_in_range(n_sms, 1, 7);
	run_job(&s, 100, HOW_WELL); /* beside the other one */
	shim_close(&other);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
}

static void best_effort_tasks_are_not_learnt(void **state) {
	struct shim s;

	start("yes");
	s = open_task(false);
	run_jobs(&s, 1, 2 * JOBS_MIN, HOW_WELL);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
	assert_int_equal(access(file, F_OK), -1);
}

static void killed_programs_say_nothing(void **state) {
	start("yes");
	for (unsigned i = 0; i < JOBS_MIN; i++) {
		struct shim s = open_task(true);

		shim_request(s.fd, 1, 0, MASK_ALL);
		shim_granted(s.fd, 1);
		close(s.fd); /* as when it is killed */
	}
	assert_int_equal(harness_stop(&harness, 15), 0);
	assert_int_equal(access(file, F_OK), -1);
}

static void a_broken_file_is_put_aside(void **state) {
	char bad[300];
	struct shim s;
	FILE *f;

	start("yes");
	assert_int_equal(harness_stop(&harness, 15), 0);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_true(fputs("{\"learned\": [1", f) >= 0);
	assert_int_equal(fclose(f), 0);
	start("yes");
	s = open_task(true);
	run_jobs(&s, 1, JOBS_MIN + 1, HOW_WELL);
	assert_true(is_planned());
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, 15), 0);
	snprintf(bad, sizeof(bad), "%s.bad", file);
	assert_int_equal(access(bad, R_OK), 0);
	assert_int_equal(access(file, R_OK), 0);
}

#define CASE(test) cmocka_unit_test_teardown(test, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(tasks_are_planned_with_once_enough_is_known),
		CASE(a_task_learnt_alone_shares_the_gpu),
		CASE(best_effort_tasks_are_not_learnt),
		CASE(a_profile_that_is_too_hopeful_is_corrected),
		CASE(killed_programs_say_nothing),
		CASE(a_broken_file_is_put_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
