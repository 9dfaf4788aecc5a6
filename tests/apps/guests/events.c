/*
 * events.c: events, what they order and what they measure.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

static CUevent event(unsigned flags) {
	CUevent e;

	CU(cuEventCreate(&e, flags));
	return e;
}

static void tell_time(const char *name, CUevent from, CUevent to) {
	float ms = -1;
	CUresult r = cuEventElapsedTime(&ms, from, to);

	gpu_tell(name, r);
	if (r == CUDA_SUCCESS) {
		TELL("%s: %s\n", name, ms > 0 ? "some time" : ms == 0 ? "none" : "negative");
	}
}

static void timing(void) {
	CUevent a, b, c, untimed, unrecorded;
	CUdeviceptr p;
	CUstream s, t;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	t = gpu_stream(CU_STREAM_NON_BLOCKING);
	p = gpu_alloc(sizeof(unsigned));
	a = event(CU_EVENT_DEFAULT);
	b = event(CU_EVENT_BLOCKING_SYNC);
	c = event(CU_EVENT_DEFAULT);
	untimed = event(CU_EVENT_DISABLE_TIMING);
	unrecorded = event(CU_EVENT_DEFAULT);
	CU(cuEventRecord(a, s));
	gpu_spin(s, p, 8, 2000);
	CU(cuEventRecord(b, s));
	CU(cuEventRecord(untimed, s));
	CU(cuStreamWaitEvent(t, b, 0));
	gpu_spin(t, p, 8, 2000);
	CU(cuEventRecord(c, t));
	CU(cuEventSynchronize(c));
	tell_time("in a stream", a, b);
	tell_time("across streams", a, c);
	tell_time("behind it", b, c);
	tell_time("backwards", c, a);
	tell_time("of itself", a, a);
	tell_time("untimed", a, untimed);
	tell_time("unrecorded", a, unrecorded);
	tell_time("not yet", a, NULL);
	gpu_spin(s, p, 8, 200);
	CU(cuEventRecord(b, s));
	CU(cuStreamSynchronize(s));
	tell_time("recorded again", a, b);
}

/* Times of what runs one after the other add up. */
static void times_add_up(void) {
	CUevent e[6];
	CUdeviceptr p;
	CUstream s;
	float whole, part, sum = 0;
	bool positive = true;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 6; i++) {
		e[i] = event(CU_EVENT_DEFAULT);
		CU(cuEventRecord(e[i], s));
		gpu_spin(s, p, 4, 500);
	}
	CU(cuStreamSynchronize(s));
	for (unsigned i = 0; i < 5; i++) {
		CU(cuEventElapsedTime(&part, e[i], e[i + 1]));
		positive = positive && part >= 0;
		sum += part;
	}
	CU(cuEventElapsedTime(&whole, e[0], e[5]));
	TELL("parts positive %d, sum is the whole %d\n", positive,
	     sum > whole * 0.98f && sum < whole * 1.02f);
}

