/*
 * transform.c: decides which kernels get a twin, and puts the twin module together.
 */
#include "shim/ptx/transform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/assertion.h"
#include "shim/ptx/emit.h"
#include "shim/ptx/facts.h"
#include "shim/ptx/hazards.h"
#include "shim/ptx/room.h"
#include "shim/ptx/text.h"
#include "shim/ptx/twin.h"
#include "shim/ptx/waits.h"

/* What the driver takes as parameters: 32764 bytes from PTX 8.1 on, 4352 in sum before. */
#define PARAMS_MAX     32764
#define PARAMS_MAX_OLD 4096
/* TWIN_VARS_NAME has to fit into constant memory, beside nothing else. */
#define VARS_MAX 4096
/* A twin is some kilobytes longer than its original; more of them in one module come from nowhere
 * but an attempt to use up memory. */
#define TWINS_MAX	16384
#define INSTRUCTION_MAX 160

/* Following every kernel's calls apart is the one step that is not linear in the text; a module
 * beyond this many steps is refused. */
#define STEPS_MAX (1u << 24)

struct builder {
	struct ptx_module *m; /* owned */
	struct module_facts facts;
	struct transform *t;		 /* owned until done */
	struct twin_kernel *kernels;	 /* t's, writable */
	struct hazards *hazards;	 /* owned: by kernel */
	const struct ptx_func **entries; /* owned: by kernel */
	struct room *rooms;		 /* owned: by kernel */
	uint32_t *slots;       /* owned: by variable, place in TWIN_VARS_NAME or PTX_NONE */
	bool *used;	       /* owned: by variable, declared in the twin module */
	uint32_t *seen;	       /* owned: by function, last kernel that reached it, plus one */
	bool *needed;	       /* owned: by function, some twin calls it */
	uint32_t *stack;       /* owned: room for every function and every call */
	uint32_t *kernel_vars; /* owned: scratch, slots of one kernel's variables */
	uint32_t *var_seen;    /* owned: by variable, last kernel that used it, plus one */
	size_t steps;
	unsigned barrier; /* number at which twins meet; 16: none is free */
	size_t n_twins;
};

static char *copy_name(struct ptx_name n) {
	return strndup(n.s, n.len);
}

/* The instruction on one line, cut to a readable length. */
static char *copy_instruction(const struct ptx_module *m, const struct ptx_stmt *s) {
	const struct ptx_token *a = &m->tokens.list[s->first], *b = &m->tokens.list[s->end - 1];
	const char *from = ptx_token_text(&m->tokens, a), *to = ptx_token_text(&m->tokens, b);
	char out[INSTRUCTION_MAX + sizeof(" ...")]; /* a blank may come on top */
	size_t n = 0;
	bool blank = false;

	for (; from < to + b->len && n < INSTRUCTION_MAX; from++) {
		if ((unsigned char)*from <= ' ') {
			blank = n > 0;
			continue;
		}
		if (blank && *from != ';') {
			out[n++] = ' ';
		}
		blank = false;
		out[n++] = *from;
	}
	out[n] = '\0';
	if (from < to + b->len) {
		memcpy(out + n, "...", 4);
	}
	return strdup(out);
}

static int refuse(struct builder *b, struct twin_kernel *k, const struct refusal *why) {
	k->confinable = false;
	k->reason = why->reason;
	k->line = why->line;
	if (why->stmt != PTX_NONE) {
		k->instruction = copy_instruction(b->m, &b->m->stmts[why->stmt]);
		return k->instruction ? 0 : -ENOMEM;
	}
	return 0;
}

static int refuse_whole(struct builder *b, struct twin_kernel *k, const struct ptx_func *f,
			const char *reason) {
	return refuse(b, k, &(struct refusal){.reason = reason, .stmt = PTX_NONE, .line = f->line});
}

static size_t align_up(size_t n, size_t align) {
	return (n + align - 1) / align * align;
}

/* Where the driver expects each parameter. Return: 0; -ENOMEM; -E2BIG if they are too large. */
static int lay_out_params(struct builder *b, struct twin_kernel *k, const struct ptx_func *f) {
	size_t *offsets = calloc((size_t)f->n_params + 1, sizeof(*offsets));
	size_t at = 0;

	if (!offsets) {
		return -ENOMEM;
	}
	k->param_offsets = offsets;
	k->n_params = f->n_params;
	for (uint32_t i = 0; i < f->n_params; i++) {
		const struct ptx_var *v = &b->m->vars[f->params + i];
		uint64_t size;

		if (__builtin_mul_overflow((uint64_t)ptx_type_bytes(v->type) * v->vector, v->count,
					   &size) ||
		    size > PARAMS_MAX || v->align > PARAMS_MAX || at > PARAMS_MAX) {
			return -E2BIG;
		}
		at = align_up(at, v->align);
		offsets[i] = at;
		at += size;
	}
	k->params_size = at;
	k->arg_offset = align_up(at, _Alignof(struct twin_arg));
	return k->arg_offset + sizeof(struct twin_arg) > PARAMS_MAX ? -E2BIG : 0;
}

