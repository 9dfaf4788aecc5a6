/*
 * test-job.c: who may enter a job and when it is over, with several threads and on a clock that the
 * test sets. The driver, the daemon, the tracker's thread and the futex are pretended (the linker's
 * --wrap): to sleep is to set the clock, after something has been done meanwhile.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "shim/conn.h"
#include "shim/hooks.h"
#include "shim/host-function.h"
#include "shim/job.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/point.h"
#include "shim/real.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/track.h"
#include "shim/wait.h"
#include "shim/worker.h"

#define SMID_MASK  (1u << SBEET__ENFORCEMENT__ENFORCEMENT_SMID)
#define WHOLE_MASK (1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)
#define CONTEXT	   ((CUcontext)0x1000)

static struct {
	struct real driver;
	CUcontext context; /* the current one */
	unsigned n_met;	   /* how often the driver was asked for its device */
	nsec_t now, slept;
	void (*meanwhile)(void); /* while somebody sleeps on a lane; once */
	void (*closing)(void);	 /* while a job is CLOSING, when its end is reported; once */
	void (*at_exit)(void);
	void (*nap)(void); /* while somebody sleeps */
	uint32_t asked;	   /* the last request's mask */
	unsigned n_asked, n_done, n_stopped;
	uint64_t asked_for, launches; /* the last request's job; of the last JobDone */
	bool whole_job;		      /* as the next grant says */
	bool gone;		      /* sbeetd is */
	bool left;		      /* conn_leave() was called, with the lane in this state: */
	uint32_t left_in;
	uint64_t word;		/* of terms; 0: sbeetd is asked */
	uint64_t due;		/* of the open job, as the board says */
	struct seat_needs said; /* there, last */
	uint64_t due_then;	/* what the board said when that was written */
} world;

static struct lane *lane;

/* ---- the world ---- */

const struct real *__wrap_real_get(void);
nsec_t __wrap_nsec_now(void);
long __wrap_syscall(long number, ...);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*f)(void *),
			  void *data);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*f)(void *),
			  void *data);
int __wrap_atexit(void (*f)(void));
bool __wrap_conn_worth_asking(void);
int __wrap_conn_request(const struct conn_ask *ask, struct enforce_grant *ret);
int __wrap_conn_send(uint64_t job, const Sbeet__ToDaemon *m);
void __wrap_conn_leave(void);
int __wrap_enforce_prepare(CUcontext context, const struct enforce_grant *grant,
			   struct enforce_set *ret);
uint64_t __wrap_enforce_outside_blocks(CUcontext context);
bool __wrap_terms_held(void);
uint64_t __wrap_terms_now(CUdevice device, uint64_t known);
nsec_t __wrap_terms_deadline(CUdevice device);
bool __wrap_terms_next(CUdevice device, struct terms_next *ret);
void __wrap_seat_due_changed(CUdevice device);
void __wrap_seat_needs(CUdevice device, const struct seat_needs *needs);

const struct real *__wrap_real_get(void) {
	return &world.driver;
}

nsec_t __wrap_nsec_now(void) {
	return world.now;
}

static void once(void (**f)(void)) {
	void (*call)(void) = *f;

	*f = NULL;
	if (call) {
		call();
	}
}

/* Of futexes only, which is all that the shim asks for in this way here. */
long __wrap_syscall(long number, ...) {
	const struct timespec *limit;
	va_list args;
	int what;

	assert_int_equal(number, SYS_futex);
	va_start(args, number);
	va_arg(args, void *);
	what = va_arg(args, int);
	va_arg(args, uint32_t);
	limit = va_arg(args, const struct timespec *);
	va_end(args);
	if (what == FUTEX_WAIT_PRIVATE) {
		if (world.meanwhile) {
			once(&world.meanwhile);
			return 0;
		}
		assert_non_null(limit); /* or this would last for ever */
		world.slept += (nsec_t)limit->tv_sec * NSEC_PER_SEC + (nsec_t)limit->tv_nsec;
		world.now += (nsec_t)limit->tv_sec * NSEC_PER_SEC + (nsec_t)limit->tv_nsec;
	}
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left) {
	once(&world.nap);
	world.now += (nsec_t)t->tv_sec * NSEC_PER_SEC + (nsec_t)t->tv_nsec;
	return 0;
}

