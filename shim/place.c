/*
 * place.c: see place.h.
 *
 * Who owns what: `places` maps stream keys to places; a realm (one per context) lists its blocking
 * places; a place owns its event and its backing streams. Places of destroyed streams are kept and
 * used again, so that a late reader finds memory.
 */
#include "shim/place.h"
#include "shim/base/hot.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/base/log.h"
#include "shim/base/table.h"
#include "shim/capture.h"
#include "shim/enforce/green.h"
#include "shim/question.h"
#include "shim/state.h"
#include "shim/worker.h"

#define PLACE_ALIGN 64

/* The stream of a place in one partition. */
struct backing {
	struct partition *partition;
	CUstream stream;
	struct backing *next;
};

enum place_kind {
	PLACE_FREE_ORDER, /* a non-blocking stream */
	PLACE_BLOCKING,	  /* ordered against the legacy stream */
	PLACE_LEGACY,
};

struct realm;

/* What each launch reads comes first, in one cache line. */
struct place {
	/* changed under the lock, read without */
	_Atomic(CUstream) at;
	_Atomic(struct partition *) partition; /* of `at`; NULL: it is `own` */

	/* legacy and blocking: how much was handed over, and of the other side's count how much
	 * this one waits for */
	_Atomic uint64_t handed;
	_Atomic uint64_t waited;

	/* constant while the stream lives */
	struct realm *realm;
	CUstream own;
	enum place_kind kind;
	bool fixed; /* can't go into a partition */
	int priority;
	uintptr_t key;

	/* under the lock */
	uint64_t legacy_waited; /* of this place's `handed`, by the legacy stream */
	CUevent event;		/* owned; NULL: not made yet */
	struct backing *backings;
	struct place *next; /* of the realm's blocking ones, or free */
	struct place *next_of_realm;
} __attribute__((aligned(PLACE_ALIGN)));

/* The streams of one context. Kept for the next one when that is gone, as places are. */
struct realm {
	CUcontext context;
	_Atomic(struct place *) legacy;
	_Atomic uint64_t handed; /* sum of what was handed to the blocking places */
	struct place *blocking;	 /* under the lock, as the next two */
	struct place *all;
	struct realm *next;
};

HOT_LAUNCH _Atomic bool place_is_active;

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
	atomic_store(&place_is_active, true);
}

/* ---- waiting for each other; all with the lock held, inside state_enter(), and the realm's
 * context current ---- */

/* @later waits for what was handed to @earlier, a stream of @p. */
static CUresult bridge(struct place *p, CUstream earlier, CUstream later) {
	const struct real *real = real_get();
	CUresult rc = CUDA_SUCCESS;

	if (earlier == later) {
		return CUDA_SUCCESS;
	}
	if (!p->event) {
		rc = real->cuEventCreate(&p->event, CU_EVENT_DISABLE_TIMING);
	}
	if (rc == CUDA_SUCCESS) {
		rc = real->cuEventRecord(p->event, earlier);
	}
	if (rc == CUDA_SUCCESS) {
		rc = real->cuStreamWaitEvent(later, p->event, 0);
	}
	return rc;
}

/* The legacy place waits for all blocking ones. */
static void legacy_waits(struct place *legacy) {
	struct realm *realm = legacy->realm;
	uint64_t all = atomic_load(&realm->handed);
	CUstream at = atomic_load(&legacy->at);
	bool waits = true;

	/* What is in the program's own streams: the driver orders its own legacy stream behind it.
	 */
	if (at != legacy->own) {
		waits = bridge(legacy, legacy->own, at) == CUDA_SUCCESS;
	}
	for (struct place *p = realm->blocking; p; p = p->next) {
		uint64_t handed = atomic_load(&p->handed);

		if (handed == p->legacy_waited || !atomic_load(&p->partition) ||
		    bridge(p, atomic_load(&p->at), at) == CUDA_SUCCESS) {
			p->legacy_waited = handed;
		} else {
			waits = false;
		}
	}
	if (waits) { /* else the next operation there tries again */
		atomic_store(&legacy->waited, all);
	}
}

