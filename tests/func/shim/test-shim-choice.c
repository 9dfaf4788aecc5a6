/*
 * test-shim-choice.c: a guest that can run its jobs on several GPUs (sbeet_job_gpu()): what it asks
 * for, and where its jobs are then.
 *
 * As in test-shim.c, the test plays the daemon by hand. Jobs linger for an hour. "job-gpu 21" in a
 * line means GPUs 1 and 0, in this order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"

static const char *const by_marks[] = {"SBEET_JOB=marks", NULL};

/* The guest asks for a job on all of @gpus, in this order. Return: its number. */
static uint64_t expect_choice(int fd, const char *gpus) {
	Sbeet__ToDaemon *m = mini_expect(fd, SBEET__TO_DAEMON__BODY_REQUEST);
	const Sbeet__Request *request = m->request;
	uint64_t job = request->job;

	assert_int_equal(request->gpu_uuid.data[0], gpus[0] - '0');
	assert_int_equal(request->n_other_gpu_uuids, strlen(gpus) - 1);
	for (size_t i = 0; i < request->n_other_gpu_uuids; i++) {
		assert_int_equal(request->other_gpu_uuids[i].len, PROTO_UUID_BYTES);
		assert_int_equal(request->other_gpu_uuids[i].data[0], gpus[i + 1] - '0');
	}
	assert_true(request->marked_ns > 0 && request->marked_ns <= request->release_ns);
	mini_free(m);
	return job;
}

/* On the GPU that lines call @gpu. */
static void grant_on(int fd, uint64_t job, char gpu) {
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {(uint8_t)(gpu - '0')};
	uint8_t sms[] = {0xff, 0xff, 0xff, 0xff, 0xff};

	grant.job = job;
	grant.gpu_uuid.data = uuid;
	grant.gpu_uuid.len = sizeof(uuid);
	grant.sms.data = sms;
	grant.sms.len = sizeof(sms);
	grant.enforcement = WHOLE;
	grant.sequence = job;
	grant.gpu_sms = 40;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &grant;
	mini_send(fd, &m);
}

/* Begins a job on GPUs 0 and 1, which is granted on @gpu (0 or 1). */
static uint64_t begin_on(struct mini *m, int fd, int gpu) {
	uint64_t job;

	mini_do(m, "@0 job-begin", 0);
	mini_tell(m, "@0 job-gpu 12");
	job = expect_choice(fd, "12");
	grant_on(fd, job, gpu ? '2' : '1');
	mini_answers(m, gpu ? "0 job-gpu 1" : "0 job-gpu 0");
	mini_do(m, gpu ? "@0 device 1" : "@0 device", 0);
	return job;
}

/* All that it launches there belongs to the job, however often it waits, also where marks alone
 * make no jobs. */
static void follow(struct mini *m, const char *const *environment) {
	int fd = mini_begin(m, environment);

	for (int i = 0; i < 4; i++) {
		uint64_t job = begin_on(m, fd, i % 2);

		mini_do(m, "@0 launch", 0);
		mini_do(m, "@0 sync", 0);
		mini_do(m, "@0 launch 2", 0);
		mini_do(m, "@0 sync", 0);
		mini_do(m, "@0 job-gpu 12", i % 2); /* as before */
		mini_do(m, "@0 job-end", 0);
		assert_int_equal(mini_done(fd, job).launches, 3);
	}
}

static void work_goes_where_the_job_is(void **state) {
	follow(*state, by_marks);
}

static void job_keeps_its_gpu_between_waits(void **state) {
	follow(*state, mini_plain);
}

/* The next message; operations are told of when the tracker comes to it. */
static Sbeet__ToDaemon *after_ops(int fd) {
	Sbeet__ToDaemon *m = mini_next(fd);

	while (m && m->body_case == SBEET__TO_DAEMON__BODY_OPS) {
		mini_free(m);
		m = mini_next(fd);
	}
	assert_non_null(m);
	return m;
}

/* The next job that ends has had one launch. */
static void expect_end(int fd, uint64_t job) {
	Sbeet__ToDaemon *m = after_ops(fd);

	assert_int_equal(m->body_case, SBEET__TO_DAEMON__BODY_DONE);
	assert_int_equal(m->done->job, job);
	assert_int_equal(m->done->launches, 1);
	mini_free(m);
}

