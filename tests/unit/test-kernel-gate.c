/*
 * test-kernel-gate.c: which launches of a program that yields wait for a gate of their own, with
 * the driver, the terms and the keeper in the test's hands.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/terms.h"
#include "shim/gate.h"
#include "shim/kernel-time.h"
#include "shim/lane.h"
#include "shim/launch.h"
#include "shim/worker.h"

#define US   NSEC_PER_USEC
#define ALL  PROTO_BEHIND_NS /* that one gate is for */
#define GATE 0x1000

static unsigned n_waits;
static struct worker worker;
static struct lane lane;
static struct stream_use use;

static CUresult wait_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
	assert_int_equal(at, GATE);
	assert_int_equal(value, 1);
	n_waits++;
	return CUDA_SUCCESS;
}

static CUresult write_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuStreamWaitValue32_v2 = wait_value,
		.cuStreamWriteValue32_v2 = write_value,
	};

	return &real;
}

bool __wrap_terms_place(CUdevice device, unsigned *ret_place);
bool __wrap_terms_place(CUdevice device, unsigned *ret_place) {
	*ret_place = 0;
	return true;
}

static nsec_t profiled; /* a kernel, as the page says */

nsec_t __wrap_terms_kernel_ns(CUdevice device);
nsec_t __wrap_terms_kernel_ns(CUdevice device) {
	return profiled;
}

static nsec_t told; /* of what is behind the gate */

CUdeviceptr __wrap_keeper_gate(CUcontext context, CUdevice device, unsigned gpu, nsec_t takes);
CUdeviceptr __wrap_keeper_gate(CUcontext context, CUdevice device, unsigned gpu, nsec_t takes) {
	told = takes;
	return GATE;
}

static struct kernel_time of_kernel;
static unsigned n_measured;
static CUstream measured_in;

struct kernel_time *__wrap_kernel_time_find(struct kernel_times *t, const struct launch *launch);
struct kernel_time *__wrap_kernel_time_find(struct kernel_times *t, const struct launch *launch) {
	return &of_kernel;
}

struct kernel_sample *__wrap_kernel_time_begin(struct kernel_times *t, struct kernel_time *time,
					       CUcontext context, CUstream stream);
struct kernel_sample *__wrap_kernel_time_begin(struct kernel_times *t, struct kernel_time *time,
					       CUcontext context, CUstream stream) {
	static struct kernel_sample sample;

	assert_ptr_equal(time, &of_kernel);
	n_measured++;
	measured_in = stream;
	return &sample;
}

/* A job's @n launches, of kernels or of graphs, where those of the job before took @launch_ns each.
 * Return: how many of them waited for a gate. */
static unsigned run(nsec_t launch_ns, unsigned n, bool graphs) {
	static const struct stream_id id;
	static const struct launch kernel;
	struct op op = {.worker = &worker,
			.lane = &lane,
			.use = &use,
			.id = &id,
			.launch = graphs ? NULL : &kernel};

	n_waits = n_measured = 0;
	use.behind_ns = 0;
	atomic_store(&lane.launch_ns, launch_ns);
	for (unsigned i = 0; i < n; i++) {
		gate_kernel_wait(&op);
	}
	return n_waits;
}

static void short_launches_share_a_gate(void **state) {
	assert_int_equal(run(ALL / 10, 10, false), 1);
	assert_int_equal(told, ALL); /* as much as may follow */
	assert_int_equal(run(ALL / 10, 11, false), 2);
	assert_int_equal(run(ALL / 10, 100, false), 10);
	assert_int_equal(run(ALL / 2, 10, false), 5);
}

static void long_launches_wait_each(void **state) {
	assert_int_equal(run(ALL / 2 + US, 10, false), 10);
	assert_int_equal(run(5000 * US, 10, false), 10);
	assert_int_equal(told, 5000 * US);
}

static void unknown_launches_wait_each(void **state) {
	assert_int_equal(run(0, 10, false), 10);
	assert_int_equal(told, 0);
}

/* What jobs seem to take has their waits in it. */
static void what_is_profiled_counts(void **state) {
	profiled = 10 * US;
	assert_int_equal(run(5000 * US, 10, false), 1);
	assert_int_equal(told, ALL);
	assert_int_equal(run(5000 * US, 10, true), 10); /* nobody has profiled graphs */
	assert_int_equal(told, 0);
	profiled = 0;
}

/* Of its own it is better known how long it takes. */
static void what_was_measured_counts(void **state) {
	of_kernel.ns = ALL / 5;
	assert_int_equal(run(5000 * US, 10, false), 2);
	assert_int_equal(told, ALL);
	of_kernel.ns = 300 * US;
	assert_int_equal(run(10 * US, 10, false), 10);
	assert_int_equal(told, 300 * US);
	assert_int_equal(n_measured, 10);
	profiled = 10 * US; /* by somebody who has taken care to */
	assert_int_equal(run(5000 * US, 10, false), 1);
	assert_int_equal(n_measured, 0);
	profiled = 0;
	assert_int_equal(run(10 * US, 10, true), 10);
	assert_int_equal(n_measured, 0);
	assert_int_equal(told, 0);
	of_kernel.ns = 0;
}

/* Events are recorded by a function for which stream 0 is another one. */
static void default_streams_are_called_by_their_names(void **state) {
	const CUstream names[] = {CU_STREAM_PER_THREAD, CU_STREAM_LEGACY, (CUstream)0x70};
	struct op op = {.worker = &worker,
			.lane = &lane,
			.use = &use,
			.id = &(const struct stream_id){.context = NULL},
			.launch = &(const struct launch){.function = NULL}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		atomic_store(&use.stream, names[i]);
		gate_kernel_wait(&op);
		assert_ptr_equal(measured_in, names[i]);
	}
}

static void graphs_wait_each(void **state) {
	assert_int_equal(run(10 * US, 10, true), 10);
}

/* What a graph takes is not known: nothing is behind its gate but itself. */
static void a_launch_after_a_graph_waits(void **state) {
	run(10 * US, 1, true);
	n_waits = 0;
	struct op op = {.worker = &worker,
			.lane = &lane,
			.use = &use,
			.id = &(const struct stream_id){.context = NULL},
			.launch = &(const struct launch){.function = NULL}};

	gate_kernel_wait(&op);
	assert_int_equal(n_waits, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_launches_share_a_gate),
		cmocka_unit_test(long_launches_wait_each),
		cmocka_unit_test(unknown_launches_wait_each),
		cmocka_unit_test(what_is_profiled_counts),
		cmocka_unit_test(what_was_measured_counts),
		cmocka_unit_test(default_streams_are_called_by_their_names),
		cmocka_unit_test(graphs_wait_each),
		cmocka_unit_test(a_launch_after_a_graph_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