static void queries(void) {
	CUevent e;
	CUstream s;
	volatile unsigned *host;
	CUdeviceptr flag, p;

	gpu_open();
	GPU_NEEDS_AS(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	p = gpu_alloc(sizeof(unsigned));
	e = event(CU_EVENT_DEFAULT);
	CU(cuMemHostAlloc((void **)&host, sizeof(*host), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&flag, (void *)host, 0));
	TELL_RESULT(cuEventQuery(e));
	TELL_RESULT(cuEventSynchronize(e));
	for (unsigned i = 0; i < 5; i++) {
		void *await[] = {&flag, &p};

		*host = 0;
		CU(cuLaunchKernel(gpu.await, 1, 1, 1, 32, 1, 1, 0, s, await, NULL));
		CU(cuEventRecord(e, s));
		TELL_RESULT(cuEventQuery(e));
		TELL_RESULT(cuStreamQuery(s));
		*host = 1;
		while (cuEventQuery(e) == CUDA_ERROR_NOT_READY) {
			sched_yield();
		}
		TELL_RESULT(cuEventQuery(e));
		TELL_RESULT(cuStreamQuery(s));
	}
	TELL("%u\n", gpu_word(p));
}

/* An event stands for what was recorded last; waits that came before are for what was then. */
static void recorded_again(void) {
	CUevent e;
	CUstream s[2];
	struct chain c;

	gpu_open();
	s[0] = gpu_stream(CU_STREAM_NON_BLOCKING);
	s[1] = gpu_stream(CU_STREAM_NON_BLOCKING);
	e = event(CU_EVENT_DISABLE_TIMING);
	c = chain_new(20000);
	CU(cuStreamWaitEvent(s[0], e, 0)); /* of nothing */
	for (unsigned i = 0; i < 50; i++) {
		chain_step(&c, s[i % 2]);
		chain_step(&c, s[i % 2]);
		CU(cuEventRecord(e, s[i % 2]));
		CU(cuStreamWaitEvent(s[(i + 1) % 2], e, 0));
		CU(cuEventRecord(e, s[(i + 1) % 2]));
	}
	CU(cuEventSynchronize(e));
	chain_tell("again and again", &c, s[0]);
}

static void destroyed(void) {
	CUstream s[2];
	struct chain c;

	gpu_open();
	s[0] = gpu_stream(CU_STREAM_NON_BLOCKING);
	s[1] = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(20000);
	for (unsigned i = 0; i < 40; i++) {
		CUevent e = event(CU_EVENT_DISABLE_TIMING);

		chain_step(&c, s[i % 2]);
		CU(cuEventRecord(e, s[i % 2]));
		CU(cuStreamWaitEvent(s[(i + 1) % 2], e, 0));
		CU(cuEventDestroy(e));
	}
	chain_tell("destroyed at once", &c, s[0]);
}

static void of_a_destroyed_stream(void) {
	CUevent e;
	CUdeviceptr p;

	gpu_open();
	e = event(CU_EVENT_DEFAULT);
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 5; i++) {
		CUstream s = gpu_stream(CU_STREAM_NON_BLOCKING);

		gpu_spin(s, p, 4, 1000);
		CU(cuEventRecord(e, s));
		CU(cuStreamDestroy(s));
		CU(cuEventSynchronize(e));
		TELL("%u blocks\n", gpu_word(p));
	}
}

static CUevent given;
static CUdeviceptr given_p;

static void *waits(void *data) {
	(void)data;
	gpu_enter();
	CU(cuEventSynchronize(given));
	TELL("%u blocks\n", gpu_word(given_p));
	return NULL;
}

static void by_another_thread(void) {
	pthread_t t;

	gpu_open();
	given = event(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
	given_p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 5; i++) {
		gpu_spin(NULL, given_p, 4, 1000);
		CU(cuEventRecord(given, NULL));
		pthread_create(&t, NULL, waits, NULL);
		pthread_join(t, NULL);
	}
}

static void default_streams(void) {
	CUevent e;
	CUstream s, blocking;
	struct chain c;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	blocking = gpu_stream(CU_STREAM_DEFAULT);
	e = event(CU_EVENT_DISABLE_TIMING);
	c = chain_new(20000);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, NULL);
		chain_step(&c, blocking);
		chain_step(&c, NULL);
		CU(cuEventRecord(e, NULL));
		CU(cuStreamWaitEvent(s, e, 0));
		chain_step(&c, s);
		CU(cuEventRecord(e, s));
		CU(cuStreamWaitEvent(CU_STREAM_LEGACY, e, 0));
		chain_step(&c, CU_STREAM_LEGACY);
		CU(cuEventRecord(e, CU_STREAM_LEGACY));
		CU(cuStreamWaitEvent(CU_STREAM_PER_THREAD, e, 0));
		chain_step(&c, CU_STREAM_PER_THREAD);
	}
	chain_tell("through all", &c, NULL);
}

static void errors(void) {
	CUevent e;
	CUstream s;
	float ms;

	gpu_open();
	s = gpu_stream(0);
	e = event(0);
	TELL_RESULT(cuEventCreate(&e, 0x1000));
	TELL_RESULT(cuEventCreate(NULL, 0));
	TELL_RESULT(cuEventRecord(NULL, s));
	TELL_RESULT(cuEventQuery(NULL));
	TELL_RESULT(cuEventSynchronize(NULL));
	TELL_RESULT(cuEventElapsedTime(NULL, e, e));
	TELL_RESULT(cuEventElapsedTime(&ms, NULL, e));
	TELL_RESULT(cuEventDestroy(NULL));
	TELL_RESULT(cuStreamWaitEvent(s, e, 99));
	TELL_RESULT(cuEventDestroy(e));
}

