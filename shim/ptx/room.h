/*
 * room.h: whether a twin may have its slot (worker.c) in shared memory.
 *
 * There it is read and written faster, and needs fewer registers, than behind the control block.
 * But a twin must take no more of an SM than its original: no launch may fail, no fewer blocks fit,
 * and the SM must not have to be divided anew between shared memory and L1, for which a block waits
 * until the SM is empty. So only where all of a kernel's shared memory is known from its text, and
 * the slot fits into what the GPU adds to it to fill up a unit of allocation.
 */
#pragma once

#include "shim/ptx/ptx.h"

/* Of a kernel, callees included. All 0 at the start. */
struct room {
	uint64_t bytes; /* of its variables */
	uint32_t align; /* the largest of theirs */
	uint32_t n;
	bool unknown; /* their size is another with each launch, or the kernel asks for it */
};

/* A variable in shared memory; once. */
void room_add_var(struct room *r, const struct ptx_var *v);

void room_add_insn(struct room *r, const struct ptx_module *m, const struct ptx_stmt *s);

bool room_has_slot(const struct room *r);
