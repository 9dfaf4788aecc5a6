/* thread.c: see thread.h. */
#include "proto/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *data), void *data) {
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	if (!ret) {
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	}
	if (stack_bytes > 0) {
		pthread_attr_setstacksize(&attr, stack_bytes);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret ? ret : &thread, &attr, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}
