/*
 * kernels-done.c: see kernels-done.h.
 */
#include "shim/kernels-done.h"

#include "shim/gate.h"
#include "shim/keeper.h"

void kernels_done_write(const struct op *op) {
	struct lane *lane = op->lane;
	struct keeper_word word;

	if (atomic_load(&lane->kernels_done) || !gate_can_wait(op->place.per_thread) ||
	    !keeper_kernels_end(op->id->context, lane->device, &word)) {
		return;
	}
	atomic_store(&lane->kernels_done, true);
	if (gate_write(op->place.at, op->place.per_thread, word.at, word.value)) {
		keeper_kernels_watch(op->id->context, &word);
	}
	if (!atomic_load(&lane->kernels_done)) {
		keeper_kernels_go_on(op->id->context, lane->device); /* another thread launched */
	}
}

void kernels_done_forget(const struct op *op) {
	struct lane *lane = op->lane;

	if (atomic_exchange(&lane->kernels_done, false)) {
		keeper_kernels_go_on(op->id->context, lane->device);
	}
}
