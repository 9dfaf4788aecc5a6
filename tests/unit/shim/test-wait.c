/*
 * test-wait.c: what each kind of wait tells about which operations. On the fake driver, whose
 * contexts and streams are asked for; that a job is open is pretended (the linker's --wrap).
 */
#include "shim/real.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/capture.h"
#include "shim/hooks.h"
#include "shim/lane.h"
#include "shim/point.h"
#include "shim/wait.h"
#include "shim/worker.h"
#include "tests/fake/fake.h"

#define JOB 5

unsigned __wrap_lane_count(void);

unsigned __wrap_lane_count(void) {
	return 1;
}

static struct lane lane;
static CUcontext contexts[2];
static CUstream blocking, own, event_stream;

static int setup(void **state) {
	const struct real *real;

	fake_hold(false); /* the driver is in the process before it is looked for, as in programs */
	real = real_get();
	assert_non_null(real);
	atomic_store(&lane.job, JOB); /* or its entries would be free for others */
	atomic_store(&lane.state, LANE_OPEN);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(real->cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
	}
	assert_int_equal(real->cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
	assert_int_equal(real->cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
	assert_int_equal(real->cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	assert_int_equal(real->cuStreamCreate(&event_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	return 0;
}

static int teardown(void **state) {
	const struct real *real = real_get();

	real->cuStreamDestroy_v2(blocking);
	real->cuStreamDestroy_v2(own);
	return 0;
}

/* The calling thread's operations on the stream, none of them complete. */
static struct stream_use *use(CUcontext context, CUstream stream, bool per_thread) {
	struct stream_id id = worker_stream(worker_get(), context, stream, per_thread);
	struct stream_use *u = worker_use(worker_get(), &lane, JOB, &id, id.stream);

	assert_non_null(u);
	atomic_store(&u->done, 0);
	return u;
}

static void wait_for_stream_covers_that_stream(void **state) {
	struct stream_use *there = use(contexts[0], own, false);
	struct stream_use *beside = use(contexts[0], blocking, false);
	struct stream_use *legacy = use(contexts[0], NULL, false);
	struct stream_use *other = use(contexts[1], NULL, false);

	wait_covered_stream(own, false, 100);
	assert_int_equal(there->done, 100);
	assert_int_equal(beside->done, 0);
	wait_covered_stream(own, false, 90); /* later knowledge is not lost */
	assert_int_equal(there->done, 100);
	wait_covered_stream(NULL, false, 110);
	assert_int_equal(legacy->done, 110);
	assert_int_equal(other->done, 0); /* has the same handle in its own context */
	wait_covered_stream(CU_STREAM_LEGACY, true, 120);
	assert_int_equal(legacy->done, 120);
}

static void wait_for_stream_covers_it_in_any_context(void **state) {
	struct stream_use *there = use(contexts[0], own, false);

	assert_int_equal(real_get()->cuCtxSetCurrent(contexts[1]), CUDA_SUCCESS);
	wait_covered_stream(own, false, 130);
	assert_int_equal(real_get()->cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
	assert_int_equal(there->done, 130);
}

static void wait_for_context_covers_all_of_it(void **state) {
	struct stream_use *first = use(contexts[0], own, false);
	struct stream_use *second = use(contexts[0], NULL, true);
	struct stream_use *other = use(contexts[1], NULL, false);

	wait_covered_context(NULL, 200); /* the current one */
	assert_int_equal(first->done, 200);
	assert_int_equal(second->done, 200);
	assert_int_equal(other->done, 0);
	wait_covered_context(contexts[1], 210);
	assert_int_equal(first->done, 200);
	assert_int_equal(other->done, 210);
}

static void *wait_for_own_default_stream(void *data) {
	real_get()->cuCtxSetCurrent(contexts[0]);
	wait_covered_stream(NULL, true, 300);
	wait_covered_stream(CU_STREAM_PER_THREAD, false, 300);
	return NULL;
}

static void wait_for_per_thread_stream_covers_that_threads(void **state) {
	struct stream_use *mine = use(contexts[0], NULL, true);
	pthread_t thread;

	assert_ptr_equal(use(contexts[0], CU_STREAM_PER_THREAD, false), mine);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_own_default_stream, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(mine->done, 0);
	wait_for_own_default_stream(NULL);
	assert_int_equal(mine->done, 300);
}

static void record(CUevent event, CUstream stream, point_t at) {
	wait_event_recorded(event, wait_event_recording(event), stream, false, at);
}

static void wait_for(CUevent event) {
	wait_event_complete(event, wait_event_last(event));
}

static void wait_for_event_covers_what_came_before_it(void **state) {
	const CUevent event = (CUevent)0x1230, stranger = (CUevent)0x4560;
	struct stream_use *there = use(contexts[0], event_stream, false);
	struct stream_use *beside = use(contexts[0], own, false);

	wait_for(event); /* never recorded: nothing is known */
	assert_int_equal(there->done, 0);
	record(event, event_stream, 400);
	wait_for(stranger);
	assert_int_equal(there->done, 0);
	wait_for(event);
	assert_int_equal(there->done, 400);
	assert_int_equal(beside->done, 0);
	record(event, own, 410); /* recorded again, elsewhere */
	wait_for(event);
	assert_int_equal(there->done, 400);
	assert_int_equal(beside->done, 410);
	record(event, own, 420);
	wait_event_gone(event);
	wait_for(event);
	assert_int_equal(beside->done, 410);
}

/* The driver's answer may be true of either. */
static void event_recorded_during_the_wait_covers_nothing(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);
	struct stream_use *beside = use(contexts[0], own, false);
	uint64_t waited_for, turn;

	record(event, event_stream, 430);
	waited_for = wait_event_last(event);
	record(event, own, 440);
	wait_event_complete(event, waited_for);
	assert_int_equal(there->done, 0);
	assert_int_equal(beside->done, 0);

	turn = wait_event_recording(event);
	waited_for = wait_event_last(event);
	wait_event_complete(event, waited_for);
	wait_event_recorded(event, turn, own, false, 450);
	wait_event_complete(event, waited_for);
	assert_int_equal(beside->done, 0);
	wait_for(event);
	assert_int_equal(beside->done, 450);
}

/* By two threads at the same time: the driver may have taken either of them last. */
static void event_of_two_recordings_tells_of_none(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);
	struct stream_use *beside = use(contexts[0], own, false);
	uint64_t first = wait_event_recording(event), second = wait_event_recording(event);

	wait_event_recorded(event, second, own, false, 470);
	wait_for(event);
	wait_event_recorded(event, first, event_stream, false, 460);
	wait_for(event);
	first = wait_event_recording(event);
	second = wait_event_recording(event);
	wait_event_recorded(event, first, event_stream, false, 480);
	wait_for(event);
	wait_event_recorded(event, second, own, false, 490);
	wait_for(event);
	assert_int_equal(there->done, 0);
	assert_int_equal(beside->done, 0);
	record(event, own, 500);
	wait_for(event);
	assert_int_equal(beside->done, 500);
}

static void event_that_was_not_recorded_tells_nothing(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);

	record(event, event_stream, 510);
	wait_event_recording(event);
	wait_event_recorded(event, 0, event_stream, false, 520);
	wait_for(event);
	assert_int_equal(there->done, 0);
	record(event, event_stream, 530);
	wait_for(event);
	assert_int_equal(there->done, 530);
}

static CUgraphNodeParams recorder(CUevent event) {
	return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
}

static CUresult set_exec_params(CUevent event) {
	CUgraphNodeParams record = recorder(event);

	return on_cuGraphExecNodeSetParams(NULL, NULL, &record);
}

static CUresult set_params(CUevent event) {
	CUgraphNodeParams record = recorder(event);

	return on_cuGraphNodeSetParams(NULL, &record);
}

static CUresult add_node(CUevent event) {
	CUgraphNodeParams record = recorder(event);

	return on_cuGraphAddNode(NULL, NULL, NULL, 0, &record);
}

static CUresult add_node_with_edges(CUevent event) {
	CUgraphNodeParams record = recorder(event);

	return on_cuGraphAddNode_v2(NULL, NULL, NULL, NULL, 0, &record);
}

static CUresult add_record_node(CUevent event) {
	return on_cuGraphAddEventRecordNode(NULL, NULL, NULL, 0, event);
}

static CUresult set_event(CUevent event) {
	return on_cuGraphEventRecordNodeSetEvent(NULL, event);
}

static CUresult set_exec_event(CUevent event) {
	return on_cuGraphExecEventRecordNodeSetEvent(NULL, NULL, event);
}

static CUresult record_external(CUevent event) {
	return on_cuEventRecordWithFlags(event, own, CU_EVENT_RECORD_EXTERNAL);
}

static CUresult record_external_per_thread(CUevent event) {
	return on_cuEventRecordWithFlags_ptsz(event, own, CU_EVENT_RECORD_EXTERNAL);
}

static CUresult export(CUevent event) {
	CUipcEventHandle handle;

	return on_cuIpcGetEventHandle(&handle, event);
}

/* The fake driver leaves the event as it is. */
static CUresult import(CUevent event) {
	return on_cuIpcOpenEventHandle(&event, (CUipcEventHandle){.reserved = {0}});
}

static CUresult (*const namings[])(CUevent event) = {
	set_exec_params,
	set_params,
	add_node,
	add_node_with_edges,
	add_record_node,
	set_event,
	set_exec_event,
	record_external,
	record_external_per_thread,
	export,
	import,
};

/* What a launch of the graph records, or another process, is not what the program has recorded
 * before, nor after. */
static void event_that_others_record_tells_nothing(void **state) {
	struct stream_use *there = use(contexts[0], event_stream, false);
	CUevent event;

	for (size_t i = 0; i < sizeof(namings) / sizeof(namings[0]); i++) {
		assert_int_equal(real_get()->cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
		atomic_store(&there->done, 0);
		record(event, event_stream, 540);
		assert_int_equal(namings[i](event), CUDA_SUCCESS);
		assert_int_equal(on_cuEventSynchronize(event), CUDA_SUCCESS);
		record(event, event_stream, 541);
		assert_int_equal(on_cuEventQuery(event), CUDA_SUCCESS);
		assert_int_equal(there->done, 0);
		wait_event_gone(event); /* another one may get its handle */
		record(event, event_stream, 542);
		assert_int_equal(on_cuEventSynchronize(event), CUDA_SUCCESS);
		assert_int_equal(there->done, 542);
		assert_int_equal(on_cuEventDestroy_v2(event), CUDA_SUCCESS);
	}
}

/* The thread that records it has found it known to the program alone, or has not looked yet. */
static void event_that_a_graph_gets_while_it_is_recorded_tells_nothing(void **state) {
	const CUevent event = (CUevent)0x7890;
	struct stream_use *there = use(contexts[0], event_stream, false);
	uint64_t turn = wait_event_recording(event);

	wait_event_shared(event);
	wait_event_recorded(event, turn, event_stream, false, 543);
	wait_for(event);
	assert_int_equal(there->done, 0);
	wait_event_gone(event);
}

/* Nodes of graphs that do something else leave events alone. */
static void other_nodes_take_no_event(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);
	CUgraphNodeParams wait = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventRecord = {event}};

	record(event, event_stream, 544);
	assert_int_equal(on_cuGraphNodeSetParams(NULL, &wait), CUDA_SUCCESS);
	assert_int_equal(on_cuGraphNodeSetParams(NULL, NULL), CUDA_SUCCESS);
	wait_for(event);
	assert_int_equal(there->done, 544);
}

static void event_that_is_recorded_behind_a_context_tells_nothing(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);

	record(event, event_stream, 545);
	assert_int_equal(on_cuCtxRecordEvent(contexts[0], event), CUDA_SUCCESS);
	wait_for(event);
	record(event, event_stream, 546);
	assert_int_equal(on_cuGreenCtxRecordEvent(NULL, event), CUDA_SUCCESS);
	wait_for(event);
	assert_int_equal(there->done, 0);
	record(event, event_stream, 547);
	wait_for(event);
	assert_int_equal(there->done, 547);
}

/* A launch that records it comes after what the program has recorded it behind, in any stream. */
static void event_that_a_launch_records_tells_nothing(void **state) {
	const CUevent event = (CUevent)0x1230;
	struct stream_use *there = use(contexts[0], event_stream, false);
	CUlaunchAttribute first = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
				   .value = {.programmaticEvent = {.event = event}}};
	CUlaunchAttribute second = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
				    .value = {.launchCompletionEvent = {.event = event}}};
	CUlaunchConfig config = {.hStream = own, .attrs = &first, .numAttrs = 1};

	record(event, event_stream, 548);
	assert_int_equal(cuLaunchKernelEx(&config, FAKE_KERNEL, NULL, NULL), CUDA_SUCCESS);
	wait_for(event);
	assert_int_equal(there->done, 0);
	record(event, event_stream, 549);
	config.attrs = &second;
	assert_int_equal(cuLaunchKernelEx_ptsz(&config, FAKE_KERNEL, NULL, NULL), CUDA_SUCCESS);
	wait_for(event);
	assert_int_equal(there->done, 0);
	record(event, event_stream, 550);
	config.numAttrs = 0;
	assert_int_equal(cuLaunchKernelEx(&config, FAKE_KERNEL, NULL, NULL), CUDA_SUCCESS);
	wait_for(event);
	assert_int_equal(there->done, 550);
}

