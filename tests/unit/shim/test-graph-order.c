/*
 * test-graph-order.c: launches of one executable graph come one behind the other, as CUDA promises,
 * whatever stands for it in each of them. The driver is the test's: it orders what is in one stream
 * of the program, and launches and uploads of one executable graph, and nothing else.
 */
#include "shim/real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "shim/capture.h"
#include "shim/enforce/green.h"
#include "shim/graph-copy.h"
#include "shim/graph.h"
#include "shim/hooks.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/place.h"
#include "shim/worker.h"

#define PARTITIONS 12
#define STREAMS	   5
#define EXECS_MAX  64
#define CONTEXT	   ((CUcontext)(uintptr_t)0x77)
#define PRIORITIES CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY

struct partition {
	unsigned level;
};

struct CUgraph_st {
	int unused;
};

/* Sets of launches are bits, in the order in which the program makes them. */
struct CUgraphExec_st {
	uint64_t behind; /* what its next launch comes behind */
	bool gone;
};

static struct partition parts[PARTITIONS];
static struct CUgraph_st graph;
static struct CUgraphExec_st program;

static struct {
	uint64_t
		behind[STREAMS + 1]; /* what the stream's next work comes behind; [0]: a thread's */
	unsigned n_launches, n_uploads, n_waits;
	bool refuses_launch, refuses_upload, refuses_wait;
	const struct CUgraphExec_st *refused; /* is not launched */
	CUstream captured;
	struct CUgraphExec_st
		*made[EXECS_MAX]; /* kept, for they are looked at when they are gone */
	unsigned n_made;
} driver;

/* What the next launch of the program meets. */
static struct {
	struct partition *to; /* NULL: none */
	bool outside;	      /* it is part of no job */
} job;

static struct lane lane;
static struct stream_id id;

/* ---- the driver ---- */

static CUstream stream(unsigned number) {
	return (CUstream)(uintptr_t)(number << 8);
}

/* The program's, at one of its places. */
static unsigned stream_number(CUstream at) {
	return at == CU_STREAM_PER_THREAD ? 0 : (unsigned)((uintptr_t)at >> 8);
}

static uint64_t all_launches(void) {
	return (UINT64_C(1) << driver.n_launches) - 1;
}

static CUresult launch(CUgraphExec exec, CUstream at) {
	uint64_t *behind = &driver.behind[stream_number(at)];
	uint64_t all = all_launches();

	assert_false(exec->gone);
	if (driver.refuses_launch || exec == driver.refused) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (at == driver.captured) {
		assert_ptr_equal(exec, &program);
		return CUDA_SUCCESS;
	}
	*behind |= exec->behind;
	assert_int_equal(*behind & all, all);
	*behind |= UINT64_C(1) << driver.n_launches++;
	exec->behind = *behind;
	return CUDA_SUCCESS;
}

static CUresult upload(CUgraphExec exec, CUstream at) {
	assert_false(exec->gone);
	assert_ptr_not_equal(at, driver.captured);
	if (driver.refuses_upload) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	driver.n_uploads++;
	driver.behind[stream_number(at)] |= exec->behind;
	return CUDA_SUCCESS;
}

static CUresult wait_all(void) {
	driver.n_waits++;
	if (driver.refuses_wait) {
		return CUDA_ERROR_LAUNCH_FAILED;
	}
	for (unsigned i = 0; i <= STREAMS; i++) {
		driver.behind[i] = all_launches();
	}
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream at, CUstreamCaptureStatus *status) {
	*status = at == driver.captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE
					: CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec) {
	assert_false(exec->gone);
	exec->gone = true;
	return CUDA_SUCCESS;
}

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	static const struct real real = {
		.cuGraphLaunch = launch,
		.cuGraphLaunch_ptsz = launch,
		.cuGraphUpload = upload,
		.cuGraphUpload_ptsz = upload,
		.cuGraphExecDestroy = exec_destroy,
		.cuCtxSynchronize = wait_all,
		.cuStreamIsCapturing = is_capturing,
		.cuStreamIsCapturing_ptsz = is_capturing,
	};

	return &real;
}

CUgraph __wrap_graph_copy_new(CUgraph from, unsigned long long flags, bool *ret_plain);
CUgraph __wrap_graph_copy_new(CUgraph from, unsigned long long flags, bool *ret_plain) {
	(void)flags;
	*ret_plain = true;
	return from;
}

CUgraph __wrap_graph_copy_free(CUgraph copy);
CUgraph __wrap_graph_copy_free(CUgraph copy) {
	(void)copy;
	return NULL;
}

bool __wrap_graph_copy_has_priorities(unsigned long long flags);
bool __wrap_graph_copy_has_priorities(unsigned long long flags) {
	return flags & PRIORITIES;
}

CUgraphExec __wrap_graph_copy_instantiate(CUgraph copy, unsigned long long flags,
					  struct partition *p, CUcontext context);
