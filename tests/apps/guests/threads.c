/*
 * threads.c: threads that begin, work and end in every way.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include "gpu.h"

static void start_all(unsigned n, void *(*run)(void *)) {
	pthread_t t[64];

	for (unsigned i = 0; i < n; i++) {
		pthread_create(&t[i], NULL, run, (void *)(uintptr_t)i);
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
	}
}

static unsigned wrong_total; /* atomic */

static void add_wrong(struct chain *c, CUstream stream) {
	unsigned *values = malloc(c->n * sizeof(*values)), wrong = 0;

	CU(cuMemcpyDtoHAsync(values, c->p, c->n * sizeof(*values), stream));
	CU(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < c->n; i++) {
		wrong += values[i] != c->want;
	}
	free(values);
	__atomic_add_fetch(&wrong_total, wrong, __ATOMIC_RELAXED);
}

static void work_in(CUstream stream) {
	struct chain c = chain_new(CHAIN_N);

	for (unsigned i = 0; i < 20; i++) {
		chain_step(&c, stream);
	}
	add_wrong(&c, stream);
	CU(cuMemFree(c.p));
}

static void *own_stream(void *data) {
	CUstream s;

	gpu_enter();
	s = gpu_stream((uintptr_t)data % 2);
	work_in(s);
	CU(cuStreamDestroy(s));
	return NULL;
}

static void *own_default(void *data) {
	gpu_enter();
	work_in((uintptr_t)data % 2 ? CU_STREAM_PER_THREAD : NULL);
	return NULL;
}

static void streams(void) {
	gpu_open();
	start_all(8, own_stream);
	TELL("%u wrong\n", wrong_total);
}

static void defaults(void) {
	gpu_open();
	start_all(8, own_default);
	TELL("%u wrong\n", wrong_total);
}

static void short_lived(void) {
	gpu_open();
	for (unsigned i = 0; i < 20; i++) {
		start_all(2, own_default);
	}
	TELL("%u wrong\n", wrong_total);
}

/* ---- one stream, many threads, one at a time ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct chain shared;
static CUstream shared_stream;

static void *take_turns(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned i = 0; i < 25; i++) {
		pthread_mutex_lock(&lock);
		chain_step(&shared, shared_stream);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void one_stream(void) {
	gpu_open();
	shared_stream = gpu_stream(CU_STREAM_NON_BLOCKING);
	shared = chain_new(20000);
	start_all(4, take_turns);
	chain_tell("in turns", &shared, shared_stream);
}

static void one_legacy_stream(void) {
	gpu_open();
	shared = chain_new(20000);
	start_all(4, take_turns);
	chain_tell("in turns", &shared, NULL);
}

/* Waits for the stream while it holds the lock that others want. */
static void *take_turns_and_wait(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned i = 0; i < 15; i++) {
		pthread_mutex_lock(&lock);
		chain_step(&shared, shared_stream);
		CU(cuStreamSynchronize(shared_stream));
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void locked_waits(void) {
	gpu_open();
	shared_stream = gpu_stream(CU_STREAM_NON_BLOCKING);
	shared = chain_new(CHAIN_N);
	start_all(4, take_turns_and_wait);
	chain_tell("in turns", &shared, shared_stream);
}

/* One launches, another waits: with a job for each thread neither holds up the other. */
static pthread_barrier_t both;

static void *only_waits(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned i = 0; i < 20; i++) {
		pthread_barrier_wait(&both);
		CU(cuStreamSynchronize(shared_stream));
		pthread_barrier_wait(&both);
	}
	return NULL;
}

static void another_waits(void) {
	pthread_t t;

	gpu_open();
	pthread_barrier_init(&both, NULL, 2);
	shared_stream = gpu_stream(CU_STREAM_NON_BLOCKING);
	shared = chain_new(CHAIN_N);
	pthread_create(&t, NULL, only_waits, NULL);
	for (unsigned i = 0; i < 20; i++) {
		chain_step(&shared, shared_stream);
		pthread_barrier_wait(&both);
		pthread_barrier_wait(&both);
	}
	pthread_join(t, NULL);
	chain_tell("waited for elsewhere", &shared, shared_stream);
}

/* ---- ends ---- */

static CUdeviceptr counted;