static void copy_on_legacy_stream_covers_blocking_streams(void **state) {
	struct stream_use *legacy = use(contexts[0], NULL, false);
	struct stream_use *ordered = use(contexts[0], blocking, false);
	struct stream_use *free_of_it = use(contexts[0], own, false);
	struct stream_use *other = use(contexts[1], NULL, false);

	atomic_store(&legacy->last, 550);
	wait_covered_by_copy(legacy, 500);
	assert_int_equal(legacy->done, 550);
	assert_int_equal(ordered->done, 500); /* what came before the copy began */
	assert_int_equal(free_of_it->done, 0);
	assert_int_equal(other->done, 0);
	atomic_store(&free_of_it->last, 650);
	wait_covered_by_copy(free_of_it, 600);
	assert_int_equal(free_of_it->done, 650);
	assert_int_equal(ordered->done, 500);
}

/* Tells more and more of one entry until it is told to end. */
struct teller {
	struct stream_use *use;
	_Atomic bool end;
};

#define ROUNDS 200000
#define LOOKS  50

static void *tell(void *data) {
	struct teller *t = data;

	for (point_t until = 1; !atomic_load(&t->end); until++) {
		worker_complete_until(t->use, until);
	}
	return NULL;
}

/* As when a context goes while the tracker asks about a stream of it. */
static void what_is_known_stays_known(void **state) {
	struct teller t = {.use = use(contexts[0], own, false)};
	unsigned lost = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, tell, &t), 0);
	while (atomic_load(&t.use->done) == 0) {
		sched_yield(); /* until it tells */
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		atomic_store(&t.use->done, 0);
		worker_complete_until(t.use, POINT_NEVER);
		for (unsigned j = 0; j < LOOKS; j++) {
			lost += atomic_load(&t.use->done) != POINT_NEVER;
		}
	}
	atomic_store(&t.end, true);
	pthread_join(thread, NULL);
	assert_int_equal(lost, 0);
}

