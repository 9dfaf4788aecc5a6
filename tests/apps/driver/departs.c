/*
 * departs.c: a program that ends, in unusual ways, while its kernels wait for what never comes.
 *
 * usage: departs main | thread | exec PROGRAM [ARGUMENT...] | by-thread PROGRAM [ARGUMENT...]
 *	main		its main thread calls pthread_exit()
 *	thread		the same, and another thread goes on for a while
 *	exec		executes PROGRAM in its place
 *	by-thread	the same in another thread
 */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char order_ptx[];

#define THREADS 32u

static CUfunction kernel;
static CUdeviceptr x;
static char **program;

static void launch(CUstream stream) {
	unsigned a = 3, c = 1, rounds = 50;
	void *params[] = {&x, &a, &c, &rounds};

	CU(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, stream, params, NULL));
}

/* A launch that waits in its stream for as long as the program lives. */
static void leave_pending(void) {
	CUstream stream;
	CUdeviceptr at;
	unsigned *word;

	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&word, sizeof(*word), CU_MEMHOSTALLOC_DEVICEMAP));
	*word = 0;
	CU(cuMemHostGetDevicePointer(&at, word, 0));
	launch(stream);
	CU(cuStreamWaitValue32(stream, at, 1, CU_STREAM_WAIT_VALUE_EQ));
	launch(stream);
}

static void say_goodbye(void) {
	puts("departs: {\"ok\":true}");
}

static void *go_on(void *data) {
	driver_enter_thread();
	for (int i = 0; i < 20; i++) {
		launch(NULL);
		CU(cuStreamSynchronize(NULL));
		usleep(10000);
	}
	puts("went on");
	return data;
}

static void *execute(void *data) {
	execvp(program[0], program);
	perror(program[0]);
	exit(1);
	return data;
}

int main(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	kernel = driver_kernel(driver_open(0, order_ptx), "order_step");
	x = driver_alloc(THREADS * sizeof(unsigned));
	leave_pending();
	puts("begun");
	fflush(stdout);
	program = argv + 2;
	if (strcmp(how, "exec") == 0) {
		execute(NULL);
	} else if (strcmp(how, "by-thread") == 0) {
		pthread_create(&thread, NULL, execute, NULL);
		pthread_join(thread, NULL);
	}
	atexit(say_goodbye);
	if (strcmp(how, "thread") == 0) {
		pthread_create(&thread, NULL, go_on, NULL);
	}
	pthread_exit(NULL);
}
