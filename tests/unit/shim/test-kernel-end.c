/*
 * test-kernel-end.c: when a thread that is measured waits for its kernels before it copies, and
 * what it notes. The driver's streams and the clock are the test's (the linker's --wrap): each
 * question takes a microsecond, and to nap is to set the clock.
 */
#include "shim/kernel-end.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/capture.h"
#include "shim/job-sums.h"
#include "shim/job.h"
#include "shim/lane.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/worker.h"

#define JOB	5
#define CONTEXT ((CUcontext)0x1000)
#define MS	NSEC_PER_MSEC
#define NEVER	UINT64_MAX

/* Streams by their handles; the legacy one is the first. */
static struct {
	struct real driver;
	nsec_t now;
	CUstream streams[3];
	nsec_t ends[3]; /* of what is in it */
	CUresult failure;
	unsigned n_questions;
} world;

static struct lane lane;

nsec_t __wrap_nsec_now(void);
nsec_t __wrap_nsec_now(void) {
	return world.now;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left) {
	world.now += (nsec_t)wanted->tv_sec * NSEC_PER_SEC + (nsec_t)wanted->tv_nsec;
	return 0;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	return &world.driver;
}

static CUresult stream_query(CUstream stream) {
	world.now += NSEC_PER_USEC;
	world.n_questions++;
	for (unsigned i = 0; i < 3; i++) {
		if (world.streams[i] == stream) {
			return world.failure		    ? world.failure
			       : world.now >= world.ends[i] ? CUDA_SUCCESS
							    : CUDA_ERROR_NOT_READY;
		}
	}
	fail();
	return CUDA_ERROR_INVALID_HANDLE;
}

/* A use of @stream, with so many launches that end then. */
static struct stream_use *use(unsigned stream, uint64_t launches, nsec_t end) {
	struct stream_id id = {.context = CONTEXT,
			       .stream = world.streams[stream],
			       .key = (uint64_t)(uintptr_t)world.streams[stream]};
	struct stream_use *u =
		worker_use(worker_get(), &lane, atomic_load(&lane.job), &id, world.streams[stream]);

	assert_non_null(u);
	atomic_store(&u->launches, launches);
	world.ends[stream] = end;
	return u;
}

static int begin(void **state) {
	uint64_t job = atomic_load(&lane.job);

	world.driver.cuStreamQuery = stream_query;
	world.now = 100 * MS;
	world.streams[0] = CU_STREAM_LEGACY;
	world.streams[1] = (CUstream)0x10;
	world.streams[2] = (CUstream)0x20;
	world.ends[0] = world.ends[1] = world.ends[2] = 0;
	world.failure = CUDA_SUCCESS;
	world.n_questions = 0;
	atomic_store(&state_mode, STATE_MODE_ON);
	atomic_store(&lane.state, LANE_OPEN);
	atomic_store(&lane.job, job ? job + 1 : JOB);
	return 0;
}

static nsec_t kernel_end(void) {
	struct job_sums sums;

	job_sum(&lane, &sums);
	return sums.kernel_end_ns;
}

static void a_copy_waits_for_the_kernels_before_it(void **state) {
	struct stream_use *u = use(1, 3, 300 * MS);

	assert_int_equal(kernel_end(), 0);
	kernel_end_wait(worker_get(), u, false);
	/* as late as a nap, which is a part of the time that was waited */
	assert_in_range(world.now, 300 * MS, 302 * MS);
	assert_in_range(kernel_end(), 300 * MS, world.now);
}

static void short_kernels_are_not_napped_over(void **state) {
	struct stream_use *u = use(1, 1, 101 * MS);

	kernel_end_wait(worker_get(), u, false);
	assert_in_range(kernel_end(), 101 * MS, 101 * MS + NSEC_PER_USEC);
}

static void nothing_is_asked_where_nothing_was_launched_since(void **state) {
	struct stream_use *u = use(1, 0, NEVER);
	nsec_t end;

	kernel_end_wait(worker_get(), u, true);
	assert_int_equal(world.n_questions, 0);
	u = use(1, 1, 101 * MS);
	kernel_end_wait(worker_get(), u, true);
	end = kernel_end();
	assert_true(end > 0);
	world.n_questions = 0;
	world.ends[1] = NEVER; /* a copy */
	kernel_end_wait(worker_get(), u, true);
	assert_int_equal(world.n_questions, 0);
	assert_int_equal(kernel_end(), end);
}

/* It may be what its kernel waits for. */
static void copies_that_would_not_wait_do_so_for_a_second(void **state) {
	struct stream_use *u = use(1, 1, 5000 * MS);

	kernel_end_wait(worker_get(), u, false);
	assert_in_range(world.now, 1100 * MS, 1110 * MS);
	assert_int_equal(kernel_end(), 0);
	kernel_end_wait(worker_get(), u, true);
	assert_in_range(kernel_end(), 5000 * MS, 5040 * MS);
}

