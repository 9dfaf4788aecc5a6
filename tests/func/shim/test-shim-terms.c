/*
 * test-shim-terms.c: libsbeet.so under a daemon that steers: jobs run where the terms say, nobody
 * is asked and nobody waits, whatever becomes of the daemon.
 *
 * As in test-shim.c, the test plays the daemon by hand.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mini.h"
#include "proto/limits.h"

/* More than the shim keeps, and more than fits into a socket. */
#define MANY_JOBS 5000

static const char *const no_wait[] = {"SBEET_WAIT=0s", NULL};

/* A guest that is steered. Return: the connection. */
static int begin_steered(struct mini *m, const char *const *environment) {
	mini_make_page(m, true);
	mini_steer(m, 0);
	return mini_begin(m, environment);
}

/* The next account is that of a job that has ended, with one launch. Return: its number. */
static uint64_t expect_account(struct mini *m, int fd) {
	uint64_t launches, job = mini_began(m, fd, &launches);

	if (launches == 0) { /* on a slow machine it was told of while it was open */
		launches = mini_done_after(fd, job, 1).launches;
	}
	assert_int_equal(launches, 1);
	return job;
}

static void terms_let_jobs_run_without_asking(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);
	uint64_t first;

	mini_do(m, "@0 jobs 3", 0);
	first = expect_account(m, fd);
	assert_int_equal(expect_account(m, fd), first + 1);
	assert_int_equal(expect_account(m, fd), first + 2);
	mini_do(m, "@0 launches", 3);
}

static void terms_are_read_for_each_job(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);
	uint64_t job;

	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
	mini_steer(m, -1);
	job = mini_open_job(m, fd);
	mini_do(m, "@0 sync", 0);
	mini_steer(m, 5);
	mini_do(m, "@0 jobs 1", 0);
	mini_done(fd, job);
	expect_account(m, fd);
}

static void open_jobs_are_told_of(void **state) {
	struct mini *m = *state;
	uint64_t launches, job;
	int fd = begin_steered(m, mini_plain);

	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch 2", 0);
	job = mini_began(m, fd, &launches);
	assert_int_equal(launches, 0);
	assert_true(mini_is_quiet(fd));
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done_after(fd, job, 2).launches, 2);
}

/* Jobs linger for an hour. */
static void open_jobs_end_at_exit(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);

	mini_do(m, "@0 launch", 0);
	mini_tell(m, "@0 exit 0");
	expect_account(m, fd);
	mini_free(mini_expect(fd, SBEET__TO_DAEMON__BODY_GOODBYE));
}

/* Each thread has jobs of its own. */
static void terms_hold_for_threads(void **state) {
	struct mini *m = *state;
	uint32_t tids[2];
	unsigned n = 0, n_open = 0;
	int fd;

	mini_make_page(m, true);
	mini_steer(m, 0);
	fd = mini_begin(m, mini_by_thread);
	mini_do(m, "@1 device", 0);
	mini_do(m, "@0 jobs 1", 0);
	mini_do(m, "@1 jobs 1", 0);
	while (n < 2) {
		Sbeet__ToDaemon *message = mini_next(fd);

		assert_non_null(message);
		if (message->body_case == SBEET__TO_DAEMON__BODY_BEGAN) {
			tids[n++] = message->began->tid;
			n_open += !message->began->done;
		} else { /* on a slow machine it was told of while it was open */
			assert_int_equal(message->body_case, SBEET__TO_DAEMON__BODY_DONE);
			assert_true(n_open-- > 0);
		}
		mini_free(message);
	}
	assert_true(tids[0] > 0 && tids[1] > 0 && tids[0] != tids[1]);
}

/* Of the next job that is over. */
static bool is_cold(struct mini *m, int fd) {
	Sbeet__ToDaemon *message;
	bool cold;

	mini_do(m, "@0 jobs 1", 0);
	message = mini_expect(fd, SBEET__TO_DAEMON__BODY_BEGAN);
	if (!message->began->done) { /* on a slow machine it was told of while it was open */
		mini_free(message);
		message = mini_expect(fd, SBEET__TO_DAEMON__BODY_DONE);
		cold = message->done->cold;
	} else {
		cold = message->began->done->cold;
	}
	mini_free(message);
	return cold;
}

