/*
 * place-backing.c: the streams of partitions that back those of the program, see place.h.
 */
#include "shim/place-internal.h"
#include "shim/place.h"

#include <stdlib.h>

#include "shim/capture.h"
#include "shim/enforce/green.h"
#include "shim/question.h"

/* The stream of a place in one partition. */
struct backing {
	struct partition *partition;
	CUstream stream;
	bool like_own; /* has the attributes of the place's own stream */
	struct backing *next;
};

/* Those of another thread's default stream are copied when that thread moves there. One by one: the
 * driver copies all at once only within a context. */
static void copy_attributes(const struct place *p, struct backing *b) {
	static const CUstreamAttrID list[] = {
		CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW,
		CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
		CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
		CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN,
	};
	const struct real *real = real_get();
	CUstreamAttrValue value;

	if (place_is_of_other_thread(p)) {
		return;
	}
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (real->cuStreamGetAttribute && real->cuStreamSetAttribute &&
		    real->cuStreamGetAttribute(p->own, list[i], &value) == CUDA_SUCCESS) {
			real->cuStreamSetAttribute(b->stream, list[i], &value);
		}
	}
	b->like_own = true;
}

/* ---- one place; during a visit ---- */

/* NULL: @p has no stream in @to yet. */
static struct backing *find_backing(const struct place *p, const struct partition *to) {
	struct backing *b = p->backings;

	while (b && b->partition != to) {
		b = b->next;
	}
	return b;
}

/* NULL: the driver refuses. */
static struct backing *new_backing(struct place *p, struct partition *to) {
	struct backing *b = calloc(1, sizeof(*b));

	if (!b) {
		return NULL;
	}
	b->partition = to;
	b->stream = green_stream_new(to, p->priority);
	if (!b->stream) {
		free(b);
		return NULL;
	}
	copy_attributes(p, b);
	b->next = p->backings;
	p->backings = b;
	return b;
}

/* The stream of @p in @to (NULL: its own), made if need be, and ready for use. NULL: the driver
 * refuses. */
static CUstream find_stream(struct place *p, struct partition *to) {
	struct backing *b;

	if (!to) {
		return p->own;
	}
	b = find_backing(p, to);
	b = b ? b : new_backing(p, to);
	if (b && !b->like_own) {
		copy_attributes(p, b);
	}
	return b ? b->stream : NULL;
}

void place_copy_attributes(struct place *p) {
	for (struct backing *b = p->backings; b; b = b->next) {
		copy_attributes(p, b);
	}
}

void place_backings_bridge(struct place *p, CUstream later) {
	for (const struct backing *b = p->backings; b; b = b->next) {
		place_bridge(p, b->stream, later);
	}
}

void place_backings_synchronize(const struct place *p) {
	for (const struct backing *b = p->backings; b; b = b->next) {
		real_get()->cuStreamSynchronize(b->stream);
	}
}

void place_empty(struct place *p) {
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

/* ---- moving ---- */

void place_move(struct place *p, struct partition *to) {
	CUstream target;
	struct place_visit v;

	if (p->fixed || !place_visit_begin(&v, p->realm->context)) {
		return;
	}
	target = find_stream(p, to);
	if (atomic_load(&p->partition) != to && target &&
	    place_bridge(p, atomic_load(&p->at), target) == CUDA_SUCCESS) {
		atomic_store(&p->at, target);
		atomic_store(&p->partition, to);
	}
	place_visit_end(&v);
}

/* ---- ahead ---- */

/* With the lock held: a place of @context without a stream in @to. NULL: there is none. */
static struct place *find_without(CUcontext context, const struct partition *to) {
	const struct realm *r = place_realm(context);
	struct place *p = r ? r->all : NULL;

	while (p && (p->fixed || find_backing(p, to))) {
		p = p->next_of_realm;
	}
	return p;
}

/* Return: whether there may be more. */
static bool make_one_ahead(CUcontext context, struct partition *to) {
	struct place_visit v;
	struct place *p;
	bool made;

	if (!place_visit_begin(&v, context)) {
		return false;
	}
	p = find_without(context, to);
	made = p && new_backing(p, to);
	place_visit_end(&v);
	return made;
}

/* One at a time: launches want the lock in between. To ask the legacy stream for its attributes
 * spoils the capture of a blocking one, so who begins one waits. */
void place_make_ahead(CUcontext context, struct partition *to) {
	bool made = true;

	while (made) {
		question_begin();
		made = !capture_any() && make_one_ahead(context, to);
		question_end();
	}
}
