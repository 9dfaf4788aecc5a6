/*
 * place.h: where the work of each of the program's streams goes: to the stream itself, or to a
 * stream of the partition that the job was granted, and that nothing the program was promised about
 * order is lost by that.
 *
 * A place stands for one stream of the program, its default streams included. It is at one stream
 * at a time, its own or one that backs it in a partition. When it moves, the new one waits for an
 * event recorded in the old one (0.3 us on an H200, both together), so work stays in order whatever
 * was still under way: copies, host functions, waits for events or values that nobody has given
 * yet.
 *
 * The legacy default stream is ordered against all blocking streams of its context (a blocking
 * operation there begins after everything before it, and everything after it begins after it). The
 * driver sees to that between the program's own streams. Streams of a partition are non-blocking,
 * so where one of the two is there we do it: each legacy or blocking place counts what was handed
 * to it and knows up to where the other side has been waited for.
 *
 * Nothing here is done before place_activate(): programs that can't be granted a partition pay one
 * load for all this.
 *
 * Threads: any number may use one place. The state is read without a lock; moving takes the one of
 * all places. A thread that handed something to a stream which the place has left meanwhile notices
 * that in place_leave() and has the new one wait for it, before its call returns; so what one
 * thread does after the other is in order, and what they do at the same time never was.
 *
 * Captures: a stream that is being captured stays its own, and none moves at that time. Nor do we
 * name the legacy stream while a blocking one is captured, see place_capturing().
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/real.h"

struct partition;
struct place;
struct stream_id;

/* What one call does with a place. The first two are the caller's to set; place too, for
 * place_enter(). */
struct place_use {
	CUstream stream; /* as the program named it */
	bool per_thread; /* its 0 is the thread's own default stream */
	/* between place_enter() or place_follow() and place_leave() */
	struct place *place; /* NULL: none */
	CUstream at;	     /* the stream to name to the driver */
};

extern _Atomic bool place_is_active;

/* How many streams of the program have a place, default streams included. */
unsigned place_count(void);

/* Partitions may be granted from now on, or when all libraries in front of the driver have got our
 * wrappers, see fronts.h. Never taken back. */
void place_activate(void);

/* The same if that was to be done: such a library has got one. */
void place_reconsider(void);

static inline bool place_active(void) {
	return atomic_load_explicit(&place_is_active, memory_order_relaxed);
}

/* The place of a stream; its context is current. NULL: no memory. */
struct place *place_find(const struct stream_id *id);

/*
 * Sets use->at to the stream that work for use->stream, whose place is use->place, goes to when it
 * belongs into @to (NULL: the stream itself); the context is current. Where a partition can't be
 * had, because of a capture or because the driver refuses, it is the stream where the work is
 * already: see place_is_in().
 */
void place_enter(struct place_use *use, struct partition *to);

/* The stream where the work of use->stream is at present: for what follows it, without being part
 * of a job. */
void place_follow(struct place_use *use);

/* The stream to wait for, or to ask, in order to know of all that @stream has to do: for the legacy
 * stream that is what the blocking streams had before, too. */
CUstream place_where(CUstream stream, bool per_thread);

/* The driver has taken what was handed to use->at. To be called after everything that was handed to
 * a stream while place_active(), also where the use began before that was so (place is NULL). */
void place_leave(struct place_use *use);

/* Around a call that follows the work of @stream, also while no stream has a place: it goes
 * to `at` of what is returned. */
static inline struct place_use place_use_begin(CUstream stream, bool per_thread) {
	struct place_use use = {.stream = stream, .per_thread = per_thread, .at = stream};

	if (place_active()) {
		place_follow(&use);
	}
	return use;
}

static inline void place_use_end(struct place_use *use) {
	if (place_active()) {
		place_leave(use);
	}
}

/* Whether place_enter() with @to would do nothing, and lead to @at. */
bool place_is_ready(const struct place *p, const struct partition *to, CUstream at);

/* As place_leave(), after that. */
void place_left(struct place *p, const struct partition *to, CUstream at);

/* For the few functions that the driver orders against everything in several contexts, before and
 * after them: waits until all that was handed to any partition is done, and what such a function
 * has put into the program's streams. Leaves captures alone. */
void place_settle(void);

/* Whether use->stream is one of @context; true if it has no place. */
bool place_is_of(const struct place_use *use, CUcontext context);

/* Whether use->at is the stream of @p. */
bool place_is_in(const struct place_use *use, const struct partition *p);

/* Streams of @to for all that have a place in @context, so that none has to be made on the way of a
 * launch. */
void place_make_ahead(CUcontext context, struct partition *to);

/* The stream is the program's own from now on, until something is handed to a partition again. */
void place_return(CUstream stream, bool per_thread);

/*
 * The stream may be captured from now on: it is the program's own. While a blocking stream is
 * captured, the driver refuses every use of the legacy stream and spoils the capture, whoever uses
 * it. So all that blocking streams have to wait for there is seen to here; nothing is added
 * meanwhile, for the program can't use the legacy stream either. To be called after
 * capture_begin(): places that are made later stay in their own streams, which need no event of
 * ours.
 */
void place_capturing(CUstream stream, bool per_thread);

/* Whether its work can go into partitions at all: a stream of a context that has any, not of a
 * green context of the program's. */
bool place_can_move(const struct place *p);

/* Attributes of the stream were set: its backing streams get them as well. */
void place_attributes_set(CUstream stream, bool per_thread);

/* Called before the driver's own function. */
void place_stream_destroying(CUstream stream);
void place_context_destroying(CUcontext context);

/* After fork, in the child: forget everything without calling the driver. */
void place_after_fork(void);