static void *leaves_work(void *data) {
	gpu_enter();
	gpu_spin((uintptr_t)data % 2 ? CU_STREAM_PER_THREAD : NULL, counted, 4, 2000);
	return NULL;
}

static void left_work(void) {
	gpu_open();
	counted = gpu_alloc(sizeof(unsigned));
	for (unsigned i = 0; i < 5; i++) {
		start_all(4, leaves_work);
	}
	CU(cuCtxSynchronize());
	TELL("%u blocks\n", gpu_word(counted));
}

static void *detached_work(void *data) {
	gpu_enter();
	work_in(CU_STREAM_PER_THREAD);
	pthread_barrier_wait(data);
	pthread_exit(NULL);
}

static void detached(void) {
	pthread_attr_t attributes;
	pthread_t t;

	gpu_open();
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_barrier_init(&both, NULL, 5);
	for (unsigned i = 0; i < 4; i++) {
		pthread_create(&t, &attributes, detached_work, &both);
	}
	pthread_barrier_wait(&both);
	TELL("%u wrong\n", wrong_total);
}

static pthread_key_t key;

static void free_of_thread(void *data) {
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)data;

	CU(cuCtxSetCurrent(gpu.context));
	gpu_spin(CU_STREAM_PER_THREAD, p, 4, 100);
	CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	__atomic_add_fetch(&wrong_total, gpu_word(p) != 8, __ATOMIC_RELAXED);
	CU(cuMemFree(p));
}

static void *with_destructor(void *data) {
	CUdeviceptr p;

	(void)data;
	gpu_enter();
	p = gpu_alloc(sizeof(unsigned));
	gpu_spin(CU_STREAM_PER_THREAD, p, 4, 100);
	pthread_setspecific(key, (void *)(uintptr_t)p);
	return NULL;
}

static void destructors(void) {
	gpu_open();
	pthread_key_create(&key, free_of_thread);
	start_all(6, with_destructor);
	TELL("%u wrong\n", wrong_total);
}

static void *is_cancelled(void *data) {
	gpu_enter();
	gpu_spin(NULL, counted, 4, 1000);
	pthread_barrier_wait(data);
	for (;;) {
		pause();
	}
	return NULL;
}

static void cancelled(void) {
	pthread_t t;
	void *r = NULL;

	gpu_open();
	counted = gpu_alloc(sizeof(unsigned));
	pthread_barrier_init(&both, NULL, 2);
	for (unsigned i = 0; i < 5; i++) {
		pthread_create(&t, NULL, is_cancelled, &both);
		pthread_barrier_wait(&both);
		pthread_cancel(t);
		pthread_join(t, &r);
		TELL("cancelled: %d\n", r == PTHREAD_CANCELED);
	}
	CU(cuCtxSynchronize());
	TELL("%u blocks\n", gpu_word(counted));
}

static int in_c11(void *data) {
	own_default(data);
	return 3;
}

static void c11(void) {
	thrd_t t[3];
	int r;

	gpu_open();
	for (unsigned i = 0; i < 3; i++) {
		thrd_create(&t[i], in_c11, (void *)(uintptr_t)i);
	}
	for (unsigned i = 0; i < 3; i++) {
		thrd_join(t[i], &r);
		TELL("%d\n", r);
	}
	TELL("%u wrong\n", wrong_total);
}

/* ---- stacks ---- */

static void small_stacks(void) {
	pthread_attr_t attributes;
	pthread_t t[4];

	gpu_open();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (unsigned i = 0; i < 4; i++) {
		pthread_create(&t[i], &attributes, own_stream, (void *)(uintptr_t)i);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
	}
	TELL("%u wrong\n", wrong_total);
}

/* The first call of all on a small stack. */
static void *opens(void *data) {
	(void)data;
	gpu_open();
	work_in(NULL);
	return NULL;
}

static void opened_on_small_stack(void) {
	pthread_attr_t attributes;
	pthread_t t;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_create(&t, &attributes, opens, NULL);
	pthread_join(t, NULL);
	gpu_enter();
	work_in(NULL);
	TELL("%u wrong\n", wrong_total);
}

