/*
 * memory.c: see memory.h. What is not known to be harmless counts as synchronising.
 */
#include "shim/ptx/memory.h"

#include "shim/ptx/opcodes.h"

/* A part of an opcode that is @name, or begins with it and "::". */
static bool is_space(struct ptx_name part, const char *name) {
	for (uint32_t i = 0; i + 1 < part.len; i++) {
		if (part.s[i] == ':' && part.s[i + 1] == ':') {
			part.len = i;
		}
	}
	return ptx_name_is(part, name);
}

/* The memories that the opcode names: MEMORY_ALL for generic addresses. */
static unsigned spaces(struct ptx_name opcode) {
	ptx_opcode_next(&opcode);
	while (opcode.len > 0) {
		struct ptx_name part = ptx_opcode_next(&opcode);

		if (is_space(part, "shared")) {
			return MEMORY_SHARED;
		}
		if (is_space(part, "global")) {
			return MEMORY_GLOBAL;
		}
		if (is_space(part, "local") || is_space(part, "param") || is_space(part, "const")) {
			return 0;
		}
	}
	return MEMORY_ALL;
}

static bool is_strong(struct ptx_name opcode) {
	static const char *const strong[] = {"volatile", "relaxed", "acquire", "mmio"};

	for (size_t i = 0; i < sizeof(strong) / sizeof(strong[0]); i++) {
		if (ptx_opcode_has(opcode, strong[i])) {
			return true;
		}
	}
	return false;
}

unsigned memory_spaces(const struct ptx_stmt *s) {
	return spaces(s->opcode);
}

bool memory_polls(const struct ptx_stmt *s) {
	return (s->op->class == OPCODE_ATOMIC ||
		(s->op->class == OPCODE_LOAD && is_strong(s->opcode))) &&
	       (spaces(s->opcode) & MEMORY_GLOBAL);
}

bool memory_fences(const struct ptx_stmt *s) {
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);

	return ptx_name_is(first, "fence") || ptx_name_is(first, "membar");
}

unsigned memory_weak_load(const struct ptx_stmt *s) {
	unsigned space = spaces(s->opcode);

	return ptx_name_is(ptx_opcode_part(s->opcode, 0), "ld") && !is_strong(s->opcode) &&
			       space != MEMORY_ALL
		       ? space
		       : 0;
}

unsigned memory_unsettled(const struct ptx_stmt *s) {
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);

	switch (s->op->class) {
	case OPCODE_PLAIN:
	case OPCODE_BRANCH:
	case OPCODE_RETURN:
	case OPCODE_EXIT:
		return 0;
	case OPCODE_LOAD:
		return is_strong(s->opcode) ? MEMORY_ALL : 0;
	case OPCODE_STORE: /* the strong ones publish, but see nothing */
		return ptx_name_is(first, "prefetch") || ptx_name_is(first, "prefetchu")
			       ? 0
			       : spaces(s->opcode);
	case OPCODE_OTHER:
		return ptx_name_is(first, "activemask") || ptx_name_is(first, "nanosleep") ||
				       ptx_name_is(first, "pmevent") ||
				       ptx_name_is(first, "trap") || ptx_name_is(first, "brkpt")
			       ? 0
			       : MEMORY_ALL;
	case OPCODE_ASYNC:
		return MEMORY_SHARED;
	case OPCODE_OTHER_GRIDS:
		return ptx_opcode_has(s->opcode, "wait") ? MEMORY_ALL : 0;
	case OPCODE_ALIGNED:
		return ptx_name_is(first, "stmatrix") || ptx_opcode_has(s->opcode, "store")
			       ? MEMORY_ALL
			       : 0;
	default:
		return MEMORY_ALL;
	}
}