static void jobs_that_load_code_are_cold(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);

	assert_true(is_cold(m, fd));
	assert_false(is_cold(m, fd));
	mini_do(m, "@0 module", 0);
	assert_true(is_cold(m, fd));
	assert_false(is_cold(m, fd));
}

/* Most of them go the way of the one before. */
static void launches_of_each_job_are_counted(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);

	mini_do(m, "@0 module", 0); /* the kernel is known */
	for (unsigned i = 1; i <= 3; i++) {
		uint64_t launches, job;

		mini_do(m, "@0 launch 4", 0);
		mini_do(m, "@0 stream-launch 3", 0);
		mini_do(m, "@0 launch 2", 0);
		mini_do(m, "@0 sync", 0);
		job = mini_began(m, fd, &launches);
		if (launches == 0) { /* on a slow machine it was told of while it was open */
			launches = mini_done_after(fd, job, 9).launches;
		}
		assert_int_equal(launches, 9);
		mini_do(m, "@0 launches", (int)(9 * i));
	}
}

/* ---- pages that can't be used ---- */

/* The guest asks for its job, and keeps no descriptor but that of the connection. */
static void expect_asking(struct mini *m) {
	char answer[MINI_ANSWER_MAX], expected[MINI_ANSWER_MAX];
	int fd;

	mini_listen(m);
	mini_start(m, mini_plain);
	mini_tell(m, "@0 descriptors");
	mini_answer(m, expected);
	expected[strlen(expected) - 1]++; /* the connection; there are few */
	mini_tell(m, "@0 init");
	fd = mini_accept(m);
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	mini_tell(m, "@0 descriptors");
	mini_answer(m, answer);
	assert_string_equal(answer, expected);
	mini_open_job(m, fd);
}

static void pages_that_may_shrink_are_refused(void **state) {
	struct mini *m = *state;

	mini_make_page(m, false);
	mini_steer(m, 0);
	expect_asking(m);
	assert_int_equal(mini_said(m, "page of terms"), 1);
}

static void short_pages_are_refused(void **state) {
	struct mini *m = *state;

	mini_make_page(m, false);
	mini_steer(m, 0);
	assert_int_equal(ftruncate(m->terms_fd, 8), 0);
	assert_int_equal(fcntl(m->terms_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	expect_asking(m);
	assert_int_equal(mini_said(m, "page of terms"), 1);
}

static void descriptors_that_nobody_asked_for_are_closed(void **state) {
	struct mini *m = *state;

	mini_make_page(m, true);
	mini_steer(m, 0);
	munmap(m->terms, sizeof(*m->terms));
	m->terms = NULL; /* the Welcome does not say that it comes */
	expect_asking(m);
	assert_int_equal(mini_said(m, "page of terms"), 0);
}

static void pages_of_other_gpus_and_versions_do_not_steer(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);
	uint64_t job;

	m->terms->gpu[1].uuid[0] = 3;
	job = mini_open_job(m, fd);
	mini_do(m, "@0 sync", 0);
	mini_done(fd, job);
	m->terms->gpu[1].uuid[0] = 1;
	m->terms->version++;
	mini_open_job(m, fd);
}

/* ---- the daemon dies, stops, comes back ---- */

static void terms_outlive_the_daemon_until_the_next_one(void **state) {
	static const char *const patient[] = {"SBEET_WAIT=3600s", NULL};
	struct mini *m = *state;
	int fd = begin_steered(m, patient);
	uint64_t job;

	mini_do(m, "@0 jobs 1", 0);
	job = expect_account(m, fd);
	mini_unlisten(m);
	close(fd);
	mini_do(m, "@0 jobs 100", 0); /* nobody there, and nobody waits */
	assert_int_equal(mini_said(m, "unmanaged"), 0);

	mini_make_page(m, true); /* another page, of another daemon */
	mini_steer(m, 0);
	mini_listen(m);
	fd = mini_accept(m);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(expect_account(m, fd), ++job);
	}
	mini_steer(m, 3);
	mini_do(m, "@0 jobs 1", 0);
	assert_int_equal(expect_account(m, fd), ++job);
}