static void of_a_context(void) {
	CUevent e;
	CUdeviceptr p;

	gpu_open();
	GPU_NEEDS(cuCtxRecordEvent);
	e = event(CU_EVENT_DISABLE_TIMING);
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 4; i++) {
		gpu_spin(gpu_stream(CU_STREAM_NON_BLOCKING), p, 4, 1000);
	}
	CU(cuCtxRecordEvent(gpu.context, e));
	CU(cuEventSynchronize(e));
	TELL("%u blocks\n", gpu_word(p));
}

static void with_flags(void) {
	CUevent e;
	CUstream s;
	struct chain c;

	gpu_open();
	GPU_NEEDS(cuEventRecordWithFlags);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	e = event(CU_EVENT_DISABLE_TIMING);
	c = chain_new(CHAIN_N);
	chain_step(&c, s);
	TELL_RESULT(cuEventRecordWithFlags(e, s, 0));
	CU(cuEventSynchronize(e));
	TELL_RESULT(cuEventRecordWithFlags(e, s, 77));
	chain_tell("flags", &c, s);
}

/* Words in memory that streams wait for. */
static void values(void) {
	CUdeviceptr word;
	CUstream s[2];
	struct chain c;

	gpu_open();
	GPU_NEEDS_AS(cuStreamWaitValue32, "cuStreamWaitValue32_v2");
	GPU_NEEDS_AS(cuStreamWriteValue32, "cuStreamWriteValue32_v2");
	s[0] = gpu_stream(CU_STREAM_NON_BLOCKING);
	s[1] = gpu_stream(CU_STREAM_NON_BLOCKING);
	word = gpu_alloc(sizeof(unsigned));
	c = chain_new(20000);
	for (unsigned i = 1; i <= 30; i++) {
		chain_step(&c, s[i % 2]);
		CU(cuStreamWriteValue32(s[i % 2], word, i, 0));
		CU(cuStreamWaitValue32(s[(i + 1) % 2], word, i, CU_STREAM_WAIT_VALUE_GEQ));
	}
	chain_tell("by values", &c, s[1]);
}

/* The wait is there before what it waits for, and the host writes the word. */
static void value_of_the_host(void) {
	volatile unsigned *host;
	CUdeviceptr word;
	CUstream s;
	struct chain c;

	gpu_open();
	GPU_NEEDS_AS(cuStreamWaitValue32, "cuStreamWaitValue32_v2");
	GPU_NEEDS_AS(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
	CU(cuMemHostAlloc((void **)&host, sizeof(*host), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&word, (void *)host, 0));
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	*host = 0;
	for (unsigned i = 1; i <= 5; i++) {
		CU(cuStreamWaitValue32(s, word, i, CU_STREAM_WAIT_VALUE_GEQ));
		chain_step(&c, s);
		TELL_RESULT(cuStreamQuery(s));
		*host = i;
		CU(cuStreamSynchronize(s));
	}
	chain_tell("the host's", &c, s);
}

/* ---- between processes ---- */

static void between_processes(void) {
	CUipcEventHandle handle;
	CUevent e;
	int there[2], pid;

	GPU_NEEDS(cuIpcGetEventHandle);
	GPU_NEEDS(cuIpcOpenEventHandle);
	if (pipe(there) != 0) {
		guest_fail("pipe");
	}
	pid = fork();
	if (pid == 0) {
		gpu_open();
		if (read(there[0], &handle, sizeof(handle)) != sizeof(handle)) {
			_exit(3);
		}
		CU(cuIpcOpenEventHandle(&e, handle));
		TELL_RESULT(cuEventSynchronize(e));
		CU(cuEventDestroy(e));
		_exit(0);
	}
	close(there[0]);
	gpu_open();
	e = event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	gpu_spin(NULL, gpu_alloc(16), 4, 1000);
	CU(cuEventRecord(e, NULL));
	CU(cuIpcGetEventHandle(&handle, e));
	if (write(there[1], &handle, sizeof(handle)) != sizeof(handle)) {
		guest_fail("write");
	}
	guest_await_child("child", pid);
}

const struct guest guests[] = {
	{"timing", timing},
	{"times-add-up", times_add_up},
	{"queries", queries},
	{"recorded-again", recorded_again},
	{"destroyed", destroyed},
	{"of-a-destroyed-stream", of_a_destroyed_stream},
	{"by-another-thread", by_another_thread},
	{"default-streams", default_streams},
	{"errors", errors},
	{"of-a-context", of_a_context},
	{"with-flags", with_flags},
	{"values", values},
	{"value-of-the-host", value_of_the_host},
	{"between-processes", between_processes},
	{NULL, NULL},
};
