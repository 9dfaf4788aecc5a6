/*
 * test-api-stream.c: the simulated driver, as one process sees it: streams, events, host functions
 * and threads.
 */
#include "api.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>

static void api_keeps_streams_apart_and_null_stream_between(void **state) {
	struct fixture *f = *state;
	CUstream held, free_one, blocking;
	struct gate g;
	CUdeviceptr d;
	unsigned value;

	gate_close(&g);
	OK(cuMemAlloc(&d, 4));
	OK(cuMemsetD32(d, 0, 1));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&held, 0));
	OK(cuStreamCreate(&blocking, 0));
	OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	gate_launch(&g, f->wait, held, 1);
	assert_int_equal(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
	poke(f, free_one, d, 1);
	OK(cuStreamSynchronize(free_one)); /* runs beside it */
	poke(f, NULL, d, 2);		   /* after held */
	poke(f, blocking, d, 3);	   /* after the NULL stream */
	assert_int_equal(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync(&value, d, 4, free_one));
	assert_int_equal(value, 1);
	gate_open(&g);
	OK(cuStreamSynchronize(blocking));
	OK(cuStreamQuery(held));
	OK(cuMemcpyDtoH(&value, d, 4));
	assert_int_equal(value, 3);
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(free_one));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)g.words));
}

static void api_orders_and_times_by_events(void **state) {
	struct fixture *f = *state;
	CUevent start, end, untimed;
	CUstream a, b;
	struct gate g;
	float ms = -1;

	gate_close(&g);
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(start)); /* never recorded: complete */
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(start, a));
	gate_launch(&g, f->wait, a, 1);
	OK(cuEventRecord(end, a));
	OK(cuStreamWaitEvent(b, end, 0));
	OK(cuEventRecord(untimed, b));
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(untimed), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
	gate_open(&g);
	OK(cuEventSynchronize(untimed));
	OK(cuEventQuery(end));
	OK(cuEventElapsedTime(&ms, start, end));
	assert_true(ms > 0);
	assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy(start));
	OK(cuEventDestroy(end));
	OK(cuEventDestroy(untimed));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFreeHost((void *)g.words));
}

#define LAST 1023 /* of a gate's words: free */

