/*
 * waits.c: see waits.h.
 *
 * Of the control-flow graph without the blocks that write to global memory, each strongly connected
 * part is looked at: is memory read anew there, and does a branch go by what was read? What is not
 * sure counts as waiting.
 */
#include "shim/ptx/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "shim/ptx/cfg.h"
#include "shim/ptx/memory.h"
#include "shim/ptx/opcodes.h"
#include "shim/ptx/registers.h"

/* More rounds than any chain of moves against the order of the text takes. */
#define ROUNDS_MAX 64

struct waits {
	const struct module_facts *facts;
	const struct ptx_module *m;
	const struct ptx_func *f;
	struct cfg c;
	struct registers registers;
	bool *found;		  /* owned: by register, comes of what was read from memory */
	bool in_shared, in_local; /* some of that lies there */
	bool changed;
};

static bool calls_poll(const struct waits *w, const struct ptx_stmt *s) {
	const struct ptx_operand *target =
		s->op->class == OPCODE_CALL ? facts_call_target(w->m, s) : NULL;
	const struct ptx_func *callee =
		target && target->name.len > 0 ? ptx_module_func(w->m, target->name) : NULL;

	return callee && (w->facts->funcs[callee - w->m->funcs].has & FACTS_POLLS);
}

static bool is_found(const struct waits *w, struct ptx_name n, uint32_t var) {
	uint32_t i = registers_find(&w->registers, n, var);

	return i != PTX_NONE && w->found[i];
}

static bool holds_found(const struct waits *w, const struct ptx_operand *o) {
	for (uint32_t i = 0; i < o->n_elements; i++) {
		const struct ptx_operand *e = &w->m->operands[o->elements + i];

		if (is_found(w, e->name, e->var)) {
			return true;
		}
	}
	return is_found(w, o->name, o->var);
}

static void set_found(struct waits *w, struct ptx_name n, uint32_t var) {
	uint32_t i = registers_find(&w->registers, n, var);

	if (i != PTX_NONE && !w->found[i]) {
		w->found[i] = w->changed = true;
	}
}

static bool loads_found(const struct waits *w, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &w->m->operands[s->operands];
	unsigned space = memory_spaces(s);
	uint32_t v;

	if (ptx_opcode_has(s->opcode, "param")) {
		/* what a function returned */
		v = s->n_operands > 1 ? o[1].var : PTX_NONE;
		return v != PTX_NONE && !(v >= w->f->params && v < w->f->params + w->f->n_params);
	}
	return space & MEMORY_GLOBAL || (space & MEMORY_SHARED && w->in_shared) ||
	       (ptx_opcode_has(s->opcode, "local") && w->in_local);
}

static void follow(struct waits *w, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &w->m->operands[s->operands];
	enum opcode_class class = s->op->class;
	bool found = (class == OPCODE_LOAD && loads_found(w, s)) || class == OPCODE_ATOMIC ||
		     calls_poll(w, s) || (s->guard.len > 0 && is_found(w, s->guard, s->guard_var));

	for (uint32_t i = s->op->n_results; i < s->n_operands && !found; i++) {
		found = holds_found(w, &o[i]);
	}
	if (!found || s->n_operands == 0) {
		return;
	}
	if (class == OPCODE_STORE) {
		bool shared = memory_spaces(s) & MEMORY_SHARED;
		bool local = memory_spaces(s) == MEMORY_ALL || ptx_opcode_has(s->opcode, "local");

		w->changed |= (shared && !w->in_shared) || (local && !w->in_local);
		w->in_shared |= shared;
		w->in_local |= local;
	} else if (s->op->n_results > 0 || class == OPCODE_CALL) {
		set_found(w, o->name, o->var);
		for (uint32_t i = 0; i < o->n_elements; i++) {
			set_found(w, w->m->operands[o->elements + i].name,
				  w->m->operands[o->elements + i].var);
		}
		if (o->pair.len > 0) {
			set_found(w, o->pair, o->pair_var);
		}
	}
}

/* Return: whether it came to an end. */
static bool follow_all(struct waits *w) {
	unsigned rounds = 0;

	do {
		w->changed = false;
		for (uint32_t i = w->f->stmts; i < w->f->stmts + w->f->n_stmts; i++) {
			if (w->m->stmts[i].kind == PTX_STMT_INSN) {
				follow(w, &w->m->stmts[i]);
			}
		}
	} while (w->changed && ++rounds < ROUNDS_MAX);
	return !w->changed;
}

/* Others see that a round was made. What is guarded may not happen. */
static bool has_effect(const struct waits *w, uint32_t b) {
	for (uint32_t i = w->c.blocks[b].first; i < w->c.blocks[b].end; i++) {
		const struct ptx_stmt *s = &w->m->stmts[i];

		if (s->kind == PTX_STMT_INSN && s->op->class == OPCODE_STORE && s->guard.len == 0 &&
		    memory_unsettled(s) == MEMORY_GLOBAL) {
			return true;
		}
	}
	return false;
}

/* A compare-and-swap that writes what it has made of the old value, as in atomics of the compiler's
 * own, fails only where another one succeeded. */
static bool is_update(const struct waits *w, const struct ptx_stmt *s) {
	return ptx_opcode_has(s->opcode, "cas") && s->n_operands == 4 &&
	       holds_found(w, &w->m->operands[s->operands + 3]);
}

/* What the blocks of a part do. */
struct part {
	bool polls, loads, fences, branches;
};

