/*
 * interp-decode.c: a parsed module to functions, variables, frames and instructions.
 *
 * In four steps: declare everything (so that order in the text does not matter), find out which
 * kernels reach which shared variables and place these, decode instructions, and pass on to every
 * kernel what a function it reaches lacks.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define VAR_SIZE_MAX ((uint64_t)1 << 40)

static uint64_t align_up(uint64_t v, uint64_t align) {
	return align > 1 ? (v + align - 1) / align * align : v;
}

static char *name_dup(struct ptx_name n) {
	return strndup(n.s, n.len);
}

/* Bytes; 0 for `x[]`; UINT64_MAX if it is absurd. */
static uint64_t var_size(const struct ptx_var *v) {
	uint64_t size = (uint64_t)ptx_type_bytes(v->type) * (v->vector ? v->vector : 1), total;

	if (__builtin_mul_overflow(size, v->count, &total) || total > VAR_SIZE_MAX) {
		return UINT64_MAX;
	}
	return total;
}

static uint64_t var_align(const struct ptx_var *v) {
	uint64_t size = (uint64_t)ptx_type_bytes(v->type) * (v->vector ? v->vector : 1);

	return v->align ? v->align : size ? size : 1;
}

/* A module-scope (or static) variable of device memory. */
static int declare_global(struct decoder *d, const struct ptx_var *v, struct symbols *to,
			  uint32_t scope) {
	struct interp_module *m = d->m;
	struct module_var *var, *vars;
	struct symbol s = {.name = v->name, .scope = scope, .kind = SYMBOL_VAR};

	if (v->is_extern || v->space == PTX_SPACE_TEX) {
		return 0; /* its users will find no such name and say so */
	}
	if (var_size(v) == UINT64_MAX) {
		return -E2BIG;
	}
	vars = realloc(m->vars, (m->n_vars + 1) * sizeof(*vars));
	if (!vars) {
		return -ENOMEM;
	}
	m->vars = vars;
	var = &m->vars[m->n_vars];
	*var = (struct module_var){.ptx = v, .size = var_size(v), .align = var_align(v)};
	var->name = name_dup(v->name);
	if (!var->name) {
		return -ENOMEM;
	}
	s.value = (uint32_t)m->n_vars++;
	s.size = var->size;
	return symbols_add(to, &s);
}

static int declare_shared(struct decoder *d, const struct ptx_var *v, struct symbols *to,
			  uint32_t scope) {
	struct symbol s = {.name = v->name, .scope = scope, .kind = SYMBOL_SHARED};
	struct shared_var *var;
	int r;

	if (var_size(v) == UINT64_MAX) {
		return -E2BIG;
	}
	r = decode_grow(&d->shared, d->n_shared, &d->cap_shared, sizeof(*d->shared));
	if (r < 0) {
		return r;
	}
	var = &d->shared[d->n_shared];
	*var = (struct shared_var){.ptx = v,
				   .size = var_size(v),
				   .align = var_align(v),
				   .dynamic = v->is_extern || v->count == 0};
	s.value = (uint32_t)d->n_shared++;
	s.size = var->size;
	var->users = calloc(d->m->ptx->n_funcs + 1, 1);
	if (!var->users) {
		return -ENOMEM;
	}
	return symbols_add(to, &s);
}

static int declare_items(struct decoder *d) {
	const struct ptx_module *ptx = d->m->ptx;
	int r = 0;

	for (size_t i = 0; i < ptx->n_items && r == 0; i++) {
		const struct ptx_item *item = &ptx->items[i];

		for (uint32_t k = 0; item->kind == PTX_ITEM_VAR && k < item->n && r == 0; k++) {
			const struct ptx_var *v = &ptx->vars[item->index + k];

			r = v->space == PTX_SPACE_SHARED ? declare_shared(d, v, &d->globals, 0)
							 : declare_global(d, v, &d->globals, 0);
		}
	}
	return r;
}