CUgraphExec __wrap_graph_copy_instantiate(CUgraph copy, unsigned long long flags,
					  struct partition *p, CUcontext context) {
	CUgraphExec exec = calloc(1, sizeof(*exec));

	(void)copy;
	(void)flags;
	(void)p;
	(void)context;
	assert_non_null(exec);
	assert_true(driver.n_made < EXECS_MAX);
	driver.made[driver.n_made++] = exec;
	return exec;
}

bool __wrap_green_confines(const struct partition *p);
bool __wrap_green_confines(const struct partition *p) {
	return p->level == 0;
}

unsigned __wrap_green_level(const struct partition *p);
unsigned __wrap_green_level(const struct partition *p) {
	return p->level;
}

struct partition *__wrap_green_owner(struct partition *p);
struct partition *__wrap_green_owner(struct partition *p) {
	return p;
}

/* ---- the way to it ---- */

enum op_verdict __wrap_op_begin(struct op *op, CUresult *ret_rc);
enum op_verdict __wrap_op_begin(struct op *op, CUresult *ret_rc) {
	(void)ret_rc;
	op->lane = &lane;
	op->id = NULL;
	if (job.outside || op->stream == driver.captured) {
		return OP_BYPASS;
	}
	id = (struct stream_id){
		.context = CONTEXT, .stream = op->stream, .key = (uintptr_t)op->stream};
	op->id = &id;
	op->to = job.to;
	op->how = job.to && job.to->level == 0 ? SBEET__ENFORCEMENT__ENFORCEMENT_GREEN
					       : SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	if (job.to) {
		op->place.at = (CUstream)((uintptr_t)op->stream + 1 + (size_t)(job.to - parts));
	}
	return OP_GO;
}

void __wrap_op_unconfine(struct op *op);
void __wrap_op_unconfine(struct op *op) {
	op->place.at = op->stream;
	op->how = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
	op->unconfined = true;
}

void __wrap_op_bypassed(struct op *op);
void __wrap_op_bypassed(struct op *op) {
	(void)op;
}

void __wrap_op_end(struct op *op, CUresult rc);
void __wrap_op_end(struct op *op, CUresult rc) {
	(void)op;
	(void)rc;
}

bool __wrap_place_is_in(const struct place_use *use, const struct partition *p);
bool __wrap_place_is_in(const struct place_use *use, const struct partition *p) {
	(void)use;
	return p;
}

/* ---- the program ---- */

static CUresult try_launch(unsigned number, struct partition *to) {
	job.to = to;
	return on_cuGraphLaunch(&program, stream(number));
}

/* The driver looks whether it comes behind the others. @to: NULL: the program's own. */
static void launch_in(unsigned number, struct partition *to) {
	unsigned before = driver.n_launches;

	assert_int_equal(try_launch(number, to), CUDA_SUCCESS);
	assert_int_equal(driver.n_launches, before + 1);
}

/* What comes behind it is behind all launches. */
static void upload_in(unsigned number) {
	assert_int_equal(on_cuGraphUpload(&program, stream(number)), CUDA_SUCCESS);
	assert_int_equal(driver.behind[number] & all_launches(), all_launches());
}

static int setup(void **state) {
	(void)state;
	memset(&driver, 0, sizeof(driver));
	memset(&job, 0, sizeof(job));
	memset(&program, 0, sizeof(program));
	memset(parts, 0, sizeof(parts));
	place_activate();
	graph_instantiated(&program, &graph, 0);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	graph_exec_destroying(&program);
	for (unsigned i = 0; i < driver.n_made; i++) {
		assert_true(driver.made[i]->gone);
		free(driver.made[i]);
	}
	return 0;
}

static void variants_come_one_behind_the_other(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	launch_in(2, &parts[1]);
	launch_in(1, &parts[0]);
	launch_in(3, &parts[2]);
	assert_int_equal(driver.n_uploads, 3);
}

static void so_do_variants_and_the_programs_own(void **state) {
	(void)state;
	launch_in(1, NULL);
	launch_in(2, &parts[0]);
	launch_in(3, NULL);
	assert_int_equal(driver.n_uploads, 2);
}

static void so_do_variants_of_another_level(void **state) {
	(void)state;
	graph_exec_destroying(&program);
	graph_instantiated(&program, &graph, PRIORITIES);
	parts[1].level = 1;
	launch_in(1, NULL);
	launch_in(2, &parts[1]);
	launch_in(3, &parts[0]);
	assert_int_equal(driver.n_made, 2);
	assert_int_equal(driver.n_uploads, 2);
}

