/*
 * locked.c: two threads launch under a lock that functions of theirs take in their streams, as
 * programs with an interpreter's lock do. Goes on until a file is there, and never stands still.
 *
 * usage: locked FILE host | callback
 *	host		cuLaunchHostFunc()
 *	callback	cuStreamAddCallback()
 */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const char order_ptx[];

#define LOCKED_THREADS 2
#define THREADS	       32u
#define ROUNDS	       2000u /* each launch */
#define SYNC_STEPS     10u
#define TELL_STEPS     20u

static struct {
	const char *file;
	bool callback;
	CUfunction kernel;
	pthread_mutex_t lock;
	unsigned called, steps; /* under it */
	bool wrong;
} my = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void CUDA_CB in_stream(void *data) {
	pthread_mutex_lock(&my.lock);
	my.called++;
	my.wrong |= data != &my;
	pthread_mutex_unlock(&my.lock);
}

static void CUDA_CB call_back(CUstream stream, CUresult status, void *data) {
	my.wrong |= *(CUstream *)data != stream || status != CUDA_SUCCESS;
	in_stream(&my);
}

static void launch(CUstream stream, CUdeviceptr x, unsigned *want) {
	unsigned a = 2 * my.steps + 3, c = my.steps * 7 + 1, rounds = ROUNDS;
	void *params[] = {&x, &a, &c, &rounds};

	CU(cuLaunchKernel(my.kernel, 1, 1, 1, THREADS, 1, 1, 0, stream, params, NULL));
	for (unsigned k = 0; k < ROUNDS; k++) {
		*want = *want * a + c;
	}
}

/* With the lock. @stream: stays where it is until all is done. */
static void step(CUstream *stream, CUdeviceptr x, unsigned *want) {
	launch(*stream, x, want);
	if (my.callback) {
		CU(cuStreamAddCallback(*stream, call_back, stream, 0));
	} else {
		CU(cuLaunchHostFunc(*stream, in_stream, &my));
	}
	launch(*stream, x, want);
	if (++my.steps % TELL_STEPS == 0) {
		puts("begun"); /* a line more each time */
		fflush(stdout);
	}
}

static void *work(void *data) {
	unsigned got[THREADS] = {0}, want = 0;
	CUdeviceptr x;
	CUstream stream;

	driver_enter_thread();
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	x = driver_alloc(sizeof(got));
	CU(cuMemcpyHtoD(x, got, sizeof(got)));
	for (unsigned i = 1; access(my.file, F_OK) != 0; i++) {
		pthread_mutex_lock(&my.lock);
		step(&stream, x, &want);
		pthread_mutex_unlock(&my.lock);
		usleep(100);
		if (i % SYNC_STEPS == 0) {
			CU(cuStreamSynchronize(stream));
		}
	}
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(got, x, sizeof(got)));
	my.wrong |= got[0] != want;
	driver_free(x);
	return data;
}

int main(int argc, char **argv) {
	pthread_t threads[LOCKED_THREADS];
	CUmodule module;
	bool ok;

	if (argc != 3 || (strcmp(argv[2], "host") != 0 && strcmp(argv[2], "callback") != 0)) {
		fprintf(stderr, "usage: locked FILE host | callback\n");
		return 2;
	}
	my.file = argv[1];
	my.callback = strcmp(argv[2], "callback") == 0;
	module = driver_open(0, order_ptx);
	my.kernel = driver_kernel(module, "order_step");
	for (int i = 0; i < LOCKED_THREADS; i++) {
		pthread_create(&threads[i], NULL, work, NULL);
	}
	for (int i = 0; i < LOCKED_THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	CU(cuCtxSynchronize());
	ok = !my.wrong && my.called == my.steps;
	printf("locked: {\"ok\":%s}\n", ok ? "true" : "false");
	driver_close(module);
	return ok ? 0 : 1;
}
