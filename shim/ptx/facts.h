/*
 * facts.h: what each function of a module does that matters to a twin: by itself first, then with
 * everything that it calls.
 */
#pragma once

#include "shim/ptx/ptx.h"

/* Which of the virtual block's numbers are read. */
enum facts_id {
	FACTS_CTAID_X = 1 << 0,
	FACTS_CTAID_Y = 1 << 1,
	FACTS_CTAID_Z = 1 << 2,
	FACTS_NCTAID_X = 1 << 3,
	FACTS_NCTAID_Y = 1 << 4,
	FACTS_NCTAID_Z = 1 << 5,
	_FACTS_ID_N = 6,
	FACTS_CTAID = FACTS_CTAID_X | FACTS_CTAID_Y | FACTS_CTAID_Z,
};

/* What it contains. */
enum facts_has {
	FACTS_BARRIER = 1 << 0,		/* of the whole block */
	FACTS_BARRIER_RESULT = 1 << 1,	/* bar.red */
	FACTS_BARRIER_COUNTED = 1 << 2, /* with a number of threads */
	FACTS_WARP = 1 << 3,		/* waits for other threads of the warp */
	FACTS_ASYNC = 1 << 4,		/* cp.async */
	FACTS_GENERIC = 1 << 5,		/* reads memory by generic addresses */
	FACTS_POLLS = 1 << 6,		/* looks at what other blocks may write meanwhile */
	FACTS_ASSERTS = 1 << 8,		/* calls __assertfail */
	FACTS_WAITS = 1 << 7,		/* has a loop that waits for that: see waits.h */
};

struct refusal {
	const char *reason; /* NULL: none. A constant. */
	uint32_t stmt;	    /* PTX_NONE: no single instruction */
	uint32_t line;
};

struct facts {
	uint32_t own_ids, callee_ids; /* enum facts_id: read here, read by callees */
	uint32_t own_has, has;	      /* enum facts_has; `has` counts callees too */
	uint32_t named_barriers;      /* bit per barrier number used with a count, callees too */
	struct refusal refusal;	      /* callees too */
	uint32_t calls, n_calls;      /* in module_facts.calls: indices of functions with a body */
};

struct module_facts {
	const struct ptx_module *m; /* borrowed */
	struct facts *funcs;	    /* owned; as m->funcs; only those with a body are filled in */
	uint32_t *calls;	    /* owned */
	size_t n_calls;
	bool const_escapes;	/* addresses of constants may be found in memory, as generic ones */
	struct refusal refusal; /* of every kernel of the module */
};

/* Return: 0, -ENOMEM. */
int module_facts_init(struct module_facts *f, const struct ptx_module *m);
void module_facts_deinit(struct module_facts *f);

/* Lets callers know what has been found out about functions since. Return: 0, -ENOMEM. */
int module_facts_propagate(struct module_facts *f);

/* The function that a call names: the operand after the list of results. */
const struct ptx_operand *facts_call_target(const struct ptx_module *m, const struct ptx_stmt *s);

/* Functions of the driver's own library that a twin may call like any other kernel. */
bool facts_is_system(struct ptx_name name);

/* String literals and tables that the compiler made: nobody can write to them or tell one copy from
 * another, so a twin may have its own. */
bool facts_is_private(const struct ptx_module *m, const struct ptx_var *v);

/* Block ids that a function reads, by itself or by callees. */
static inline uint32_t facts_ids(const struct facts *f) {
	return f->own_ids | f->callee_ids;
}

/* Whether operand @o names a variable of the module (.global, .const) rather than of a function. */
bool facts_is_module_var(const struct ptx_module *m, const struct ptx_operand *o);