/* Fibers: each with a stack of its own, going on in whichever thread is free. */
enum { FIBERS = 4, SWITCHES = 10 };
static struct fiber {
	ucontext_t context;
	struct chain chain;
	bool done;
	char stack[128 << 10];
} fibers[FIBERS];
static _Thread_local ucontext_t scheduler;
static unsigned running; /* fiber, under the lock */

static __attribute__((noinline)) void leave(unsigned i) {
	swapcontext(&fibers[i].context, &scheduler);
}

static void run_fiber(int i) {
	struct fiber *f = &fibers[i];

	for (unsigned k = 0; k < SWITCHES; k++) {
		chain_step(&f->chain, shared_stream);
		leave((unsigned)i);
	}
	f->done = true;
	leave((unsigned)i);
}

static void *run_fibers(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned k = 0; k < FIBERS * SWITCHES; k++) {
		pthread_mutex_lock(&lock);
		running = (running + 1) % FIBERS;
		if (!fibers[running].done) {
			swapcontext(&scheduler, &fibers[running].context);
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void fibers_in_threads(void) {
	gpu_open();
	shared_stream = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < FIBERS; i++) {
		struct fiber *f = &fibers[i];

		f->chain = chain_new(CHAIN_N);
		getcontext(&f->context);
		f->context.uc_stack.ss_sp = f->stack;
		f->context.uc_stack.ss_size = sizeof(f->stack);
		makecontext(&f->context, (void (*)(void))run_fiber, 1, i);
	}
	start_all(3, run_fibers);
	for (int i = 0; i < FIBERS; i++) {
		chain_tell("fiber", &fibers[i].chain, shared_stream);
	}
}

/* ---- and processes ---- */

static void nothing(void) {
}

static void *forks(void *data) {
	int pid = fork();

	(void)data;
	if (pid == 0) {
		_exit(4);
	}
	guest_await_child("child", pid);
	return NULL;
}

static void *goes_on(void *data) {
	(void)data;
	gpu_enter();
	for (unsigned i = 0; i < 10; i++) {
		work_in(CU_STREAM_PER_THREAD);
	}
	return NULL;
}

static void fork_beside_work(void) {
	pthread_t t[3];

	gpu_open();
	for (unsigned i = 0; i < 3; i++) {
		pthread_create(&t[i], NULL, goes_on, NULL);
	}
	for (unsigned i = 0; i < 5; i++) {
		forks(NULL);
		guest_in_child("another", nothing);
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
	}
	TELL("%u wrong\n", wrong_total);
}

/* Threads that have no context, then another one, then none. */
static void *without_context(void *data) {
	CUcontext c = data;
	CUdeviceptr p;

	CU(cuCtxGetCurrent(&c));
	TELL("current %d\n", c != NULL);
	TELL_RESULT(cuMemAlloc(&p, 16));
	TELL_RESULT(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	gpu_enter();
	work_in(NULL);
	CU(cuCtxSetCurrent(NULL));
	TELL_RESULT(cuMemAlloc(&p, 16));
	gpu_enter();
	work_in(NULL);
	return NULL;
}

static void contexts(void) {
	pthread_t t;

	gpu_open();
	work_in(NULL);
	pthread_create(&t, NULL, without_context, NULL);
	pthread_join(t, NULL);
	TELL("%u wrong\n", wrong_total);
}

static void at_fork(void) {
	TELL("prepare\n");
}

static void own_fork_handlers(void) {
	pthread_atfork(at_fork, NULL, NULL);
	gpu_open();
	pthread_atfork(at_fork, at_fork, NULL);
	work_in(NULL);
	forks(NULL);
	work_in(NULL);
	TELL("%u wrong\n", wrong_total);
}

const struct guest guests[] = {
	{"streams", streams},
	{"defaults", defaults},
	{"short-lived", short_lived},
	{"one-stream", one_stream},
	{"one-legacy-stream", one_legacy_stream},
	{"locked-waits", locked_waits},
	{"another-waits", another_waits},
	{"left-work", left_work},
	{"detached", detached},
	{"destructors", destructors},
	{"cancelled", cancelled},
	{"c11", c11},
	{"small-stacks", small_stacks},
	{"opened-on-small-stack", opened_on_small_stack},
	{"fibers", fibers_in_threads},
	{"fork-beside-work", fork_beside_work},
	{"contexts", contexts},
	{"own-fork-handlers", own_fork_handlers},
	{NULL, NULL},
};