/* An operation is covered by a wait that begins after it, and by none that began before. */
static void points_order_operations_and_waits(void **state) {
	point_t early = point_mark(), first = point_now(), second = point_now();
	point_t wait = point_mark(), third = point_now();

	assert_true(first > early && second > early);
	assert_true(first <= wait && second <= wait);
	assert_true(third > wait);
	assert_true(first > 0); /* an entry without any operation is complete */
}

static void captures_are_counted_from_zero(void **state) {
	const uint64_t first = (uintptr_t)own, second = (uintptr_t)blocking;

	assert_false(capture_any());
	capture_end(first); /* one that began before we looked */
	capture_begin(first, contexts[0], NULL);
	assert_true(capture_any());
	capture_end(second);
	assert_true(capture_any());
	capture_begin(second, contexts[0], NULL);
	capture_end(first);
	assert_true(capture_any());
	capture_end(second);
	assert_false(capture_any());
	assert_false(capture_is_on(own, false));
}

static void captures_end_with_their_stream_or_context(void **state) {
	const struct real *real = real_get();
	CUstream stream;

	assert_int_equal(real->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	assert_int_equal(on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
			 CUDA_SUCCESS);
	assert_true(capture_any());
	assert_int_equal(on_cuStreamDestroy_v2(event_stream), CUDA_SUCCESS); /* another one */
	assert_true(capture_any());
	assert_int_equal(on_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	assert_false(capture_any());

	assert_int_equal(real->cuCtxSetCurrent(contexts[1]), CUDA_SUCCESS);
	assert_int_equal(real->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	assert_int_equal(on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
			 CUDA_SUCCESS);
	assert_int_equal(on_cuCtxDestroy_v2(contexts[1]), CUDA_SUCCESS);
	assert_false(capture_any());
	assert_int_equal(real->cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
}

static void *capture_own_default_stream(void *data) {
	assert_int_equal(real_get()->cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
	assert_int_equal(on_cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
			 CUDA_SUCCESS);
	assert_true(capture_any());
	return NULL;
}

/* It can't be named any more, so nobody can end its capture. */
static void capture_of_a_default_stream_ends_with_its_thread(void **state) {
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, capture_own_default_stream, NULL), 0);
	pthread_join(thread, NULL);
	assert_false(capture_any());

	/* Those of other threads go on. */
	capture_own_default_stream(NULL);
	capture_begin((uintptr_t)own, contexts[0], NULL);
	assert_int_equal(pthread_create(&thread, NULL, capture_own_default_stream, NULL), 0);
	pthread_join(thread, NULL);
	capture_end((uintptr_t)own);
	assert_true(capture_any());
	assert_int_equal(on_cuStreamEndCapture_ptsz(NULL, &(CUgraph){NULL}), CUDA_SUCCESS);
	assert_false(capture_any());
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait_for_stream_covers_that_stream),
		cmocka_unit_test(wait_for_stream_covers_it_in_any_context),
		cmocka_unit_test(wait_for_context_covers_all_of_it),
		cmocka_unit_test(wait_for_per_thread_stream_covers_that_threads),
		cmocka_unit_test(wait_for_event_covers_what_came_before_it),
		cmocka_unit_test(event_recorded_during_the_wait_covers_nothing),
		cmocka_unit_test(event_of_two_recordings_tells_of_none),
		cmocka_unit_test(event_that_was_not_recorded_tells_nothing),
		cmocka_unit_test(event_that_others_record_tells_nothing),
		cmocka_unit_test(event_that_a_graph_gets_while_it_is_recorded_tells_nothing),
		cmocka_unit_test(other_nodes_take_no_event),
		cmocka_unit_test(event_that_is_recorded_behind_a_context_tells_nothing),
		cmocka_unit_test(event_that_a_launch_records_tells_nothing),
		cmocka_unit_test(copy_on_legacy_stream_covers_blocking_streams),
		cmocka_unit_test(what_is_known_stays_known),
		cmocka_unit_test(points_order_operations_and_waits),
		cmocka_unit_test(captures_are_counted_from_zero),
		cmocka_unit_test(captures_end_with_their_stream_or_context),
		cmocka_unit_test(capture_of_a_default_stream_ends_with_its_thread),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
