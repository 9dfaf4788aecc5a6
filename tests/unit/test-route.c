/*
 * test-route.c: which launches may go the short way, and what is counted of them. The driver, the
 * kernels and the places are the test's.
 */
#include "shim/real.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/terms.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/enforce/kernel.h"
#include "shim/lane.h"
#include "shim/launch.h"
#include "shim/op.h"
#include "shim/place.h"
#include "shim/route.h"
#include "shim/worker.h"

#define TERMS	  1 /* any */
#define HANDLE(n) ((void *)(uintptr_t)(0x1000 * (n)))

static CUcontext current;
static CUresult current_rc;
static void (*meanwhile)(void); /* what others do while the driver is asked; NULL: nothing */
static struct lane lane;
static struct stream_use use;
static bool kernel_waits, kernel_first, place_ready;
static unsigned n_asked, n_left, n_waves_asked;

static CUresult get_current(CUcontext *ret) {
	n_asked++;
	if (meanwhile) {
		meanwhile();
	}
	*ret = current;
	return current_rc;
}

static const struct real driver = {.cuCtxGetCurrent = get_current};

uint32_t __wrap_kernel_id(const struct kernel *k);
uint32_t __wrap_kernel_id(const struct kernel *k) {
	return 3;
}

bool __wrap_kernel_may_wait(const struct kernel *k);
bool __wrap_kernel_may_wait(const struct kernel *k) {
	return kernel_waits;
}

/* One block more for each 16 threads fewer. */
uint64_t __wrap_kernel_wave_blocks(const struct launch *l);
uint64_t __wrap_kernel_wave_blocks(const struct launch *l) {
	n_waves_asked++;
	return 16 - l->block[0] * l->block[1] / 16;
}

bool __wrap_kernel_waits_first(const struct kernel *k);
bool __wrap_kernel_waits_first(const struct kernel *k) {
	return kernel_first;
}

bool __wrap_place_is_ready(const struct place *p, const struct partition *to, CUstream at);
bool __wrap_place_is_ready(const struct place *p, const struct partition *to, CUstream at) {
	assert_ptr_equal(p, HANDLE(7));
	assert_ptr_equal(to, HANDLE(8));
	assert_ptr_equal(at, HANDLE(9));
	return place_ready;
}

void __wrap_place_left(struct place *p, const struct partition *to, CUstream at);
void __wrap_place_left(struct place *p, const struct partition *to, CUstream at) {
	n_left++;
}

static const struct stream_id id = {.context = HANDLE(2), .stream = HANDLE(1)};
static const struct launch launch = {
	.function = HANDLE(3), .grid = {10, 2, 1}, .block = {32, 4, 1}, .shared_bytes = 16};
static const struct route_launch like = {.function = HANDLE(3),
					 .stream = HANDLE(1),
					 .block_threads = 128,
					 .shared_bytes = 16,
					 .blocks = 20};

static struct kernel_count *count(void) {
	return worker_count(worker_get(), 3);
}

/* A launch in a job under terms that anybody may follow. */
static struct op example(void) {
	return (struct op){
		.launch = &launch,
		.worker = worker_get(),
		.id = &id,
		.stream = HANDLE(1),
		.lane = &lane,
		.use = &use,
		.kernel = HANDLE(4),
		.kernel_epoch = atomic_load(&kernel_epoch),
		.to = HANDLE(8),
		.place = {.stream = HANDLE(1), .place = HANDLE(7), .at = HANDLE(9)},
		.how = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN,
	};
}

static int setup(void **state) {
	struct worker *w = worker_get();

	assert_non_null(w);
	current = HANDLE(2);
	current_rc = CUDA_SUCCESS;
	meanwhile = NULL;
	kernel_waits = kernel_first = false;
	place_ready = true;
	n_asked = n_left = n_waves_asked = 0;
	lane = (struct lane){.device = 0};
	atomic_store(&lane.state, LANE_OPEN);
	atomic_store(&lane.job, 50);
	atomic_store(&lane.terms, TERMS);
	atomic_store(&lane.steered_to, HANDLE(8));
	use = (struct stream_use){.job = 50, .launches = 1};
	*count() = (struct kernel_count){0};
	atomic_store(&capture_count, 0);
	atomic_store(&conn_number, 0);
	atomic_store(&place_is_active, true);
	w->route = (struct route){.use = NULL};
	memset(&w->shapes, 0, sizeof(w->shapes));
	w->last.epoch = atomic_load(&worker_epoch);
	w->last_use = NULL;
	return 0;
}

