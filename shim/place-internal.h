/*
 * place-internal.h: what the files of places (place.h) share: place.c is what calls of the program
 * do with them, place-settle.c waits for all that is under way, place-backing.c has the streams of
 * partitions and moves work there, place-order.c lets the legacy stream and the blocking ones wait
 * for each other, place-list.c knows which places there are. Each calls only those named after it.
 *
 * Who owns what: a table maps stream keys to places; a realm (one per context) lists its blocking
 * places; a place owns its event and its backing streams. Places of destroyed streams are kept and
 * used again, so that a late reader finds memory.
 *
 * One lock guards all changes, and is held across calls into the driver: see place_visit_begin().
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/base/hot.h"
#include "shim/real.h"

#define PLACE_ALIGN 64

struct backing;
struct partition;
struct realm;

enum place_kind {
	PLACE_FREE_ORDER, /* a non-blocking stream */
	PLACE_BLOCKING,	  /* ordered against the legacy stream */
	PLACE_LEGACY,
};

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

/* ---- place-list.c ---- */

/* In between we call the driver for a context's places: inside state_enter(), with the lock held
 * and the context current. */
struct place_visit {
	int token;
	bool pushed;
};

/* Return: false if the context can't be made current. */
bool place_visit_begin(struct place_visit *v, CUcontext context);
void place_visit_end(struct place_visit *v);

/* With the lock held. NULL: no stream of @context has a place yet. */
struct realm *place_realm(CUcontext context);

/* New ones come in front. NULL: there are not so many. */
CUcontext place_nth_context(unsigned n);

/* Whether the stream of @p is another thread's default stream: that has no name here. */
bool place_is_of_other_thread(const struct place *p);

/* NULL: none has been made, or @stream is a default stream. */
struct place *place_of_handle(CUstream stream);

/* With the lock held. The stream of @p goes, and @p is empty: see place_empty(). */
void place_forget(struct place *p);

/* With the lock held. The context goes, and has no place left. */
void place_forget_realm(struct realm *r);

/* ---- place-order.c ---- */

/* During a visit: @later waits for what was handed to @earlier, a stream of @p. */
CUresult place_bridge(struct place *p, CUstream earlier, CUstream later);

/* What place_order() does where something is to be waited for. */
void place_make_order(struct place *p);

/* Before one of the blocking places is captured. */
void place_order_blocking(struct realm *realm);

/* Whether @p has to wait for the other side before something is handed to it. In line, as the next
 * one, for it is on the way of each launch. */
HOT_INLINE bool place_order_is_due(const struct place *p) {
	const struct place *legacy;

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

/* Before something is handed to @p. */
HOT_INLINE void place_order(struct place *p) {
	if (place_order_is_due(p)) {
		place_make_order(p);
	}
}

/* ---- place-backing.c ---- */

/* @p goes to @to (NULL: its own stream), if that can be had. */
void place_move(struct place *p, struct partition *to);

/* During a visit, as all that follows. Its streams in partitions get the attributes of its own. */
void place_copy_attributes(struct place *p);

/* @later waits for what @p has in partitions. */
void place_backings_bridge(struct place *p, CUstream later);

/* We wait for that. */
void place_backings_synchronize(const struct place *p);

/* Its streams in partitions and its event go; what is under way in them goes on. */
void place_empty(struct place *p);

/* ---- place-settle.c ---- */

/* Waits for what the streams of @context have in partitions, and for what the driver itself has put
 * into those whose next work goes there. */
void place_settle_context(CUcontext context);
