/*
 * test-op.c: where an operation is booked. The driver is the test's.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/lane.h"
#include "shim/op.h"
#include "shim/state.h"
#include "shim/worker.h"

#define JOB	5
#define CONTEXT ((CUcontext)0x10)
#define STREAM	((CUstream)0x100)
#define BACKING ((CUstream)0x200) /* stands for it in a partition */

static struct lane lane;

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real;

	return &real;
}

/* As op_begin() leaves a graph's launch that goes to a partition; op_init() with no place, so that
 * it can go nowhere but to its own stream. */
static void begin(struct op *op, struct stream_id *id) {
	atomic_store(&lane.job, JOB);
	atomic_store(&lane.state, LANE_OPEN);
	op_init(op, SBEET__OP_KIND__OP_KIND_GRAPH, OP_GREEN, 0, STREAM, NULL);
	op->worker = worker_get();
	assert_non_null(op->worker);
	*id = worker_stream(op->worker, CONTEXT, STREAM, false);
	op->id = id;
	op->lane = &lane;
	op->how = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
	op->place.at = BACKING;
	op->use = worker_use(op->worker, &lane, JOB, id, BACKING);
	assert_non_null(op->use);
	state_self.depth++;
}

/* The tracker asks the stream where it runs. */
static void what_is_unconfined_is_booked_where_it_goes(void **state) {
	struct stream_use *left, *goes;
	struct stream_id id;
	struct op op = {.kernel = NULL}; /* op_begin() would have said the rest */

	(void)state;
	begin(&op, &id);
	left = op.use;
	op_unconfine(&op);
	assert_ptr_equal(op.place.at, STREAM);
	op_end(&op, CUDA_SUCCESS);
	goes = worker_use(worker_get(), &lane, JOB, &id, STREAM);
	assert_ptr_not_equal(goes, left);
	assert_int_equal(atomic_load(&goes->launches), 1);
	assert_int_equal(atomic_load(&goes->last), point_now());
	assert_true(atomic_load(&goes->unconfined));
	assert_int_equal(atomic_load(&left->launches), 0);
	assert_int_equal(atomic_load(&left->last), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unconfined_is_booked_where_it_goes),
	};

	return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
