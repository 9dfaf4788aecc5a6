/*
 * test-shim-marks.c: what the guest marks by sbeet.h: under SBEET_JOB=marks that alone makes jobs,
 * else it tells their releases.
 *
 * As in test-shim.c, the test plays the daemon by hand. Jobs linger for an hour.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mini.h"

static const char *const by_marks[] = {"SBEET_JOB=marks", NULL};
static const char *const by_marks_and_thread[] = {"SBEET_JOB=marks", "SBEET_SCOPE=thread", NULL};

/* What a Request says of its times. */
struct asked {
	uint64_t job;
	nsec_t called, marked, deadline;
};

/* The guest's thread @thread launches, which must ask for a job; it is granted. */
static struct asked launch(struct mini *m, int fd, int thread) {
	Sbeet__ToDaemon *message;
	struct asked a;
	char line[32];

	snprintf(line, sizeof(line), "@%d launch", thread);
	mini_tell(m, line);
	message = mini_next(fd);
	while (message && message->body_case == SBEET__TO_DAEMON__BODY_OPS) {
		mini_free(message); /* of another thread's job */
		message = mini_next(fd);
	}
	assert_non_null(message);
	assert_int_equal(message->body_case, SBEET__TO_DAEMON__BODY_REQUEST);
	a = (struct asked){
		.job = message->request->job,
		.called = message->request->release_ns,
		.marked = message->request->marked_ns,
		.deadline = message->request->own_deadline_ns,
	};
	mini_free(message);
	mini_grant(fd, a.job, WHOLE);
	snprintf(line, sizeof(line), "%d launch 0", thread);
	mini_answers(m, line);
	return a;
}

/* Only what is between the marks is a job, however often the program waits meanwhile. */
static void marks_alone_make_jobs(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a;

	for (int i = 0; i < 3; i++) {
		mini_do(m, "@0 launch 5", 0); /* nobody's */
		mini_do(m, "@0 sync", 0);
		mini_do(m, "@0 job-begin", 0);
		a = launch(m, fd, 0);
		assert_true(a.marked > 0 && a.marked <= a.called);
		assert_int_equal(a.deadline, 0);
		mini_do(m, "@0 sync", 0);
		mini_do(m, "@0 launch 2", 0);
		mini_do(m, "@0 sync", 0);
		mini_do(m, "@0 fetch", 0);
		mini_do(m, "@0 job-end", 0);
		assert_int_equal(mini_done(fd, a.job).launches, 3);
	}
	mini_do(m, "@0 launches", 24);
}

/* Launches outside of marks are counted by kernel all the same. */
static void what_is_nobodys_is_counted(void **state) {
	struct mini *m = *state;
	uint64_t launches = 0;
	struct asked a;
	int fd;

	m->counts = true;
	fd = mini_begin(m, by_marks);
	mini_do(m, "@0 module", 0);
	mini_do(m, "@0 launch 7", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_tell(m, "@0 copy");
	a.job = mini_request(fd, NULL);
	mini_grant(fd, a.job, WHOLE);
	mini_answers(m, "0 copy 0");
	while (launches < 7) {
		Sbeet__ToDaemon *message = mini_next(fd);

		assert_non_null(message);
		if (message->body_case == SBEET__TO_DAEMON__BODY_COUNTS &&
		    message->counts->n_kernels > 0) {
			launches = message->counts->kernels[0]->launches;
		}
		mini_free(message);
	}
	assert_int_equal(launches, 7);
}

/* The end mark waits for nothing, and the end of the job for nothing but its own work. */
static void marked_job_is_over_when_its_work_is_complete(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a;

	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 job-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@0 job-end", 0);
	mini_do(m, "@0 launch 2", 0); /* nobody's */
	mini_do(m, "@0 hold 0", 0);
	assert_int_equal(mini_done(fd, a.job).launches, 1);
}

static void release_and_deadline_are_told(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a;

	mini_do(m, "@0 job-begin 250000", 0);
	a = launch(m, fd, 0);
	assert_true(a.marked > 0 && a.called - a.marked >= 250 * NSEC_PER_MSEC);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	mini_done(fd, a.job);

	mini_do(m, "@0 job-begin -60000000", 0); /* in a minute */
	a = launch(m, fd, 0);
	assert_true(a.marked > 0 && a.marked <= a.called);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	mini_done(fd, a.job);

	mini_do(m, "@0 job-begin-within 20000", 0);
	a = launch(m, fd, 0);
	assert_true(a.marked > 0);
	assert_int_equal(a.deadline, 20 * NSEC_PER_MSEC);
}

/* Without SBEET_JOB=marks jobs are made as ever; the next one after the mark has its release. */
static void marks_tell_the_release_of_the_next_job_by_default(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, mini_plain);
	struct asked a = launch(m, fd, 0);

	assert_int_equal(a.marked, 0);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, a.job);
	mini_do(m, "@0 job-begin-within 5000", 0);
	a = launch(m, fd, 0);
	assert_true(a.marked > 0);
	assert_int_equal(a.deadline, 5 * NSEC_PER_MSEC);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, a.job);
	a = launch(m, fd, 0);
	assert_int_equal(a.marked, 0);
	assert_int_equal(a.deadline, 0);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, a.job);
	mini_do(m, "@0 job-end", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 job-end", 0); /* there was no job */
	a = launch(m, fd, 0);
	assert_int_equal(a.marked, 0);
}