/* A blocking place waits for the legacy one. */
static void blocking_waits(struct place *p) {
	struct place *legacy = atomic_load(&p->realm->legacy);
	uint64_t handed = atomic_load(&legacy->handed);

	if ((!atomic_load(&legacy->partition) && !atomic_load(&p->partition)) ||
	    bridge(legacy, atomic_load(&legacy->at), atomic_load(&p->at)) == CUDA_SUCCESS) {
		atomic_store(&p->waited, handed);
	}
}

/* ---- entering the driver for that ---- */

struct visit {
	int token;
	bool pushed;
};

/* Return: false if the context can't be made current. */
static bool visit_begin(struct visit *v, CUcontext context) {
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

static void visit_end(struct visit *v) {
	CUcontext popped;

	pthread_mutex_unlock(&lock);
	if (v->pushed) {
		real_get()->cuCtxPopCurrent_v2(&popped);
	}
	state_leave(v->token);
}

HOT_CODE static bool order_is_due(const struct place *p) {
	struct place *legacy;

	switch (p->kind) {
	case PLACE_LEGACY:
		return atomic_load(&p->realm->handed) != atomic_load(&p->waited);
	case PLACE_BLOCKING:
		legacy = atomic_load(&p->realm->legacy);
		return legacy && atomic_load(&legacy->handed) != atomic_load(&p->waited);
	case PLACE_FREE_ORDER:
		break;
	}
	return false;
}

/* With the lock held. Another thread may have done it since somebody asked, and has begun a capture
 * beside which the legacy stream may not be named any more. */
static void make_order(struct place *p) {
	if (!order_is_due(p)) {
		return;
	}
	if (p->kind == PLACE_LEGACY) {
		legacy_waits(p);
	} else {
		blocking_waits(p);
	}
}

/* Before something is handed to @p. */
HOT_CODE static void order(struct place *p) {
	struct visit v;

	if (order_is_due(p) && visit_begin(&v, p->realm->context)) {
		make_order(p);
		visit_end(&v);
	}
}

/* Whether it is another thread's default stream, at home: that has no name here. */
static bool has_no_name(const struct place *p) {
	return p->own == CU_STREAM_PER_THREAD && !atomic_load(&p->partition) &&
	       p->key != worker_stream_here(p->own, true).key;
}

/* Before one of the blocking places is captured. */
static void order_blocking(struct realm *realm) {
	struct visit v;

	if (visit_begin(&v, realm->context)) {
		for (struct place *p = realm->blocking; p; p = p->next) {
			/* Else it waits for the legacy one only where that is in a partition: its
			 * thread can make that wait beside the capture. */
			if (!has_no_name(p)) {
				make_order(p);
			}
		}
		visit_end(&v);
	}
}

/* ---- moving ---- */

/* One by one: the driver copies all at once only within a context. */
static void copy_attributes(CUstream to, CUstream from) {
	static const CUstreamAttrID list[] = {
		CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW,
		CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
		CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
		CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN,
	};
	const struct real *real = real_get();
	CUstreamAttrValue value;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (real->cuStreamGetAttribute && real->cuStreamSetAttribute &&
		    real->cuStreamGetAttribute(from, list[i], &value) == CUDA_SUCCESS) {
			real->cuStreamSetAttribute(to, list[i], &value);
		}
	}
}

/* The stream of @p in @to, made if need be. NULL: the driver refuses. */
static CUstream find_backing(struct place *p, struct partition *to) {
	struct backing *b = p->backings;

	while (b && b->partition != to) {
		b = b->next;
	}
	if (b) {
		return b->stream;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		return NULL;
	}
	b->partition = to;
	b->stream = green_stream_new(to, p->priority);
	if (!b->stream) {
		free(b);
		return NULL;
	}
	copy_attributes(b->stream, p->own);
	b->next = p->backings;
	p->backings = b;
	return b->stream;
}

