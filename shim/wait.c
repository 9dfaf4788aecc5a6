/*
 * wait.c: see wait.h. Nothing here waits; the hooks do.
 */
#include "shim/wait.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/hot.h"
#include "shim/lane.h"
#include "shim/real.h"
#include "shim/worker.h"

/* Where events were recorded last. An event that is pushed out by another one is only a wait that
 * tells us nothing; the tracker finds out then. */
#define EVENTS 1024

struct event_mark {
	_Atomic(CUevent) event;
	_Atomic uint64_t key;
	_Atomic(CUcontext) context;
	_Atomic point_t at;
};

static struct event_mark marks[EVENTS];
HOT_WRITTEN _Atomic unsigned wait_threads;

HOT_CODE static CUcontext current_context(void) {
	const struct real *real = real_get();
	CUcontext context = NULL;

	return real->cuCtxGetCurrent && real->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context
											: NULL;
}

static void covered_key(uint64_t key, CUcontext context, point_t until) {
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) != 0 && atomic_load(&u->key) == key &&
			    atomic_load(&u->context) == context) {
				worker_complete_until(u, until);
			}
		}
	}
}

HOT_CODE void wait_covered_stream(CUstream stream, bool per_thread, point_t until) {
	CUcontext context = current_context();

	if (lane_count() > 0 && context) {
		covered_key(worker_stream_key(worker_get(), context, stream, per_thread), context,
			    until);
	}
}

HOT_CODE void wait_covered_context(CUcontext context, point_t until) {
	context = context ? context : current_context();
	if (lane_count() == 0 || !context) {
		return;
	}
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->context) == context) {
				worker_complete_until(u, until);
			}
		}
	}
}

void wait_covered_by_copy(struct stream_use *use, point_t begun) {
	worker_complete_until(use, atomic_load(&use->last));
	if (atomic_load(&use->stream) != CU_STREAM_LEGACY) {
		return;
	}
	/* The legacy default stream lets nothing start before what the blocking streams had to do.
	 */
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->context) == atomic_load(&use->context) &&
			    atomic_load(&u->blocking)) {
				worker_complete_until(u, begun);
			}
		}
	}
}

static struct event_mark *mark_of(CUevent event) {
	return &marks[((uintptr_t)event >> 4) * 0x9E3779B1u % EVENTS];
}

void wait_event_recorded(CUevent event, CUstream stream, bool per_thread, point_t at) {
	struct event_mark *m = mark_of(event);
	CUcontext context = current_context();

	if (lane_count() == 0 || !context) {
		wait_event_gone(event);
		return;
	}
	atomic_store(&m->event, NULL);
	atomic_store(&m->key, worker_stream_key(worker_get(), context, stream, per_thread));
	atomic_store(&m->context, context);
	atomic_store(&m->at, at);
	atomic_store(&m->event, event);
}

void wait_event_gone(CUevent event) {
	struct event_mark *m = mark_of(event);
	CUevent expected = event;

	atomic_compare_exchange_strong(&m->event, &expected, NULL);
}

void wait_event_complete(CUevent event) {
	struct event_mark *m = mark_of(event);
	CUcontext context;
	uint64_t key;
	point_t at;

	if (lane_count() == 0 || atomic_load(&m->event) != event) {
		return;
	}
	key = atomic_load(&m->key);
	context = atomic_load(&m->context);
	at = atomic_load(&m->at);
	if (atomic_load(&m->event) == event) { /* nobody wrote meanwhile */
		covered_key(key, context, at);
	}
}

void wait_after_fork(void) {
	memset(marks, 0, sizeof(marks));
	atomic_store(&wait_threads, 0);
}
