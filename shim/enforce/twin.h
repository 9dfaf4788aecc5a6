/*
 * twin.h: the twin of one kernel on GPUs of one compute capability, as launches need it.
 *
 * (shim/ptx/twin.h says what a twin is and what is passed to it.)
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/real.h"

#include "shim/enforce/build.h"
#include "shim/enforce/context.h"
#include "shim/launch.h"

/* Launch shapes of one kernel whose occupancy is remembered. Most kernels have one or two. */
#define TWIN_SHAPES 8

struct twin {
	struct build *build;		/* borrowed, outlives us */
	const struct twin_kernel *info; /* borrowed from build->image; NULL: not in its PTX */
	CUfunction handle;		/* NULL: it can't be confined, and why is in refusal */
	char *refusal;			/* owned, or NULL */
	_Atomic(uint64_t) shapes[TWIN_SHAPES];
	_Atomic(uint32_t) age; /* of what shapes may say */
};

/* @t is all zero before. @name as the program asks for the kernel. */
void twin_init(struct twin *t, struct build *b, const char *name);
void twin_deinit(struct twin *t);

/* May it be launched in @c, the current context, as @l says? Shape and parameters are checked, and
 * variables are seen to. */
bool twin_allows(struct twin *t, struct context *c, const struct launch *l);

/*
 * How many of the launch's blocks fit on one SM. Asks the driver once for each shape, then takes no
 * lock. 0: none does, or the shape is one that no launch can have. For @c, the current context.
 */
unsigned twin_occupancy(struct twin *t, const struct context *c, const struct launch *l);

/* After a change of attributes: occupancy is asked for again. */
void twin_forget_shapes(struct twin *t);
