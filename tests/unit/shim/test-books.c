/*
 * test-books.c: accounts of short jobs are sent together, and nothing that matters waits for them.
 * The connection, the terms and the GPU are replaced (the linker's --wrap); time is passed in.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "shim/books.h"
#include "shim/conn.h"
#include "shim/job-sums.h"
#include "shim/terms.h"

#define NEVER UINT64_MAX
#define MS    NSEC_PER_MSEC
#define START (1000 * MS)

/* Longer than accounts wait, whatever that is. */
#define LONG (1000 * MS)

static struct {
	struct {
		uint64_t job;
		bool began, done;
		uint64_t dropped;
	} list[4096];
	size_t n;
} told;

static size_t room = SIZE_MAX; /* for so many more */
static int answer;	       /* of the connection: its number, or why it takes nothing */
static bool steered;
static uint64_t number; /* of the last job */

/* Of all jobs. */
static const struct job_sums sums_of_job = {.launches = 1,
					    .copies = 2,
					    .bytes = 3,
					    .waves = 4,
					    .launched_ns = 5,
					    .kernel_end_ns = 6,
					    .unconfined = true,
					    .cold = true};

int __wrap_conn_tell(const Sbeet__ToDaemon *m, uint32_t over);
bool __wrap_conn_is_current(uint32_t connection);
bool __wrap_terms_held(void);
const uint8_t *__wrap_gpu_uuid(CUdevice device);

static void check_sums(const Sbeet__JobDone *done) {
	assert_int_equal(done->launches, sums_of_job.launches);
	assert_int_equal(done->copies, sums_of_job.copies);
	assert_int_equal(done->bytes, sums_of_job.bytes);
	assert_int_equal(done->waves, sums_of_job.waves);
	assert_int_equal(done->launched_ns, sums_of_job.launched_ns);
	assert_int_equal(done->kernel_end_ns, sums_of_job.kernel_end_ns);
	assert_true(done->unconfined);
	assert_true(done->cold);
}

int __wrap_conn_tell(const Sbeet__ToDaemon *m, uint32_t over) {
	bool began = m->body_case == SBEET__TO_DAEMON__BODY_BEGAN;
	const Sbeet__JobDone *done = began ? m->began->done : m->done;

	if (answer < 0 || room == 0) {
		return answer < 0 ? answer : -EAGAIN;
	}
	room--;
	if (over && over != (uint32_t)answer) {
		return -ESTALE;
	}
	assert_true(began || m->body_case == SBEET__TO_DAEMON__BODY_DONE);
	assert_true(told.n < sizeof(told.list) / sizeof(told.list[0]));
	told.list[told.n].job = began ? m->began->job : m->done->job;
	told.list[told.n].began = began;
	told.list[told.n].dropped = began ? m->began->dropped : 0;
	told.list[told.n++].done = done;
	if (done) {
		check_sums(done);
	}
	return answer;
}

bool __wrap_conn_is_current(uint32_t connection) {
	return connection && connection == (uint32_t)answer;
}

bool __wrap_terms_held(void) {
	return steered;
}

const uint8_t *__wrap_gpu_uuid(CUdevice device) {
	static const uint8_t uuid[PROTO_UUID_BYTES] = {1};

	(void)device;
	return uuid;
}

static uint64_t open_job(nsec_t at) {
	books_open(
		&(struct books_job){.job = ++number, .terms = 1, .release_ns = at, .began_ns = at});
	return number;
}

static void close_job(uint64_t job, nsec_t at) {
	books_close(job, at, &sums_of_job);
}

/* What the tracker does. Return: when it is to do that again. */
static nsec_t look(nsec_t now) {
	books_collect();
	return books_tell(now);
}

static void assert_told(size_t i, uint64_t job, bool began, bool done) {
	assert_true(i < told.n);
	assert_int_equal(told.list[i].job, job);
	assert_int_equal(told.list[i].began, began);
	assert_int_equal(told.list[i].done, done);
}