/* Every function once, whether it is declared, defined or both. */
static int declare_functions(struct decoder *d) {
	struct interp_module *m = d->m;
	const struct ptx_module *ptx = m->ptx;
	int r;

	m->funcs = calloc(ptx->n_funcs + 1, sizeof(*m->funcs));
	m->entries = calloc(ptx->n_funcs + 1, sizeof(*m->entries));
	d->functions = calloc(ptx->n_funcs + 1, sizeof(*d->functions));
	if (!m->funcs || !m->entries || !d->functions) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < ptx->n_funcs; i++) {
		const struct ptx_func *f = &ptx->funcs[i];
		struct symbol s = {
			.name = f->name, .kind = SYMBOL_FUNC, .value = (uint32_t)m->n_funcs};
		struct interp_kernel *k = &m->funcs[m->n_funcs];

		if (symbols_find(&d->globals, f->name, 0) >= 0) {
			continue;
		}
		f = ptx_module_func(ptx, f->name);
		*k = (struct interp_kernel){
			.module = m, .ptx = f, .is_entry = f->is_entry, .defined = f->has_body};
		k->name = name_dup(f->name);
		if (!k->name) {
			return -ENOMEM;
		}
		if (k->is_entry && k->defined) {
			m->entries[m->n_entries++] = s.value;
		}
		m->n_funcs++;
		r = symbols_add(&d->globals, &s);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* Parameters of an entry: offsets in the buffer that a launch passes. */
static int declare_entry_params(struct decoder *d, struct interp_kernel *k, struct function *f) {
	const struct ptx_func *ptx = k->ptx;
	uint64_t at = 0;
	int r;

	k->param_offsets = calloc(ptx->n_params + 1u, sizeof(*k->param_offsets));
	k->param_sizes = calloc(ptx->n_params + 1u, sizeof(*k->param_sizes));
	if (!k->param_offsets || !k->param_sizes) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < ptx->n_params; i++) {
		const struct ptx_var *v = &d->m->ptx->vars[ptx->params + i];
		struct symbol s = {
			.name = v->name, .kind = SYMBOL_ENTRY_PARAM, .size = var_size(v)};

		at = align_up(at, var_align(v));
		if (s.size > INTERP_WINDOW_SIZE || at + s.size > INTERP_WINDOW_SIZE) {
			return -E2BIG;
		}
		s.value = (uint32_t)at;
		k->param_offsets[i] = at;
		k->param_sizes[i] = s.size;
		at += s.size;
		r = symbols_add(&f->symbols, &s);
		if (r < 0) {
			return r;
		}
	}
	k->n_params = ptx->n_params;
	k->params_size = at;
	return 0;
}

static int declare_local(const struct ptx_var *v, struct function *f, uint32_t scope) {
	struct symbol s = {
		.name = v->name, .scope = scope, .kind = SYMBOL_LOCAL, .size = var_size(v)};
	uint64_t at = align_up(f->local, var_align(v));

	if (s.size > INTERP_WINDOW_SIZE || at + s.size > INTERP_WINDOW_SIZE) {
		return -E2BIG;
	}
	s.value = (uint32_t)at;
	f->local = (uint32_t)(at + s.size);
	return symbols_add(&f->symbols, &s);
}

static int declare_reg(struct interp_kernel *k, const struct ptx_var *v, struct function *f,
		       uint32_t scope) {
	uint32_t n = v->reg_range ? v->reg_range : 1;
	bool is_pred = v->type == PTX_TYPE_PRED;
	struct symbol s = {.name = v->name,
			   .scope = scope,
			   .kind = is_pred ? SYMBOL_PRED : SYMBOL_REG,
			   .value = is_pred ? k->preds : k->slots,
			   .range = v->reg_range,
			   .size = ptx_type_bytes(v->type)};

	if (n > WARP_SLOTS_MAX || k->slots + k->preds + n > WARP_SLOTS_MAX) {
		return -E2BIG;
	}
	if (is_pred) {
		k->preds += n;
	} else {
		k->slots += n;
	}
	return symbols_add(&f->symbols, &s);
}

/* A formal of a .func stands in the first bytes of its local memory, a register's value too. */
static int declare_formal(struct decoder *d, struct interp_kernel *k, struct function *f,
			  const struct ptx_var *v, struct formal *ret_formal,
			  struct reg_formal *regs, size_t *n_regs) {
	uint64_t size = var_size(v), at = align_up(f->local, var_align(v));

	if (v->type == PTX_TYPE_PRED || size > INTERP_WINDOW_SIZE) {
		return -ENOTSUP;
	}
	*ret_formal = (struct formal){.offset = (uint32_t)at, .size = (uint32_t)size};
	if (v->space != PTX_SPACE_REG) {
		return declare_local(v, f, 0);
	}
	f->local = (uint32_t)(at + size);
	regs[(*n_regs)++] =
		(struct reg_formal){.slot = k->slots, .offset = (uint32_t)at, .type = v->type};
	return declare_reg(k, v, f, 0);
}

