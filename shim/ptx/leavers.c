/*
 * leavers.c: see leavers.h.
 *
 * Why the masks of an activemask hold no leaver: each lane in the mask ran the activemask, comes to
 * the instruction behind it before it can end, and comes there once for each activemask. So when a
 * lane waits there, the others of its mask have not been there yet and can't have ended. The same
 * is true of a match.any: its result holds lanes that ran it too.
 */
#include "shim/ptx/leavers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/opcodes.h"
#include "shim/ptx/registers.h"

/* Blocks that walks from activemasks may see, for each block of the kernel: no compiler makes more.
 */
#define WALK_BUDGET 64

static bool is_guarded_jump(const struct ptx_module *m, const struct cfg_block *k) {
	const struct ptx_stmt *s;
	enum opcode_class class;

	if (k->last == PTX_NONE || k->n_edges != 2) {
		return false;
	}
	s = &m->stmts[k->last];
	class = s->op->class;
	return s->guard.len > 0 &&
	       (class == OPCODE_RETURN || class == OPCODE_EXIT ||
		(class == OPCODE_BRANCH && !ptx_name_is(ptx_opcode_part(s->opcode, 0), "brx")));
}

int leavers_find(const struct cfg *c, const struct ptx_module *m, const bool *meets, uint8_t *ret) {
	bool *awaited = calloc((size_t)c->n_blocks + 1, sizeof(*awaited));
	int r = awaited ? cfg_reach(c, meets, NULL, awaited) : -ENOMEM;

	for (uint32_t b = 0; b <= c->n_blocks && r == 0; b++) {
		const struct cfg_block *k = &c->blocks[b];

		ret[b] = LEAVERS_NONE;
		if (b < c->n_blocks && is_guarded_jump(m, k)) {
			bool jump = awaited[c->edges[k->edges]];
			bool go_on = awaited[c->edges[k->edges + 1]];

			ret[b] = jump == go_on ? LEAVERS_NONE : jump ? LEAVERS_GO_ON : LEAVERS_JUMP;
		}
	}
	free(awaited);
	return r;
}

/* Walks forward from the blocks after one. */
struct walk {
	const struct cfg *c;
	uint32_t *stack; /* owned: room for every block */
	uint32_t *seen;	 /* owned: by block, the number of the walk that saw it */
	uint32_t number;
	size_t budget;
};

/*
 * Whether a walk from behind block @from that stops at block @to meets the end, one of @barred, or
 * (@avoid, if it is a block) that one. All of it when the budget is used up.
 */
static bool strays(struct walk *w, uint32_t from, uint32_t to, const bool *barred, uint32_t avoid) {
	const struct cfg *c = w->c;
	size_t n = 0;

	w->number++;
	for (uint32_t at = from;; at = w->stack[--n]) {
		for (uint32_t i = 0; i < c->blocks[at].n_edges; i++) {
			uint32_t next = c->edges[c->blocks[at].edges + i];

			if (next == avoid || w->budget == 0) {
				return true;
			}
			w->budget--;
			if (next == to || w->seen[next] == w->number) {
				continue;
			}
			if (next == c->n_blocks) {
				if (avoid == PTX_NONE) {
					return true;
				}
				continue;
			}
			if (barred && barred[next]) {
				return true;
			}
			w->seen[next] = w->number;
			w->stack[n++] = next;
		}
		if (n == 0) {
			return false;
		}
	}
}

/* Which statement gives each register its value. */
struct sources {
	struct registers registers;
	uint32_t *stmts; /* owned: by register; PTX_NONE: none */
	bool *several;	 /* owned: more than that one */
};

static void sources_deinit(struct sources *x) {
	registers_deinit(&x->registers);
	free(x->stmts);
	free(x->several);
}

static void note(struct sources *x, struct ptx_name n, uint32_t var, uint32_t stmt) {
	uint32_t i = registers_find(&x->registers, n, var);

	if (i != PTX_NONE) {
		x->several[i] |= x->stmts[i] != PTX_NONE;
		x->stmts[i] = stmt;
	}
}

