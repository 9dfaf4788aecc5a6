/*
 * hostfn.c: functions of the program that streams call, and the locks that these take.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_called; /* atomic */

static void count(void *data) {
	(void)data;
	__atomic_add_fetch(&n_called, 1, __ATOMIC_SEQ_CST);
}

static void count_callback(CUstream stream, CUresult status, void *data) {
	(void)stream;
	__atomic_add_fetch(&n_called, status == CUDA_SUCCESS ? 1 : 1000, __ATOMIC_SEQ_CST);
	(void)data;
}

static void calls(void) {
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, s);
		CU(cuLaunchHostFunc(s, count, NULL));
		CU(cuStreamAddCallback(s, count_callback, NULL, 0));
	}
	chain_tell("work", &c, s);
	TELL("%u calls\n", n_called);
	CU(cuLaunchHostFunc(NULL, count, NULL));
	CU(cuLaunchHostFunc(CU_STREAM_PER_THREAD, count, NULL));
	CU(cuCtxSynchronize());
	TELL("%u calls\n", n_called);
	TELL_RESULT(cuLaunchHostFunc(s, NULL, NULL));
}

/* Each call sees what came before it in the stream, and nothing that comes after. */
static unsigned *pinned;
static unsigned n_early;

static void look(void *data) {
	n_early += *pinned != (unsigned)(uintptr_t)data;
}

static void order(void) {
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(20000);
	CU(cuMemAllocHost((void **)&pinned, sizeof(*pinned)));
	for (unsigned i = 0; i < 40; i++) {
		chain_step(&c, s);
		CU(cuMemcpyDtoHAsync(pinned, c.p, sizeof(*pinned), s));
		CU(cuLaunchHostFunc(s, look, (void *)(uintptr_t)c.want));
	}
	chain_tell("work", &c, s);
	TELL("%u out of turn\n", n_early);
}

/* Another stream goes on while a call takes its time. */
static unsigned released;

static void wait_for_release(void *data) {
	(void)data;
	pthread_mutex_lock(&lock);
	while (!released) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

static void blocked_call(void) {
	struct chain c, other;
	CUstream a, b;

	gpu_open();
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	b = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	other = chain_new(CHAIN_N);
	chain_step(&c, a);
	CU(cuLaunchHostFunc(a, wait_for_release, NULL));
	TELL_RESULT(cuStreamQuery(a));
	for (unsigned i = 0; i < 10; i++) {
		chain_step(&other, b);
	}
	chain_tell("beside it", &other, b);
	pthread_mutex_lock(&lock);
	released = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	chain_step(&c, a);
	chain_tell("behind it", &c, a);
}

/* The main thread waits for the call by a condition, not through the driver. */
static void release(void *data) {
	pthread_mutex_lock(&lock);
	++*(unsigned *)data;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void signalled(void) {
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	for (unsigned i = 1; i <= 10; i++) {
		chain_step(&c, s);
		CU(cuLaunchHostFunc(s, release, &released));
		pthread_mutex_lock(&lock);
		while (released < i) {
			pthread_cond_wait(&changed, &lock);
		}
		pthread_mutex_unlock(&lock);
	}
	chain_tell("signalled", &c, s);
}

static void polled(void) {
	struct chain c;
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	c = chain_new(CHAIN_N);
	for (unsigned i = 1; i <= 10; i++) {
		chain_step(&c, s);
		CU(cuLaunchHostFunc(s, count, NULL));
		while (__atomic_load_n(&n_called, __ATOMIC_SEQ_CST) < i) {
			sched_yield();
		}
		while (cuStreamQuery(s) == CUDA_ERROR_NOT_READY) {
			sched_yield();
		}
	}
	chain_tell("polled", &c, s);
}

/* ---- a lock that threads hold while they launch, and that the calls take ---- */

static void locked(void *data) {
	pthread_mutex_lock(&lock);
	++*(unsigned *)data;
	pthread_mutex_unlock(&lock);
}

static unsigned n_locked, n_steps = 30;

static void *launch_locked(void *data) {
	CUdeviceptr p;
	CUstream s;

	gpu_enter();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < n_steps; i++) {
		pthread_mutex_lock(&lock);
		gpu_spin(s, p, 4, 2000);
		CU(cuLaunchHostFunc(s, locked, &n_locked));
		gpu_spin(s, p, 4, 2000);
		pthread_mutex_unlock(&lock);
		usleep(100); /* others get the lock */
		if (i % 10 == 9) {
			CU(cuStreamSynchronize(s));
		}
	}
	CU(cuStreamSynchronize(s));
	__atomic_add_fetch((unsigned *)data, gpu_word(p) != 8 * n_steps, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Return: the calls, 0 if a result is wrong. */
static unsigned launch_locked_in(unsigned n_threads) {
	unsigned wrong = 0;
	pthread_t t[4];

	gpu_open();
	for (unsigned i = 0; i < n_threads; i++) {
		pthread_create(&t[i], NULL, launch_locked, &wrong);
	}
	for (unsigned i = 0; i < n_threads; i++) {
		pthread_join(t[i], NULL);
	}
	return wrong ? 0 : n_locked;
}

static void one_locks(void) {
	TELL("%u calls\n", launch_locked_in(1));
}

static void threads_lock(void) {
	TELL("%u calls\n", launch_locked_in(3));
}

/* Two such programs at once. */
static void programs_lock(void) {
	int pids[2];

	for (unsigned i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			n_steps = 200;
			_exit(launch_locked_in(2) == 400 ? 0 : 1);
		}
	}
	guest_await_child("program", pids[0]);
	guest_await_child("program", pids[1]);
}

static void callback_locked(CUstream stream, CUresult status, void *data) {
	(void)stream, (void)status;
	locked(data);
}

static void *callbacks_locked(void *data) {
	CUstream s;

	(void)data;
	gpu_enter();
	s = gpu_stream(CU_STREAM_DEFAULT);
	for (unsigned i = 0; i < n_steps; i++) {
		CUdeviceptr p = *(CUdeviceptr *)data;

		pthread_mutex_lock(&lock);
		gpu_spin(s, p, 2, 100);
		CU(cuStreamAddCallback(s, callback_locked, &n_locked, 0));
		gpu_spin(s, p, 2, 100);
		pthread_mutex_unlock(&lock);
	}
	CU(cuStreamSynchronize(s));
	return NULL;
}

static void callbacks_lock(void) {
	CUdeviceptr p;
	pthread_t t[2];

	gpu_open();
	p = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, callbacks_locked, &p);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
	}
	TELL("%u calls, %u blocks\n", n_locked, gpu_word(p));
}