/* What streams do later is not waited for, nor do they wait. */
static void api_records_events_behind_all_streams(void **state) {
	struct fixture *f = *state;
	CUstream held, idle;
	CUevent event;
	CUdeviceptr d, word;
	struct gate g;

	gate_close(&g);
	OK(cuMemHostGetDevicePointer(&word, (void *)&g.words[LAST], 0));
	OK(cuMemAlloc(&d, 4));
	OK(cuStreamCreate(&held, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&idle, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuCtxSynchronize());
	OK(cuCtxRecordEvent(f->context, event));
	OK(cuEventQuery(event)); /* there was nothing */
	gate_launch(&g, f->wait, held, 1);
	OK(cuStreamWaitValue32(idle, word, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuCtxRecordEvent(f->context, event));
	poke(f, idle, d, 1);
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	g.words[LAST] = 1;
	OK(cuStreamSynchronize(idle)); /* one of the two */
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	poke(f, NULL, d, 2); /* after held */
	OK(cuCtxRecordEvent(f->context, event));
	OK(cuStreamDestroy(held));
	OK(cuStreamWaitEvent(idle, event, 0));
	assert_int_equal(cuStreamQuery(idle), CUDA_ERROR_NOT_READY);
	gate_open(&g);
	OK(cuEventSynchronize(event));
	OK(cuStreamQuery(NULL));
	OK(cuStreamSynchronize(idle));
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(idle));
	OK(cuMemFree(d));
	OK(cuMemFreeHost((void *)g.words));
}

static void api_refuses_events_behind_captures_and_other_contexts(void **state) {
	struct fixture *f = *state;
	CUcontext other, popped;
	CUgraph graph;
	CUevent event;
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	assert_int_equal(cuCtxRecordEvent(f->context, event),
			 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	assert_int_equal(cuCtxRecordEvent(other, event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxRecordEvent(other, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuGreenCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxPopCurrent(&popped));
	OK(cuCtxDestroy(other));
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(s));
}

static void api_waits_for_values_in_host_memory(void **state) {
	volatile unsigned *words; /* what is waited for, what is written behind that */
	CUdeviceptr words_dev;
	CUstream a, b;

	(void)state;
	OK(cuMemHostAlloc((void **)&words, 2 * sizeof(*words), CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&words_dev, (void *)words, 0));
	words[0] = words[1] = 0;
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32(a, words_dev, 3, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuStreamWriteValue32(a, words_dev + 4, 7, 0));
	OK(cuStreamWriteValue32(b, words_dev, 2, 0));
	OK(cuStreamSynchronize(b)); /* does not wait for the other */
	assert_int_equal(words[0], 2);
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	assert_int_equal(words[1], 0);
	__atomic_store_n(&words[0], 4, __ATOMIC_SEQ_CST); /* by the host */
	OK(cuStreamSynchronize(a));
	assert_int_equal(words[1], 7);
	OK(cuStreamWaitValue32(a, words_dev, 4, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWaitValue32(a, words_dev, 6, CU_STREAM_WAIT_VALUE_AND));
	OK(cuStreamWaitValue32(a, words_dev, 4, CU_STREAM_WAIT_VALUE_NOR));
	OK(cuStreamSynchronize(a));
	assert_int_equal(cuStreamWaitValue32(a, words_dev + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue32(a, 4096, 0, 0), CUDA_ERROR_INVALID_VALUE);
	/* What is destroyed in the middle of a wait leaves nobody waiting. */
	OK(cuStreamWaitValue32(a, words_dev, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	words[0] = 5;
	OK(cuMemFreeHost((void *)words));
}

struct called {
	int n;
	int order[2];
};

static void CUDA_CB call_first(void *data) {
	struct called *c = data;

	c->order[c->n++] = 1;
}

static void CUDA_CB call_second(CUstream stream, CUresult status, void *data) {
	struct called *c = data;

	c->order[c->n++] = status == CUDA_SUCCESS ? 2 : -1;
}

static void api_calls_host_functions_in_the_order_of_the_stream(void **state) {
	struct called called = {0};
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, call_first, &called));
	OK(cuStreamAddCallback(s, call_second, &called, 0));
	OK(cuStreamSynchronize(s));
	assert_int_equal(called.n, 2);
	assert_int_equal(called.order[0], 1);
	assert_int_equal(called.order[1], 2);
	OK(cuStreamDestroy(s));
}

/* Behind the legacy stream a blocking one with a wait for a complete event, or with events alone, is
 * not waited for; the event is, and what comes behind it. */
static void api_takes_events_for_nothing_to_wait_for(void **state) {
	struct fixture *f = *state;
	CUdeviceptr memory;
	CUstream blocking;
	struct gate g;
	CUevent event;

	gate_close(&g);
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(event, blocking));
	OK(cuEventSynchronize(event));
	gate_launch(&g, f->wait, NULL, 1);
	OK(cuStreamWaitEvent(blocking, event, 0));
	OK(cuStreamQuery(blocking));
	OK(cuEventRecord(event, blocking));
	OK(cuStreamSynchronize(blocking));
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	OK(cuMemAlloc(&memory, 4));
	OK(cuMemsetD32Async(memory, 1, 1, blocking));
	assert_int_equal(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	gate_open(&g);
	OK(cuEventSynchronize(event));
	OK(cuStreamSynchronize(blocking));
	OK(cuCtxSynchronize());
	OK(cuMemFree(memory));
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(blocking));
	OK(cuMemFreeHost((void *)g.words));
}

struct changed {
	sem_t go;
	unsigned *words; /* pinned, 32 */
};

static void CUDA_CB change_words(void *data) {
	struct changed *c = data;

	assert_int_equal(sem_wait(&c->go), 0);
	for (unsigned i = 0; i < 32; i++) {
		c->words[i] = 7;
	}
}

/* By the legacy stream's rules a copy waits for the host function, but a small one has read its
 * source by then, unless something in its own stream is in front of it. */
static void api_reads_little_pinned_memory_at_the_call(void **state) {
	unsigned got[3] = {0};
	struct changed c;
	CUstream blocking, other;
	CUdeviceptr memory;
	CUevent event;

	assert_int_equal(sem_init(&c.go, 0, 0), 0);
	OK(cuMemHostAlloc((void **)&c.words, 32 * sizeof(*c.words), 0));
	memset(c.words, 0, 32 * sizeof(*c.words));
	OK(cuMemAlloc(&memory, 256));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuLaunchHostFunc(blocking, change_words, &c));
	OK(cuEventRecord(event, blocking));
	OK(cuStreamWaitEvent(other, event, 0));
	OK(cuMemcpyHtoDAsync(memory, c.words, sizeof(*c.words), CU_STREAM_LEGACY));
	OK(cuMemcpyHtoDAsync(memory + 64, c.words, 32 * sizeof(*c.words), CU_STREAM_LEGACY));
	OK(cuMemcpyHtoDAsync(memory + 192, c.words, sizeof(*c.words), other));
	assert_int_equal(sem_post(&c.go), 0);
	OK(cuCtxSynchronize());
	for (unsigned i = 0; i < 3; i++) {
		OK(cuMemcpyDtoH(&got[i], memory + (const unsigned[]){0, 64, 192}[i], sizeof(*got)));
	}
	assert_int_equal(got[0], 0);
	assert_int_equal(got[1], 7);
	assert_int_equal(got[2], 7);
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(other));
	OK(cuStreamDestroy(blocking));
	OK(cuMemFree(memory));
	OK(cuMemFreeHost(c.words));
	sem_destroy(&c.go);
}

static void *thread_adds(void *arg) {
	struct fixture *f = arg;
	CUstream s;

	OK(cuCtxSetCurrent(f->context));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 8; i++) {
		run_add(f->add, s, 2000 + i, i);
	}
	OK(cuStreamDestroy(s));
	return NULL;
}

static bool has_attribute(CUstream s, CUstreamAttrID which, const CUstreamAttrValue *want) {
	CUstreamAttrValue value;

	OK(cuStreamGetAttribute(s, which, &value));
	return memcmp(&value, want, sizeof(value)) == 0;
}

static void api_keeps_attributes_of_streams(void **state) {
	const CUstreamAttrID which = CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY;
	const CUstreamAttrValue none = {.pad = {0}}, some = {.pad = {3}}, others = {.pad = {2}};
	CUstreamAttrValue value;
	CUstream a, b;

	(void)state;
	OK(cuStreamCreate(&a, 0));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuStreamSetAttribute(a, which, &some));
	OK(cuStreamSetAttribute(CU_STREAM_PER_THREAD, which, &others));
	assert_true(has_attribute(a, which, &some));
	assert_true(has_attribute(a, CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, &none));
	assert_true(has_attribute(b, which, &none));
	assert_true(has_attribute(CU_STREAM_PER_THREAD, which, &others));
	assert_true(has_attribute(NULL, which, &none));
	OK(cuStreamCopyAttributes(b, a));
	OK(cuStreamCopyAttributes(NULL, CU_STREAM_PER_THREAD));
	assert_true(has_attribute(b, which, &some));
	assert_true(has_attribute(CU_STREAM_LEGACY, which, &others));
	assert_int_equal(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
}

static void api_serves_many_threads(void **state) {
	struct fixture *f = *state;
	pthread_t threads[6];
	struct gate g;
	CUstream s;

	/* One of them waits for long: the others get their answers meanwhile. */
	gate_close(&g);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, thread_adds, f), 0);
	}
	gate_launch(&g, f->wait, s, 1);
	gate_open(&g);
	OK(cuStreamSynchronize(s));
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
	}
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost((void *)g.words));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		api_test(api_keeps_streams_apart_and_null_stream_between),
		api_test(api_orders_and_times_by_events),
		api_test(api_records_events_behind_all_streams),
		api_test(api_refuses_events_behind_captures_and_other_contexts),
		api_test(api_waits_for_values_in_host_memory),
		api_test(api_calls_host_functions_in_the_order_of_the_stream),
		api_test(api_takes_events_for_nothing_to_wait_for),
		api_test(api_reads_little_pinned_memory_at_the_call),
		api_test(api_keeps_attributes_of_streams),
		api_test(api_serves_many_threads),
	};

	return cmocka_run_group_tests(tests, api_setup, api_teardown);
}