static int declare_formals(struct decoder *d, struct interp_kernel *k, struct function *f) {
	const struct ptx_func *ptx = k->ptx;
	int r = 0;

	k->formals = calloc(ptx->n_rets + ptx->n_params + 1u, sizeof(*k->formals));
	f->reg_rets = calloc(ptx->n_rets + 1u, sizeof(*f->reg_rets));
	f->reg_params = calloc(ptx->n_params + 1u, sizeof(*f->reg_params));
	if (!k->formals || !f->reg_rets || !f->reg_params) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < ptx->n_rets && r == 0; i++) {
		r = declare_formal(d, k, f, &d->m->ptx->vars[ptx->rets + i], &k->formals[i],
				   f->reg_rets, &f->n_reg_rets);
	}
	for (uint32_t i = 0; i < ptx->n_params && r == 0; i++) {
		r = declare_formal(d, k, f, &d->m->ptx->vars[ptx->params + i],
				   &k->formals[ptx->n_rets + i], f->reg_params, &f->n_reg_params);
	}
	return r;
}

static int declare_var(struct decoder *d, struct interp_kernel *k, struct function *f,
		       const struct ptx_var *v, uint32_t scope) {
	switch (v->space) {
	case PTX_SPACE_REG:
		return declare_reg(k, v, f, scope);
	case PTX_SPACE_LOCAL:
	case PTX_SPACE_PARAM:
		return declare_local(v, f, scope);
	case PTX_SPACE_SHARED:
		return declare_shared(d, v, &f->symbols, scope);
	default:
		return declare_global(d, v, &f->symbols, scope);
	}
}

static int open_scope(struct function *f, uint32_t parent) {
	int r = decode_grow(&f->parents, f->n_scopes, &f->cap_scopes, sizeof(*f->parents));

	if (r == 0) {
		f->parents[f->n_scopes++] = parent;
	}
	return r;
}

/* Scopes are numbered in the order of their opening braces; the decoder counts them again. */
static int declare_body(struct decoder *d, struct interp_kernel *k, struct function *f) {
	const struct ptx_module *ptx = d->m->ptx;
	uint32_t scope = 0;
	int r;

	r = open_scope(f, 0);
	for (uint32_t i = 0; i < k->ptx->n_stmts && r == 0; i++) {
		const struct ptx_stmt *stmt = &ptx->stmts[k->ptx->stmts + i];
		struct symbol s = {.name = stmt->opcode, .scope = scope};

		switch (stmt->kind) {
		case PTX_STMT_OPEN:
			r = open_scope(f, scope);
			scope = (uint32_t)f->n_scopes - 1;
			break;
		case PTX_STMT_CLOSE:
			scope = f->parents[scope];
			break;
		case PTX_STMT_VAR:
			for (uint32_t n = 0; n < stmt->n_vars && r == 0; n++) {
				r = declare_var(d, k, f, &ptx->vars[stmt->var + n], scope);
			}
			break;
		case PTX_STMT_LABEL:
			s.kind = SYMBOL_LABEL;
			s.value = UINT32_MAX;
			r = symbols_add(&f->symbols, &s);
			break;
		case PTX_STMT_TABLE:
			s.kind = SYMBOL_TABLE;
			s.value = k->ptx->stmts + i;
			r = symbols_add(&f->symbols, &s);
			break;
		default:
			break;
		}
	}
	return r;
}

static int declare_function(struct decoder *d, uint32_t index) {
	struct interp_kernel *k = &d->m->funcs[index];
	struct function *f = &d->functions[index];
	int r;

	k->slots = SLOTS_FIRST;
	r = k->is_entry ? declare_entry_params(d, k, f) : declare_formals(d, k, f);
	if (r == 0 && k->defined) {
		r = declare_body(d, k, f);
	}
	if (r < 0) {
		return r;
	}
	f->first_temp = k->slots;
	k->local_bytes = (uint32_t)align_up(f->local, 16);
	return 0;
}

/* Who mentions whom. */
struct graph {
	uint32_t *list; /* functions */
	size_t *first;	/* those that f names: list entries first[f] to first[f + 1] */
	size_t n, cap;
};

