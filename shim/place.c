/*
 * place.c: see place.h.
 */
#include "shim/place.h"

#include "shim/capture.h"
#include "shim/place-internal.h"
#include "shim/worker.h"

/* Out of line: launches know their places. */
HOT_CODE static __attribute__((noinline)) struct place *find_current(CUstream stream,
								     bool per_thread) {
	const struct stream_id id = worker_stream_here(stream, per_thread);

	return id.context ? place_find(&id) : NULL; /* then the driver tells the program */
}

/* NULL also for what is being captured. */
static struct place *find_uncaptured(CUstream stream, bool per_thread) {
	return capture_is_on(stream, per_thread) ? NULL : find_current(stream, per_thread);
}

/* ---- before work is handed over ---- */

/* In its own place the stream is named as the program named it. */
static void use_begin(struct place_use *use, struct place *p) {
	use->place = p;
	use->at = p && atomic_load(&p->partition) ? atomic_load(&p->at) : use->stream;
}

HOT_CODE void place_enter(struct place_use *use, struct partition *to) {
	struct place *p = use->place;

	/* Back to its own stream it may go at any time: nothing else could be named. */
	if (p && atomic_load(&p->partition) != to && (!to || !capture_any())) {
		place_move(p, to);
	}
	if (p) {
		place_order(p);
	}
	use_begin(use, p);
}

void place_follow(struct place_use *use) {
	struct place *p = find_uncaptured(use->stream, use->per_thread);

	if (p) {
		place_order(p);
	}
	use_begin(use, p);
}

CUstream place_where(CUstream stream, bool per_thread) {
	struct place_use use = {.stream = stream, .per_thread = per_thread};
	struct place *p = find_uncaptured(stream, per_thread);

	if (p && p->kind == PLACE_LEGACY) {
		place_order(p);
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

HOT_CODE bool place_is_ready(const struct place *p, const struct partition *to, CUstream at) {
	return atomic_load(&p->partition) == to && (!to || atomic_load(&p->at) == at) &&
	       !place_order_is_due(p);
}

bool place_can_move(const struct place *p) {
	return !p->fixed;
}

/* ---- after that ---- */

/* Something was handed to @used, which the place had left before: the stream where it is now waits
 * for that. */
static void repair(struct place *p, CUstream used) {
	struct place_visit v;

	if (place_visit_begin(&v, p->realm->context)) {
		place_bridge(p, used, atomic_load(&p->at));
		place_visit_end(&v);
	}
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
		p = find_uncaptured(use->stream, use->per_thread);
	}
	if (p) {
		left(p, use->at == use->stream ? p->own : use->at);
	}
}

/* ---- streams that stay the program's own ---- */

/* Return: its place, which is its own stream now; NULL: there is none. */
static struct place *take_home(CUstream stream, bool per_thread) {
	struct place *p = find_current(stream, per_thread);

	if (p && atomic_load(&p->partition)) {
		place_move(p, NULL);
	}
	return p;
}

void place_return(CUstream stream, bool per_thread) {
	struct place *p = take_home(stream, per_thread);

	if (p) {
		place_order(p);
	}
}

void place_capturing(CUstream stream, bool per_thread) {
	struct place *p = take_home(stream, per_thread);

	/* Beside the capture of a stream of free order the legacy stream is as at any time. */
	if (p && p->kind == PLACE_BLOCKING) {
		place_order_blocking(p->realm);
	}
}

/* ---- what changes, and what ends ---- */

void place_attributes_set(CUstream stream, bool per_thread) {
	struct place *p = find_current(stream, per_thread);
	struct place_visit v;

	if (p && place_visit_begin(&v, p->realm->context)) {
		place_copy_attributes(p);
		place_visit_end(&v);
	}
}

void place_stream_destroying(CUstream stream) {
	struct place *p = place_of_handle(stream);
	struct place_visit v;

	if (!p || !place_visit_begin(&v, p->realm->context)) {
		return;
	}
	/* The legacy stream stays ordered behind what a gone stream had to do: by way of that
	 * stream itself, of which the driver remembers. */
	place_bridge(p, atomic_load(&p->at), p->own);
	place_empty(p);
	place_forget(p);
	place_visit_end(&v);
}

void place_context_destroying(CUcontext context) {
	struct place_visit v;
	struct realm *r;

	place_settle_context(context); /* as the end of a context waits */
	if (!place_visit_begin(&v, context)) {
		return;
	}
	r = place_realm(context);
	while (r && r->all) {
		struct place *p = r->all;

		place_backings_synchronize(p); /* if that can't be had */
		place_empty(p);
		place_forget(p);
	}
	if (r) {
		place_forget_realm(r);
	}
	place_visit_end(&v);
}
