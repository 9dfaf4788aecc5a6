/*
 * kernels-done.h: tells others when the kernels of a job that is awaited are done (proto/board.h):
 * nobody has to wait for its copy back, nor for the program to hear of that.
 *
 * Before a copy back that comes behind kernels the stream writes a word, which the keeper sees. A
 * launch behind it takes that back.
 */
#pragma once

#include "proto/terms.h"
#include "shim/lane.h"
#include "shim/op.h"

/* Not inline: see below. */
void kernels_done_write(const struct op *op);
void kernels_done_forget(const struct op *op);

/* Before the copy of @op, perhaps one back, which has begun. */
static inline void kernels_done_before_copy(const struct op *op) {
	if (terms_are_awaited(atomic_load_explicit(&op->lane->terms, memory_order_relaxed)) &&
	    op_has_launched(op)) {
		kernels_done_write(op);
	}
}

/* Before the launch of @op, a kernel or a graph, which has begun. */
static inline void kernels_done_before_launch(const struct op *op) {
	if (atomic_load_explicit(&op->lane->kernels_done, memory_order_relaxed)) {
		kernels_done_forget(op);
	}
}