static int mention(struct decoder *d, struct graph *g, struct ptx_name name, uint8_t *uses_shared) {
	const struct symbol *s = name.len ? decode_lookup(d, name, NULL) : NULL;
	int r;

	if (s && s->kind == SYMBOL_SHARED) {
		uses_shared[s->value] = 1;
	}
	if (!s || s->kind != SYMBOL_FUNC) {
		return 0;
	}
	r = decode_grow(&g->list, g->n, &g->cap, sizeof(*g->list));
	if (r == 0) {
		g->list[g->n++] = s->value;
	}
	return r;
}

static int mention_operands(struct decoder *d, struct graph *g, uint32_t first, uint32_t n,
			    uint8_t *uses_shared) {
	const struct ptx_operand *o = d->m->ptx->operands + first;
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++) {
		bool group = o[i].kind == PTX_OPERAND_VECTOR || o[i].kind == PTX_OPERAND_LIST;

		for (uint32_t k = 0; group && k < o[i].n_elements && r == 0; k++) {
			r = mention(d, g, d->m->ptx->operands[o[i].elements + k].name, uses_shared);
		}
		if (!group && (o[i].kind == PTX_OPERAND_SYMBOL ||
			       (o[i].kind == PTX_OPERAND_ADDR && !o[i].base_is_reg))) {
			r = mention(d, g, o[i].name, uses_shared);
		}
	}
	return r;
}

/* What one function mentions. A call through a register may reach any function. */
static int graph_function(struct decoder *d, struct graph *g, uint32_t index, uint8_t *uses) {
	const struct interp_kernel *k = &d->m->funcs[index];
	const struct ptx_module *ptx = d->m->ptx;
	uint32_t opened = 0;
	int r = 0;

	d->current = index;
	d->scope = 0;
	for (uint32_t i = 0; k->defined && i < k->ptx->n_stmts && r == 0; i++) {
		const struct ptx_stmt *s = &ptx->stmts[k->ptx->stmts + i];

		if (s->kind == PTX_STMT_OPEN) {
			d->scope = ++opened;
		} else if (s->kind == PTX_STMT_CLOSE) {
			d->scope = d->functions[index].parents[d->scope];
		} else if (s->kind == PTX_STMT_INSN) {
			r = mention_operands(d, g, s->operands, s->n_operands, uses);
			for (uint32_t o = 0; o < s->n_operands; o++) {
				if (ptx_name_is(ptx_opcode_part(s->opcode, 0), "call") &&
				    ptx->operands[s->operands + o].kind == PTX_OPERAND_REG) {
					d->m->funcs[index].calls_indirectly = true;
				}
			}
		}
	}
	for (uint32_t f = 0; r == 0 && k->calls_indirectly && f < d->m->n_funcs; f++) {
		if (d->m->funcs[f].defined && !d->m->funcs[f].is_entry) {
			r = decode_grow(&g->list, g->n, &g->cap, sizeof(*g->list));
			if (r == 0) {
				g->list[g->n++] = f;
			}
		}
	}
	return r;
}

/* Marks in @reached what @from reaches, itself included. @stack: as many as there are functions. */
static void graph_reach(const struct graph *g, uint32_t from, uint8_t *reached, uint32_t *stack) {
	size_t depth = 0;

	stack[depth++] = from;
	reached[from] = 1;
	while (depth > 0) {
		uint32_t f = stack[--depth];

		for (size_t e = g->first[f]; e < g->first[f + 1]; e++) {
			if (!reached[g->list[e]]) {
				reached[g->list[e]] = 1;
				stack[depth++] = g->list[e];
			}
		}
	}
}

/*
 * A shared variable stands at one offset for all kernels that reach it, so that functions need not
 * know who called them: behind everything that any of these kernels has already.
 */
static void place_shared(struct decoder *d) {
	struct interp_module *m = d->m;

	for (size_t v = 0; v < d->n_shared; v++) {
		struct shared_var *var = &d->shared[v];
		uint64_t at = 0;

		for (size_t e = 0; e < m->n_entries; e++) {
			const struct interp_kernel *k = &m->funcs[m->entries[e]];

			if (var->users[e] && k->static_shared > at) {
				at = k->static_shared;
			}
		}
		at = align_up(at, var->align);
		var->offset = (uint32_t)at;
		for (size_t e = 0; e < m->n_entries && !var->dynamic; e++) {
			if (var->users[e]) {
				m->funcs[m->entries[e]].static_shared = at + var->size;
			}
		}
	}
}

