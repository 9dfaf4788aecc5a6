/*
 * place-order.c: the legacy stream and the blocking ones of its context wait for each other, see
 * place.h.
 */
#include "shim/place-internal.h"

CUresult place_bridge(struct place *p, CUstream earlier, CUstream later) {
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

/* ---- during a visit ---- */

/* The legacy place waits for all blocking ones. */
static void legacy_waits(struct place *legacy) {
	struct realm *realm = legacy->realm;
	uint64_t all = atomic_load(&realm->handed);
	CUstream at = atomic_load(&legacy->at);
	bool waits = true;

	/* What is in the program's own streams: the driver orders its own legacy stream behind it.
	 */
	if (at != legacy->own) {
		waits = place_bridge(legacy, legacy->own, at) == CUDA_SUCCESS;
	}
	for (struct place *p = realm->blocking; p; p = p->next) {
		uint64_t handed = atomic_load(&p->handed);

		if (handed == p->legacy_waited || !atomic_load(&p->partition) ||
		    place_bridge(p, atomic_load(&p->at), at) == CUDA_SUCCESS) {
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
	    place_bridge(legacy, atomic_load(&legacy->at), atomic_load(&p->at)) == CUDA_SUCCESS) {
		atomic_store(&p->waited, handed);
	}
}

/* Another thread may have done it since somebody asked, and has begun a capture beside which the
 * legacy stream may not be named any more. */
static void make_order(struct place *p) {
	if (!place_order_is_due(p)) {
		return;
	}
	if (p->kind == PLACE_LEGACY) {
		legacy_waits(p);
	} else {
		blocking_waits(p);
	}
}

/* ---- visits ---- */

void place_make_order(struct place *p) {
	struct place_visit v;

	if (place_visit_begin(&v, p->realm->context)) {
		make_order(p);
		place_visit_end(&v);
	}
}

void place_order_blocking(struct realm *realm) {
	struct place_visit v;

	if (place_visit_begin(&v, realm->context)) {
		for (struct place *p = realm->blocking; p; p = p->next) {
			/* One without a name waits for the legacy one only where that is in a
			 * partition: its thread can make that wait beside the capture. */
			if (atomic_load(&p->partition) || !place_is_of_other_thread(p)) {
				make_order(p);
			}
		}
		place_visit_end(&v);
	}
}