/* The next daemon has the connection, and a page of its own. */
static void terms_come_with_a_connection_that_is_taken_over(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);
	uint64_t job;

	mini_do(m, "@0 jobs 1", 0);
	job = expect_account(m, fd);
	mini_make_page(m, true);
	mini_steer(m, 4);
	mini_welcome(m, fd);
	/* The tracker reads it; until then jobs have the terms of the last page. */
	for (bool now = false; !now;) {
		Sbeet__ToDaemon *message;

		mini_do(m, "@0 jobs 1", 0);
		message = mini_expect(fd, SBEET__TO_DAEMON__BODY_BEGAN);
		assert_int_equal(message->began->job, ++job);
		now = terms_unpack(message->began->terms).level == 4;
		if (!message->began->done) {
			mini_done_after(fd, job, 1);
		}
		mini_free(message);
	}
}

/* A job is open when the daemon dies: the next one hears of it, too. */
static void open_jobs_are_told_of_again(void **state) {
	static const char *const patient[] = {"SBEET_WAIT=3600s", NULL};
	struct mini *m = *state;
	int fd = begin_steered(m, patient);
	uint64_t launches, job;

	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch", 0);
	job = mini_began(m, fd, &launches);
	close(fd);
	fd = mini_accept(m);
	assert_int_equal(mini_began(m, fd, &launches), job);
	assert_int_equal(launches, 0);
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done_after(fd, job, 1).launches, 1);
}

static void terms_lapse_with_the_daemon(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, no_wait);

	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
	mini_unlisten(m);
	close(fd);
	/* The tracker notices; from then on jobs are asked for, in vain. */
	while (mini_said(m, "unmanaged") == 0) {
		mini_do(m, "@0 jobs 1", 0);
	}
	mini_do(m, "@0 jobs 10", 0);
}

static void terms_lapse_with_a_goodbye(void **state) {
	static const char *const patient[] = {"SBEET_WAIT=3600s", NULL};
	struct mini *m = *state;
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToShim message = SBEET__TO_SHIM__INIT;
	int fd = begin_steered(m, patient);

	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
	goodbye.reason = (char *)"the end";
	message.body_case = SBEET__TO_SHIM__BODY_GOODBYE;
	message.goodbye = &goodbye;
	mini_unlisten(m);
	mini_send(fd, &message);
	while (mini_said(m, "unmanaged") == 0) {
		mini_do(m, "@0 jobs 1", 0);
	}
	close(fd);
}

/* Stopped, or too slow: accounts are lost, and nothing else. */
static void nobody_waits_for_a_daemon_that_does_not_read(void **state) {
	struct mini *m = *state;
	uint64_t last = 0, told_open = 0, n = 0;
	int fd = begin_steered(m, mini_plain);

	for (int i = 0; i < 10; i++) {
		mini_do(m, "@0 jobs 500", 0);
	}
	mini_do(m, "@0 launches", MANY_JOBS);
	mini_tell(m, "@0 exit 0");
	/* What is there is in order, and each job in it was told of once; one that was open long
	 * enough to be told of may have its end told of, too. */
	for (;;) {
		Sbeet__ToDaemon *message = mini_next(fd);

		if (!message || message->body_case == SBEET__TO_DAEMON__BODY_GOODBYE) {
			if (message) {
				mini_free(message);
			}
			break;
		}
		if (message->body_case == SBEET__TO_DAEMON__BODY_DONE) {
			assert_int_equal(message->done->job, told_open);
			assert_int_equal(message->done->launches, 1);
			told_open = 0;
		} else {
			assert_int_equal(message->body_case, SBEET__TO_DAEMON__BODY_BEGAN);
			assert_true(message->began->job > last);
			last = message->began->job;
			told_open = message->began->done ? 0 : last;
			assert_true(told_open || message->began->done->launches == 1);
			n++;
		}
		mini_free(message);
	}
	assert_in_range(n, 1, MANY_JOBS);
}

static void revocations_are_for_jobs_that_were_granted(void **state) {
	struct mini *m = *state;
	Sbeet__Revoke revoke = SBEET__REVOKE__INIT;
	Sbeet__ToShim message = SBEET__TO_SHIM__INIT;
	uint64_t launches;
	int fd = begin_steered(m, mini_plain);

	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch", 0);
	revoke.job = mini_began(m, fd, &launches);
	revoke.reason = (char *)"for a test";
	message.body_case = SBEET__TO_SHIM__BODY_REVOKE;
	message.revoke = &revoke;
	mini_send(fd, &message);
	for (int i = 0; i < 100; i++) {
		mini_do(m, "@0 launch", 0); /* would wait for the end of what is held */
		usleep(100);
	}
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(mini_done_after(fd, revoke.job, 101).launches, 101);
}

