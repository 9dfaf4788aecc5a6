/*
 * wait.c: see wait.h. Nothing here waits; the hooks do.
 */
#include "shim/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/hot.h"
#include "shim/base/table.h"
#include "shim/lane.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/worker.h"

/* Where events were recorded last. An event that is pushed out by another one is only a wait that
 * tells us nothing; the tracker finds out then. */
#define EVENTS 1024

/*
 * Events are asked about, and recorded anew, while another thread records them. So recordings have
 * turns: a number, and in the low bits how many are under way. Only one that is alone for all its
 * time writes what is below.
 */
struct event_mark {
	_Atomic uint64_t turn;
	_Atomic uint64_t known; /* the turn that the rest tells of; others tell nothing */
	_Atomic(CUevent) event;
	_Atomic uint64_t key;
	_Atomic(CUcontext) context;
	_Atomic point_t at;
};

#define TURN_NEXT (UINT64_C(1) << 16)
#define TURN_BUSY (TURN_NEXT - 1)

static struct event_mark marks[EVENTS];

/* Events of which wait_event_shared() was told, by their handles. Changed under the lock. */
static struct table shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool all_shared; /* there was no memory for one of them */

/* Handles are unique in the process, and a stream may be waited for in any context. Default streams
 * are each context's own. */
static bool is_of(const struct stream_use *u, uint64_t key, CUcontext context) {
	return atomic_load(&u->key) == key &&
	       (worker_key_is_handle(key) || atomic_load(&u->context) == context);
}

static void covered_key(uint64_t key, CUcontext context, point_t until) {
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) != 0 && is_of(u, key, context)) {
				worker_complete_until(u, until);
			}
		}
	}
}

HOT_CODE void wait_covered_stream(CUstream stream, bool per_thread, point_t until) {
	struct stream_id id;

	if (lane_count() == 0) {
		return;
	}
	id = worker_stream_here(stream, per_thread);
	if (id.context) {
		covered_key(id.key, id.context, until);
	}
}

HOT_CODE void wait_covered_context(CUcontext context, point_t until) {
	context = context ? context : worker_current_context();
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

uint64_t wait_event_recording(CUevent event) {
	uint64_t before = atomic_fetch_add(&mark_of(event)->turn, TURN_NEXT + 1);

	return before & TURN_BUSY ? 0 : before + TURN_NEXT;
}

static void write_mark(struct event_mark *m, CUevent event, uint64_t key, CUcontext context,
		       point_t at) {
	atomic_store(&m->event, event);
	atomic_store(&m->key, key);
	atomic_store(&m->context, context);
	atomic_store(&m->at, at);
}

static bool is_shared(CUevent event) {
	return atomic_load(&all_shared) || table_get(&shared, (uintptr_t)event);
}

void wait_event_recorded(CUevent event, uint64_t turn, CUstream stream, bool per_thread,
			 point_t at) {
	struct event_mark *m = mark_of(event);
	struct stream_id id = {.context = NULL};

	if (turn != 0 && lane_count() > 0 && !is_shared(event)) {
		id = worker_stream_here(stream, per_thread);
	}
	if (id.context) {
		write_mark(m, event, id.key, id.context, at);
		atomic_store(&m->known, turn);
	}
	atomic_fetch_sub(&m->turn, 1);
}

/* Return: whether there was memory for it. */
static bool set_shared(CUevent event, bool is) {
	int cancel = state_defer_cancel(), r = 0;

	pthread_mutex_lock(&lock);
	if (is) {
		r = table_put(&shared, (uintptr_t)event, event);
	} else {
		table_take(&shared, (uintptr_t)event);
	}
	pthread_mutex_unlock(&lock);
	state_restore_cancel(cancel);
	return r == 0;
}

void wait_event_shared(CUevent event) {
	if (!event) {
		return; /* the driver's business */
	}
	if (!set_shared(event, true)) {
		atomic_store(&all_shared, true);
	}
	/* Last: a recording that has not seen it is of an earlier turn. */
	atomic_fetch_add(&mark_of(event)->turn, TURN_NEXT);
}

void wait_event_gone(CUevent event) {
	struct event_mark *m = mark_of(event);

	if (table_get(&shared, (uintptr_t)event)) {
		set_shared(event, false);
	}
	if (atomic_load(&m->event) == event) {
		atomic_fetch_add(&m->turn, TURN_NEXT);
	}
}

uint64_t wait_event_last(CUevent event) {
	const struct event_mark *m = mark_of(event);
	uint64_t turn = atomic_load(&m->turn);

	return atomic_load(&m->known) == turn && atomic_load(&m->event) == event ? turn : 0;
}

void wait_event_complete(CUevent event, uint64_t turn) {
	const struct event_mark *m = mark_of(event);
	uint64_t key = atomic_load(&m->key);
	CUcontext context = atomic_load(&m->context);
	point_t at = atomic_load(&m->at);

	if (turn != 0 && lane_count() > 0 && atomic_load(&m->turn) == turn) {
		covered_key(key, context, at);
	}
}

void wait_after_fork(void) {
	memset(marks, 0, sizeof(marks));
	pthread_mutex_init(&lock, NULL);
	shared = TABLE_NULL; /* what the parent knows is left where it is */
	atomic_store(&all_shared, false);
}
