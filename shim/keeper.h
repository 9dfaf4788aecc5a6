/*
 * keeper.h: copies to GPUs that are under way, as other programs of the user see them: their
 * deadlines on the board (proto/board.h), and the gates that let the pieces of our own ones wait
 * for copies that are due earlier.
 *
 * And the gate of kernels of our own jobs, where our terms say that we yield: closed while somebody
 * who is awaited has a job open that is due earlier than ours. Where we are awaited ourselves it
 * tells others when our job needs the SMs no more (kernels-done.h).
 *
 * A gate is a word in pinned memory of a context, 1 while it is open. While copies are under way,
 * or jobs that yield, a thread looks at board and gate; it calls no driver function, which would
 * hold up threads that launch. Otherwise it sleeps, gates are open, and the board says nothing of
 * us. No lock is taken here but where the words of a context are made.
 *
 * Nobody can hang by it: a gate is open again after BOARD_HOLD_MAX_NS, that of kernels after
 * BOARD_YIELD_MAX_NS, and for good when the terms lapse, the context goes or the process exits. The
 * thread may be without a CPU for milliseconds: then the tracker opens the gates that it has
 * closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/board.h"
#include "proto/units.h"

/* Whether others copy to @gpu now. */
bool keeper_others_copy(unsigned gpu);

/* Parts of a copy begin at a multiple of this from its begin. */
#define KEEPER_PAGE_BYTES ((size_t)4096)

/* A copy that is about to be handed to the driver. */
struct keeper_copy {
	unsigned gpu;	   /* its place in the page of terms */
	uint64_t due;	   /* when it must be done, CLOCK_MONOTONIC; or BOARD_NO_DUE */
	uint64_t late_due; /* the same once it has waited for so long that it can't be; >= due */
	size_t bytes;
	size_t piece; /* of these at most; counts if it is held */
	bool held;    /* its pieces wait for the gate */

	/* set by keeper_begin() */
	CUdeviceptr gate; /* 4 bytes: pieces wait until they are at least 1 */
	CUdeviceptr done; /* 4 bytes: where @done_value is to be written behind the copy */
	size_t tail;	  /* if it is held: of its bytes, so many are to follow behind that */
	uint32_t done_value;
	_Atomic uint32_t *done_word; /* the same, for us */
	bool called;		     /* the keeper knows of it, and the gate is closed */
};

/* From now on it is under way, in @context, which is current. Return: false if that can't be
 * followed (no memory, too many at a time): then it goes as it is. Else keeper_handed_over() or
 * keeper_cancel() must follow. */
bool keeper_begin(CUcontext context, struct keeper_copy *copy);

/* The driver has it, and the word behind it. */
void keeper_handed_over(const struct keeper_copy *copy);

/* Nothing will be written behind it. */
void keeper_cancel(const struct keeper_copy *copy);

/* A gate of kernels of our job on @device, which yields, in @context, which is current: 4 bytes
 * that are at least 1 while kernels may begin. @gpu: the place of @device in the page of terms.
 * @takes: how long what is behind the gate runs; 0: that is not known. What runs about as long has
 * the same gate. Return: 0 if there is none. It is looked after as long as we have such jobs. */
CUdeviceptr keeper_gate(CUcontext context, CUdevice device, unsigned gpu, nsec_t takes);

/* A word that a stream writes behind the kernels of our job, which is awaited. */
struct keeper_word {
	CUdeviceptr at; /* 4 bytes */
	uint32_t value;
	uint32_t job; /* see seat_only_job() */
};

/* Return: whether it can be told when the kernels of the one job that is open on @device are done,
 * in @context, which is current. @ret is to be written behind them. */
bool keeper_kernels_end(CUcontext context, CUdevice device, struct keeper_word *ret);

/* The driver has @word: the keeper sees when it is written, and says so on the board. */
void keeper_kernels_watch(CUcontext context, const struct keeper_word *word);

/* The job has more kernels: they are not done, whatever is written. */
void keeper_kernels_go_on(CUcontext context, CUdevice device);

/* By the tracker: opens gates that the keeper can't look after. Return: when to call again, as long
 * as a gate is closed; UINT64_MAX: none is. */
nsec_t keeper_watch(nsec_t now);

/* Called before the driver's own function. */
void keeper_context_destroying(CUcontext context);

/* The process exits: all gates are open for good, and our slot is empty. */
void keeper_leave(void);

/* After fork, in the child: forget everything. */
void keeper_after_fork(void);