static int setup(void **state) {
	(void)state;
	books_after_fork();
	told.n = 0;
	answer = 7;
	room = SIZE_MAX;
	steered = true;
	return 0;
}

static void short_jobs_are_told_of_together(void **state) {
	uint64_t first = open_job(START), second;
	nsec_t due;

	(void)state;
	close_job(first, START + 1);
	due = look(START + 2);
	assert_int_equal(told.n, 0);
	assert_true(due > START + 2 && due != NEVER);
	second = open_job(START + 3);
	close_job(second, START + 4);
	assert_int_equal(look(due - 1), due); /* the older one says when */
	assert_int_equal(told.n, 0);
	assert_int_equal(look(due), NEVER);
	assert_int_equal(told.n, 2);
	assert_told(0, first, true, true);
	assert_told(1, second, true, true);
	assert_int_equal(look(due + LONG), NEVER);
	assert_int_equal(told.n, 2);
}

static void jobs_that_stay_open_are_told_of_soon(void **state) {
	uint64_t first = open_job(START), open;

	(void)state;
	close_job(first, START + 1);
	open = open_job(START + 2);
	assert_true(look(START + 3) != NEVER);
	assert_int_equal(told.n, 0);
	look(START + 2 + MS);
	assert_int_equal(told.n, 2); /* in order, so with what was before */
	assert_told(0, first, true, true);
	assert_told(1, open, true, false);
	close_job(open, START + 2 * MS);
	assert_int_equal(look(START + 2 * MS), NEVER);
	assert_int_equal(told.n, 3);
	assert_told(2, open, false, true);
}

static void many_jobs_do_not_wait(void **state) {
	(void)state;
	for (unsigned i = 0; i < 1000 && told.n == 0; i++) {
		close_job(open_job(START), START);
		look(START);
	}
	assert_in_range(told.n, 2, 200); /* the socket has room for them */
}

static void jobs_wait_for_room(void **state) {
	uint64_t job = open_job(START);
	nsec_t due;

	(void)state;
	close_job(job, START);
	due = look(START);
	answer = -EAGAIN;
	assert_in_range(look(due), due + 1, NEVER - 1);
	answer = 7;
	assert_int_equal(look(due + 1), NEVER);
	assert_int_equal(told.n, 1);
}

/* While a daemon is slow, jobs of very different ages wait for room. The oldest is told of first.
 */
static void jobs_are_told_of_in_order_whatever_was_dropped(void **state) {
	uint64_t before = number, n_dropped = 0;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned k = 0; k < 700 + 37 * i; k++) {
			close_job(open_job(START), START);
		}
		room = i < 39 ? 10 : SIZE_MAX;
		look(START + LONG);
	}
	assert_true(told.n > 1000);
	for (size_t i = 1; i < told.n; i++) {
		assert_true(told.list[i].job > told.list[i - 1].job);
		n_dropped += told.list[i].dropped;
	}
	/* Those that no message tells of are counted, once. */
	assert_true(n_dropped > 0);
	assert_int_equal(told.n + n_dropped, number - before);
}

static void nothing_waits_at_exit_or_without_terms(void **state) {
	uint64_t job = open_job(START);

	(void)state;
	close_job(job, START);
	look(START);
	books_collect();
	books_leave(START);
	assert_int_equal(told.n, 1);
	job = open_job(START);
	close_job(job, START);
	steered = false;
	assert_int_equal(look(START), NEVER); /* dropped */
	steered = true;
	assert_int_equal(look(START + LONG), NEVER);
	assert_int_equal(told.n, 1);
	close_job(open_job(START), START);
	look(START + LONG);
	assert_int_equal(told.n, 2);
	assert_int_equal(told.list[1].dropped, 1);
}

#define CASE(name) cmocka_unit_test_setup(name, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(short_jobs_are_told_of_together),
		CASE(jobs_that_stay_open_are_told_of_soon),
		CASE(many_jobs_do_not_wait),
		CASE(jobs_wait_for_room),
		CASE(jobs_are_told_of_in_order_whatever_was_dropped),
		CASE(nothing_waits_at_exit_or_without_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