static bool has_wide_params(const struct ptx_module *m) {
	return m->version_major > 8 || (m->version_major == 8 && m->version_minor >= 1);
}

static const char *directive_reason(const struct ptx_module *m, const struct ptx_func *f) {
	static const char *const known[] = {".maxntid", ".reqntid",  ".minnctapersm", ".maxnreg",
					    ".pragma",	".noreturn", ".maxnctapersm"};

	for (uint32_t i = f->directives_first; i < f->directives_end; i++) {
		const struct ptx_token *k = &m->tokens.list[i];
		bool ok = k->kind != PTX_TOKEN_WORD;

		for (size_t d = 0; d < sizeof(known) / sizeof(known[0]); d++) {
			ok |= ptx_token_is(&m->tokens, k, known[d]);
		}
		if (!ok) {
			return "it has a directive not known to be safe, such as those of thread "
			       "block "
			       "clusters";
		}
	}
	return NULL;
}

/* Everything that speaks against a twin of @f. */
static int judge(struct builder *b, size_t i) {
	const struct ptx_func *f = b->entries[i];
	const struct facts *facts = &b->facts.funcs[f - b->m->funcs];
	struct twin_kernel *k = &b->kernels[i];
	const char *reason;
	int r;

	k->block_multiple = 1;
	k->waits = facts->has & FACTS_WAITS;
	r = lay_out_params(b, k, f);
	if (r == -ENOMEM) {
		return r;
	}
	if (r == -E2BIG ||
	    (!has_wide_params(b->m) && k->arg_offset + sizeof(struct twin_arg) > PARAMS_MAX_OLD)) {
		return refuse_whole(b, k, f, "its parameters leave no room for the twin's own");
	}
	if (b->facts.refusal.reason) {
		return refuse_whole(b, k, f, b->facts.refusal.reason);
	}
	reason = directive_reason(b->m, f);
	if (reason) {
		return refuse_whole(b, k, f, reason);
	}
	if (facts->refusal.reason) {
		return refuse(b, k, &facts->refusal);
	}
	if (b->facts.const_escapes && (facts->has & FACTS_GENERIC)) {
		return refuse_whole(b, k, f,
				    "it may meet addresses of constants, which differ in a twin");
	}
	if (b->barrier > 15) {
		return refuse_whole(b, k, f, "its module leaves no barrier to its twin");
	}
	r = hazards_judge(&b->hazards[i], &b->facts, f);
	if (r < 0) {
		return r;
	}
	if (b->hazards[i].refusal.reason) {
		return refuse(b, k, &b->hazards[i].refusal);
	}
	k->confinable = true;
	k->block_multiple = b->hazards[i].block_multiple;
	k->uses_barriers = b->hazards[i].vote;
	return 0;
}

/* Notes that kernel @kernel uses module variable @v. Return: 0, -ENOMEM, -E2BIG. */
static int use_var(struct builder *b, size_t kernel, uint32_t v, size_t *n_vars) {
	const struct ptx_var *var = &b->m->vars[v];

	b->used[v] = true;
	if (var->space == PTX_SPACE_SHARED && b->var_seen[v] != kernel + 1) {
		b->var_seen[v] = (uint32_t)kernel + 1;
		room_add_var(&b->rooms[kernel], var);
	}
	if ((var->space != PTX_SPACE_GLOBAL && var->space != PTX_SPACE_CONST) ||
	    facts_is_private(b->m, var) || b->var_seen[v] == kernel + 1) {
		return 0;
	}
	if (b->slots[v] == PTX_NONE) {
		const char **names;

		if (b->t->n_vars == VARS_MAX) {
			return -E2BIG;
		}
		names = reallocarray((void *)b->t->vars, b->t->n_vars + 1, sizeof(*names));
		if (!names) {
			return -ENOMEM;
		}
		b->t->vars = names;
		names[b->t->n_vars] = copy_name(var->name);
		if (!names[b->t->n_vars]) {
			return -ENOMEM;
		}
		b->slots[v] = (uint32_t)b->t->n_vars++;
	}
	b->var_seen[v] = (uint32_t)kernel + 1;
	b->kernel_vars[(*n_vars)++] = b->slots[v];
	return 0;
}

