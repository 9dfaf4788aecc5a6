/*
 * quiet.c: see quiet.h.
 *
 * A stretch is told by where it begins: at the kernel's start or behind one barrier. All threads
 * run the same barriers in the same order, so those that are in one stretch at a time began it
 * behind the same one; and what they may do in it is what can be reached from there without running
 * another. Barriers with a guard don't count, which makes stretches longer, never shorter.
 */
#include "shim/ptx/quiet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/opcodes.h"

struct search {
	const struct cfg *c;
	const struct ptx_module *m;
	const struct ptx_func *f;
	bool *barred;		  /* owned: by block, a barrier ends it */
	bool *loads, *others;	  /* owned: by block, has a load, or another use, of the variable */
	bool *to_load, *to_other; /* owned: by block, one can be reached in the same stretch */
};

/* The one variable of shared memory that @s loads by its name; PTX_NONE: not such an instruction.
 */
static uint32_t loaded_var(const struct ptx_module *m, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &m->operands[s->operands];

	if (s->kind != PTX_STMT_INSN || s->n_operands != 2 ||
	    !ptx_name_is(ptx_opcode_part(s->opcode, 0), "ld") || o[1].kind != PTX_OPERAND_ADDR ||
	    o[1].base_is_reg || o[1].var == PTX_NONE ||
	    m->vars[o[1].var].space != PTX_SPACE_SHARED || m->vars[o[1].var].is_extern) {
		return PTX_NONE;
	}
	return o[1].var;
}

static bool names(const struct ptx_operand *o, uint32_t var) {
	return o->var == var && (o->kind == PTX_OPERAND_SYMBOL || o->kind == PTX_OPERAND_ADDR);
}

/* Whether @s, which does not just load variable @var, uses it. *ret_escapes: not by its name alone,
 * or not at once. */
static bool uses(const struct ptx_module *m, const struct ptx_stmt *s, uint32_t var,
		 bool *ret_escapes) {
	bool at_once = s->kind == PTX_STMT_INSN &&
		       (s->op->class == OPCODE_STORE || s->op->class == OPCODE_ATOMIC);
	bool used = false;

	for (uint32_t i = 0; s->kind == PTX_STMT_INSN && i < s->n_operands; i++) {
		const struct ptx_operand *o = &m->operands[s->operands + i];

		used |= names(o, var);
		*ret_escapes |= names(o, var) && (o->kind == PTX_OPERAND_SYMBOL || !at_once);
		for (uint32_t k = 0; k < o->n_elements; k++) {
			*ret_escapes |= names(&m->operands[o->elements + k], var);
		}
	}
	return used;
}

static bool meets_both(const struct search *x, uint32_t from) {
	return x->to_load[from] && x->to_other[from];
}

/* Return: 1: it is quiet; 0; -ENOMEM. */
static int judge(struct search *x, uint32_t var) {
	size_t n = (size_t)x->c->n_blocks + 1;
	bool escapes = false;
	int r;

	memset(x->loads, 0, n * sizeof(*x->loads));
	memset(x->others, 0, n * sizeof(*x->others));
	for (uint32_t b = 0; b < x->c->n_blocks && !escapes; b++) {
		for (uint32_t i = x->c->blocks[b].first; i < x->c->blocks[b].end; i++) {
			const struct ptx_stmt *s = &x->m->stmts[i];

			if (loaded_var(x->m, s) == var) {
				x->loads[b] = true;
			} else {
				x->others[b] |= uses(x->m, s, var, &escapes);
			}
		}
	}
	if (escapes) {
		return 0;
	}
	r = cfg_reach(x->c, x->loads, x->barred, x->to_load);
	if (r == 0) {
		r = cfg_reach(x->c, x->others, x->barred, x->to_other);
	}
	if (r < 0 || meets_both(x, 0)) {
		return r;
	}
	for (uint32_t b = 0; b < x->c->n_blocks; b++) {
		for (uint32_t i = 0; x->barred[b] && i < x->c->blocks[b].n_edges; i++) {
			if (meets_both(x, x->c->edges[x->c->blocks[b].edges + i])) {
				return 0;
			}
		}
	}
	return 1;
}

static int judge_all(struct search *x, struct quiet *ret) {
	uint32_t seen[QUIET_MAX];
	unsigned n_seen = 0;
	int r = 0;

	for (uint32_t i = x->f->stmts; i < x->f->stmts + x->f->n_stmts && r >= 0; i++) {
		uint32_t var = loaded_var(x->m, &x->m->stmts[i]);
		bool known = var == PTX_NONE || n_seen == QUIET_MAX;

		for (unsigned k = 0; k < n_seen; k++) {
			known |= seen[k] == var;
		}
		if (!known) {
			seen[n_seen++] = var;
			r = judge(x, var);
			if (r > 0) {
				ret->vars[ret->n++] = var;
			}
		}
	}
	return r < 0 ? r : 0;
}

int quiet_find(struct quiet *ret, const struct cfg *c, const struct module_facts *facts,
	       const struct ptx_func *f) {
	struct search x = {.c = c, .m = facts->m, .f = f};
	size_t n = (size_t)c->n_blocks + 1;
	struct quiet q = {0};
	bool *space;
	int r;

	*ret = q;
	if (!f->is_entry || facts->funcs[f - facts->m->funcs].n_calls > 0) {
		return 0;
	}
	space = calloc(5 * n, sizeof(*space));
	if (!space) {
		return -ENOMEM;
	}
	x.barred = space;
	x.loads = space + n;
	x.others = space + 2 * n;
	x.to_load = space + 3 * n;
	x.to_other = space + 4 * n;
	for (uint32_t b = 0; b < c->n_blocks; b++) {
		x.barred[b] = c->blocks[b].event == CFG_BARRIER &&
			      x.m->stmts[c->blocks[b].last].guard.len == 0;
	}
	r = judge_all(&x, &q);
	free(space);
	if (r == 0) {
		*ret = q;
	}
	return r;
}

bool quiet_is_load(const struct quiet *q, const struct ptx_module *m, const struct ptx_stmt *s) {
	uint32_t var = loaded_var(m, s);

	for (unsigned i = 0; i < q->n; i++) {
		if (q->vars[i] == var) {
			return true;
		}
	}
	return false;
}
