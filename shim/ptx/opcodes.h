/*
 * opcodes.h: what the rewriter knows of each PTX instruction and special register. What is not
 * known is refused: a new instruction is harmless only once somebody has looked at it.
 */
#pragma once

#include "shim/ptx/ptx.h"

enum opcode_class {
	OPCODE_UNKNOWN,
	OPCODE_REFUSED, /* `reason` says why */
	OPCODE_PLAIN,	/* computes registers from registers; nobody else sees anything */
	OPCODE_LOAD,	/* first operand from memory */
	OPCODE_STORE,	/* memory only: st, red, prefetch... */
	OPCODE_ATOMIC,	/* both */
	OPCODE_OTHER,	/* touches neither block ids nor other threads: fences, timers, trap */
	OPCODE_ASYNC,	/* starts copies that go on after it: cp.async */
	OPCODE_BRANCH,	/* bra, brx.idx */
	OPCODE_CALL,
	OPCODE_RETURN, /* ret */
	OPCODE_EXIT,
	OPCODE_BARRIER,	    /* bar and barrier of the block, all forms but .arrive */
	OPCODE_WARP,	    /* waits for the other threads of a member mask */
	OPCODE_OTHER_GRIDS, /* waits for grids or lets them start: left out of twins (hazards.h) */
	OPCODE_ALIGNED, /* the whole warp must run it together: a thread of it that had ended would
			 * be an error in the original already */
};

struct opcode {
	const char *prefix; /* whole dotted parts: "cp.async" is "cp.async.ca..." too */
	enum opcode_class class;
	const char *reason; /* REFUSED */
	unsigned n_results; /* leading operands that are written; 0 or 1 */
};

/* Never NULL: what is not in the table is OPCODE_UNKNOWN, with a reason. */
const struct opcode *opcode_find(struct ptx_name opcode);

enum special_kind {
	SPECIAL_UNKNOWN,
	SPECIAL_REFUSED,
	SPECIAL_PLAIN,
	SPECIAL_CTAID,	/* block id */
	SPECIAL_NCTAID, /* grid size */
};

struct special {
	const char *name; /* without .x, .y, .z */
	enum special_kind kind;
	const char *reason; /* REFUSED, UNKNOWN */
};

/* Of a register that no declaration names. Never NULL. */
const struct special *special_find(struct ptx_name name);

/* 0, 1, 2 of "%ctaid.x", ".y", ".z"; 3 for anything else. */
unsigned special_axis(struct ptx_name name);
