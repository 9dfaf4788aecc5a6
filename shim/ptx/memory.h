/*
 * memory.h: when two threads that read one address see one value.
 *
 * In a program without data races a write that one thread could see and another could not is
 * ordered against the reads of both. So between two threads' weak loads at one place of the text
 * there can be none, if each of them came there from a meeting of both (or from the kernel's start)
 * without a synchronising instruction in between: a write behind the first one's load would have to
 * be before the meeting for the second.
 */
#pragma once

#include "shim/ptx/ptx.h"

enum memory_space {
	MEMORY_SHARED = 1 << 0,
	MEMORY_GLOBAL = 1 << 1,
	MEMORY_ALL = MEMORY_SHARED | MEMORY_GLOBAL,
};

/* The one memory that a weak load reads, by an address that means the same to all threads of a
 * block; 0: not such an instruction. */
unsigned memory_weak_load(const struct ptx_stmt *s);

/* The memories in which @s reads or writes: MEMORY_ALL for generic addresses, 0 for local memory,
 * parameters and constants. Of a load, store or atomic. */
unsigned memory_spaces(const struct ptx_stmt *s);

/* Whether @s looks at what another block may have written meanwhile: a strong load or an atomic. */
bool memory_polls(const struct ptx_stmt *s);

/* A fence: the compiler does not keep over it what was loaded before. */
bool memory_fences(const struct ptx_stmt *s);

/* The memories (enum memory_space) in which threads may see different values behind @s: those it
 * writes, or all if it synchronises with somebody. Meetings of a whole warp or block are the
 * caller's business. */
unsigned memory_unsettled(const struct ptx_stmt *s);