/* Whether @l goes the short way; if so, to its end. */
static bool goes(const struct route_launch *l, CUresult rc) {
	struct route_use u;

	if (!route_begin(&u, &driver, l)) {
		assert_null(atomic_load(&worker_get()->inside));
		assert_int_equal(state_self.depth, 0);
		return false;
	}
	assert_ptr_equal(u.at, HANDLE(9));
	assert_ptr_equal(atomic_load(&worker_get()->inside), &lane);
	assert_ptr_equal(worker_get()->last_use, &use);
	assert_int_equal(state_self.depth, 1);
	route_end(&u, l, rc);
	assert_null(atomic_load(&worker_get()->inside));
	assert_int_equal(state_self.depth, 0);
	return true;
}

static bool goes_like_it(void) {
	return goes(&like, CUDA_SUCCESS);
}

static void learn(void) {
	struct op op = example();

	route_learn(&op);
	assert_true(goes_like_it());
}

static void what_is_launched_is_counted(void **state) {
	learn();
	assert_true(goes_like_it());
	assert_int_equal(atomic_load(&use.launches), 3);
	assert_int_equal(atomic_load(&use.waves), 6);
	assert_int_equal(atomic_load(&count()->launches), 2);
	assert_int_equal(atomic_load(&count()->blocks), 40);
	assert_int_equal(n_left, 2);
	assert_int_equal(atomic_load(&use.last), point_now());
}