/* NULL: no stream of @context has a place yet. */
static struct realm *realm_of(CUcontext context) {
	struct realm *r = realms;

	while (r && r->context != context) {
		r = r->next;
	}
	return r;
}

/* A place of @context without a stream in @to. NULL: there is none. */
static struct place *find_without(CUcontext context, const struct partition *to) {
	const struct realm *r = realm_of(context);
	struct place *p;

	for (p = r ? r->all : NULL; p; p = p->next_of_realm) {
		const struct backing *b = p->backings;

		while (b && b->partition != to) {
			b = b->next;
		}
		if (!b && !p->fixed) {
			break;
		}
	}
	return p;
}

/* Return: whether there may be more. */
static bool make_one_ahead(CUcontext context, struct partition *to) {
	struct place *p;
	struct visit v;
	bool made;

	if (!visit_begin(&v, context)) {
		return false;
	}
	p = find_without(context, to);
	made = p && find_backing(p, to);
	visit_end(&v);
	return made;
}

/* One at a time: launches want the lock in between. To ask the legacy stream for its attributes may
 * spoil a capture, so who begins one waits. */
void place_make_ahead(CUcontext context, struct partition *to) {
	bool made = true;

	while (made) {
		question_begin();
		made = !capture_any() && make_one_ahead(context, to);
		question_end();
	}
}

static void move(struct place *p, struct partition *to) {
	CUstream target;
	struct visit v;

	if (p->fixed || !visit_begin(&v, p->realm->context)) {
		return;
	}
	target = to ? find_backing(p, to) : p->own;
	if (atomic_load(&p->partition) != to && target &&
	    bridge(p, atomic_load(&p->at), target) == CUDA_SUCCESS) {
		atomic_store(&p->at, target);
		atomic_store(&p->partition, to);
	}
	visit_end(&v);
}

/* ---- places ---- */

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
	struct realm *r = realm_of(context);

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

/* With the lock held. */
static struct place *place_new(const struct stream_id *id) {
	struct realm *realm = find_realm(worker_context_of(id));
	struct place *p = free_places;

