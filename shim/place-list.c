/*
 * place-list.c: which streams have a place, see place-internal.h.
 */
#include "shim/place-internal.h"
#include "shim/place.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/base/table.h"
#include "shim/enforce/green.h"
#include "shim/fronts.h"
#include "shim/state.h"
#include "shim/worker.h"

HOT_LAUNCH _Atomic bool place_is_active;
static atomic_bool wanted; /* it is to be activated */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
HOT_DATA static _Atomic unsigned n_places;
static struct table places; /* by worker_stream_key(); changed under the lock, as is all below */
static struct realm *realms;
static struct place *free_places;
static struct realm *free_realms;

unsigned place_count(void) {
	return atomic_load_explicit(&n_places, memory_order_relaxed);
}

void place_activate(void) {
	atomic_store(&wanted, true);
	place_reconsider();
}

void place_reconsider(void) {
	if (atomic_load(&wanted) && !fronts_missed()) {
		atomic_store(&place_is_active, true);
	}
}

/* ---- visits ---- */

bool place_visit_begin(struct place_visit *v, CUcontext context) {
	const struct real *real = real_get();
	CUcontext current = NULL;

	v->token = state_enter();
	v->pushed = false;
	if (real->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != context) {
		v->pushed = real->cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
		if (!v->pushed) {
			state_leave(v->token);
			return false;
		}
	}
	pthread_mutex_lock(&lock);
	return true;
}

void place_visit_end(struct place_visit *v) {
	CUcontext popped;

	pthread_mutex_unlock(&lock);
	if (v->pushed) {
		real_get()->cuCtxPopCurrent_v2(&popped);
	}
	state_leave(v->token);
}

/* ---- realms ---- */

struct realm *place_realm(CUcontext context) {
	struct realm *r = realms;

	while (r && r->context != context) {
		r = r->next;
	}
	return r;
}

CUcontext place_nth_context(unsigned n) {
	CUcontext context = NULL;
	struct realm *r;

	pthread_mutex_lock(&lock);
	for (r = realms; r && n > 0; n--) {
		r = r->next;
	}
	if (r) {
		context = r->context;
	}
	pthread_mutex_unlock(&lock);
	return context;
}

/* New, or one of a context that is gone. NULL: no memory. */
static struct realm *take_realm(void) {
	struct realm *r = free_realms;

	if (!r) {
		return calloc(1, sizeof(*r));
	}
	free_realms = r->next;
	*r = (struct realm){.context = NULL};
	return r;
}

static struct realm *find_realm(CUcontext context) {
	struct realm *r = place_realm(context);

	if (!r) {
		r = take_realm();
		if (r) {
			r->context = context;
			r->next = realms;
			realms = r;
		}
	}
	return r;
}

void place_forget_realm(struct realm *r) {
	struct realm **link = &realms;

	while (*link != r) {
		link = &(*link)->next;
	}
	*link = r->next;
	r->next = free_realms;
	free_realms = r;
}

/* ---- places ---- */

/* What the stream is. For the default streams all is known. */
static void describe(struct place *p) {
	const struct real *real = real_get();
	CUgreenCtx green = NULL;
	unsigned flags = 0;

	p->kind = p->own == CU_STREAM_LEGACY ? PLACE_LEGACY : PLACE_BLOCKING;
	if (p->own != CU_STREAM_LEGACY && p->own != CU_STREAM_PER_THREAD) {
		if (real->cuStreamGetFlags(p->own, &flags) != CUDA_SUCCESS ||
		    (flags & CU_STREAM_NON_BLOCKING)) {
			p->kind = PLACE_FREE_ORDER;
		}
		if (real->cuStreamGetPriority) {
			real->cuStreamGetPriority(p->own, &p->priority);
		}
		if (real->cuStreamGetGreenCtx) {
			real->cuStreamGetGreenCtx(p->own, &green);
		}
	}
	p->fixed = green || !green_get(p->realm->context);
}

/* New, or one of a stream that is gone. NULL: no memory. */
static struct place *take_place(void) {
	struct place *p = free_places;

	if (!p) {
		return aligned_alloc(PLACE_ALIGN, sizeof(*p));
	}
	free_places = p->next;
	return p;
}

static void give_back(struct place *p) {
	p->next = free_places;
	free_places = p;
}

/* With the lock held. */
static struct place *place_new(const struct stream_id *id) {
	struct realm *realm = find_realm(worker_context_of(id));
	struct place *p = realm ? take_place() : NULL;

	if (!p) {
		return NULL;
	}
	*p = (struct place){
		.realm = realm, .own = id->stream, .key = (uintptr_t)id->key, .at = id->stream};
	describe(p);
	if (table_put(&places, p->key, p) < 0) {
		give_back(p);
		return NULL;
	}
	atomic_fetch_add(&n_places, 1);
	p->next_of_realm = realm->all;
	realm->all = p;
	if (p->kind == PLACE_BLOCKING) {
		p->next = realm->blocking;
		realm->blocking = p;
	} else if (p->kind == PLACE_LEGACY) {
		atomic_store(&realm->legacy, p);
	}
	return p;
}

struct place *place_find(const struct stream_id *id) {
	struct place *p = table_get(&places, (uintptr_t)id->key);
	int token;

	if (p) {
		return p;
	}
	token = state_enter_locked(&lock);
	p = table_get(&places, (uintptr_t)id->key);
	p = p ? p : place_new(id);
	state_leave_locked(&lock, token);
	return p;
}

bool place_is_of_other_thread(const struct place *p) {
	return p->own == CU_STREAM_PER_THREAD &&
	       p->key != worker_stream_key(state_self.worker, p->realm->context, p->own, true);
}

struct place *place_of_handle(CUstream stream) {
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
		return NULL;
	}
	return table_get(&places, (uintptr_t)stream);
}

static void take_from(struct place **list, struct place *p, bool of_realm) {
	for (; *list; list = of_realm ? &(*list)->next_of_realm : &(*list)->next) {
		if (*list == p) {
			*list = of_realm ? p->next_of_realm : p->next;
			return;
		}
	}
}

void place_forget(struct place *p) {
	if (p->kind == PLACE_BLOCKING) {
		take_from(&p->realm->blocking, p, false);
	}
	take_from(&p->realm->all, p, true);
	table_take(&places, p->key);
	atomic_fetch_sub(&n_places, 1);
	give_back(p);
}

void place_after_fork(void) {
	/* What the parent knows is left where it is. */
	pthread_mutex_init(&lock, NULL);
	places = TABLE_NULL;
	realms = NULL;
	free_places = NULL;
	free_realms = NULL;
	atomic_store(&wanted, false);
	atomic_store(&place_is_active, false);
	atomic_store(&n_places, 0);
}
