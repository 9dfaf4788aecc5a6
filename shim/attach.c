/*
 * attach.c: see attach.h.
 */
#include "shim/attach.h"

#include <pthread.h>

/* The function is deprecated since CUDA 4; nobody attaches to many contexts. What does not fit is
 * not counted: then the context is met anew after its first detachment, without twins. */
#define ATTACHMENTS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext list[ATTACHMENTS]; /* one entry each */
static unsigned n;

void attach_add(CUcontext context) {
	pthread_mutex_lock(&lock);
	if (n < ATTACHMENTS) {
		list[n++] = context;
	}
	pthread_mutex_unlock(&lock);
}

static bool take(CUcontext context) {
	for (unsigned i = 0; i < n; i++) {
		if (list[i] == context) {
			list[i] = list[--n];
			return true;
		}
	}
	return false;
}

bool attach_take(CUcontext context) {
	bool found;

	pthread_mutex_lock(&lock);
	found = take(context);
	pthread_mutex_unlock(&lock);
	return found;
}

void attach_forget(CUcontext context) {
	pthread_mutex_lock(&lock);
	while (take(context)) {
	}
	pthread_mutex_unlock(&lock);
}

void attach_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	n = 0;
}
