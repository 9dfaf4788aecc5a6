/*
 * capture.c: see capture.h.
 */
#include "shim/capture.h"
#include "shim/base/hot.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/real.h"

/* A capture, in the stream that it began in. */
struct capture {
	uint64_t key;
	CUcontext context;	     /* of the stream */
	const struct worker *thread; /* whose default stream it is; NULL: nobody's */
	struct capture *next;
};

HOT_LAUNCH _Atomic unsigned capture_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures; /* under the lock, as is writing the count */

void capture_begin(uint64_t key, CUcontext context, const struct worker *thread) {
	struct capture *c = malloc(sizeof(*c));

	pthread_mutex_lock(&lock);
	atomic_fetch_add(&capture_count, 1); /* for good without memory: then nobody asks */
	if (c) {
		*c = (struct capture){key, context, thread, captures};
		captures = c;
	}
	pthread_mutex_unlock(&lock);
}

static void take_out(struct capture **link) {
	struct capture *c = *link;

	*link = c->next;
	free(c);
	atomic_fetch_sub(&capture_count, 1);
}

void capture_end(uint64_t key) {
	struct capture **link = &captures;

	pthread_mutex_lock(&lock);
	while (*link && (*link)->key != key) {
		link = &(*link)->next;
	}
	if (*link) {
		take_out(link);
	}
	pthread_mutex_unlock(&lock);
}

/* Of @context, NULL: of @thread. */
static void end_all(CUcontext context, const struct worker *thread) {
	struct capture **link = &captures;

	pthread_mutex_lock(&lock);
	while (*link) {
		const struct capture *c = *link;

		if (context ? c->context == context : c->thread == thread) {
			take_out(link);
		} else {
			link = &(*link)->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

void capture_context_gone(CUcontext context) {
	end_all(context, NULL);
}

void capture_thread_gone(const struct worker *thread) {
	if (capture_any()) {
		end_all(NULL, thread);
	}
}

bool capture_ask(CUstream stream, bool per_thread) {
	const struct real *real = real_get();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult rc;

	if (per_thread && real->cuStreamIsCapturing_ptsz) {
		rc = real->cuStreamIsCapturing_ptsz(stream, &status);
	} else if (real->cuStreamIsCapturing) {
		rc = real->cuStreamIsCapturing(stream, &status);
	} else {
		return false;
	}
	/* An error means that the default stream may not be used now: the driver tells the program.
	 */
	return rc != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void capture_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	captures = NULL;
	atomic_store(&capture_count, 0);
}
