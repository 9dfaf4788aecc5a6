/*
 * interp-reach.c: which functions a kernel reaches: where its shared variables stand, and what it
 * lacks because a function that it reaches lacks it.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdlib.h>

/* Who mentions whom. */
struct graph {
	uint32_t *list; /* functions */
	size_t *first;	/* those that f names: list entries first[f] to first[f + 1] */
	size_t n, cap;
};

struct reach {
	struct graph graph;
	uint8_t *seen; /* owned, as below: one for each function; all 0 between walks */
	uint32_t *list;
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

/* Puts into reach->list what @from reaches, itself first. What it costs depends on those alone: a
 * module may have many kernels. Return: how many. */
static size_t graph_reach(struct reach *reach, uint32_t from) {
	const struct graph *g = &reach->graph;
	size_t n = 0;

	reach->list[n++] = from;
	reach->seen[from] = 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t f = reach->list[i];

		for (size_t e = g->first[f]; e < g->first[f + 1]; e++) {
			if (!reach->seen[g->list[e]]) {
				reach->seen[g->list[e]] = 1;
				reach->list[n++] = g->list[e];
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		reach->seen[reach->list[i]] = 0;
	}
	return n;
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
		at = decode_align_up(at, var->align);
		var->offset = (uint32_t)at;
		for (size_t e = 0; e < m->n_entries && !var->dynamic; e++) {
			if (var->users[e]) {
				m->funcs[m->entries[e]].static_shared = at + var->size;
			}
		}
	}
}

/* uses: [function][shared variable]. */
static int reach_shared(struct reach *reach, struct decoder *d, const uint8_t *uses) {
	struct interp_module *m = d->m;

	for (size_t e = 0; e < m->n_entries && d->n_shared > 0; e++) {
		size_t n = graph_reach(reach, m->entries[e]);

		for (size_t i = 0; i < n; i++) {
			for (size_t v = 0; v < d->n_shared; v++) {
				d->shared[v].users[e] |= uses[reach->list[i] * d->n_shared + v];
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

struct reach *reach_free(struct reach *reach) {
	if (!reach) {
		return NULL;
	}
	free(reach->graph.first);
	free(reach->graph.list);
	free(reach->seen);
	free(reach->list);
	free(reach);
	return NULL;
}

int reach_new(struct reach **ret, struct decoder *d) {
	size_t n = d->m->n_funcs;
	struct reach *reach = calloc(1, sizeof(*reach));
	uint8_t *uses = calloc(n + 1, d->n_shared + 1);
	int r = -ENOMEM;

	if (reach && uses) {
		reach->seen = calloc(n + 1, 1);
		reach->list = calloc(n + 1, sizeof(*reach->list));
		reach->graph.first = calloc(n + 1, sizeof(*reach->graph.first));
		r = reach->seen && reach->list && reach->graph.first ? 0 : -ENOMEM;
	}
	for (uint32_t f = 0; f < n && r == 0; f++) {
		reach->graph.first[f] = reach->graph.n;
		r = graph_function(d, &reach->graph, f, uses + f * d->n_shared);
		reach->graph.first[f + 1] = reach->graph.n;
	}
	if (r == 0) {
		r = reach_shared(reach, d, uses);
	}
	free(uses);
	if (r < 0) {
		reach_free(reach);
		return r;
	}
	*ret = reach;
	return 0;
}

/* Whether the instruction can tell a block how far others are, or tells the world how far it is. */
static bool insn_is_dependent(const struct insn *in) {
	bool own = in->space == PTX_SPACE_SHARED || in->space == PTX_SPACE_LOCAL ||
		   in->space == PTX_SPACE_PARAM || in->space == PTX_SPACE_CONST;

	if (in->exec == mem_atom) {
		return in->space != PTX_SPACE_SHARED;
	}
	if (in->exec == mem_ld || in->exec == mem_st) {
		return (in->flags & INSN_ORDERED) && !own;
	}
	return in->exec == mem_fence || move_reads_timer(in) ||
	       in->exec == builtin_find((struct ptx_name){"vprintf", 7});
}

static bool func_is_dependent(const struct interp_module *m, const struct interp_kernel *f) {
	for (uint32_t pc = f->start; pc < f->end; pc++) {
		if (insn_is_dependent(&m->insns[pc])) {
			return true;
		}
	}
	return false;
}

/* A kernel lacks what the function @f, which it reaches, lacks. */
static int inherit(struct interp_kernel *k, const struct interp_kernel *f) {
	if (f->unsupported && !k->unsupported) {
		k->unsupported = strdup(f->unsupported);
		if (!k->unsupported) {
			return -ENOMEM;
		}
	}
	if (f->max_live > k->max_live) {
		k->max_live = f->max_live;
	}
	k->dependent |= f->dependent;
	return 0;
}

int reach_inherit(struct reach *reach, struct decoder *d) {
	struct interp_module *m = d->m;
	int r = 0;

	for (size_t f = 0; f < m->n_funcs; f++) {
		m->funcs[f].dependent = func_is_dependent(m, &m->funcs[f]);
	}
	for (size_t e = 0; e < m->n_entries && r == 0; e++) {
		size_t n = graph_reach(reach, m->entries[e]);

		for (size_t i = 0; i < n && r == 0; i++) {
			r = inherit(&m->funcs[m->entries[e]], &m->funcs[reach->list[i]]);
		}
	}
	return r;
}
