/*
 * emit.h: writes the twin of a kernel, and the functions that twins call, as PTX.
 *
 * Everything here has been found safe before; nothing is decided any more.
 */
#pragma once

#include "shim/ptx/facts.h"
#include "shim/ptx/text.h"

struct hazards;

struct emit {
	const struct ptx_module *m;	  /* borrowed */
	const struct module_facts *facts; /* borrowed */
	const uint32_t *slots; /* borrowed: by index in m->vars, place in TWIN_VARS_NAME */
	uint32_t passed_ids;   /* enum facts_id: what functions that read any are given */
	unsigned barrier;      /* number of the barrier at which twins meet */
	struct text *out;      /* borrowed */
};

/* The twin of entry @f, of which @h was found. @shared_slot: see room.h. */
void emit_kernel(const struct emit *e, const struct ptx_func *f, const struct hazards *h,
		 bool shared_slot);

/* A function that twins call. @prototype: its declaration only. */
void emit_function(const struct emit *e, const struct ptx_func *f, bool prototype);

/* Tokens [@first, @end) as they stand in the text. */
void emit_tokens(const struct emit *e, uint32_t first, uint32_t end);
