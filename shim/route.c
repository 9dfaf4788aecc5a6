/*
 * route.c: see route.h.
 */
#include "shim/route.h"

#include <stdatomic.h>

#include "proto/enforcement.h"
#include "proto/terms.h"
#include "shim/base/hot.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/enforce/kernel.h"
#include "shim/lane.h"
#include "shim/op.h"
#include "shim/place.h"
#include "shim/state.h"
#include "shim/worker.h"

#define get(where) atomic_load_explicit(where, memory_order_relaxed)

static struct known_kernel *known_at(struct worker *w, CUfunction function) {
	uintptr_t n = (uintptr_t)function;

	return &w->known[(n >> 4 ^ n >> 12) % WORKER_KNOWN];
}

/* What the thread knows by itself. Return: the kernel's count, or NULL. */
static inline struct kernel_count *find_count(struct worker *w, const struct route_launch *l) {
	const struct known_kernel *known = known_at(w, l->function);
	struct kernel_count *c = known->count;

	if (known->function != l->function || known->epoch != get(&kernel_epoch) ||
	    c->wave_threads != l->block_threads || c->wave_shared != l->shared_bytes ||
	    c->declared != get(&conn_number)) {
		return NULL;
	}
	return c;
}

/* The way's entry counts in the job that its lane has open. For good only while inside. */
static inline bool is_open(const struct route *r) {
	return r->use && atomic_load(&r->lane->state) == LANE_OPEN &&
	       get(&r->lane->job) == get(&r->use->job);
}

/* While inside the job: the way leads there. */
static inline bool leads_on(const struct route *r) {
	const struct lane *lane = r->lane;

	return get(&lane->terms) == r->terms && get(&lane->steered_to) == r->to &&
	       !get(&lane->recording) && !get(&lane->kernels_done) &&
	       place_active() == (r->place != NULL) &&
	       (!r->place || place_is_ready(r->place, r->to, r->at));
}

HOT_CODE bool route_begin(struct route_use *u, const struct real *real,
			  const struct route_launch *l) {
	struct worker *w = worker_self;
	const struct route *r;
	CUcontext context;

	if (!w || !is_open(&w->route)) {
		return false;
	}
	r = &w->route;
	u->count = find_count(w, l);
	if (!u->count || get(&r->use->launches) == 0 || r->named != l->stream ||
	    r->per_thread != l->per_thread || r->epoch != get(&worker_epoch) || capture_any() ||
	    real->cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != r->context) {
		return false;
	}
	atomic_store(&w->inside, r->lane);
	if (!is_open(r) || !leads_on(r)) {
		atomic_store_explicit(&w->inside, NULL, memory_order_release);
		return false;
	}
	w->last_use = r->use;
	u->worker = w;
	u->at = r->at;
	state_depth++;
	return true;
}

HOT_CODE void route_end(const struct route_use *u, const struct route_launch *l, CUresult rc) {
	struct worker *w = u->worker;
	struct stream_use *use = w->route.use;
	struct kernel_count *c = u->count;

	state_depth--;
	if (w->route.place) {
		place_left(w->route.place, w->route.to, w->route.at);
	}
	atomic_store_explicit(&use->last, point_now(), memory_order_relaxed);
	if (rc == CUDA_SUCCESS) {
		worker_add(&use->launches, 1);
		worker_add(&use->waves, kernel_count_waves(c, l->blocks));
		worker_add(&c->blocks, l->blocks);
		/* Who sees the launch sees the rest. */
		atomic_store_explicit(&c->launches, get(&c->launches) + 1, memory_order_release);
	}
	atomic_store_explicit(&w->inside, NULL, memory_order_release);
}

/* A job with these terms may not be followed, or this launch is no example. */
static bool is_special(const struct op *op) {
	const struct lane *lane = op->lane;
	uint64_t terms = get(&lane->terms);

	return !terms || terms_yield(terms) || get(&lane->by_operation) || !op->kernel ||
	       kernel_may_wait(op->kernel) || op->launch->cooperative || op->traits & OP_WHOLE ||
	       op->how == SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
}

HOT_CODE void route_learn(const struct op *op) {
	struct worker *w = op->worker;
	struct kernel_count *c = is_special(op) ? NULL : worker_count(w, kernel_id(op->kernel));

	if (!c) {
		return;
	}
	*known_at(w, op->launch->function) = (struct known_kernel){
		.function = op->launch->function, .count = c, .epoch = op->kernel_epoch};
	w->route = (struct route){
		.use = op->use,
		.lane = op->lane,
		.terms = get(&op->lane->terms),
		.context = op->id->context,
		.named = op->stream,
		.at = op->place.at,
		.place = op->place.place,
		.to = op->to,
		.epoch = w->last.epoch,
		.per_thread = op->place.per_thread,
	};
}