static void find_sources(struct sources *x, const struct ptx_module *m, const struct ptx_func *f) {
	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
		const struct ptx_stmt *s = &m->stmts[i];
		const struct ptx_operand *o = &m->operands[s->operands];
		const struct opcode *op;

		if (s->kind != PTX_STMT_INSN || s->n_operands == 0) {
			continue;
		}
		op = s->op;
		if (op->n_results == 0 && op->class != OPCODE_CALL) {
			continue;
		}
		if (o->kind == PTX_OPERAND_REG) {
			note(x, o->name, o->var, i);
		}
		for (uint32_t k = 0; k < o->n_elements; k++) {
			note(x, m->operands[o->elements + k].name, m->operands[o->elements + k].var,
			     i);
		}
		if (o->pair.len > 0) {
			note(x, o->pair, o->pair_var, i);
		}
	}
}

/* Return: 0; -ENOMEM; -E2BIG as registers_init(). */
static int sources_init(struct sources *ret, const struct ptx_module *m, const struct ptx_func *f) {
	struct sources x = {0};
	int r = registers_init(&x.registers, m, f);

	if (r < 0) {
		return r;
	}
	x.stmts = reallocarray(NULL, (size_t)x.registers.n + 1, sizeof(*x.stmts));
	x.several = calloc((size_t)x.registers.n + 1, sizeof(*x.several));
	if (!x.stmts || !x.several) {
		sources_deinit(&x);
		return -ENOMEM;
	}
	memset(x.stmts, 0xFF, ((size_t)x.registers.n + 1) * sizeof(*x.stmts));
	find_sources(&x, m, f);
	*ret = x;
	return 0;
}

/* Gives each lane a mask of lanes that run it too. */
static bool gives_mask(const struct ptx_stmt *s) {
	return ptx_name_is(ptx_opcode_part(s->opcode, 0), "activemask") ||
	       (ptx_name_is(ptx_opcode_part(s->opcode, 0), "match") &&
		ptx_opcode_has(s->opcode, "any"));
}

/* The activemask, or match.any, that alone gives the mask of the instruction at the end of block
 * @b, or PTX_NONE. */
static uint32_t find_activemask(const struct sources *x, const struct cfg *c,
				const struct ptx_module *m, uint32_t b) {
	const struct ptx_stmt *s = &m->stmts[c->blocks[b].last], *source;
	const struct ptx_operand *mask;
	uint32_t reg;

	if (c->blocks[b].event != CFG_WARP || s->guard.len > 0 || s->n_operands == 0) {
		return PTX_NONE;
	}
	mask = &m->operands[s->operands + s->n_operands - 1];
	reg = mask->kind == PTX_OPERAND_REG ? registers_find(&x->registers, mask->name, mask->var)
					    : PTX_NONE;
	if (reg == PTX_NONE || x->several[reg] || x->stmts[reg] == PTX_NONE) {
		return PTX_NONE;
	}
	source = &m->stmts[x->stmts[reg]];
	return source->guard.len == 0 && gives_mask(source) ? x->stmts[reg] : PTX_NONE;
}

/* The block in which statement @stmt stands. */
static uint32_t block_of(const struct cfg *c, uint32_t stmt) {
	uint32_t low = 0, high = c->n_blocks;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (c->blocks[middle].first <= stmt) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return low;
}

int leavers_find_own_masks(const struct cfg *c, const struct ptx_module *m,
			   const struct ptx_func *f, const bool *votes, bool *ret) {
	size_t n = (size_t)c->n_blocks + 1;
	struct walk w = {.c = c, .budget = WALK_BUDGET * (n + c->n_edges)};
	struct sources sources;
	int r = sources_init(&sources, m, f);

	memset(ret, 0, n * sizeof(*ret));
	if (r < 0) {
		return r == -E2BIG ? 0 : r;
	}
	w.stack = reallocarray(NULL, n, sizeof(*w.stack));
	w.seen = calloc(n, sizeof(*w.seen));
	r = w.stack && w.seen ? 0 : -ENOMEM;
	for (uint32_t b = 0; b < c->n_blocks && r == 0; b++) {
		uint32_t source = c->blocks[b].last == PTX_NONE
					  ? PTX_NONE
					  : find_activemask(&sources, c, m, b);
		uint32_t from = source == PTX_NONE ? PTX_NONE : block_of(c, source);

		/* in one block: the activemask comes first, or its register has no value yet */
		ret[b] = from == b ? source < c->blocks[b].last
				   : from != PTX_NONE && !(votes && votes[from]) &&
					     !strays(&w, from, b, votes, PTX_NONE) &&
					     !strays(&w, b, from, NULL, b);
	}
	free(w.stack);
	free(w.seen);
	sources_deinit(&sources);
	return r;
}