/* uses: [function][shared variable]. */
static int reach_shared(struct decoder *d, struct graph *g, const uint8_t *uses, uint8_t *reached,
			uint32_t *stack) {
	struct interp_module *m = d->m;

	for (size_t e = 0; e < m->n_entries; e++) {
		memset(reached, 0, m->n_funcs);
		graph_reach(g, m->entries[e], reached, stack);
		for (size_t f = 0; f < m->n_funcs; f++) {
			for (size_t v = 0; reached[f] && v < d->n_shared; v++) {
				d->shared[v].users[e] |= uses[f * d->n_shared + v];
			}
		}
	}
	place_shared(d);
	for (size_t e = 0; e < m->n_entries; e++) {
		if (m->funcs[m->entries[e]].static_shared > INTERP_WINDOW_SIZE / 2) {
			return -E2BIG;
		}
	}
	return 0;
}

/* A kernel lacks what any function that it reaches lacks. */
static int inherit_unsupported(struct decoder *d, struct graph *g, uint8_t *reached,
			       uint32_t *stack) {
	struct interp_module *m = d->m;

	for (size_t e = 0; e < m->n_entries; e++) {
		struct interp_kernel *k = &m->funcs[m->entries[e]];

		memset(reached, 0, m->n_funcs);
		graph_reach(g, m->entries[e], reached, stack);
		for (size_t f = 0; f < m->n_funcs && !k->unsupported; f++) {
			if (reached[f] && m->funcs[f].unsupported) {
				k->unsupported = strdup(m->funcs[f].unsupported);
				if (!k->unsupported) {
					return -ENOMEM;
				}
			}
		}
		for (size_t f = 0; f < m->n_funcs; f++) {
			if (reached[f] && m->funcs[f].max_live > k->max_live) {
				k->max_live = m->funcs[f].max_live;
			}
		}
	}
	return 0;
}

static void note_unsupported(struct decoder *d, const struct ptx_stmt *stmt) {
	struct interp_kernel *k = &d->m->funcs[d->current];
	const struct ptx_tokens *t = &d->m->ptx->tokens;
	const struct ptx_token *first = &t->list[stmt->first], *last = &t->list[stmt->end - 1];
	int len = (int)(last->offset + last->len - first->offset);

	if (!k->unsupported && asprintf(&k->unsupported, "line %u: %.*s", stmt->line,
					len > 200 ? 200 : len, ptx_token_text(t, first)) < 0) {
		k->unsupported = NULL;
	}
}

/* Labels learn their pc as they are passed; who jumps to them is told at the end. */
static void patch_labels(struct decoder *d) {
	struct interp_module *m = d->m;
	const struct symbols *s = &d->functions[d->current].symbols;

	for (size_t i = 0; i < d->n_patches; i++) {
		uint32_t pc = s->list[d->patches[i].symbol].value;

		if (d->patches[i].in_targets) {
			m->targets[d->patches[i].index] = pc;
		} else {
			m->insns[d->patches[i].index].target = pc;
		}
	}
	d->n_patches = 0;
}

static int decode_stmt(struct decoder *d, const struct ptx_stmt *stmt) {
	struct insn none;
	int64_t at;
	int r;

	switch (stmt->kind) {
	case PTX_STMT_LABEL:
		at = symbols_find(&d->functions[d->current].symbols, stmt->opcode, d->scope);
		d->functions[d->current].symbols.list[at].value = (uint32_t)d->m->n_insns;
		return 0;
	case PTX_STMT_INSN:
		d->stmt = (uint32_t)(stmt - d->m->ptx->stmts);
		d->temps = 0;
		r = decode_insn(d, stmt);
		if (r != -ENOTSUP) {
			return r;
		}
		note_unsupported(d, stmt);
		none = decode_blank(d, control_unsupported);
		return decode_emit(d, &none);
	default:
		return 0;
	}
}

/* Which slots hold 64 bits is known by their declarations; temporaries do, to be safe. */
static int estimate_registers(struct decoder *d, struct interp_kernel *k) {
	const struct function *f = &d->functions[d->current];
	uint64_t *wide = calloc((k->slots + 63) / 64, sizeof(*wide));
	int r;

	if (!wide) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < f->symbols.n; i++) {
		const struct symbol *s = &f->symbols.list[i];
		uint32_t n = s->range ? s->range : 1;

		for (uint32_t j = 0; s->kind == SYMBOL_REG && s->size == 8 && j < n; j++) {
			wide[(s->value + j) / 64] |= (uint64_t)1 << (s->value + j) % 64;
		}
	}
	for (uint32_t slot = f->first_temp; slot < k->slots; slot++) {
		wide[slot / 64] |= (uint64_t)1 << slot % 64;
	}
	r = live_estimate(d->m, k, wide);
	free(wide);
	return r;
}

