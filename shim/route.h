/*
 * route.h: the short way of a launch. Most launches are like the one before: the same thread, job,
 * context and stream, and a kernel that the thread has launched in the same shape. What op.c found
 * out for that one leads this one as well, as long as nothing of it has changed; else the launch
 * goes the long way, and nothing was done. So does the launch that opens a job: the next one goes
 * as those of the last job did.
 *
 * Between two launches a program has other things in the caches, so what counts is how few cache
 * lines this touches: tests/bench/LAUNCH.md.
 *
 * Only in jobs under terms, which are never stopped, and whose kernels need not yield.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/base/hot.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/enforce/kernel.h"
#include "shim/lane.h"
#include "shim/place.h"
#include "shim/real.h"
#include "shim/shapes.h"
#include "shim/state.h"
#include "shim/worker.h"

struct op;

/* What a launch needs in order to be like another one. @per_thread: stream 0 is the thread's own.
 */
struct route_launch {
	CUfunction function;
	CUstream stream;
	bool per_thread;
	uint32_t block_threads, shared_bytes;
	uint64_t blocks;
};

/* Of a launch that is on the short way; between route_begin() and route_end(). */
struct route_use {
	struct worker *worker;
	const struct shape *shape;
	CUstream at; /* the stream to name to the driver */
};

/* The way's entry counts in the job that its lane has open. For good only while inside. */
HOT_INLINE bool route_is_open(const struct route *r) {
	return r->use && atomic_load(&r->lane->state) == LANE_OPEN &&
	       atomic_load_explicit(&r->lane->job, memory_order_relaxed) ==
		       atomic_load_explicit(&r->use->job, memory_order_relaxed);
}

/* While inside the job: the way leads there. */
HOT_INLINE bool route_leads_on(const struct route *r) {
	const struct lane *lane = r->lane;

	return atomic_load_explicit(&lane->terms, memory_order_relaxed) == r->terms &&
	       atomic_load_explicit(&lane->steered_to, memory_order_relaxed) == r->to &&
	       !atomic_load_explicit(&lane->recording, memory_order_relaxed) &&
	       !atomic_load_explicit(&lane->kernels_done, memory_order_relaxed) &&
	       place_active() == (r->place != NULL) &&
	       (!r->place || place_is_ready(r->place, r->to, r->at));
}

/* Without a look at the program's context. */
HOT_INLINE bool route_is_for(const struct worker *w, const struct route_launch *l) {
	const struct route *r = &w->route;

	return route_is_open(r) && r->named == l->stream && r->per_thread == l->per_thread &&
	       atomic_load_explicit(&r->use->launches, memory_order_relaxed) > 0 &&
	       r->epoch == atomic_load_explicit(&worker_epoch, memory_order_relaxed) &&
	       !capture_any();
}

/* Return: whether @l may go the short way: then the caller hands it to the driver, with @u->at for
 * its stream, and calls route_end(). The depth counter is raised until then. With state_is_ours()
 * true, and not for cooperative launches. */
HOT_INLINE bool route_begin(struct route_use *u, const struct real *real,
			    const struct route_launch *l) {
	struct worker *w = state_self.worker;
	CUcontext context;

	if (!w || !route_is_for(w, l)) {
		return false;
	}
	u->shape = shapes_find(&w->shapes, l->function, l->block_threads, l->shared_bytes,
			       atomic_load_explicit(&kernel_epoch, memory_order_relaxed));
	if (!u->shape || !u->shape->may_follow ||
	    u->shape->count->declared != atomic_load_explicit(&conn_number, memory_order_relaxed) ||
	    real->cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != w->route.context) {
		return false;
	}
	atomic_store(&w->inside, w->route.lane);
	if (!route_is_open(&w->route) || !route_leads_on(&w->route)) {
		atomic_store_explicit(&w->inside, NULL, memory_order_release);
		return false;
	}
	w->last_use = w->route.use;
	u->worker = w;
	u->at = w->route.at;
	state_self.depth++;
	return true;
}

/* @rc: the driver's answer. */
HOT_INLINE void route_end(const struct route_use *u, const struct route_launch *l, CUresult rc) {
	struct worker *w = u->worker;
	struct stream_use *use = w->route.use;
	struct kernel_count *c = u->shape->count;

	state_self.depth--;
	if (w->route.place) {
		place_left(w->route.place, w->route.to, w->route.at);
	}
	atomic_store_explicit(&use->last, point_now(), memory_order_relaxed);
	if (HOT_EXPECT(rc == CUDA_SUCCESS)) {
		worker_add(&use->launches, 1);
		worker_add(&use->waves, shape_waves(u->shape, l->blocks));
		kernel_count_add(c, l->blocks);
	}
	atomic_store_explicit(&w->inside, NULL, memory_order_release);
}

/* Launches like that of @op may go the way that it has gone, unless it is special; between
 * op_begin() and op_end(), when the driver has taken it. */
void route_learn(const struct op *op);
