/*
 * graph-order.c: launches of one graph come one after the other, whichever of its executable graphs
 * they are of: see graph_order().
 */
#include "shim/graph-internal.h"
#include "shim/graph.h"

#include "shim/place.h"
#include "shim/state.h"
#include "shim/worker.h"

static void set_given(struct graph *g, CUgraphExec exec, struct graph_part *part, uint64_t key) {
	g->given.part = part;
	atomic_store(&g->given.exec, exec);
	atomic_store(&g->given.key, key);
	atomic_store(&g->given.epoch, atomic_load(&worker_epoch));
}

void graph_forget_given(struct graph *g) {
	set_given(g, NULL, NULL, 0);
}

static bool went_to(const struct graph_given *given, uint64_t key) {
	return atomic_load(&given->key) == key &&
	       atomic_load(&given->epoch) == atomic_load(&worker_epoch);
}

/* The last launch; what was launched is kept until graph_use_end(). Takes the lock. */
static struct graph_use hold_given(struct graph *g) {
	int cancel = graph_lock();
	struct graph_use use = {atomic_load(&g->given.exec), g->given.part};

	if (use.part) {
		use.part->users++;
	}
	graph_unlock(cancel);
	return use;
}

/* Inside state_enter(). An upload goes behind all launches of the graph that is uploaded, and what
 * the stream gets next goes behind the upload. An event would do the same, but has to be recorded
 * behind every launch (0.4 us): when the next launch comes, the stream of the last one may be gone
 * or captured. */
static CUresult come_behind(CUgraphExec last, const struct place_use *place) {
	const struct real *real = real_get();
	CUresult rc = CUDA_ERROR_NOT_SUPPORTED;

	if (place->per_thread && real->cuGraphUpload_ptsz) {
		rc = real->cuGraphUpload_ptsz(last, place->at);
	} else if (!place->per_thread && real->cuGraphUpload) {
		rc = real->cuGraphUpload(last, place->at);
	}
	return rc == CUDA_SUCCESS ? rc : real->cuCtxSynchronize();
}

CUresult graph_order(struct graph *g, const struct graph_use *use, const struct place_use *place,
		     uint64_t key) {
	CUgraphExec last = g ? atomic_load(&g->given.exec) : NULL;
	CUresult rc = CUDA_SUCCESS;
	struct graph_use behind;
	int token;

	/* The program's stream counts: its place keeps it in order while it moves. */
	if (!last || last == use->exec || (key && went_to(&g->given, key))) {
		return CUDA_SUCCESS;
	}
	token = state_enter();
	behind = hold_given(g);
	if (behind.exec) {
		rc = come_behind(behind.exec, place);
	}
	graph_use_end(&behind);
	state_leave(token);
	return rc;
}

void graph_given(struct graph *g, const struct graph_use *use, uint64_t key) {
	int cancel;

	if (!g || (atomic_load(&g->given.exec) == use->exec && went_to(&g->given, key))) {
		return;
	}
	cancel = graph_lock();
	set_given(g, use->exec, use->part, key);
	graph_unlock(cancel);
}