static void *do_nothing(void *data) {
	return data;
}

/* The tracker never looks. */
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*f)(void *),
			  void *data) {
	return __real_pthread_create(ret, attr, do_nothing, NULL);
}

int __wrap_atexit(void (*f)(void)) {
	world.at_exit = f;
	return 0;
}

bool __wrap_conn_worth_asking(void) {
	return true;
}

/* Half of the GPU to whoever can do with it. */
int __wrap_conn_request(const struct conn_ask *ask, struct enforce_grant *ret) {
	world.asked = ask->enforcement_mask;
	world.n_asked++;
	world.asked_for = ask->job;
	*ret = (struct enforce_grant){
		.enforcement = ask->enforcement_mask & SMID_MASK
				       ? SBEET__ENFORCEMENT__ENFORCEMENT_SMID
				       : SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE,
		.gpu_sms = 8,
		.whole_job = world.whole_job,
	};
	ret->sms = smset_range(0, ask->enforcement_mask & SMID_MASK ? 4 : 8);
	return 0;
}

int __wrap_conn_send(uint64_t job, const Sbeet__ToDaemon *m) {
	if (m->body_case == SBEET__TO_DAEMON__BODY_DONE) {
		world.n_done++;
		assert_int_equal(m->done->job, job);
		assert_int_equal(atomic_load(&lane->state), LANE_CLOSING);
		world.launches = m->done->copies;
		once(&world.closing);
	} else if (m->body_case == SBEET__TO_DAEMON__BODY_STOPPED) {
		world.n_stopped += !world.gone;
		assert_int_equal(m->stopped->job, job);
		assert_int_equal(atomic_load(&lane->state), LANE_CLOSING);
	}
	return world.gone ? -ENOTCONN : 0;
}

void __wrap_conn_leave(void) {
	world.left = true;
	world.left_in = atomic_load(&lane->state);
}

int __wrap_enforce_prepare(CUcontext context, const struct enforce_grant *grant,
			   struct enforce_set *ret) {
	return 0;
}

uint64_t __wrap_enforce_outside_blocks(CUcontext context) {
	return 0;
}

bool __wrap_terms_held(void) {
	return world.word != 0;
}

uint64_t __wrap_terms_now(CUdevice device, uint64_t known) {
	return world.word;
}

nsec_t __wrap_terms_deadline(CUdevice device) {
	return 12 * NSEC_PER_MSEC;
}

bool __wrap_terms_next(CUdevice device, struct terms_next *ret) {
	*ret = (struct terms_next){33 * NSEC_PER_MSEC, NSEC_PER_MSEC, 150 * NSEC_PER_USEC};
	return true;
}

void __wrap_seat_due_changed(CUdevice device) {
	world.due = atomic_load(&lane->due_ns);
}

void __wrap_seat_needs(CUdevice device, const struct seat_needs *needs) {
	world.said = *needs;
	world.due_then = world.due;
}