/* The lock is held while events and streams are made, too. */
static void *make_locked(void *data) {
	gpu_enter();
	for (unsigned i = 0; i < 10; i++) {
		CUevent e;
		CUstream s;

		pthread_mutex_lock(&lock);
		CU(cuEventCreate(&e, 0));
		s = gpu_stream(CU_STREAM_NON_BLOCKING);
		gpu_spin(s, *(CUdeviceptr *)data, 2, 100);
		CU(cuEventRecord(e, s));
		pthread_mutex_unlock(&lock);
		CU(cuEventSynchronize(e));
		pthread_mutex_lock(&lock);
		CU(cuEventDestroy(e));
		CU(cuStreamDestroy(s));
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void streams_made_locked(void) {
	unsigned wrong = 0;
	CUdeviceptr p;
	pthread_t a, b;

	gpu_open();
	p = gpu_alloc(sizeof(unsigned));
	pthread_create(&a, NULL, make_locked, &p);
	pthread_create(&b, NULL, launch_locked, &wrong);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	TELL("%u calls, %u wrong\n", n_locked, wrong);
}

/* A call that hands its work to another thread, which launches. */
static unsigned wanted, served;
static struct chain served_chain;

static void *serve(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock);
		while (wanted <= i) {
			pthread_cond_wait(&changed, &lock);
		}
		pthread_mutex_unlock(&lock);
		chain_step(&served_chain, CU_STREAM_PER_THREAD);
		CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		pthread_mutex_lock(&lock);
		served++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void want_and_wait(void *data) {
	unsigned mine;

	(void)data;
	pthread_mutex_lock(&lock);
	mine = ++wanted;
	pthread_cond_broadcast(&changed);
	while (served < mine) {
		pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

/* The stream waits in its call for what another thread does with the GPU. */
static void served_by_thread(void) {
	struct chain c;
	pthread_t t;
	CUstream s;

	gpu_open();
	c = chain_new(CHAIN_N);
	served_chain = chain_new(CHAIN_N);
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	pthread_create(&t, NULL, serve, NULL);
	for (unsigned i = 0; i < 10; i++) {
		chain_step(&c, s);
		CU(cuLaunchHostFunc(s, want_and_wait, NULL));
	}
	chain_tell("the stream's", &c, s);
	pthread_join(t, NULL);
	chain_tell("the thread's", &served_chain, NULL);
}

static void exit_in_call(void *data) {
	(void)data;
	_exit(21);
}

static void exits_in_call(void) {
	CUstream s;

	gpu_open();
	s = gpu_stream(CU_STREAM_NON_BLOCKING);
	gpu_spin(s, gpu_alloc(16), 2, 100);
	CU(cuLaunchHostFunc(s, exit_in_call, NULL));
	for (;;) {
		pause();
	}
}

/* Calls in several streams that wait for events of each other. */
static void across_streams(void) {
	CUstream s[3];
	CUevent e;
	struct chain c;

	gpu_open();
	for (unsigned i = 0; i < 3; i++) {
		s[i] = gpu_stream(CU_STREAM_NON_BLOCKING);
	}
	CU(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	c = chain_new(CHAIN_N);
	for (unsigned i = 0; i < 30; i++) {
		CU(cuLaunchHostFunc(s[i % 3], count, NULL));
		chain_step(&c, s[i % 3]);
		CU(cuEventRecord(e, s[i % 3]));
		CU(cuStreamWaitEvent(s[(i + 1) % 3], e, 0));
	}
	chain_tell("across", &c, s[0]);
	TELL("%u calls\n", n_called);
}

const struct guest guests[] = {
	{"calls", calls},
	{"order", order},
	{"blocked-call", blocked_call},
	{"signalled", signalled},
	{"polled", polled},
	{"one-locks", one_locks},
	{"threads-lock", threads_lock},
	{"programs-lock", programs_lock},
	{"callbacks-lock", callbacks_lock},
	{"streams-made-locked", streams_made_locked},
	{"served-by-thread", served_by_thread},
	{"exits-in-call", exits_in_call},
	{"across-streams", across_streams},
	{NULL, NULL},
};
