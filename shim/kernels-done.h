/*
 * kernels-done.h: tells others when the kernels of a job that is awaited are done (proto/board.h):
 * nobody has to wait for its copy back, nor for the program to hear of that.
 *
 * Before a copy back that comes behind kernels the stream writes a word, which the keeper sees. A
 * launch behind it takes that back.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "shim/lane.h"

/* Kernels of @lane's job, which is awaited, were handed over to @stream, and a copy comes next that
 * may be one back, in @context, which is current. @per_thread: stream 0 is the thread's own. */
void kernels_done_write(struct lane *lane, CUcontext context, CUstream stream, bool per_thread);

/* Not inline: see below. */
void kernels_done_forget(struct lane *lane, CUcontext context);

/* Before a launch, of a kernel or a graph, in @lane's job. */
static inline void kernels_done_not(struct lane *lane, CUcontext context) {
	if (atomic_load_explicit(&lane->kernels_done, memory_order_relaxed)) {
		kernels_done_forget(lane, context);
	}
}