	if (p) {
		free_places = p->next;
	} else {
		p = aligned_alloc(PLACE_ALIGN, sizeof(*p));
	}
	if (p) {
		*p = (struct place){.realm = realm,
				    .own = id->stream,
				    .key = (uintptr_t)id->key,
				    .at = id->stream};
	}
	if (p && realm) {
		describe(p);
	}
	if (!p || !realm || table_put(&places, (uintptr_t)id->key, p) < 0) {
		free(p);
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

/* ---- using them ---- */

/* Out of line: launches know their places. */
HOT_CODE static __attribute__((noinline)) struct place *find_current(CUstream stream,
								     bool per_thread) {
	const struct stream_id id = worker_stream_here(stream, per_thread);

	return id.context ? place_find(&id) : NULL; /* then the driver tells the program */
}

/* In its own place the stream is named as the program named it. */
static void use_begin(struct place_use *use, struct place *p) {
	use->place = p;
	use->at = p && atomic_load(&p->partition) ? atomic_load(&p->at) : use->stream;
}

HOT_CODE void place_enter(struct place_use *use, struct partition *to) {
	struct place *p = use->place;

	/* Back to its own stream it may go at any time: nothing else could be named. */
	if (p && atomic_load(&p->partition) != to && (!to || !capture_any())) {
		move(p, to);
	}
	if (p) {
		order(p);
	}
	use_begin(use, p);
}

void place_follow(struct place_use *use) {
	struct place *p = NULL;

	if (!capture_is_on(use->stream, use->per_thread)) {
		p = find_current(use->stream, use->per_thread);
	}
	if (p) {
		order(p);
	}
	use_begin(use, p);
}

CUstream place_where(CUstream stream, bool per_thread) {
	struct place_use use = {.stream = stream, .per_thread = per_thread};
	struct place *p = NULL;

	if (!capture_is_on(stream, per_thread)) {
		p = find_current(stream, per_thread);
	}
	if (p && p->kind == PLACE_LEGACY) {
		order(p);
	}
	use_begin(&use, p);
	return use.at;
}

bool place_is_of(const struct place_use *use, CUcontext context) {
	return !use->place || use->place->realm->context == context;
}

bool place_is_in(const struct place_use *use, const struct partition *p) {
	return p && use->place && use->at != use->stream &&
	       atomic_load(&use->place->partition) == p;
}

/* Something was handed to @used, which the place had left before: the stream where it is now waits
 * for that. */
static void repair(struct place *p, CUstream used) {
	struct visit v;

	if (visit_begin(&v, p->realm->context)) {
		bridge(p, used, atomic_load(&p->at));
		visit_end(&v);
	}
}

HOT_CODE bool place_is_ready(const struct place *p, const struct partition *to, CUstream at) {
	return atomic_load(&p->partition) == to && (!to || atomic_load(&p->at) == at) &&
	       !order_is_due(p);
}

/* @used: the driver's name. Counted last: who sees the count has the other side wait for all of it.
 */
HOT_CODE static void left(struct place *p, CUstream used) {
	if (atomic_load(&p->at) != used) {
		repair(p, used);
	}
	if (p->kind != PLACE_FREE_ORDER) {
		atomic_fetch_add(&p->handed, 1);
	}
	if (p->kind == PLACE_BLOCKING) {
		atomic_fetch_add(&p->realm->handed, 1);
	}
}

HOT_CODE void place_left(struct place *p, const struct partition *to, CUstream at) {
	left(p, to ? at : p->own);
}

HOT_CODE void place_leave(struct place_use *use) {
	struct place *p = use->place;

	if (!p) {
		use->at = use->stream;
		p = capture_is_on(use->stream, use->per_thread)
			    ? NULL
			    : find_current(use->stream, use->per_thread);
	}
	if (p) {
		left(p, use->at == use->stream ? p->own : use->at);
	}
}

/* NULL: there are not so many. */
static CUcontext nth_context(unsigned n) {
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

/* @later waits for what the program's streams of the context have in partitions, and for what the
 * driver itself has put into those whose next work goes there; with the lock held. */
static void gather(CUcontext context, CUstream later) {
	const struct realm *r = realm_of(context);

	for (struct place *p = r ? r->all : NULL; p; p = p->next_of_realm) {
		for (const struct backing *b = p->backings; b; b = b->next) {
			bridge(p, b->stream, later);
		}
		/* Another thread's default stream has no name here. */
		if (atomic_load(&p->partition) && p->own != CU_STREAM_PER_THREAD &&
		    !capture_is_on(p->own, false)) {
			bridge(p, p->own, later);
		}
	}
}

/* By way of a stream of our own: others may use theirs, and destroy them, while we wait. */
static void settle_partitions(CUcontext context) {
	const struct real *real = real_get();
	CUstream all = NULL;
	struct visit v;

	if (!visit_begin(&v, context)) {
		return;
	}
	if (real->cuStreamCreate(&all, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
		gather(context, all);
	}
	visit_end(&v);
	if (all) {
		real->cuStreamSynchronize(all);
		real->cuStreamDestroy_v2(all);
	}
}

/* Not the whole context: to wait for that would spoil every capture in it. */
static void settle_default(CUstream stream) {
	if (!capture_is_on(stream, false)) {
		real_get()->cuStreamSynchronize(stream);
	}
}

void place_settle(void) {
	int token = state_enter();
	CUcontext context;

	/* One by one, for others may use their streams meanwhile. New ones come in front. */
	for (unsigned i = 0; (context = nth_context(i)); i++) {
		settle_partitions(context);
	}
	settle_default(CU_STREAM_LEGACY);
	settle_default(CU_STREAM_PER_THREAD);
	state_leave(token);
}

/* Return: its place, which is its own stream now; NULL: there is none. */
static struct place *take_home(CUstream stream, bool per_thread) {
	struct place *p = find_current(stream, per_thread);

	if (p && atomic_load(&p->partition)) {
		move(p, NULL);
	}
	return p;
}

void place_return(CUstream stream, bool per_thread) {
	struct place *p = take_home(stream, per_thread);

	if (p) {
		order(p);
	}
}

void place_capturing(CUstream stream, bool per_thread) {
	struct place *p = take_home(stream, per_thread);

	/* Beside the capture of a stream of free order the legacy stream is as at any time. */
	if (p && p->kind == PLACE_BLOCKING) {
		order_blocking(p->realm);
	}
}

bool place_can_move(const struct place *p) {
	return !p->fixed;
}

void place_attributes_set(CUstream stream, bool per_thread) {
	struct place *p = find_current(stream, per_thread);
	struct visit v;

	if (p && visit_begin(&v, p->realm->context)) {
		for (struct backing *b = p->backings; b; b = b->next) {
			copy_attributes(b->stream, p->own);
		}
		visit_end(&v);
	}
}

/* ---- what ends ---- */

static void take_from(struct place **list, struct place *p, bool of_realm) {
	for (; *list; list = of_realm ? &(*list)->next_of_realm : &(*list)->next) {
		if (*list == p) {
			*list = of_realm ? p->next_of_realm : p->next;
			return;
		}
	}
}

/* Its streams and its event go; what is under way in them goes on. */
static void empty(struct place *p) {
	const struct real *real = real_get();
	struct backing *b, *next;

	for (b = p->backings; b; b = next) {
		next = b->next;
		real->cuStreamDestroy_v2(b->stream);
		free(b);
	}
	if (p->event) {
		real->cuEventDestroy_v2(p->event);
	}
	p->backings = NULL;
	p->event = NULL;
	atomic_store(&p->at, p->own);
	atomic_store(&p->partition, NULL);
}

/* Its stream is gone, and it is empty. */
static void forget(struct place *p) {
	if (p->kind == PLACE_BLOCKING) {
		take_from(&p->realm->blocking, p, false);
	}
	take_from(&p->realm->all, p, true);
	table_take(&places, p->key);
	atomic_fetch_sub(&n_places, 1);
	p->next = free_places;
	free_places = p;
}

void place_stream_destroying(CUstream stream) {
	struct place *p = NULL;
	struct visit v;

	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		p = table_get(&places, (uintptr_t)stream);
	}
	if (!p || !visit_begin(&v, p->realm->context)) {
		return;
	}
	/* The legacy stream stays ordered behind what a gone stream had to do: by way of that
	 * stream itself, of which the driver remembers. */
	bridge(p, atomic_load(&p->at), p->own);
	empty(p);
	forget(p);
	visit_end(&v);
}

/* Its context is gone, and no place is left there. */
static void forget_realm(struct realm *r) {
	struct realm **link = &realms;

	while (*link != r) {
		link = &(*link)->next;
	}
	*link = r->next;
	r->next = free_realms;
	free_realms = r;
}

void place_context_destroying(CUcontext context) {
	const struct real *real = real_get();
	struct realm *r;
	struct place *p;
	struct visit v;

	settle_partitions(context); /* as the end of a context waits */
	if (!visit_begin(&v, context)) {
		return;
	}
	r = realm_of(context);
	while (r && (p = r->all)) {
		for (struct backing *b = p->backings; b; b = b->next) {
			real->cuStreamSynchronize(b->stream); /* if that can't be had */
		}
		empty(p);
		forget(p);
	}
	if (r) {
		forget_realm(r);
	}
	visit_end(&v);
}

void place_after_fork(void) {
	/* What the parent knows is left where it is. */
	pthread_mutex_init(&lock, NULL);
	places = TABLE_NULL;
	realms = NULL;
	free_places = NULL;
	free_realms = NULL;
	atomic_store(&place_is_active, false);
	atomic_store(&n_places, 0);
}
