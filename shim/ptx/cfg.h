/*
 * cfg.h: the control flow of one function: basic blocks, who follows whom, which branches decide
 * whether a block runs.
 */
#pragma once

#include "shim/ptx/facts.h"

/* Something that others wait for; always the last instruction of its block. */
enum cfg_event {
	CFG_NONE,
	CFG_BARRIER,	     /* of the whole block */
	CFG_BARRIER_COUNTED, /* of a number of threads */
	CFG_WARP,
	CFG_CALL, /* of a function that contains one of these */
};

struct cfg_block {
	uint32_t first, end;	 /* statements of the module */
	uint32_t edges, n_edges; /* in cfg.edges: the blocks that may follow */
	uint32_t last; /* the branch, return or event at its end; PTX_NONE: it just goes on */
	enum cfg_event event;
};

struct cfg {
	struct cfg_block *blocks; /* owned; the first one is where the function starts */
	uint32_t n_blocks;	  /* also the number of the end, which is no block */
	uint32_t *edges;	  /* owned */
	size_t n_edges;
	/* Of block b, controlled[control[b] .. control[b + 1]]: the blocks that run or not as its
	 * branch decides. Owned. NULL if the graph is too entangled to tell. */
	uint32_t *control, *controlled;
};

/*
 * Of a function with a body. Labels that are declared more than once (in different braces) are
 * taken to be any of them, branches to nowhere to end the function: more ways than there are, never
 * fewer. Return: 0; -E2BIG for a function with far more ways than instructions; -ENOMEM. Time and
 * memory linear in the function, whatever it is.
 */
int cfg_init(struct cfg *c, const struct module_facts *facts, const struct ptx_func *f);
void cfg_deinit(struct cfg *c);

/* Marks in @ret from where a block of @targets (or the end, if that is marked) can be reached, the
 * block itself included, without running a block of @barred (NULL: none) before. All have n_blocks
 * + 1 entries. Return: 0, -ENOMEM. */
int cfg_reach(const struct cfg *c, const bool *targets, const bool *barred, bool *ret);

/* Marks in @ret (n_blocks + 1 entries) from where the end can be reached without running a block
 * that is marked in @barred. Return: 0, -ENOMEM. */
int cfg_reach_end(const struct cfg *c, const bool *barred, bool *ret);