static void uploads_come_behind_variants(void **state) {
	(void)state;
	upload_in(1);
	launch_in(1, &parts[0]);
	upload_in(2);
	assert_int_equal(driver.n_uploads, 3); /* and one of the variant */
	upload_in(1);
	assert_int_equal(driver.n_uploads, 4);
	launch_in(3, NULL);
	upload_in(4);
	assert_int_equal(driver.n_uploads, 6);
	launch_in(2, &parts[1]);
	assert_int_equal(on_cuGraphUpload_ptsz(&program, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	assert_int_equal(driver.behind[0] & all_launches(), all_launches());
}

/* Each launch is behind all before it, not just behind those of the last variant. */
static void what_the_driver_orders_costs_nothing(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	launch_in(1, &parts[1]);
	launch_in(1, NULL);
	launch_in(1, &parts[0]);
	launch_in(2, &parts[0]);
	launch_in(3, &parts[0]);
	launch_in(3, &parts[1]);
	assert_int_equal(driver.n_uploads, 0);
	launch_in(1, &parts[0]);
	assert_int_equal(driver.n_uploads, 1);
}

static void a_launch_that_fails_does_not_count(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	driver.refuses_launch = true;
	assert_int_equal(try_launch(2, &parts[1]), CUDA_ERROR_INVALID_VALUE);
	driver.refuses_launch = false;
	launch_in(3, &parts[1]);
	driver.refused = driver.made[0];
	launch_in(4, &parts[0]); /* unconfined */
	launch_in(1, &parts[1]);
}

/* ---- streams ---- */

static void a_new_stream_is_none_that_is_gone(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	driver.behind[1] = 0;
	worker_forget_streams();
	launch_in(1, &parts[1]);
	assert_int_equal(driver.n_uploads, 1);
}

/* Of two threads. */
static void streams_of_threads_are_not_told_apart(void **state) {
	(void)state;
	job.to = &parts[0];
	assert_int_equal(on_cuGraphLaunch(&program, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	driver.behind[0] = 0;
	job.to = NULL;
	assert_int_equal(on_cuGraphLaunch_ptsz(&program, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	assert_int_equal(driver.n_launches, 2);
}

static void launches_outside_jobs_are_in_order_too(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	job.outside = true;
	launch_in(2, NULL);
	job.outside = false;
	launch_in(3, &parts[0]);
	assert_int_equal(driver.n_uploads, 2);
}

static void what_is_captured_is_no_launch(void **state) {
	const uint64_t key = (uintptr_t)stream(2);

	(void)state;
	launch_in(1, &parts[0]);
	capture_begin(key, CONTEXT, NULL);
	driver.captured = stream(2);
	assert_int_equal(try_launch(2, NULL), CUDA_SUCCESS);
	assert_int_equal(driver.n_launches, 1);
	driver.captured = NULL;
	capture_end(key);
	assert_int_equal(driver.n_uploads, 0);
	launch_in(3, &parts[0]);
	assert_int_equal(driver.n_uploads, 0);
}

/* ---- what goes ---- */

static void a_graph_that_was_changed_comes_behind_what_it_was(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	launch_in(1, &parts[1]);
	graph_updated(&program, &graph);
	assert_true(driver.made[0]->gone);
	launch_in(2, &parts[1]);
	assert_int_equal(driver.n_made, 3); /* what it was is not launched any more */
	assert_int_equal(driver.n_uploads, 1);
	launch_in(3, &parts[2]);
	assert_true(driver.made[1]->gone);
	graph_updated(&program, NULL);
	launch_in(4, NULL);
	assert_int_equal(driver.n_uploads, 3);
}

static void what_was_launched_last_is_kept(void **state) {
	struct graph_use use;

	(void)state;
	launch_in(1, &parts[0]);
	for (unsigned i = 1; i < PARTITIONS; i++) {
		use = graph_use_begin(graph_find(&program), &parts[i], CONTEXT, false);
		graph_use_end(&use);
	}
	assert_false(driver.made[0]->gone);
	launch_in(2, &parts[1]);
	assert_int_equal(driver.n_uploads, 1);
}

static void nothing_is_left_of_a_context_that_is_gone(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	graph_context_destroying(CONTEXT);
	wait_all(); /* as the driver does */
	launch_in(2, &parts[1]);
	assert_int_equal(driver.n_uploads, 0);
}

static void where_nothing_can_be_uploaded_the_thread_waits(void **state) {
	(void)state;
	launch_in(1, &parts[0]);
	driver.refuses_upload = true;
	launch_in(2, &parts[1]);
	assert_int_equal(driver.n_waits, 1);
	driver.refuses_wait = true;
	assert_int_equal(try_launch(3, NULL), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(driver.n_launches, 2);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(variants_come_one_behind_the_other),
		CASE(so_do_variants_and_the_programs_own),
		CASE(so_do_variants_of_another_level),
		CASE(uploads_come_behind_variants),
		CASE(what_the_driver_orders_costs_nothing),
		CASE(a_launch_that_fails_does_not_count),
		CASE(a_new_stream_is_none_that_is_gone),
		CASE(streams_of_threads_are_not_told_apart),
		CASE(launches_outside_jobs_are_in_order_too),
		CASE(what_is_captured_is_no_launch),
		CASE(a_graph_that_was_changed_comes_behind_what_it_was),
		CASE(what_was_launched_last_is_kept),
		CASE(nothing_is_left_of_a_context_that_is_gone),
		CASE(where_nothing_can_be_uploaded_the_thread_waits),
	};

	return cmocka_run_group_tests_name("graph-order", tests, NULL, NULL);
}