static void a_launch_after_the_copy_leaves_the_end_unknown(void **state) {
	struct stream_use *u = use(1, 1, 101 * MS);

	kernel_end_wait(worker_get(), u, false);
	assert_true(kernel_end() > 0);
	atomic_store(&u->launches, 2);
	assert_int_equal(kernel_end(), 0);
	world.ends[1] = 200 * MS;
	kernel_end_wait(worker_get(), u, false);
	assert_true(kernel_end() >= 200 * MS);
}

static void another_stream_must_have_ended_too(void **state) {
	struct stream_use *kernels = use(1, 1, 120 * MS), *copies = use(2, 0, 0);

	kernel_end_wait(worker_get(), copies, true); /* does not wait for it, so nor do we */
	assert_in_range(world.now, 100 * MS, 101 * MS);
	assert_int_equal(kernel_end(), 0);
	world.ends[2] = 150 * MS; /* waits for an event of the other one, perhaps */
	kernel_end_wait(worker_get(), copies, true);
	assert_in_range(kernel_end(), 150 * MS, 151 * MS);
	assert_int_equal(atomic_load(&kernels->n_ended), 1);
}

static void the_legacy_stream_comes_after_blocking_ones(void **state) {
	struct stream_use *kernels = use(1, 1, 150 * MS), *copies = use(0, 0, 0);

	atomic_store(&kernels->blocking, true);
	kernel_end_wait(worker_get(), copies, true);
	assert_in_range(kernel_end(), 150 * MS, 151 * MS);
}

static void other_jobs_and_contexts_are_let_alone(void **state) {
	struct stream_use *other = use(1, 1, NEVER), *copies;

	atomic_store(&other->context, (CUcontext)0x2000);
	copies = use(2, 0, 0);
	kernel_end_wait(worker_get(), copies, true);
	assert_int_equal(world.n_questions, 0);
	atomic_store(&other->context, CONTEXT);
	atomic_store(&other->job, atomic_load(&lane.job) - 1);
	kernel_end_wait(worker_get(), copies, true);
	assert_int_equal(world.n_questions, 0);
	atomic_store(&other->job, 0);
}

static void nothing_is_asked_while_somebody_captures(void **state) {
	struct stream_use *u = use(1, 1, NEVER);

	atomic_store(&capture_count, 1);
	kernel_end_wait(worker_get(), u, true);
	atomic_store(&capture_count, 0);
	assert_int_equal(world.n_questions, 0);
	assert_int_equal(kernel_end(), 0);
}

static void what_cannot_be_asked_stays_unknown(void **state) {
	struct stream_use *u = use(1, 1, NEVER);

	world.failure = CUDA_ERROR_LAUNCH_FAILED;
	kernel_end_wait(worker_get(), u, true);
	assert_int_equal(world.n_questions, 1);
	assert_int_equal(kernel_end(), 0);
	atomic_store(&u->stream, NULL); /* it is gone */
	kernel_end_wait(worker_get(), u, true);
	assert_int_equal(world.n_questions, 1);
	atomic_store(&u->stream, world.streams[1]);
	atomic_store(&state_mode, STATE_MODE_OFF); /* the process ends */
	kernel_end_wait(worker_get(), u, true);
	assert_int_equal(world.n_questions, 1);
}

static void the_next_job_begins_anew(void **state) {
	struct stream_use *u = use(1, 1, 0);

	kernel_end_wait(worker_get(), u, true);
	assert_true(kernel_end() > 0);
	atomic_fetch_add(&lane.job, 1);
	u = use(1, 1, NEVER);
	assert_int_equal(kernel_end(), 0);
}

static _Atomic unsigned n_asking, n_met;

static void *ask_often(void *data) {
	for (unsigned i = 0; i < 20000; i++) {
		question_begin();
		if (atomic_fetch_add(&n_asking, 1) > 0) {
			atomic_fetch_add(&n_met, 1);
		}
		sched_yield();
		atomic_fetch_sub(&n_asking, 1);
		question_end();
	}
	return data;
}

/* Or who waits for the end of a question would take two for none. */
static void threads_ask_one_at_a_time(void **state) {
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, ask_often, NULL), 0);
	ask_often(NULL);
	question_settle(0);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(n_met, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_copy_waits_for_the_kernels_before_it, begin),
		cmocka_unit_test_setup(short_kernels_are_not_napped_over, begin),
		cmocka_unit_test_setup(nothing_is_asked_where_nothing_was_launched_since, begin),
		cmocka_unit_test_setup(copies_that_would_not_wait_do_so_for_a_second, begin),
		cmocka_unit_test_setup(a_launch_after_the_copy_leaves_the_end_unknown, begin),
		cmocka_unit_test_setup(another_stream_must_have_ended_too, begin),
		cmocka_unit_test_setup(the_legacy_stream_comes_after_blocking_ones, begin),
		cmocka_unit_test_setup(other_jobs_and_contexts_are_let_alone, begin),
		cmocka_unit_test_setup(nothing_is_asked_while_somebody_captures, begin),
		cmocka_unit_test_setup(what_cannot_be_asked_stays_unknown, begin),
		cmocka_unit_test_setup(the_next_job_begins_anew, begin),
		cmocka_unit_test(threads_ask_one_at_a_time),
	};

	return cmocka_run_group_tests_name("kernel-end", tests, NULL, NULL);
}
