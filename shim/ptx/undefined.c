/*
 * undefined.c: what is written on every way to a block, from the start on: all registers at first,
 * then fewer until nothing changes.
 */
#include "shim/ptx/undefined.h"

#include <stdlib.h>
#include <string.h>

#include "shim/ptx/opcodes.h"

/* Of the sets of all blocks together, in words: larger kernels are left as they are. */
#define WORDS_MAX (1u << 20)

/* More than the depth of any loops. If sets could still become smaller then, some registers are not
 * found. */
#define ROUNDS_MAX 32

struct finder {
	const struct ptx_module *m;
	const struct registers *registers;
	struct cfg cfg;
	size_t words;	   /* of a set of registers */
	uint64_t *written; /* by block: when it begins */
	uint64_t *now;
	bool *undefined; /* NULL: not asked for yet */
};

/* PTX_NONE for what is no register of the kernel's. */
static uint32_t find_register(const struct finder *x, struct ptx_name n, uint32_t var) {
	return n.len > 0 ? registers_find(x->registers, n, var) : PTX_NONE;
}

static void note_write(struct finder *x, struct ptx_name n, uint32_t var) {
	uint32_t i = find_register(x, n, var);

	if (i != PTX_NONE) {
		x->now[i / 64] |= UINT64_C(1) << i % 64;
	}
}

static void note_read(struct finder *x, struct ptx_name n, uint32_t var) {
	uint32_t i = find_register(x, n, var);

	if (i != PTX_NONE && !(x->now[i / 64] >> i % 64 & 1)) {
		x->undefined[i] = true;
	}
}

static void note(struct finder *x, const struct ptx_operand *o,
		 void (*what)(struct finder *x, struct ptx_name n, uint32_t var)) {
	what(x, o->name, o->var);
	what(x, o->pair, o->pair_var);
	for (uint32_t i = 0; i < o->n_elements; i++) {
		const struct ptx_operand *e = &x->m->operands[o->elements + i];

		what(x, e->name, e->var);
	}
}

static void look_at_insn(struct finder *x, const struct ptx_stmt *s) {
	const struct ptx_operand *o = &x->m->operands[s->operands];
	uint32_t n_results = s->op->class == OPCODE_CALL ? 1 : s->op->n_results;

	if (s->op->class == OPCODE_OTHER_GRIDS) {
		return; /* twins have none */
	}
	n_results = n_results < s->n_operands ? n_results : s->n_operands;
	if (x->undefined) {
		note_read(x, s->guard, s->guard_var);
		for (uint32_t i = n_results; i < s->n_operands; i++) {
			note(x, &o[i], note_read);
		}
	}
	if (n_results > 0 && s->guard.len == 0) {
		note(x, o, note_write);
	}
}

/* From what is written when block @b begins to what is when it ends, in @now. */
static void look_at_block(struct finder *x, uint32_t b) {
	memcpy(x->now, &x->written[b * x->words], x->words * sizeof(*x->now));
	for (uint32_t i = x->cfg.blocks[b].first; i < x->cfg.blocks[b].end; i++) {
		if (x->m->stmts[i].kind == PTX_STMT_INSN) {
			look_at_insn(x, &x->m->stmts[i]);
		}
	}
}

/* Return: whether some set is smaller than before. */
static bool follow_all(struct finder *x) {
	bool changed = false;

	for (uint32_t b = 0; b < x->cfg.n_blocks; b++) {
		const struct cfg_block *block = &x->cfg.blocks[b];

		look_at_block(x, b);
		for (uint32_t e = block->edges; e < block->edges + block->n_edges; e++) {
			uint64_t *next = &x->written[x->cfg.edges[e] * x->words];

			for (size_t i = 0; i < x->words; i++) {
				changed |= (next[i] & ~x->now[i]) != 0;
				next[i] &= x->now[i];
			}
		}
	}
	return changed;
}

/* Nothing is found if there is no memory, or too much to do. */
static void find(struct finder *x) {
	size_t n_sets = (size_t)x->cfg.n_blocks + 1; /* the end has one, too */

	x->words = x->registers->n / 64 + 1;
	if (x->cfg.n_blocks == 0 || n_sets > WORDS_MAX / x->words) {
		return;
	}
	x->written = malloc(n_sets * x->words * sizeof(*x->written));
	x->now = malloc(x->words * sizeof(*x->now));
	if (!x->written || !x->now) {
		return;
	}
	memset(x->written, 0xff, n_sets * x->words * sizeof(*x->written));
	memset(x->written, 0, x->words * sizeof(*x->written));
	for (int i = 0; i < ROUNDS_MAX && follow_all(x); i++) {
	}
	x->undefined = calloc((size_t)x->registers->n + 1, sizeof(bool));
	for (uint32_t b = 0; x->undefined && b < x->cfg.n_blocks; b++) {
		look_at_block(x, b);
	}
}

bool *undefined_find(const struct module_facts *facts, const struct registers *registers,
		     const struct ptx_func *f) {
	struct finder x = {.m = facts->m, .registers = registers};

	if (cfg_init(&x.cfg, facts, f) < 0) {
		return NULL;
	}
	find(&x);
	free(x.now);
	free(x.written);
	cfg_deinit(&x.cfg);
	return x.undefined;
}
