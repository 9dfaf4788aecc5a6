/*
 * test-kernel-time.c: how long kernels take, with the driver and its events in the test's hands.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/capture.h"
#include "shim/kernel-time.h"
#include "shim/launch.h"

#define US	   NSEC_PER_USEC
#define EVENTS_MAX 64
#define STREAM	   ((CUstream)0x70)

static struct {
	CUcontext context;
	double at_us; /* 0: not recorded, or not reached yet */
	CUstream stream;
} events[EVENTS_MAX];

static unsigned n_events, n_recorded;
static double gpu_us;	   /* the GPU's clock */
static bool gpu_is_behind; /* events are not reached yet */
static CUcontext context;
static struct kernel_times times;

static unsigned index_of(CUevent event) {
	unsigned i = (unsigned)(uintptr_t)event - 1;

	assert_true(i < n_events);
	assert_ptr_equal(events[i].context, context); /* it has not gone */
	return i;
}

static CUresult create(CUevent *ret, unsigned flags) {
	assert_false(flags & CU_EVENT_DISABLE_TIMING);
	assert_true(n_events < EVENTS_MAX);
	events[n_events++].context = context;
	*ret = (CUevent)(uintptr_t)n_events;
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream) {
	unsigned i = index_of(event);

	events[i].at_us = gpu_us;
	events[i].stream = stream;
	n_recorded++;
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *ret, CUevent begin, CUevent end) {
	if (gpu_is_behind) {
		return CUDA_ERROR_NOT_READY;
	}
	*ret = (float)((events[index_of(end)].at_us - events[index_of(begin)].at_us) / 1e3);
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuEventCreate = create, .cuEventRecord = record, .cuEventElapsedTime = elapsed};

	return &real;
}

static int setup(void **state) {
	memset(&times, 0, sizeof(times));
	memset(events, 0, sizeof(events));
	n_events = n_recorded = 0;
	gpu_us = 1000;
	gpu_is_behind = false;
	context = (CUcontext)0x1000;
	atomic_store(&capture_count, 0);
	return 0;
}

static struct launch kernel(uintptr_t function, unsigned blocks) {
	return (struct launch){.function = (CUfunction)(0x5000 + function * 0x40),
			       .grid = {blocks, 1, 1},
			       .block = {128, 1, 1}};
}

/* One that takes @us. Return: whether it was measured. */
static bool launch_with(const struct launch *l, double us, CUresult rc) {
	struct kernel_sample *sample =
		kernel_time_begin(&times, kernel_time_find(&times, l), context, STREAM);

	gpu_us += us;
	if (sample) {
		kernel_time_end(&times, sample, rc);
	}
	return sample != NULL;
}

static bool launch(const struct launch *l, double us) {
	return launch_with(l, us, CUDA_SUCCESS);
}

static uint32_t known(const struct launch *l) {
	return kernel_time_find(&times, l)->ns;
}

/* Return: how many of @n were measured. */
static unsigned launch_often(const struct launch *l, double us, unsigned n) {
	unsigned measured = 0;

	for (unsigned i = 0; i < n; i++) {
		measured += launch(l, us);
	}
	return measured;
}

static void near(uint32_t ns, double us) {
	assert_true(ns > us * 1e3 - 10 && ns < us * 1e3 + 10);
}

static void the_first_one_tells_what_the_others_take(void **state) {
	struct launch l = kernel(1, 10), larger = kernel(1, 100);

	assert_true(launch(&l, 30));
	assert_int_equal(known(&l), 0); /* nobody has looked */
	assert_true(launch(&larger, 300));
	launch_often(&l, 30, 16);
	near(known(&l), 30);
	near(known(&larger), 300);
	assert_ptr_equal(events[0].stream, STREAM);
}

static void one_in_some_is_measured(void **state) {
	struct launch l = kernel(1, 10);

	launch_often(&l, 30, 100);
	n_recorded = 0;
	assert_int_equal(launch_often(&l, 30, 640), 10);
	assert_int_equal(n_recorded, 20);
	assert_int_equal(n_events, 2); /* used again */
}

static void the_least_of_late_counts(void **state) {
	struct launch l = kernel(1, 10);

	launch_often(&l, 2000, 40); /* beside others */
	launch_often(&l, 30, 200);
	near(known(&l), 30);
	launch_often(&l, 110, 150);
	assert_true(known(&l) > 30 * US && known(&l) < 50 * US);
	launch_often(&l, 110, 2000);
	assert_true(known(&l) > 90 * US);
}

static void what_is_under_way_is_waited_for(void **state) {
	struct launch l[20];
	unsigned n = 0;

	gpu_is_behind = true;
	for (unsigned i = 0; i < 20; i++) {
		l[i] = kernel(i, 10);
		n += launch(&l[i], 10 + i);
	}
	assert_int_equal(n, KERNEL_SAMPLES);
	launch_often(&l[0], 10, 100);
	assert_int_equal(known(&l[0]), 0);
	gpu_is_behind = false;
	launch_often(&l[0], 10, 20);
	near(known(&l[0]), 10);
	near(known(&l[7]), 17);
	assert_int_equal(known(&l[8]), 0);
	assert_true(launch(&l[8], 18));
}

static void captures_are_left_alone(void **state) {
	struct launch l = kernel(1, 10);

	atomic_store(&capture_count, 1);
	assert_int_equal(launch_often(&l, 30, 100), 0);
	assert_int_equal(n_recorded, 0);
}

static void what_is_refused_is_not_measured(void **state) {
	struct launch l = kernel(1, 10);

	launch_with(&l, 1, CUDA_ERROR_INVALID_VALUE);
	launch_often(&l, 30, 40);
	near(known(&l), 30);
}

/* Its events go with it; until then the thread measures nothing elsewhere. */
static void a_context_may_go(void **state) {
	struct launch a = kernel(1, 10), b = kernel(2, 10);

	launch_often(&a, 30, 40);
	context = (CUcontext)0x2000;
	assert_int_equal(launch_often(&b, 50, 40), 0);
	kernel_time_forget(&times, (CUcontext)0x3000);
	assert_int_equal(launch_often(&b, 50, 40), 0);
	kernel_time_forget(&times, (CUcontext)0x1000);
	launch_often(&b, 50, 40);
	near(known(&b), 50);
	near(known(&a), 30);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_one_tells_what_the_others_take, setup),
		cmocka_unit_test_setup(one_in_some_is_measured, setup),
		cmocka_unit_test_setup(the_least_of_late_counts, setup),
		cmocka_unit_test_setup(what_is_under_way_is_waited_for, setup),
		cmocka_unit_test_setup(captures_are_left_alone, setup),
		cmocka_unit_test_setup(what_is_refused_is_not_measured, setup),
		cmocka_unit_test_setup(a_context_may_go, setup),
	};

	return cmocka_run_group_tests_name("kernel-time", tests, NULL, NULL);
}