/* ---- single operations ---- */

/* Reads accounts up to that of a job that is over. Return: how many operations were told before. */
static size_t read_account(int fd) {
	size_t n_ops = 0;
	bool over = false;

	while (!over) {
		Sbeet__ToDaemon *message = mini_next(fd);

		assert_non_null(message);
		if (message->body_case == SBEET__TO_DAEMON__BODY_OPS) {
			n_ops += message->ops->n_ops;
		} else if (message->body_case == SBEET__TO_DAEMON__BODY_BEGAN) {
			over = message->began->done != NULL;
		} else {
			over = message->body_case == SBEET__TO_DAEMON__BODY_DONE;
		}
		mini_free(message);
	}
	return n_ops;
}

static void pages_say_whether_operations_are_told(void **state) {
	struct mini *m = *state;
	int fd;

	m->counts = true;
	fd = begin_steered(m, mini_plain);
	mini_do(m, "@0 jobs 1", 0);
	assert_int_equal(read_account(fd), 0);
	atomic_store(&m->terms->record_ops, 1);
	mini_do(m, "@0 launch 6", 0);
	mini_do(m, "@0 sync", 0);
	assert_int_equal(read_account(fd), 6);
	atomic_store(&m->terms->record_ops, 0);
	mini_do(m, "@0 jobs 1", 0);
	assert_int_equal(read_account(fd), 0);
}

/* The tracker looks every now and then. */
static void operations_of_open_jobs_are_told_as_well(void **state) {
	struct mini *m = *state;
	bool told = false;
	int fd;

	m->counts = true;
	fd = begin_steered(m, mini_plain);
	mini_do(m, "@0 hold 1", 0);
	mini_do(m, "@0 launch", 0);
	atomic_store(&m->terms->record_ops, 1);
	while (!told) {
		mini_do(m, "@0 launch", 0);
		while (!told && !mini_is_quiet(fd)) {
			Sbeet__ToDaemon *message = mini_next(fd);

			assert_non_null(message);
			told = message->body_case == SBEET__TO_DAEMON__BODY_OPS;
			mini_free(message);
		}
	}
	mini_do(m, "@0 hold 0", 0);
	mini_do(m, "@0 sync", 0);
}

/* ---- fork ---- */

static void children_have_terms_of_their_own(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain), child;

	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
	mini_tell(m, "@0 fork");
	m->n_welcomes = 0; /* it shows no secret */
	mini_make_page(m, true);
	child = mini_accept(m);
	mini_grant(child, mini_request(child, NULL), WHOLE);
	mini_answers(m, "0 fork 0");
	close(child);
}

/* One that the C library does not tell of: it has no tracker, and sbeetd hears nothing. */
static void stray_children_do_no_harm(void **state) {
	struct mini *m = *state;
	int fd = begin_steered(m, mini_plain);

	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
	mini_do(m, "@0 bare-fork 2", 0);
	mini_do(m, "@0 jobs 1", 0);
	expect_account(m, fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		MINI_CASE(terms_let_jobs_run_without_asking),
		MINI_CASE(terms_are_read_for_each_job),
		MINI_CASE(open_jobs_are_told_of),
		MINI_CASE(open_jobs_end_at_exit),
		MINI_CASE(terms_hold_for_threads),
		MINI_CASE(jobs_that_load_code_are_cold),
		MINI_CASE(launches_of_each_job_are_counted),
		MINI_CASE(pages_that_may_shrink_are_refused),
		MINI_CASE(short_pages_are_refused),
		MINI_CASE(descriptors_that_nobody_asked_for_are_closed),
		MINI_CASE(pages_of_other_gpus_and_versions_do_not_steer),
		MINI_CASE(terms_outlive_the_daemon_until_the_next_one),
		MINI_CASE(terms_come_with_a_connection_that_is_taken_over),
		MINI_CASE(open_jobs_are_told_of_again),
		MINI_CASE(terms_lapse_with_the_daemon),
		MINI_CASE(terms_lapse_with_a_goodbye),
		MINI_CASE(nobody_waits_for_a_daemon_that_does_not_read),
		MINI_CASE(revocations_are_for_jobs_that_were_granted),
		MINI_CASE(pages_say_whether_operations_are_told),
		MINI_CASE(operations_of_open_jobs_are_told_as_well),
		MINI_CASE(children_have_terms_of_their_own),
		MINI_CASE(stray_children_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