/* Each part is asked for by itself, with the release of the job. */
static void segments_keep_the_gpu_only_within(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a, b;

	mini_do(m, "@0 segment-begin", 0); /* of no job */
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 segment-end", 0);
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 segment-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 segment-end", 0);
	assert_int_equal(mini_done(fd, a.job).launches, 2);
	b = launch(m, fd, 0); /* between two */
	assert_int_equal(b.marked, a.marked);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, b.job);
	mini_do(m, "@0 segment-begin", 0);
	b = launch(m, fd, 0);
	assert_int_equal(b.marked, a.marked);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	assert_int_equal(mini_done(fd, b.job).launches, 1);
	mini_do(m, "@0 segment-end", 0);
}

static void marks_nest(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a;

	mini_do(m, "@0 job-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@1 job-begin", 0);
	mini_do(m, "@1 launch", 0);
	mini_do(m, "@1 sync", 0);
	mini_do(m, "@0 job-end", 0);
	mini_do(m, "@1 launch", 0);
	mini_do(m, "@1 sync", 0);
	mini_do(m, "@1 job-end", 0);
	assert_int_equal(mini_done(fd, a.job).launches, 3);
	assert_int_equal(mini_said(m, "but not its begin"), 0);
	mini_do(m, "@1 job-end", 0);
	assert_int_equal(mini_said(m, "but not its begin"), 1);
	mini_do(m, "@1 launch", 0); /* nobody's */
	mini_do(m, "@1 job-begin", 0);
	launch(m, fd, 1);
}

/* Until the end of @job, whatever else is told. Return: how many launches it had. */
static uint64_t launches_of(int fd, uint64_t job) {
	uint64_t launches = UINT64_MAX;

	while (launches == UINT64_MAX) {
		Sbeet__ToDaemon *message = mini_next(fd);

		assert_non_null(message);
		if (message->body_case == SBEET__TO_DAEMON__BODY_DONE) {
			assert_int_equal(message->done->job, job);
			launches = message->done->launches;
		}
		mini_free(message);
	}
	return launches;
}

static void threads_have_marks_of_their_own(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks_and_thread);
	struct asked a, b;

	mini_do(m, "@1 device", 0);
	mini_do(m, "@0 job-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@1 launch", 0); /* nobody's */
	mini_do(m, "@1 job-begin", 0);
	b = launch(m, fd, 1);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	assert_int_equal(launches_of(fd, a.job), 1);
	mini_do(m, "@1 launch", 0);
	mini_do(m, "@1 sync", 0);
	mini_do(m, "@1 job-end", 0);
	assert_int_equal(launches_of(fd, b.job), 2);
	mini_do(m, "@1 job-begin", 0);
	b = launch(m, fd, 1);
	mini_do(m, "@1 sync", 0);
	mini_tell(m, "@1 end"); /* its thread exits without the end mark */
	assert_int_equal(launches_of(fd, b.job), 1);
}

static void send_revoke(int fd, uint64_t job) {
	Sbeet__Revoke revoke = SBEET__REVOKE__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	revoke.job = job;
	revoke.reason = (char *)"test";
	m.body_case = SBEET__TO_SHIM__BODY_REVOKE;
	m.revoke = &revoke;
	mini_send(fd, &m);
}

/* sbeetd gets the SMs back, and what is left of the job asks again. */
static void marked_job_that_is_revoked_goes_on_as_another(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a, b;

	mini_do(m, "@0 job-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@0 sync", 0);
	send_revoke(fd, a.job);
	assert_int_equal(mini_done(fd, a.job).launches, 1);
	b = launch(m, fd, 0);
	assert_int_equal(b.marked, a.marked);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	assert_int_equal(mini_done(fd, b.job).launches, 1);
}

