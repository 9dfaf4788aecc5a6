/*
 * ahead.h: threads that interpret blocks before their time, so that simgpud uses more than one
 * core.
 *
 * Only blocks of kernels that are independent (interp.h) are given to it: no such block can notice
 * how far any other is, so it may be ahead of the device model's time by some slices. What a slice
 * did is kept until the model comes to it. Slices are cut at the same instructions whoever runs
 * them, so times, placements and results are the same for every number of threads, seed for seed.
 * Blocks of all other kernels, twins among them, are run by the loop alone, in the model's order.
 *
 * The loop's thread is the only one that changes anything else than blocks' memory; before it takes
 * away what a block may be looking at, it stops the others (ahead_pause).
 */
#pragma once

#include "tests/simgpu/interp.h"

/* Slices that a block may be ahead. */
#define AHEAD_SLICES 32

struct ahead;

struct ahead_slice {
	enum interp_result result;
	uint64_t cycles;
};

/* A block that is given to the pool; its holder embeds it. */
struct ahead_block {
	struct interp_block *interp; /* borrowed */
	/* -------- */
	struct ahead_block *next,
		**link;	   /* among those that wait for a thread; link NULL: not there */
	bool busy;	   /* some thread runs it */
	bool ended;	   /* its last slice is done */
	unsigned first, n; /* in slices */
	struct ahead_slice slices[AHEAD_SLICES];
};

/* @threads: besides the caller's; 0: the pool never does anything. Return: 0 or negative errno. */
int ahead_new(struct ahead **ret, unsigned threads, uint64_t slice_instructions);
struct ahead *ahead_free(struct ahead *a); /* no blocks left */

void ahead_add(struct ahead *a, struct ahead_block *b);
/* Waits until no thread looks at the block. */
void ahead_remove(struct ahead *a, struct ahead_block *b);
/* The next slice of the block: from what is there, or by running it here and now. */
struct ahead_slice ahead_take(struct ahead *a, struct ahead_block *b);

/* Between these two no other thread runs a block. Pairs may be nested. */
void ahead_pause(struct ahead *a);
void ahead_resume(struct ahead *a);
