/*
 * known.c: see known.h. Registers of one name in several braces count as one.
 */
#include "shim/ptx/known.h"

enum known_value {
	KNOWN_NOT,
	KNOWN_FULL,
	KNOWN_31,
};

static enum known_value constant(const struct ptx_operand *o) {
	if (o->kind != PTX_OPERAND_INT) {
		return KNOWN_NOT;
	}
	return (uint32_t)o->value == UINT32_MAX ? KNOWN_FULL
	       : o->value == 31			? KNOWN_31
						: KNOWN_NOT;
}

/* Notes one more value of a register. */
static int note(struct known *k, struct ptx_name n, enum known_value v) {
	uint32_t old = ptx_names_find(&k->names, n);

	if (old == KNOWN_NOT || old == v) {
		return 0;
	}
	return ptx_names_push(&k->names, n, old == PTX_NAMES_NONE ? v : KNOWN_NOT);
}

int known_init(struct known *k, const struct ptx_module *m, const struct ptx_func *f) {
	struct known out = {0};
	int r = 0;

	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts && r == 0; i++) {
		const struct ptx_stmt *s = &m->stmts[i];
		const struct ptx_operand *o = &m->operands[s->operands];
		bool mov;

		if (s->kind != PTX_STMT_INSN || s->n_operands == 0) {
			continue;
		}
		mov = ptx_name_is(ptx_opcode_part(s->opcode, 0), "mov") && s->n_operands == 2;
		if (o->kind == PTX_OPERAND_REG) {
			r = note(&out, o->name, mov ? constant(&o[1]) : KNOWN_NOT);
		}
		for (uint32_t e = 0; e < o->n_elements && r == 0; e++) {
			r = note(&out, m->operands[o->elements + e].name, KNOWN_NOT);
		}
		if (r == 0 && o->pair.len > 0) {
			r = note(&out, o->pair, KNOWN_NOT);
		}
	}
	if (r < 0) {
		known_deinit(&out);
		return r;
	}
	*k = out;
	return 0;
}

void known_deinit(struct known *k) {
	ptx_names_deinit(&k->names);
}

static bool is(const struct known *k, const struct ptx_operand *o, enum known_value v) {
	return constant(o) == v ||
	       (o->kind == PTX_OPERAND_REG && ptx_names_find(&k->names, o->name) == v);
}

bool known_is_full_mask(const struct known *k, const struct ptx_operand *o) {
	return is(k, o, KNOWN_FULL);
}

bool known_is_31(const struct known *k, const struct ptx_operand *o) {
	return is(k, o, KNOWN_31);
}
