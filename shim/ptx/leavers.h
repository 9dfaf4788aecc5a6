/*
 * leavers.h: lanes that end one by one while others of their warp still wait for each other.
 *
 * On the GPU an instruction that waits for the lanes of a mask goes on without those that have
 * exited. A twin's lanes never exit; but where all lanes of a warp that are left come to a branch
 * together, they can count who leaves by it (vote.sync.ballot), and take the leavers out of the
 * masks that follow. A branch lets lanes leave if nobody who takes it will ever wait for his warp
 * again; so of the branches of a kernel, those that lead to its end are no partings of the warp,
 * only its shrinking.
 *
 * Values that the remaining lanes ask of those that left (shfl of a lane that has exited) are
 * undefined on the GPU too.
 */
#pragma once

#include "shim/ptx/cfg.h"

/* What a block's branch means to a warp. */
enum leavers {
	LEAVERS_NONE,
	LEAVERS_JUMP,  /* those who take it leave */
	LEAVERS_GO_ON, /* those who don't */
};

/* A branch at which the lanes that stay are counted. */
struct leave {
	uint32_t stmt;
	bool stay_negated; /* those stay for whom the guard's register is false */
};

/*
 * Tells in @ret (enum leavers, n_blocks + 1 entries) at which branches lanes may leave. @meets:
 * where lanes wait for their warp, n_blocks + 1 entries too. Return: 0, -ENOMEM.
 */
int leavers_find(const struct cfg *c, const struct ptx_module *m, const bool *meets, uint8_t *ret);

/*
 * Marks in @ret the instructions (by block) that wait for no lane that could have left: their mask
 * is that of an activemask, or of a match.any, which each lane runs once before it comes here once. @votes: blocks at
 * whose end lanes are counted, NULL for none. Return: 0, -ENOMEM.
 */
int leavers_find_own_masks(const struct cfg *c, const struct ptx_module *m,
			   const struct ptx_func *f, const bool *votes, bool *ret);
