/*
 * test-track.c: streams and contexts go while other threads have worked there, and threads while
 * they wait. The driver is the test's.
 */
#include "shim/real.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/hooks.h"
#include "shim/lane.h"
#include "shim/track.h"
#include "shim/worker.h"

#define CONTEXT	  ((CUcontext)0x10)
#define ANOTHER	  ((CUcontext)0x20)
#define GOES	  ((CUstream)0x100)
#define STAYS	  ((CUstream)0x200)
#define FOREIGN	  ((CUstream)0x400) /* of CONTEXT */
#define EVENT	  ((CUevent)0x300)
#define FIRST_JOB 1

static struct lane lane;

static struct {
	CUstream recorded;
	unsigned n_events, n_destroyed;
} driver;

/* The thread whose entry it is. */
static struct {
	_Atomic(struct stream_use *) use;
	_Atomic bool may_go_on, waits, is_done;
} owner;

/* ---- the driver ---- */

static CUresult context_push(CUcontext context) {
	assert_ptr_equal(context, CONTEXT);
	return CUDA_SUCCESS;
}

static CUresult context_pop(CUcontext *context) {
	*context = CONTEXT;
	return CUDA_SUCCESS;
}

/* The owner goes on to another job as far as it can. */
static CUresult event_create(CUevent *event, unsigned flags) {
	(void)flags;
	atomic_store(&owner.may_go_on, true);
	while (!atomic_load(&owner.waits) && !atomic_load(&owner.is_done)) {
		sched_yield();
	}
	driver.n_events++;
	*event = EVENT;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream) {
	assert_ptr_equal(event, EVENT);
	driver.recorded = stream;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event) {
	assert_ptr_equal(event, EVENT);
	driver.n_destroyed++;
	return CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, CUcontext *context) {
	*context = CONTEXT;
	return stream == FOREIGN ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Until the thread is cancelled. */
static CUresult stream_wait(CUstream stream) {
	(void)stream;
	while (pause() < 0) {
	}
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuCtxPushCurrent_v2 = context_push,
		.cuCtxPopCurrent_v2 = context_pop,
		.cuEventCreate = event_create,
		.cuEventRecord = event_record,
		.cuEventDestroy_v2 = event_destroy,
		.cuStreamGetCtx = stream_context,
		.cuStreamSynchronize = stream_wait,
	};

	return &real;
}

/* Of a futex, that another thread is waited for. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
	(void)number;
	atomic_store(&owner.waits, true);
	sched_yield();
	return 0;
}

/* ---- the program ---- */

static struct stream_use *use(uint64_t job, CUcontext context, CUstream stream) {
	struct worker *w = worker_get();
	struct stream_id id = worker_stream(w, context, stream, false);
	struct stream_use *u;

	atomic_store(&lane.job, job);
	atomic_store(&lane.state, LANE_OPEN);
	u = worker_use(w, &lane, job, &id, stream);
	assert_non_null(u);
	return u;
}

static int setup(void **state) {
	(void)state;
	memset(&driver, 0, sizeof(driver));
	memset(&owner, 0, sizeof(owner));
	return 0;
}

static void *work_in_two_jobs(void *data) {
	struct stream_use *u = use(FIRST_JOB, CONTEXT, GOES);

	(void)data;
	atomic_store(&u->last, point_now());
	atomic_store(&owner.use, u);
	while (!atomic_load(&owner.may_go_on)) {
		sched_yield();
	}
	assert_ptr_equal(use(FIRST_JOB + 1, CONTEXT, STAYS), u);
	atomic_store(&owner.is_done, true);
	return NULL;
}

/* A thread goes on to another job and stream while the one that it had before goes. */
static void another_streams_entry_is_left_alone(void **state) {
	struct stream_use *u;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, work_in_two_jobs, NULL), 0);
	while (!(u = atomic_load(&owner.use))) {
		sched_yield();
	}
	track_stream_going(GOES);
	atomic_store(&owner.may_go_on, true);
	pthread_join(thread, NULL);
	assert_ptr_equal(driver.recorded, GOES);
	assert_int_equal(atomic_load(&u->key), (uintptr_t)STAYS);
	assert_ptr_equal(atomic_load(&u->stream), STAYS);
	assert_int_equal(atomic_load(&u->event_point), 0);
	assert_null(atomic_load(&u->event));
	assert_int_equal(driver.n_destroyed, driver.n_events);
}

static void a_context_takes_its_events_with_it(void **state) {
	struct stream_use *u = use(FIRST_JOB, CONTEXT, GOES), *other;

	(void)state;
	other = use(FIRST_JOB, ANOTHER, STAYS);
	atomic_store(&u->last, point_now());
	atomic_store(&other->last, point_now());
	atomic_store(&owner.is_done, true);
	track_stream_going(GOES);
	assert_ptr_equal(atomic_load(&u->event), EVENT);
	assert_int_equal(atomic_load(&u->done), 0);
	track_context_going(CONTEXT);
	assert_null(atomic_load(&u->event));
	assert_int_equal(atomic_load(&u->done), POINT_NEVER);
	assert_int_equal(atomic_load(&other->done), 0);
	assert_ptr_equal(use(FIRST_JOB + 1, ANOTHER, GOES), u);
	assert_int_equal(driver.n_destroyed, 0);
}

/* A copy was given to a stream of another context than the current one. */
static void a_stream_goes_with_its_own_context(void **state) {
	struct stream_use *u = use(FIRST_JOB, ANOTHER, FOREIGN);

	(void)state;
	atomic_store(&u->last, point_now());
	track_context_going(ANOTHER);
	assert_int_equal(atomic_load(&u->done), 0);
	track_context_going(CONTEXT);
	assert_int_equal(atomic_load(&u->done), POINT_NEVER);
	assert_int_equal(atomic_load(&u->key), 0);
}

static void *wait_for_ever(void *data) {
	(void)data;
	on_cuStreamSynchronize(STAYS);
	return NULL;
}

static void a_thread_that_is_cancelled_waits_no_more(void **state) {
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
	while (atomic_load(&worker_waiting) == 0) {
		sched_yield();
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&worker_waiting), 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		CASE(another_streams_entry_is_left_alone),
		CASE(a_context_takes_its_events_with_it),
		CASE(a_stream_goes_with_its_own_context),
		CASE(a_thread_that_is_cancelled_waits_no_more),
	};

	return cmocka_run_group_tests_name("track", tests, NULL, NULL);
}