static int use_vars_of(struct builder *b, size_t kernel, const struct ptx_func *f, size_t *n_vars) {
	const struct ptx_module *m = b->m;
	int r = 0;

	for (uint32_t i = 0; i < f->n_stmts && r == 0; i++) {
		const struct ptx_stmt *s = &m->stmts[f->stmts + i];

		b->steps++;
		if (s->kind == PTX_STMT_INSN) {
			room_add_insn(&b->rooms[kernel], m, s);
		}
		for (uint32_t k = 0; s->kind == PTX_STMT_INSN && k < s->n_operands && r == 0; k++) {
			const struct ptx_operand *o = &m->operands[s->operands + k];

			if (o->var != PTX_NONE && !o->base_is_reg && o->kind != PTX_OPERAND_REG) {
				r = use_var(b, kernel, o->var, n_vars);
			}
		}
	}
	return r;
}

/* Everything that kernel @i reaches by calls becomes needed. Return: 0, -ENOMEM, -E2BIG. */
static int follow(struct builder *b, size_t i) {
	const struct ptx_func *f = b->entries[i];
	size_t n = 0, n_vars = 0;
	uint32_t *vars;
	int r = 0;

	b->stack[n++] = (uint32_t)(f - b->m->funcs);
	b->seen[b->stack[0]] = (uint32_t)i + 1;
	while (n > 0 && r == 0) {
		uint32_t at = b->stack[--n];
		const struct facts *facts = &b->facts.funcs[at];

		b->needed[at] = true;
		r = b->steps > STEPS_MAX ? -E2BIG : use_vars_of(b, i, &b->m->funcs[at], &n_vars);
		for (uint32_t c = 0; c < facts->n_calls && r == 0; c++) {
			uint32_t callee = b->facts.calls[facts->calls + c];

			if (b->seen[callee] != i + 1) {
				b->seen[callee] = (uint32_t)i + 1;
				b->stack[n++] = callee;
			}
		}
	}
	if (r < 0 || n_vars == 0) {
		return r;
	}
	vars = reallocarray(NULL, n_vars, sizeof(*vars));
	if (!vars) {
		return -ENOMEM;
	}
	memcpy(vars, b->kernel_vars, n_vars * sizeof(*vars));
	b->kernels[i].vars = vars;
	b->kernels[i].n_vars = n_vars;
	return 0;
}

/* Declarations of the module that twins use and that are no original's memory. */
static void emit_vars(struct builder *b, const struct emit *e) {
	if (b->t->n_vars > 0) {
		text_addf(e->out, ".visible .const .align 8 .u64 " TWIN_VARS_NAME "[%zu];\n",
			  b->t->n_vars);
	}
	for (size_t i = 0; i < b->m->n_items; i++) {
		const struct ptx_item *item = &b->m->items[i];

		for (uint32_t v = item->index;
		     item->kind == PTX_ITEM_VAR && v < item->index + item->n; v++) {
			const struct ptx_var *var = &b->m->vars[v];

			if (b->used[v] &&
			    (var->space == PTX_SPACE_SHARED || facts_is_private(b->m, var))) {
				emit_tokens(e, var->first, var->end);
				text_adds(e->out, "\n");
				break; /* one declaration may have several names */
			}
		}
	}
}

/* What is needed has been followed from the twins. */
static bool asserts(const struct builder *b) {
	for (size_t i = 0; i < b->m->n_funcs; i++) {
		if (b->needed[i] && (b->facts.funcs[i].own_has & FACTS_ASSERTS)) {
			return true;
		}
	}
	return false;
}

static void emit_module(struct builder *b, const struct emit *e) {
	const struct ptx_module *m = b->m;

	text_addf(e->out, ".version %u.%u\n.target %.*s\n.address_size 64\n", m->version_major,
		  m->version_minor, (int)m->target.len, m->target.s);
	emit_vars(b, e);
	for (size_t i = 0; i < m->n_funcs; i++) {
		const struct ptx_func *f = &m->funcs[i];
		bool system = !f->has_body && !f->is_entry && facts_is_system(f->name) &&
			      ptx_module_func(m, f->name) == f;

		if (system || (b->needed[i] && !f->is_entry)) {
			emit_function(e, f, true);
		}
	}
	if (asserts(b)) {
		assertion_emit(e->out);
	}
	for (size_t i = 0; i < m->n_funcs; i++) {
		if (b->needed[i] && !m->funcs[i].is_entry) {
			emit_function(e, &m->funcs[i], false);
		}
	}
	for (size_t i = 0; i < b->t->n_kernels; i++) {
		if (b->kernels[i].confinable) {
			emit_kernel(e, b->entries[i], &b->hazards[i], room_has_slot(&b->rooms[i]));
		}
	}
}

/* Ids that any function reads are given to all that read some: one form of call for a module. */
static int emit_all(struct builder *b) {
	struct text out = {0};
	struct emit e = {.m = b->m, .facts = &b->facts, .slots = b->slots, .out = &out};
	char *ptx;

	e.barrier = b->barrier;
	for (size_t i = 0; i < b->m->n_funcs; i++) {
		e.passed_ids |= b->needed[i] ? b->facts.funcs[i].callee_ids : 0;
	}
	emit_module(b, &e);
	ptx = text_take(&out, &b->t->ptx_size);
	text_deinit(&out);
	b->t->ptx = ptx;
	return ptx ? 0 : -ENOMEM;
}

