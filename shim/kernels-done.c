/*
 * kernels-done.c: see kernels-done.h.
 */
#include "shim/kernels-done.h"

#include "shim/keeper.h"
#include "shim/value.h"

void kernels_done_write(struct lane *lane, CUcontext context, CUstream stream, bool per_thread) {
	struct keeper_word word;

	if (atomic_load(&lane->kernels_done) || !value_can_wait(per_thread) ||
	    !keeper_kernels_end(context, lane->device, &word)) {
		return;
	}
	atomic_store(&lane->kernels_done, true);
	if (value_write(stream, per_thread, word.at, word.value)) {
		keeper_kernels_watch(context, &word);
	}
	if (!atomic_load(&lane->kernels_done)) {
		keeper_kernels_go_on(context, lane->device); /* another thread has launched */
	}
}

void kernels_done_forget(struct lane *lane, CUcontext context) {
	if (atomic_exchange(&lane->kernels_done, false)) {
		keeper_kernels_go_on(context, lane->device);
	}
}
