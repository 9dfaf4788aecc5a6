/*
 * worker.h: the part of a twin that is the same for every kernel: arriving, claiming virtual
 * blocks, leaving. Layouts are those of twin.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/ptx/text.h"

struct worker {
	uint32_t ids;	  /* enum facts_id: which registers %sbeet_id<n> the body reads */
	unsigned barrier; /* number of the barrier at which the block meets */
	bool vote;	  /* meeting means voting that no thread runs any more */
	bool apart;	  /* while others of a warp may vote at a barrier of the body */
	bool roll;	  /* the roll of warps is called: rollcall.h */
	bool asserts;	  /* worker_emit_ids() is used */
	bool shared_slot; /* the slot lies in shared memory, else behind the control block */
	bool drain;	  /* asynchronous copies may be under way at the end of a block */
};

/* Declarations, and everything up to the first instruction of the body. */
void worker_emit_begin(const struct worker *w, struct text *out);

/* The label to which a thread goes when its virtual block ends for it, and what follows. */
void worker_emit_end(const struct worker *w, struct text *out);

/* Within the body: the virtual block's x, y and z to %sbeet_r0, 1 and 2. */
void worker_emit_ids(const struct worker *w, struct text *out);

#define WORKER_END_LABEL "$sbeet_end"
