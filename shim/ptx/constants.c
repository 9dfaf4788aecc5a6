/*
 * constants.c: follows addresses of constants from the instructions that name them through
 * arithmetic to ld.const, without regard to order: a register either always holds such an address
 * or never.
 */
#include "shim/ptx/constants.h"

#include <errno.h>
#include <stdlib.h>

#include "shim/ptx/opcodes.h"
#include "shim/ptx/registers.h"

/* More rounds than any chain of moves against the order of the text takes. */
#define ROUNDS_MAX 64

enum {
	HOLDS_CONST = 1, /* some instruction puts such an address there */
	HOLDS_OTHER = 2, /* some instruction puts something else there */
};

struct follower {
	const struct ptx_module *m;
	struct registers registers;
	uint8_t *holds; /* owned */
	bool changed;
	struct refusal *out;
};

static const char astray[] = "it uses a constant's address in a way that can't be followed";

static void refuse(struct follower *x, const struct ptx_stmt *s) {
	if (!x->out->reason) {
		*x->out = (struct refusal){
			.reason = astray, .stmt = (uint32_t)(s - x->m->stmts), .line = s->line};
	}
}

static bool is_const_name(const struct follower *x, const struct ptx_operand *o) {
	return facts_is_module_var(x->m, o) && x->m->vars[o->var].space == PTX_SPACE_CONST;
}

static uint8_t held(const struct follower *x, struct ptx_name n, uint32_t var) {
	uint32_t i = registers_find(&x->registers, n, var);

	return i == PTX_NONE ? HOLDS_OTHER : x->holds[i];
}

/* Whether a constant's address, or a register that may hold one, is in @o. */
static bool carries(const struct follower *x, const struct ptx_operand *o) {
	if (o->kind == PTX_OPERAND_SYMBOL) {
		return is_const_name(x, o);
	}
	if (o->kind == PTX_OPERAND_REG || o->base_is_reg) {
		return held(x, o->name, o->var) & HOLDS_CONST;
	}
	for (uint32_t i = 0; i < o->n_elements; i++) {
		const struct ptx_operand *e = &x->m->operands[o->elements + i];

		if (e->kind == PTX_OPERAND_SYMBOL
			    ? is_const_name(x, e)
			    : (e->kind == PTX_OPERAND_REG || e->base_is_reg) &&
				      (held(x, e->name, e->var) & HOLDS_CONST)) {
			return true;
		}
	}
	return false;
}

static void hold(struct follower *x, struct ptx_name n, uint32_t var, uint8_t what) {
	uint32_t i = registers_find(&x->registers, n, var);

	if (i != PTX_NONE) {
		x->changed |= (x->holds[i] | what) != x->holds[i];
		x->holds[i] |= what;
	}
}

/* Comparisons give no address. */
static bool passes_on(const struct ptx_stmt *s) {
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);

	return s->op->class == OPCODE_PLAIN && !ptx_name_is(first, "setp") &&
	       !ptx_name_is(first, "set");
}

static void follow(struct follower *x, const struct ptx_stmt *s) {
	const struct opcode *op = s->op;
	const struct ptx_operand *o = &x->m->operands[s->operands];
	uint8_t what = HOLDS_OTHER;
	uint32_t results = op->class == OPCODE_CALL ? 1 : op->n_results;

	if (s->n_operands < results || results == 0) {
		return;
	}
	for (uint32_t i = 1; i < s->n_operands && passes_on(s); i++) {
		if (carries(x, &o[i])) {
			what = HOLDS_CONST;
		}
	}
	if (o->kind == PTX_OPERAND_REG) {
		hold(x, o->name, o->var, what);
	}
	for (uint32_t i = 0; i < o->n_elements; i++) {
		hold(x, x->m->operands[o->elements + i].name, x->m->operands[o->elements + i].var,
		     what);
	}
	if (o->pair.len > 0) {
		hold(x, o->pair, o->pair_var, what);
	}
}

static bool is_load_const(const struct ptx_stmt *s) {
	return ptx_name_is(ptx_opcode_part(s->opcode, 0), "ld") &&
	       ptx_opcode_has(s->opcode, "const");
}

/* Allowed: arithmetic, comparisons, and the address of ld.const, which must be nothing else. */
static void check(struct follower *x, const struct ptx_stmt *s) {
	const struct opcode *op = s->op;
	const struct ptx_operand *o = &x->m->operands[s->operands];

	if (is_load_const(s)) {
		bool ok = s->n_operands == 2 && o[1].kind == PTX_OPERAND_ADDR &&
			  (o[1].base_is_reg ? held(x, o[1].name, o[1].var) == HOLDS_CONST
					    : is_const_name(x, &o[1]));

		if (!ok) {
			refuse(x, s);
		}
		return;
	}
	for (uint32_t i = op->n_results; i < s->n_operands; i++) {
		if (is_const_name(x, &o[i]) && o[i].kind == PTX_OPERAND_ADDR) {
			refuse(x, s);
		} else if (carries(x, &o[i]) &&
			   (op->class != OPCODE_PLAIN ||
			    ptx_name_is(ptx_opcode_part(s->opcode, 0), "cvta"))) {
			refuse(x, s);
		}
	}
}

static bool uses_constants(const struct ptx_module *m, const struct ptx_func *f) {
	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
		const struct ptx_stmt *s = &m->stmts[i];

		if (s->kind != PTX_STMT_INSN) {
			continue;
		}
		for (uint32_t k = 0; k < s->n_operands; k++) {
			const struct ptx_operand *o = &m->operands[s->operands + k];

			if (facts_is_module_var(m, o) && m->vars[o->var].space == PTX_SPACE_CONST) {
				return true;
			}
		}
		if (is_load_const(s)) {
			return true;
		}
	}
	return false;
}

static void run(struct follower *x, const struct ptx_func *f) {
	unsigned rounds = 0;

	do {
		x->changed = false;
		for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
			if (x->m->stmts[i].kind == PTX_STMT_INSN) {
				follow(x, &x->m->stmts[i]);
			}
		}
	} while (x->changed && ++rounds < ROUNDS_MAX);
	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
		if (x->m->stmts[i].kind == PTX_STMT_INSN) {
			check(x, &x->m->stmts[i]);
		}
	}
	if (x->changed && !x->out->reason) {
		*x->out = (struct refusal){.reason = astray, .stmt = PTX_NONE, .line = f->line};
	}
}

int constants_check(const struct ptx_module *m, const struct ptx_func *f, struct refusal *ret) {
	struct refusal out = {.stmt = PTX_NONE};
	struct follower x = {.m = m, .out = &out};
	int r;

	if (!uses_constants(m, f)) {
		*ret = out;
		return 0;
	}
	r = registers_init(&x.registers, m, f);
	if (r == -E2BIG) {
		*ret = (struct refusal){.reason = astray, .stmt = PTX_NONE, .line = f->line};
		return 0;
	}
	if (r < 0) {
		return r;
	}
	x.holds = calloc((size_t)x.registers.n + 1, sizeof(*x.holds));
	if (!x.holds) {
		registers_deinit(&x.registers);
		return -ENOMEM;
	}
	run(&x, f);
	registers_deinit(&x.registers);
	free(x.holds);
	*ret = out;
	return 0;
}