static void marked_job_ends_with_its_context(void **state) {
	struct mini *m = *state;
	int fd = mini_begin(m, by_marks);
	struct asked a;

	mini_do(m, "@0 job-begin", 0);
	a = launch(m, fd, 0);
	mini_do(m, "@0 context-destroy", 0);
	assert_int_equal(mini_done(fd, a.job).launches, 1);
	mini_do(m, "@0 job-end", 0);
}

/* The next message is the account of a job of @launches, whose end is in it, or follows where the
 * job was open for a while. Return: its release. */
static nsec_t expect_account(struct mini *m, int fd, uint64_t launches) {
	Sbeet__ToDaemon *message = mini_expect(fd, SBEET__TO_DAEMON__BODY_BEGAN);
	nsec_t marked = message->began->marked_ns;
	uint64_t job = message->began->job;

	assert_true(marked <= message->began->began_ns);
	if (message->began->done) {
		assert_int_equal(message->began->done->launches, launches);
	} else {
		assert_int_equal(mini_done_after(fd, job, launches).launches, launches);
	}
	mini_free(message);
	return marked;
}

/* Nobody is asked, and the begin of a job is not held up. */
static void steered_jobs_begin_at_their_marks(void **state) {
	struct mini *m = *state;
	int fd;

	mini_make_page(m, true);
	mini_steer(m, 0);
	fd = mini_begin(m, by_marks);
	mini_do(m, "@0 launch", 0); /* nobody's */
	mini_do(m, "@0 job-begin", 0);
	mini_do(m, "@0 launch", 0);
	mini_do(m, "@0 launch 2", 0);
	mini_do(m, "@0 sync", 0);
	mini_do(m, "@0 job-end", 0);
	mini_do(m, "@0 launch", 0); /* nobody's */
	assert_true(expect_account(m, fd, 3) > 0);
}

/* The account of a job that has ended, told of while it was open or not. Return: its launches. */
static uint64_t next_account(struct mini *m, int fd) {
	uint64_t launches = 0;

	while (launches == 0) {
		Sbeet__ToDaemon *message = mini_next(fd);

		assert_non_null(message);
		if (message->body_case == SBEET__TO_DAEMON__BODY_DONE) {
			launches = message->done->launches;
		} else if (message->body_case == SBEET__TO_DAEMON__BODY_BEGAN &&
			   message->began->done) {
			launches = message->began->done->launches;
		}
		mini_free(message);
	}
	return launches;
}

/* Frames that are not complete when the next one begins hold up nobody, and are told of one by one,
 * in whatever order they are complete. */
static void steered_jobs_wait_for_no_other(void **state) {
	struct mini *m = *state;
	uint64_t sum = 0;
	int fd;

	mini_make_page(m, true);
	mini_steer(m, 0);
	fd = mini_begin(m, by_marks);
	mini_do(m, "@0 hold 1", 0);
	for (int i = 1; i <= 5; i++) {
		char line[32];

		mini_do(m, "@0 job-begin", 0);
		snprintf(line, sizeof(line), "@0 launch %d", 1 << i);
		mini_do(m, line, 0);
		mini_do(m, "@0 job-end", 0);
	}
	mini_do(m, "@0 hold 0", 0);
	for (int i = 1; i <= 5; i++) {
		uint64_t launches = next_account(m, fd);

		assert_int_equal(launches & (launches - 1), 0);
		assert_int_equal(sum & launches, 0);
		sum |= launches;
	}
	assert_int_equal(sum, 62);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(marks_alone_make_jobs),
		MINI_CASE(what_is_nobodys_is_counted),
		MINI_CASE(marked_job_is_over_when_its_work_is_complete),
		MINI_CASE(release_and_deadline_are_told),
		MINI_CASE(marks_tell_the_release_of_the_next_job_by_default),
		MINI_CASE(segments_keep_the_gpu_only_within),
		MINI_CASE(marks_nest),
		MINI_CASE(threads_have_marks_of_their_own),
		MINI_CASE(marked_job_that_is_revoked_goes_on_as_another),
		MINI_CASE(marked_job_ends_with_its_context),
		MINI_CASE(steered_jobs_begin_at_their_marks),
		MINI_CASE(steered_jobs_wait_for_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