static int decode_function(struct decoder *d, uint32_t index) {
	struct interp_kernel *k = &d->m->funcs[index];
	uint32_t opened = 0;
	struct insn end;
	int r;

	d->current = index;
	d->scope = 0;
	d->stmt = k->ptx->stmts;
	k->start = (uint32_t)d->m->n_insns;
	r = decode_reg_params(d);
	for (uint32_t i = 0; i < k->ptx->n_stmts && r == 0; i++) {
		const struct ptx_stmt *stmt = &d->m->ptx->stmts[k->ptx->stmts + i];

		if (stmt->kind == PTX_STMT_OPEN) {
			d->scope = ++opened;
		} else if (stmt->kind == PTX_STMT_CLOSE) {
			d->scope = d->functions[index].parents[d->scope];
		} else {
			r = decode_stmt(d, stmt);
		}
	}
	if (r < 0) {
		return r;
	}
	/* Whoever runs over the end, or jumps to a label there, returns. */
	end = decode_blank(d, control_ret);
	r = decode_emit(d, &end);
	if (r < 0) {
		return r;
	}
	patch_labels(d);
	k->end = (uint32_t)d->m->n_insns;
	k->slots = d->functions[index].first_temp + d->functions[index].max_temps;
	k->frame = k->slots > k->preds ? k->slots : k->preds;
	return estimate_registers(d, k);
}

static int decode_functions(struct decoder *d) {
	struct interp_module *m = d->m;
	size_t n = m->n_funcs;
	struct graph g = {0};
	uint8_t *uses = calloc(n + 1, d->n_shared + 1), *reached = calloc(n + 1, 1);
	uint32_t *stack = calloc(n + 1, sizeof(*stack));
	int r = 0;

	g.first = calloc(n + 1, sizeof(*g.first));
	if (!uses || !reached || !stack || !g.first) {
		r = -ENOMEM;
	}
	for (uint32_t f = 0; f < n && r == 0; f++) {
		g.first[f] = g.n;
		r = graph_function(d, &g, f, uses + f * d->n_shared);
		g.first[f + 1] = g.n;
	}
	if (r == 0) {
		r = reach_shared(d, &g, uses, reached, stack);
	}
	for (uint32_t f = 0; f < n && r == 0; f++) {
		if (m->funcs[f].defined) {
			r = decode_function(d, f);
		}
	}
	if (r == 0) {
		r = inherit_unsupported(d, &g, reached, stack);
	}
	free(uses);
	free(reached);
	free(stack);
	free(g.first);
	free(g.list);
	return r;
}

static void decoder_deinit(struct decoder *d) {
	for (size_t i = 0; d->functions && i < d->m->n_funcs; i++) {
		symbols_deinit(&d->functions[i].symbols);
		free(d->functions[i].parents);
		free(d->functions[i].reg_rets);
		free(d->functions[i].reg_params);
	}
	for (size_t i = 0; i < d->n_shared; i++) {
		free(d->shared[i].users);
	}
	symbols_deinit(&d->globals);
	free(d->functions);
	free(d->shared);
	free(d->patches);
	free(d->const_hash);
}

int decode_module(struct interp_module *m, char *error, size_t error_size) {
	struct decoder d = {.m = m};
	int r;

	r = declare_functions(&d);
	if (r == 0) {
		r = declare_items(&d);
	}
	for (uint32_t f = 0; f < m->n_funcs && r == 0; f++) {
		r = declare_function(&d, f);
		if ((r == -ENOTSUP || r == -E2BIG) && error) {
			snprintf(error, error_size, "line %u: '%s' %s", m->funcs[f].ptx->line,
				 m->funcs[f].name,
				 r == -E2BIG ? "declares too much memory"
					     : "has parameters that are not supported");
			error = NULL; /* told */
		}
	}
	if (r == 0) {
		r = decode_functions(&d);
	}
	decoder_deinit(&d);
	if (r == -E2BIG && error) {
		snprintf(error, error_size, "a variable is too large");
	}
	return r == -ENOTSUP || r == -E2BIG ? -EINVAL : r;
}