/* What it launches elsewhere is another job's. */
static void work_on_the_other_gpu_is_another_job(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	uint64_t job = begin_on(m, fd, 1), other;
	Sbeet__ToDaemon *request;

	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 device", 0);
	mini_tell(m, "@0 launch");
	request = after_ops(fd);
	assert_int_equal(request->body_case, SBEET__TO_DAEMON__BODY_REQUEST);
	other = request->request->job;
	mini_free(request);
	assert_true(other > job);
	mini_grant(fd, other, WHOLE);
	mini_answers(m, "0 launch 0");
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 device 1", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	expect_end(fd, other);
	expect_end(fd, job);
}

/* A job that waits for nobody's GPU is withdrawn unused. */
static void job_without_work_is_cancelled(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	uint64_t job = begin_on(m, fd, 1);
	Sbeet__ToDaemon *done;

	mini_do(m, "@0 job-end", 0);
	done = mini_expect(fd, SBEET__TO_DAEMON__BODY_DONE);
	assert_int_equal(done->done->job, job);
	assert_true(done->done->cancelled);
	mini_free(done);
	begin_on(m, fd, 0);
}

static void gpus_that_are_none_are_refused(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);

	mini_do(m, "@0 job-gpu 12", -1); /* no job has begun */
	assert_int_equal(mini_said(m, "outside of a job"), 1);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 job-gpu 10", -1); /* GPU -1 */
	assert_int_equal(mini_said(m, "GPU -1, which this program does not see"), 1);
	mini_do(m, "@0 job-gpu 121", -1);
	assert_int_equal(mini_said(m, "GPU 0 twice"), 1);
	mini_do(m, "@0 job-gpu 0", -1); /* no GPU at all */
	mini_open_job(m, fd);		/* and its work runs as ever */
}

/* By sbeetd. */
static void refused_job_is_asked_for_by_its_work(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);

	mini_do(m, "@0 job-begin", 0);
	mini_tell(m, "@0 job-gpu 21");
	mini_error(fd, expect_choice(fd, "21"), SBEET__ERROR_CODE__ERROR_CODE_DENIED,
		   "GPU 0 is for others");
	mini_answers(m, "0 job-gpu -1");
	assert_int_equal(mini_said(m, "GPU 0 is for others"), 1);
	mini_open_job(m, fd);
}

/* A daemon that grants what was not asked for is not believed. */
static void grant_of_another_gpu_ends_the_connection(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);

	mini_do(m, "@0 job-begin", 0);
	mini_tell(m, "@0 job-gpu 12");
	grant_on(fd, expect_choice(fd, "12"), '3');
	mini_answers(m, "0 job-gpu -1");
	assert_int_equal(mini_said(m, "granted what was not asked for"), 1);
}

/* Its jobs ask nobody. */
static void steered_program_stays_on_its_first_gpu(void **state) {
	struct mini *m = *state;

	mini_make_page(m, true);
	mini_steer(m, 0);
	mini_begin(m, by_marks);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 job-gpu 12", 0);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 job-gpu 21", 1);
}

static void first_gpu_is_chosen_without_sbeetd(void **state) {
	struct mini *m = *state;

	mini_start(m, by_marks);
	mini_do(m, "@0 init", 0);
	mini_do(m, "@0 device 1", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 job-gpu 21", 1);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 job-end", 0);
}

/* An earlier job that lingers on one of the GPUs ends first. */
static void job_waits_for_the_one_before(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	uint64_t before = mini_open_job(m, fd), job;

	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_tell(m, "@0 job-gpu 21");
	mini_do(m, "@1 hold 0", 0);
	assert_int_equal(mini_done(fd, before).launches, 2);
	job = expect_choice(fd, "21");
	grant_on(fd, job, '1');
	mini_answers(m, "0 job-gpu 0");
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	assert_int_equal(mini_done(fd, job).launches, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(work_goes_where_the_job_is),
		MINI_CASE(job_keeps_its_gpu_between_waits),
		MINI_CASE(work_on_the_other_gpu_is_another_job),
		MINI_CASE(job_without_work_is_cancelled),
		MINI_CASE(gpus_that_are_none_are_refused),
		MINI_CASE(refused_job_is_asked_for_by_its_work),
		MINI_CASE(grant_of_another_gpu_ends_the_connection),
		MINI_CASE(steered_program_stays_on_its_first_gpu),
		MINI_CASE(first_gpu_is_chosen_without_sbeetd),
		MINI_CASE(job_waits_for_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