static int build(struct builder *b) {
	size_t n = b->t->n_kernels;
	bool any = false;
	int r;

	for (size_t i = 0; i < n; i++) {
		r = judge(b, i);
		if (r == 0 && b->kernels[i].confinable) {
			r = b->n_twins++ < TWINS_MAX ? follow(b, i) : -E2BIG;
			if (r == -E2BIG) {
				r = refuse_whole(b, &b->kernels[i], b->entries[i],
						 "its module is too large to be followed");
			}
		}
		if (r < 0) {
			return r;
		}
		any |= b->kernels[i].confinable;
	}
	return any ? emit_all(b) : 0;
}

static int prepare(struct builder *b) {
	const struct ptx_module *m = b->m;
	size_t n = 0;
	int r;

	b->t = calloc(1, sizeof(*b->t));
	b->kernels = calloc(m->n_funcs + 1, sizeof(*b->kernels));
	b->hazards = calloc(m->n_funcs + 1, sizeof(*b->hazards));
	b->entries = calloc(m->n_funcs + 1, sizeof(*b->entries));
	b->rooms = calloc(m->n_funcs + 1, sizeof(*b->rooms));
	b->slots = reallocarray(NULL, m->n_vars + 1, sizeof(*b->slots));
	b->used = calloc(m->n_vars + 1, sizeof(*b->used));
	b->kernel_vars = calloc(m->n_vars + 1, sizeof(*b->kernel_vars));
	b->var_seen = calloc(m->n_vars + 1, sizeof(*b->var_seen));
	b->seen = calloc(m->n_funcs + 1, sizeof(*b->seen));
	b->needed = calloc(m->n_funcs + 1, sizeof(*b->needed));
	b->stack = calloc(m->n_funcs + 1, sizeof(*b->stack));
	if (!b->t || !b->kernels || !b->hazards || !b->entries || !b->rooms || !b->slots ||
	    !b->used || !b->kernel_vars || !b->var_seen || !b->seen || !b->needed || !b->stack) {
		return -ENOMEM;
	}
	b->t->kernels = b->kernels;
	for (size_t i = 0; i < m->n_vars; i++) {
		b->slots[i] = PTX_NONE;
	}
	for (size_t i = 0; i < m->n_funcs; i++) {
		if (m->funcs[i].is_entry && m->funcs[i].has_body) {
			b->entries[n] = &m->funcs[i];
			b->kernels[n].name = copy_name(m->funcs[i].name);
			b->t->n_kernels = ++n;
			if (!b->kernels[n - 1].name) {
				return -ENOMEM;
			}
		}
	}
	r = module_facts_init(&b->facts, m);
	if (r < 0) {
		return r;
	}
	b->barrier = hazards_free_barrier(&b->facts);
	r = waits_find(&b->facts);
	return r < 0 ? r : hazards_judge_functions(&b->facts);
}

static void builder_deinit(struct builder *b) {
	for (size_t i = 0; b->hazards && i < b->m->n_funcs; i++) {
		hazards_deinit(&b->hazards[i]);
	}
	transform_free(b->t);
	if (!b->t) {
		free(b->kernels);
	}
	module_facts_deinit(&b->facts);
	ptx_module_free(b->m);
	free(b->hazards);
	free(b->entries);
	free(b->rooms);
	free(b->slots);
	free(b->used);
	free(b->kernel_vars);
	free(b->var_seen);
	free(b->seen);
	free(b->needed);
	free(b->stack);
}

int transform_new(struct transform **ret, const char *text, size_t size, char *error,
		  size_t error_size) {
	struct builder b = {0};
	int r;

	r = ptx_module_new(&b.m, text, size, error, error_size);
	if (r == 0) {
		r = prepare(&b);
	}
	if (r == 0) {
		r = build(&b);
	}
	if (r == 0) {
		*ret = b.t;
		b.t = NULL;
		b.kernels = NULL;
	}
	builder_deinit(&b);
	return r;
}

struct transform *transform_free(struct transform *t) {
	if (!t) {
		return NULL;
	}
	for (size_t i = 0; i < t->n_kernels; i++) {
		free((void *)t->kernels[i].name);
		free((void *)t->kernels[i].instruction);
		free((void *)t->kernels[i].param_offsets);
		free((void *)t->kernels[i].vars);
	}
	free((void *)t->kernels);
	for (size_t i = 0; i < t->n_vars; i++) {
		free((void *)t->vars[i]);
	}
	free((void *)t->vars);
	free((void *)t->ptx);
	free(t);
	return NULL;
}