static void what_fails_is_not_counted(void **state) {
	learn();
	point_mark();
	assert_true(goes(&like, CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(atomic_load(&use.launches), 2);
	assert_int_equal(atomic_load(&count()->launches), 1);
	assert_int_equal(n_left, 2);
	assert_int_equal(atomic_load(&use.last), point_now()); /* it may be in the stream */
}

static void the_first_launch_goes_the_long_way(void **state) {
	struct worker *w = state_self.worker;

	assert_false(goes_like_it());
	state_self.worker = NULL; /* of the thread */
	assert_false(route_begin(&(struct route_use){0}, &driver, &like));
	state_self.worker = w;
}

static void kernels_that_take_turns_go_the_short_way(void **state) {
	struct launch other = launch;
	struct route_launch l = like;
	struct op op = example();

	learn();
	other.function = l.function = HANDLE(5);
	op.launch = &other;
	route_learn(&op);
	assert_true(goes(&l, CUDA_SUCCESS));
	assert_true(goes_like_it());
}

static void it_is_known_which_kernels_wait_first(void **state) {
	struct launch other = launch;
	struct route_launch l = like;
	struct op op = example();
	struct route_use u = {0};

	learn();
	other.function = l.function = HANDLE(5);
	op.launch = &other;
	kernel_first = true;
	route_learn(&op);
	assert_true(route_begin(&u, &driver, &l));
	assert_true(u.shape->waits_first);
	route_end(&u, &l, CUDA_SUCCESS);
	assert_true(route_begin(&u, &driver, &like));
	assert_false(u.shape->waits_first);
	route_end(&u, &like, CUDA_SUCCESS);
}

static void shapes_of_one_kernel_go_the_short_way(void **state) {
	struct launch other = launch;
	struct route_launch l = like;
	struct op op = example();

	learn();
	assert_int_equal(atomic_load(&use.waves), 3); /* 20 blocks, 8 at once */
	other.block[1] = 1;
	other.shared_bytes = l.shared_bytes = 0;
	l.block_threads = 32;
	op.launch = &other;
	route_learn(&op);
	assert_true(goes(&l, CUDA_SUCCESS));
	assert_int_equal(atomic_load(&use.waves), 5); /* 14 at once */
	assert_true(goes_like_it());
	assert_int_equal(atomic_load(&use.waves), 8);
	assert_int_equal(n_waves_asked, 2);
	assert_int_equal(atomic_load(&count()->launches), 3);
}

static void other_launches_go_the_long_way(void **state) {
	struct route_launch l = like;

	learn();
	l.function = HANDLE(5);
	assert_false(goes(&l, CUDA_SUCCESS));
	l.function = HANDLE(0x43); /* remembered in the same place */
	assert_ptr_equal(shapes_set(&worker_get()->shapes, l.function, 128, 16),
			 shapes_set(&worker_get()->shapes, like.function, 128, 16));
	assert_false(goes(&l, CUDA_SUCCESS));
	l = like;
	l.stream = HANDLE(6);
	assert_false(goes(&l, CUDA_SUCCESS));
	l = like;
	l.per_thread = true;
	assert_false(goes(&l, CUDA_SUCCESS));
	l = like;
	l.block_threads = 64;
	assert_false(goes(&l, CUDA_SUCCESS));
	l = like;
	l.shared_bytes = 0;
	assert_false(goes(&l, CUDA_SUCCESS));
	l = like;
	l.blocks = 1;
	assert_true(goes(&l, CUDA_SUCCESS));
}

static void of_the_threads_own_stream_0(void **state) {
	struct route_launch l = like;
	struct op op = example();

	op.place.per_thread = true;
	route_learn(&op);
	assert_false(goes_like_it());
	l.per_thread = true;
	assert_true(goes(&l, CUDA_SUCCESS));
}

static void another_context_is_the_long_way(void **state) {
	learn();
	current = HANDLE(12);
	assert_false(goes_like_it());
	current = HANDLE(2);
	current_rc = CUDA_ERROR_DEINITIALIZED;
	assert_false(goes_like_it());
}

static void another_job_is_the_long_way(void **state) {
	learn();
	atomic_store(&lane.job, 51);
	assert_false(goes_like_it());
	atomic_store(&lane.job, 50);
	atomic_store(&lane.state, LANE_DRAINING);
	n_asked = 0;
	assert_false(goes_like_it());
	assert_int_equal(n_asked, 0); /* then the long way is none longer */
	atomic_store(&lane.state, LANE_OPEN);
	assert_true(goes_like_it());
}

static void launches_of_the_next_job_go_the_short_way(void **state) {
	learn();
	atomic_store(&lane.job, 51);
	atomic_store(&use.job, 51);
	atomic_store(&use.launches, 0);
	assert_false(goes_like_it()); /* but for the first one */
	atomic_store(&use.launches, 1);
	assert_true(goes_like_it());
	atomic_store(&lane.terms, 0); /* it was asked for */
	assert_false(goes_like_it());
	atomic_store(&lane.terms, TERMS | TERMS_YIELDS);
	assert_false(goes_like_it());
}

/* The entry of the way is another stream's. */
static void what_counts_something_else_is_the_long_way(void **state) {
	struct stream_id this = {.context = HANDLE(2), .stream = CU_STREAM_PER_THREAD, .key = 76};
	struct stream_id other = {.context = HANDLE(2), .stream = CU_STREAM_LEGACY, .key = 77};
	struct worker *w = worker_get();
	struct op op = example();

	op.use = worker_find_use(w, &lane, 50, &this, CU_STREAM_PER_THREAD);
	assert_non_null(op.use);
	atomic_store(&op.use->launches, 1);
	route_learn(&op);
	assert_ptr_equal(w->route.use, op.use);
	atomic_store(&lane.job, 51);
	assert_ptr_equal(worker_find_use(w, &lane, 51, &other, CU_STREAM_LEGACY), op.use);
	atomic_store(&op.use->launches, 1);
	assert_false(goes_like_it());
}

struct visitor {
	struct worker *worker;
	bool went;
};

static void *learn_in_thread(void *data) {
	struct visitor *v = data;
	struct op op = example();

	v->worker = op.worker;
	op.worker->last.epoch = atomic_load(&worker_epoch);
	route_learn(&op);
	return NULL;
}

static void *go_in_thread(void *data) {
	struct visitor *v = data;
	struct route_use u;

	v->worker = worker_get();
	v->went = route_begin(&u, &driver, &like);
	return NULL;
}

static void run_thread(void *(*run)(void *), struct visitor *v) {
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, v), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static bool is_idle(struct worker *w) {
	return true;
}

static void threads_know_nothing_of_those_before_them(void **state) {
	struct visitor first, second;

	run_thread(learn_in_thread, &first);
	worker_collect(is_idle);
	run_thread(go_in_thread, &second);
	assert_ptr_equal(first.worker, second.worker);
	assert_false(second.went);
}

static void drain(void) {
	atomic_store(&lane.state, LANE_DRAINING);
}

static void open_another_job(void) {
	atomic_store(&lane.job, 51);
}

static void a_job_may_end_before_the_launch_is_inside(void **state) {
	learn();
	meanwhile = drain;
	assert_false(goes_like_it());
	atomic_store(&lane.state, LANE_OPEN);
	meanwhile = open_another_job;
	assert_false(goes_like_it());
}

static void what_is_gone_is_the_long_way(void **state) {
	struct op op = example();

	learn();
	worker_forget_streams();
	assert_false(goes_like_it());
	/* Found out before. */
	route_learn(&op);
	assert_false(goes_like_it());
}

static void unloaded_kernels_go_the_long_way(void **state) {
	struct op op = example();

	learn();
	atomic_fetch_add(&kernel_epoch, 1);
	assert_false(goes_like_it());
	route_learn(&op);
	assert_false(goes_like_it());
}

static void captured_launches_go_the_long_way(void **state) {
	learn();
	atomic_store(&capture_count, 1);
	assert_false(goes_like_it());
}

static void recorded_launches_go_the_long_way(void **state) {
	learn();
	atomic_store(&lane.recording, true);
	assert_false(goes_like_it());
}

static void kernels_that_sbeetd_must_be_told_of_go_the_long_way(void **state) {
	learn();
	atomic_store(&conn_number, 1);
	assert_false(goes_like_it());
}

static void another_set_is_the_long_way(void **state) {
	learn();
	atomic_store(&lane.steered_to, HANDLE(18));
	assert_false(goes_like_it());
	atomic_store(&lane.steered_to, HANDLE(8));
	place_ready = false;
	assert_false(goes_like_it());
	place_ready = true;
	atomic_store(&place_is_active, false);
	assert_false(goes_like_it());
}

static void streams_without_places_have_none_until_there_are_places(void **state) {
	struct op op = example();

	op.place.place = NULL;
	route_learn(&op);
	assert_false(goes_like_it());
	atomic_store(&place_is_active, false);
	assert_true(goes_like_it());
	assert_int_equal(n_left, 0);
	atomic_store(&place_is_active, true);
	assert_false(goes_like_it());
}

/* @op is no example, though @like is like it. */
static void is_not_learned(const struct op *op) {
	route_learn(op);
	assert_false(goes_like_it());
}

static void some_launches_are_no_example(void **state) {
	struct launch cooperative = launch;
	struct op op = example();

	op.kernel = NULL;
	is_not_learned(&op);
	op = example();
	op.traits = OP_WHOLE;
	is_not_learned(&op);
	op = example();
	op.how = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	is_not_learned(&op);
	op = example();
	cooperative.cooperative = true;
	op.launch = &cooperative;
	is_not_learned(&op);
	op = example();
	kernel_waits = true;
	is_not_learned(&op);
}

static void some_jobs_are_no_example(void **state) {
	struct op op = example();

	atomic_store(&lane.terms, 0);
	is_not_learned(&op);
	atomic_store(&lane.terms, TERMS | TERMS_YIELDS);
	is_not_learned(&op);
	atomic_store(&lane.terms, TERMS);
	atomic_store(&lane.by_operation, true);
	is_not_learned(&op);
	atomic_store(&lane.by_operation, false);
	learn();
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_launched_is_counted, setup),
		cmocka_unit_test_setup(what_fails_is_not_counted, setup),
		cmocka_unit_test_setup(the_first_launch_goes_the_long_way, setup),
		cmocka_unit_test_setup(kernels_that_take_turns_go_the_short_way, setup),
		cmocka_unit_test_setup(it_is_known_which_kernels_wait_first, setup),
		cmocka_unit_test_setup(shapes_of_one_kernel_go_the_short_way, setup),
		cmocka_unit_test_setup(other_launches_go_the_long_way, setup),
		cmocka_unit_test_setup(of_the_threads_own_stream_0, setup),
		cmocka_unit_test_setup(another_context_is_the_long_way, setup),
		cmocka_unit_test_setup(another_job_is_the_long_way, setup),
		cmocka_unit_test_setup(launches_of_the_next_job_go_the_short_way, setup),
		cmocka_unit_test_setup(what_counts_something_else_is_the_long_way, setup),
		cmocka_unit_test_setup(threads_know_nothing_of_those_before_them, setup),
		cmocka_unit_test_setup(a_job_may_end_before_the_launch_is_inside, setup),
		cmocka_unit_test_setup(what_is_gone_is_the_long_way, setup),
		cmocka_unit_test_setup(unloaded_kernels_go_the_long_way, setup),
		cmocka_unit_test_setup(captured_launches_go_the_long_way, setup),
		cmocka_unit_test_setup(recorded_launches_go_the_long_way, setup),
		cmocka_unit_test_setup(kernels_that_sbeetd_must_be_told_of_go_the_long_way, setup),
		cmocka_unit_test_setup(another_set_is_the_long_way, setup),
		cmocka_unit_test_setup(streams_without_places_have_none_until_there_are_places,
				       setup),
		cmocka_unit_test_setup(some_launches_are_no_example, setup),
		cmocka_unit_test_setup(some_jobs_are_no_example, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