static CUresult get_current(CUcontext *ret) {
	*ret = world.context;
	return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext context) {
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *ret) {
	world.n_met++;
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult destroy_stream(CUstream stream) {
	return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *ret, CUdevice device) {
	memset(ret, 1, sizeof(*ret));
	return CUDA_SUCCESS;
}

static int setup(void **state) {
	void (*at_exit)(void) = world.at_exit; /* registered once in a process */

	world = (typeof(world)){.now = 1000 * NSEC_PER_SEC, .at_exit = at_exit};
	world.context = CONTEXT;
	world.driver.cuStreamDestroy_v2 = destroy_stream;
	world.driver.cuCtxGetCurrent = get_current;
	world.driver.cuCtxPushCurrent_v2 = push_current;
	world.driver.cuCtxPopCurrent_v2 = get_current;
	world.driver.cuCtxGetDevice = get_device;
	world.driver.cuDeviceGetUuid_v2 = get_uuid;
	lane_after_fork();
	atomic_store(&state_mode, STATE_MODE_ON);
	lane = lane_find(NULL, 0);
	assert_int_equal(atomic_load(&lane->state), LANE_IDLE);
	return 0;
}

/* ---- the program ---- */

static struct op fill_of(unsigned traits) {
	struct op op;

	op_init(&op, SBEET__OP_KIND__OP_KIND_MEMSET, traits, 0, (CUstream)0x10, NULL);
	return op;
}

static void enter(struct op *op) {
	CUresult rc;

	assert_int_equal(op_begin(op, &rc), OP_GO);
}

static void leave(struct op *op) {
	world.now++;
	op_end(op, CUDA_SUCCESS);
}

static void run(unsigned traits) {
	struct op op = fill_of(traits);

	enter(&op);
	leave(&op);
}

/* All that was handed over is complete. */
static void complete(void) {
	wait_covered_context(CONTEXT, point_mark());
}

static void complete_and_close(void) {
	complete();
	assert_true(job_try_close(lane));
}

static pthread_t start(void *(*f)(void *), void *data) {
	pthread_t thread;

	assert_int_equal(__real_pthread_create(&thread, NULL, f, data), 0);
	return thread;
}

/* ---- what is tested ---- */

static sem_t inside, go_on;

static void *stay_inside(void *data) {
	struct op op = fill_of(0);

	enter(&op);
	sem_post(&inside);
	sem_wait(&go_on);
	leave(&op);
	return NULL;
}

/* Another thread has begun an operation, of which the driver knows nothing yet. */
static void job_stays_open_while_a_thread_is_inside(void **state) {
	pthread_t thread = start(stay_inside, NULL);

	sem_wait(&inside);
	run(0);
	complete();
	assert_int_equal(world.n_asked, 1); /* they share the job */
	assert_false(job_is_complete(lane));
	assert_false(job_try_close(lane));
	assert_int_equal(atomic_load(&lane->state), LANE_OPEN);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	assert_false(job_try_close(lane)); /* what it did may still run */
	assert_int_equal(world.n_done, 0);
	complete_and_close();
	assert_int_equal(world.n_done, 1);
	assert_int_equal(atomic_load(&lane->state), LANE_IDLE);
}

static void job_is_drained_for_an_operation_that_does_not_fit(void **state) {
	struct op whole = fill_of(OP_WHOLE);

	run(0);
	assert_true(world.asked & SMID_MASK);
	world.meanwhile = complete_and_close;
	enter(&whole);
	assert_int_equal(world.slept, 0);
	assert_int_equal(world.n_done, 1);
	assert_int_equal(world.n_asked, 2);
	assert_int_equal(world.asked, WHOLE_MASK);
	assert_false(whole.unconfined);
	leave(&whole);
	complete_and_close();
}

/* What runs may in turn wait for it. */
static void job_is_joined_unconfined_after_a_second(void **state) {
	struct op whole = fill_of(OP_WHOLE);

	run(0);
	enter(&whole);
	assert_int_equal(world.slept, NSEC_PER_SEC);
	assert_true(whole.unconfined);
	assert_int_equal(world.n_asked, 1);
	leave(&whole);
	run(0); /* under the same lock, perhaps */
	assert_int_equal(world.slept, NSEC_PER_SEC);
	complete_and_close();
	assert_int_equal(world.n_done, 1);
}

/* What is to be stopped may wait for more of it; that keeps its grant, and the job still stops. */
static void job_that_is_stopped_is_joined_after_a_second(void **state) {
	struct op op = fill_of(0);

	run(0);
	lane_revoked(world.asked_for, true);
	enter(&op);
	assert_int_equal(world.slept, NSEC_PER_SEC);
	assert_false(op.unconfined);
	assert_int_equal(atomic_load(&lane->state), LANE_DRAINING);
	complete();
	assert_false(job_stop(lane)); /* it is inside */
	leave(&op);
	complete();
	assert_true(job_stop(lane));
	assert_int_equal(atomic_load(&lane->state), LANE_STOPPED);
	run(0);
	assert_int_equal(world.n_asked, 2);
	complete_and_close();
}

/* Each time that it was in vain. */
static void less_is_waited_for_a_job_that_waits_itself(void **state) {
	nsec_t slept;

	for (unsigned i = 0; i < 4; i++) {
		slept = world.slept;
		run(0);
		run(OP_WHOLE);
		assert_int_equal(world.slept - slept, NSEC_PER_SEC >> i);
		world.now += NSEC_PER_SEC;
		complete_and_close();
		job_learn(lane, UINT32_MAX);
		for (unsigned k = 0; k <= 64; k++) { /* until it asks for a part again */
			run(0);
			complete_and_close();
		}
	}
}

static void wait_in_function(void *data) {
	sem_post(&inside);
	sem_wait(&go_on);
}

static void *call_function(void *data) {
	host_function_call(data);
	return NULL;
}

/* While an operation waits. */
static void close_behind_function(void) {
	assert_true(job_try_close(lane));
}

/* A function in the stream may wait for a lock that the thread of the next operation holds. */
static void job_is_over_while_a_function_waits(void **state) {
	struct host_function *f;
	pthread_t thread;

	run(0);
	f = host_function_new(wait_in_function, NULL, (CUstream)0x10, false);
	assert_non_null(f);
	thread = start(call_function, f);
	sem_wait(&inside);
	run(0); /* behind it */
	world.now += 5 * NSEC_PER_MSEC;
	assert_false(job_is_complete(lane)); /* no thread waits */
	world.meanwhile = close_behind_function;
	run(OP_WHOLE);
	assert_int_equal(world.slept, 0);
	assert_int_equal(world.n_asked, 2);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	complete_and_close();
}

static void close_behind_other_function(void) {
	world.now += 19 * NSEC_PER_MSEC;
	assert_false(job_is_complete(lane)); /* it may have kernels before its function */
	world.now += 1 * NSEC_PER_MSEC;
	assert_true(job_try_close(lane));
}

/* The driver calls one function at a time. */
static void job_is_over_while_a_function_holds_up_its_own(void **state) {
	struct host_function *f, *own;
	pthread_t thread;

	run(0);
	f = host_function_new(wait_in_function, NULL, (CUstream)0x20, false);
	own = host_function_new(wait_in_function, NULL, (CUstream)0x10, false);
	thread = start(call_function, f);
	sem_wait(&inside);
	world.meanwhile = close_behind_other_function;
	run(OP_WHOLE);
	assert_int_equal(world.slept, 0);
	assert_int_equal(world.n_asked, 2);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	host_function_free(own);
	complete_and_close();
}

/* A program that needed more than its part once is asked again after 64 jobs. */
static void job_learns_what_fits_for_64_jobs(void **state) {
	run(0);
	world.meanwhile = complete_and_close;
	run(OP_WHOLE);
	complete_and_close();
	for (unsigned i = 1; i < 64; i++) {
		run(0);
		assert_int_equal(world.asked, WHOLE_MASK);
		complete_and_close();
	}
	assert_int_equal(world.n_asked, 1 + 64);
	run(0);
	assert_true(world.asked & SMID_MASK);
	complete_and_close();
}

/* The grant may name a part of the GPU that went with the context, whoever else's kernels run. */
static void job_asks_again_when_a_context_has_gone(void **state) {
	run(0);
	job_context_gone();
	assert_int_equal(atomic_load(&lane->state), LANE_DRAINING);
	complete_and_close();
	run(0);
	assert_int_equal(world.n_asked, 2);
	complete_and_close();
}

static pthread_t other;

static void *close_job(void *data) {
	assert_true(job_try_close(lane));
	return NULL;
}

static void hold_in_closing(void) {
	sem_post(&inside);
	sem_wait(&go_on);
}

static void let_other_go(void) {
	sem_post(&go_on);
	pthread_join(other, NULL);
}

/* A thread that is ending a job reads memory that the driver gives back at exit. */
static void exit_waits_for_a_job_that_is_being_closed(void **state) {
	run(0);
	complete();
	world.closing = hold_in_closing;
	world.meanwhile = let_other_go;
	other = start(close_job, NULL);
	sem_wait(&inside);
	assert_int_equal(atomic_load(&lane->state), LANE_CLOSING);
	world.at_exit();
	assert_true(world.left);
	assert_int_equal(world.left_in, LANE_IDLE);
	assert_int_equal(world.n_done, 1);
	assert_int_equal(world.slept, 0);
}

static void leave_process(void) {
	world.at_exit();
}

/* exit() in a signal handler, in the middle of it. */
static void exit_waits_a_second_at_most(void **state) {
	run(0);
	complete();
	world.closing = leave_process;
	assert_true(job_try_close(lane));
	assert_true(world.left);
	assert_int_equal(world.left_in, LANE_CLOSING);
	assert_int_equal(world.slept, NSEC_PER_SEC);
}

/* What a thread knows of its last stream is used again until it may be wrong. */
static void streams_are_met_again_when_one_is_gone(void **state) {
	unsigned opened;

	run(0);
	opened = world.n_met; /* opening a job asks as well */
	run(0);
	assert_int_equal(world.n_met, opened);
	world.context = (CUcontext)0x2000;
	run(0);
	assert_int_equal(world.n_met, opened + 1);
	world.context = CONTEXT;
	run(0);
	run(0);
	assert_int_equal(world.n_met, opened + 2);
	complete();
	assert_int_equal(on_cuStreamDestroy_v2((CUstream)0x10), CUDA_SUCCESS);
	run(0);
	assert_int_equal(world.n_met, opened + 3);
	complete_and_close();
}

/* sbeetd wants the GPU for another job. */
static void stop(void) {
	lane_revoked(atomic_load(&lane->job), true);
}

static void complete_and_stop(void) {
	complete();
	assert_true(job_stop(lane));
}

static void job_that_is_stopped_goes_on_as_the_same(void **state) {
	uint64_t job;

	run(0);
	job = world.asked_for;
	stop();
	assert_true(lane_is_stopping(lane));
	assert_false(job_stop(lane)); /* something runs */
	world.meanwhile = complete_and_stop;
	run(0); /* waits, and asks again */
	assert_int_equal(world.n_stopped, 1);
	assert_int_equal(world.n_asked, 2);
	assert_int_equal(world.asked_for, job);
	assert_int_equal(world.n_done, 0);
	assert_int_equal(lane_count(), 1);
	assert_int_equal(atomic_load(&lane->state), LANE_OPEN);
	complete_and_close();
	assert_int_equal(world.n_done, 1);
	assert_int_equal(world.launches, 2); /* of both parts */
	assert_int_equal(lane_count(), 0);
	run(0);
	assert_int_not_equal(world.asked_for, job);
	complete_and_close();
}

/* The program has waited for it, or does nothing more. */
static void job_that_is_stopped_may_be_over(void **state) {
	run(0);
	stop();
	complete_and_close();
	assert_int_equal(world.n_stopped, 0);
	assert_int_equal(world.n_done, 1);
	run(0);
	stop();
	complete_and_stop();
	assert_int_equal(atomic_load(&lane->state), LANE_STOPPED);
	assert_true(job_try_close(lane));
	assert_int_equal(world.n_done, 2);
	assert_int_equal(lane_count(), 0);
	assert_int_equal(atomic_load(&lane->state), LANE_IDLE);
}

/* A new set may be smaller, and an operation may need more. */
static void job_that_is_stopped_goes_on_with_what_it_needs(void **state) {
	uint64_t job;

	run(0);
	job = world.asked_for;
	assert_true(world.asked & SMID_MASK);
	stop();
	world.meanwhile = complete_and_stop;
	run(OP_WHOLE);
	assert_int_equal(world.asked_for, job);
	assert_int_equal(world.asked, WHOLE_MASK);
	complete_and_close();
}

static void job_goes_on_when_sbeetd_is_gone(void **state) {
	run(0);
	stop();
	world.gone = true;
	world.meanwhile = complete_and_stop;
	run(0);
	assert_int_equal(world.n_asked, 1);
	assert_int_equal(atomic_load(&lane->state), LANE_OPEN);
	assert_false(lane_is_stopping(lane));
	world.gone = false;
	complete_and_close();
}

/* Between its marks a job is not over, whether it is stopped or not. */
static void job_that_is_marked_is_stopped_but_not_over(void **state) {
	struct mark *m = lane->mark;

	mark_begin(m, 0, 0, world.now);
	atomic_store(&m->alone, true);
	run(0);
	stop();
	complete();
	assert_false(job_try_close(lane)); /* it has waited */
	assert_true(job_stop(lane));
	assert_false(job_try_close(lane));
	assert_int_equal(atomic_load(&lane->state), LANE_STOPPED);
	run(0);
	complete();
	assert_false(job_try_close(lane));
	assert_true(mark_end(m));
	job_end_marked(m);
	assert_int_equal(world.n_done, 1);
	assert_int_equal(world.n_stopped, 1);
}

/* A segment ends it, unless its grant says that the whole job has the GPU. */
static void job_lasts_from_segment_to_segment_if_it_is_told_so(void **state) {
	struct mark *m = lane->mark;

	for (int whole = 0; whole < 2; whole++) {
		world.whole_job = whole;
		world.n_done = 0;
		mark_begin(m, 0, 0, world.now);
		atomic_store(&m->alone, true);
		for (int i = 0; i < 3; i++) {
			mark_segment_begin(m);
			run(0);
			complete();
			assert_true(mark_segment_end(m));
			job_end_marked(m);
			assert_int_equal(world.n_done, whole ? 0 : i + 1);
		}
		assert_true(mark_end(m));
		job_end_marked(m);
		assert_int_equal(world.n_done, whole ? 1 : 3);
	}
}

/* ---- under terms ---- */

/* @n graphs, a launch each @each. */
static void run_under_terms(unsigned n, nsec_t each) {
	for (unsigned i = 0; i < n; i++) {
		struct op op;

		op_init(&op, SBEET__OP_KIND__OP_KIND_GRAPH, 0, 0, (CUstream)0x10, NULL);
		enter(&op);
		world.now += each - 1;
		leave(&op);
	}
	atomic_store(&lane->terms, 1);
}

/* Another one may begin while what this one has handed over still runs, but not while a thread is
 * in the middle of doing so. */
static void job_is_not_put_aside_while_a_thread_is_inside(void **state) {
	pthread_t thread;

	run_under_terms(1, 1);
	assert_false(job_put_aside(lane)); /* it is not over */
	thread = start(stay_inside, NULL);
	sem_wait(&inside);
	lane_drain(lane);
	assert_false(job_put_aside(lane));
	assert_int_equal(atomic_load(&lane->state), LANE_DRAINING);
	sem_post(&go_on);
	pthread_join(thread, NULL);
	assert_true(job_put_aside(lane));
	assert_int_equal(atomic_load(&lane->state), LANE_IDLE);
	assert_int_equal(atomic_load(&lane->n_aside), 1);
	job_close_aside(lane);
	assert_int_equal(atomic_load(&lane->n_aside), 1); /* something runs */
	complete();
	job_close_aside(lane);
	assert_int_equal(atomic_load(&lane->n_aside), 0);
}

/* The next one begins when that thread is out, not when all that it has handed over is done. */
static void job_begins_when_the_last_one_can_be_put_aside(void **state) {
	const struct terms terms = {.steered = true};

	world.word = terms_pack(&terms);
	run(0);
	other = start(stay_inside, NULL);
	sem_wait(&inside);
	lane_drain(lane);
	world.nap = let_other_go;
	run(0);
	assert_null(world.nap);
	assert_int_equal(world.slept, 0);
	assert_int_equal(atomic_load(&lane->state), LANE_OPEN);
	assert_int_equal(atomic_load(&lane->n_aside), 1);
	complete();
	job_close_aside(lane);
	complete_and_close();
}

/* Gates go by what a launch took where it waited least. */
static void job_tells_the_next_one_what_a_launch_takes(void **state) {
	assert_int_equal(atomic_load(&lane->launch_ns), 0);
	run_under_terms(4, 50 * NSEC_PER_USEC);
	world.now += 250 * NSEC_PER_USEC;
	complete_and_close();
	assert_int_equal(atomic_load(&lane->launch_ns), 100 * NSEC_PER_USEC);
	run(0);
	atomic_store(&lane->terms, 1);
	complete_and_close(); /* without a launch it tells nothing */
	assert_int_equal(atomic_load(&lane->launch_ns), 100 * NSEC_PER_USEC);
	run_under_terms(1, NSEC_PER_USEC);
	world.now += 740 * NSEC_PER_USEC;
	complete_and_close(); /* it may have waited */
	assert_int_equal(atomic_load(&lane->launch_ns), 110 * NSEC_PER_USEC);
	run_under_terms(1, NSEC_PER_USEC);
	world.now += 50 * NSEC_PER_USEC;
	complete_and_close();
	assert_int_equal(atomic_load(&lane->launch_ns), 50 * NSEC_PER_USEC);
}

/* Others must see no moment in which a job is neither expected nor open. */
static void job_that_is_guarded_tells_of_the_next_one_when_it_is_open(void **state) {
	const struct terms terms = {.steered = true, .awaited = true, .guarded = true};
	nsec_t begin = world.now, next = begin + 33 * NSEC_PER_MSEC;

	world.word = terms_pack(&terms);
	run(0);
	assert_int_equal(world.due_then, begin + 12 * NSEC_PER_MSEC);
	assert_int_equal(world.said.from, begin + NSEC_PER_MSEC);
	assert_int_equal(world.said.next_due, next + 12 * NSEC_PER_MSEC);
	assert_int_equal(world.said.next_until, next + NSEC_PER_MSEC + PROTO_GUARD_NS);
	/* Half of 0.15 ms to spare. */
	assert_int_equal(world.said.next_from,
			 next + NSEC_PER_MSEC - PROTO_GUARD_NS + 75 * NSEC_PER_USEC);
	complete_and_close();
	assert_int_equal(world.due, 0);
	assert_int_equal(world.n_asked, 0);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(job_stays_open_while_a_thread_is_inside),
		CASE(job_is_drained_for_an_operation_that_does_not_fit),
		CASE(job_is_joined_unconfined_after_a_second),
		CASE(job_that_is_stopped_is_joined_after_a_second),
		CASE(less_is_waited_for_a_job_that_waits_itself),
		CASE(job_is_over_while_a_function_waits),
		CASE(job_is_over_while_a_function_holds_up_its_own),
		CASE(job_learns_what_fits_for_64_jobs),
		CASE(streams_are_met_again_when_one_is_gone),
		CASE(job_asks_again_when_a_context_has_gone),
		CASE(exit_waits_for_a_job_that_is_being_closed),
		CASE(exit_waits_a_second_at_most),
		CASE(job_that_is_stopped_goes_on_as_the_same),
		CASE(job_that_is_stopped_may_be_over),
		CASE(job_that_is_stopped_goes_on_with_what_it_needs),
		CASE(job_goes_on_when_sbeetd_is_gone),
		CASE(job_that_is_marked_is_stopped_but_not_over),
		CASE(job_lasts_from_segment_to_segment_if_it_is_told_so),
		CASE(job_is_not_put_aside_while_a_thread_is_inside),
		CASE(job_begins_when_the_last_one_can_be_put_aside),
		CASE(job_tells_the_next_one_what_a_launch_takes),
		CASE(job_that_is_guarded_tells_of_the_next_one_when_it_is_open),
	};

	sem_init(&inside, 0, 0);
	sem_init(&go_on, 0, 0);
	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
