/*
 * place-settle.c: waits until all that was handed to partitions is done, see place.h.
 */
#include "shim/place-internal.h"
#include "shim/place.h"

#include "shim/capture.h"
#include "shim/state.h"

/* During a visit: @later waits for all that the context is to be settled from. */
static void gather(CUcontext context, CUstream later) {
	const struct realm *r = place_realm(context);

	for (struct place *p = r ? r->all : NULL; p; p = p->next_of_realm) {
		place_backings_bridge(p, later);
		/* Another thread's default stream has no name here. */
		if (atomic_load(&p->partition) && p->own != CU_STREAM_PER_THREAD &&
		    !capture_is_on(p->own, false)) {
			place_bridge(p, p->own, later);
		}
	}
}

/* By way of a stream of our own: others may use theirs, and destroy them, while we wait. */
void place_settle_context(CUcontext context) {
	const struct real *real = real_get();
	CUstream all = NULL;
	struct place_visit v;

	if (!place_visit_begin(&v, context)) {
		return;
	}
	if (real->cuStreamCreate(&all, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
		gather(context, all);
	}
	place_visit_end(&v);
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
	for (unsigned i = 0; (context = place_nth_context(i)); i++) {
		place_settle_context(context);
	}
	settle_default(CU_STREAM_LEGACY);
	settle_default(CU_STREAM_PER_THREAD);
	state_leave(token);
}
