/*
 * uniform.h: which branches all threads of a block, or of a warp, take the same way.
 *
 * A register is uniform if all its values come from uniform ones, computed where control is
 * uniform; control is uniform where no branch on anything else decides whether it gets there. Both
 * are found together, starting from "everything is", until nothing more has to be taken back.
 */
#pragma once

#include "shim/ptx/cfg.h"
#include "shim/ptx/quiet.h"

enum uniform_scope {
	UNIFORM_BLOCK,
	UNIFORM_BLOCK_MEMORY, /* a block, if its program has no data races: see memory.h */
	UNIFORM_WARP,
	UNIFORM_WARP_ROWS, /* a warp, if the block's x size is a multiple of 32 */
};

struct uniform {
	bool *diverged; /* owned: by block of the graph, threads of one scope may not all run it */
	bool *parted;	/* owned: by block, they may not all take the same way at its end */
};

/*
 * @leavers: NULL, or by block (enum leavers of leavers.h) where some leave for good: what is found
 * is then true of those that stay. @quiet: variables that all threads see alike (quiet.h), or NULL.
 * Return: 0, -ENOMEM.
 */
int uniform_init(struct uniform *u, const struct cfg *c, const struct ptx_module *m,
		 const struct ptx_func *f, enum uniform_scope scope, const uint8_t *leavers,
		 const struct quiet *quiet);
void uniform_deinit(struct uniform *u);
