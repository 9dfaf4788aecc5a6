/*
 * interp-check.c: is an instruction that the interpreter does not know PTX at all? A driver refuses
 * a module with a name that nobody declared or an instruction that does not exist; instructions
 * that exist but are not simulated only keep their kernel from being launched.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdio.h>

#include "shim/ptx/opcodes.h"

static int refuse(struct decoder *d, const struct ptx_stmt *stmt, struct ptx_name name,
		  const char *why) {
	if (d->error) {
		snprintf(d->error, d->error_size, "line %u: '%.*s' %s", stmt->line,
			 (int)(name.len < 100 ? name.len : 100), name.s, why);
	}
	return -EINVAL;
}

/* @name as it stands in an operand: "%v.x" is an element of "%v". */
static bool is_declared(const struct decoder *d, struct ptx_name name, uint32_t var) {
	const char *dot = memchr(name.s, '.', name.len);
	struct ptx_name whole = {name.s, dot ? (uint32_t)(dot - name.s) : name.len};

	return var != PTX_NONE || decode_lookup(d, name, NULL) || decode_lookup(d, whole, NULL) ||
	       special_find(name)->kind != SPECIAL_UNKNOWN || move_special_number(name) >= 0;
}

static int check_operand(struct decoder *d, const struct ptx_stmt *stmt,
			 const struct ptx_operand *o) {
	bool named = o->kind == PTX_OPERAND_REG || o->kind == PTX_OPERAND_SYMBOL ||
		     o->kind == PTX_OPERAND_ADDR;

	if (named && o->name.len && !is_declared(d, o->name, o->var)) {
		return refuse(d, stmt, o->name, "is not declared");
	}
	if (o->pair.len && !ptx_name_is(o->pair, "_") && !is_declared(d, o->pair, o->pair_var)) {
		return refuse(d, stmt, o->pair, "is not declared");
	}
	return 0;
}

int check_insn(struct decoder *d, const struct ptx_stmt *stmt) {
	const struct ptx_operand *all = d->m->ptx->operands, *o = all + stmt->operands;
	struct ptx_name first = ptx_opcode_part(stmt->opcode, 0);
	int r = 0;

	/* istypep asks for kinds of textures; the rewriter's table has no use for it. */
	if (opcode_find(stmt->opcode)->class == OPCODE_UNKNOWN && !ptx_name_is(first, "istypep")) {
		return refuse(d, stmt, stmt->opcode, "is not an instruction");
	}
	if (stmt->guard.len && !is_declared(d, stmt->guard, stmt->guard_var)) {
		return refuse(d, stmt, stmt->guard, "is not declared");
	}
	for (uint32_t i = 0; i < stmt->n_operands && r == 0; i++) {
		bool group = o[i].kind == PTX_OPERAND_VECTOR || o[i].kind == PTX_OPERAND_LIST;

		r = check_operand(d, stmt, &o[i]);
		for (uint32_t k = 0; group && k < o[i].n_elements && r == 0; k++) {
			r = check_operand(d, stmt, &all[o[i].elements + k]);
		}
	}
	return r;
}
