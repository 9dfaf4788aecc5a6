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

		at = decode_align_up(at, var_align(v));
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
	uint64_t at = decode_align_up(f->local, var_align(v));

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
	uint64_t size = var_size(v), at = decode_align_up(f->local, var_align(v));

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
	k->local_bytes = (uint32_t)decode_align_up(f->local, 16);
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
		if (r == -ENOTSUP) {
			r = check_insn(d, stmt) < 0 ? -EINVAL : -ENOTSUP;
		}
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
	struct reach *reach = NULL;
	int r = reach_new(&reach, d);

	for (uint32_t f = 0; f < m->n_funcs && r == 0; f++) {
		if (m->funcs[f].defined) {
			r = decode_function(d, f);
		}
	}
	if (r == 0) {
		r = reach_inherit(reach, d);
	}
	reach_free(reach);
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
	struct decoder d = {.m = m, .error = error, .error_size = error_size};
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