static void look_at(const struct waits *w, uint32_t b, struct part *p) {
	const struct cfg_block *k = &w->c.blocks[b];
	const struct ptx_stmt *last = k->last == PTX_NONE ? NULL : &w->m->stmts[k->last];

	for (uint32_t i = k->first; i < k->end; i++) {
		const struct ptx_stmt *s = &w->m->stmts[i];

		if (s->kind == PTX_STMT_INSN) {
			p->polls |= (memory_polls(s) && !is_update(w, s)) || calls_poll(w, s);
			p->loads |=
				s->op->class == OPCODE_LOAD && (memory_spaces(s) & MEMORY_GLOBAL);
			p->fences |= memory_fences(s);
		}
	}
	if (last && k->n_edges > 1) {
		p->branches |= last->guard.len > 0
				       ? is_found(w, last->guard, last->guard_var)
				       : last->n_operands > 0 &&
						 holds_found(w, &w->m->operands[last->operands]);
	}
}

/* Tarjan's search, by block. */
struct search {
	uint32_t *number, *low, *stack, *path, *edge; /* owned, in one piece: number */
	bool *on_stack;				      /* owned */
	uint32_t next, n_stack, n_path;
};

static void enter(struct search *t, uint32_t b) {
	t->number[b] = t->low[b] = ++t->next;
	t->edge[b] = 0;
	t->stack[t->n_stack++] = t->path[t->n_path++] = b;
	t->on_stack[b] = true;
}

/* Takes the part whose first block is @b off the stack. Return: whether it waits. */
static bool leave(const struct waits *w, struct search *t, uint32_t b) {
	bool cycle = t->stack[t->n_stack - 1] != b;
	struct part p = {0};
	uint32_t at;

	for (uint32_t i = 0; i < w->c.blocks[b].n_edges; i++) {
		cycle |= w->c.edges[w->c.blocks[b].edges + i] == b;
	}
	do {
		at = t->stack[--t->n_stack];
		t->on_stack[at] = false;
		look_at(w, at, &p);
	} while (at != b);
	return cycle && p.branches && (p.polls || (p.loads && p.fences));
}

/* From block @from on. Return: whether one of the parts waits. */
static bool search_from(const struct waits *w, struct search *t, uint32_t from) {
	enter(t, from);
	while (t->n_path > 0) {
		uint32_t b = t->path[t->n_path - 1];
		const struct cfg_block *k = &w->c.blocks[b];

		if (t->edge[b] < k->n_edges) {
			uint32_t to = w->c.edges[k->edges + t->edge[b]++];

			if (to == w->c.n_blocks) {
				continue;
			}
			if (t->number[to] == 0) {
				enter(t, to);
			} else if (t->on_stack[to] && t->number[to] < t->low[b]) {
				t->low[b] = t->number[to];
			}
			continue;
		}
		t->n_path--;
		if (t->n_path > 0 && t->low[b] < t->low[t->path[t->n_path - 1]]) {
			t->low[t->path[t->n_path - 1]] = t->low[b];
		}
		if (t->low[b] == t->number[b] && leave(w, t, b)) {
			return true;
		}
	}
	return false;
}

/* Return: 1: some loop waits; 0; -ENOMEM. */
static int search(const struct waits *w) {
	size_t n = (size_t)w->c.n_blocks + 1;
	struct search t = {
		.number = calloc(n, 5 * sizeof(*t.number)),
		.on_stack = calloc(n, sizeof(*t.on_stack)),
	};
	int r = t.number && t.on_stack ? 0 : -ENOMEM;

	if (r == 0) {
		t.low = t.number + n;
		t.stack = t.number + 2 * n;
		t.path = t.number + 3 * n;
		t.edge = t.number + 4 * n;
		for (uint32_t b = 0; b < w->c.n_blocks; b++) {
			t.number[b] =
				has_effect(w, b) ? UINT32_MAX : 0; /* as if seen and done with */
		}
	}
	for (uint32_t b = 0; b < w->c.n_blocks && r == 0; b++) {
		if (t.number[b] == 0) {
			r = search_from(w, &t, b);
		}
	}
	free(t.number);
	free(t.on_stack);
	return r;
}

/* Return: 1: @f waits; 0; -ENOMEM. */
static int look(const struct module_facts *facts, const struct ptx_func *f) {
	struct waits w = {.facts = facts, .m = facts->m, .f = f};
	int r = cfg_init(&w.c, facts, f);

	if (r == 0) {
		r = registers_init(&w.registers, w.m, f);
	} else if (r == -E2BIG) {
		return 1;
	}
	if (r < 0) {
		cfg_deinit(&w.c);
		return r == -E2BIG ? 1 : r;
	}
	w.found = calloc((size_t)w.registers.n + 1, sizeof(*w.found));
	r = !w.found ? -ENOMEM : follow_all(&w) ? search(&w) : 1;
	free(w.found);
	registers_deinit(&w.registers);
	cfg_deinit(&w.c);
	return r;
}

int waits_find(struct module_facts *facts) {
	for (size_t i = 0; i < facts->m->n_funcs; i++) {
		int r = 0;

		if (facts->m->funcs[i].has_body && (facts->funcs[i].has & FACTS_POLLS)) {
			r = look(facts, &facts->m->funcs[i]);
		}
		if (r < 0) {
			return r;
		}
		facts->funcs[i].has |= r ? FACTS_WAITS : 0;
	}
	return 0;
}
