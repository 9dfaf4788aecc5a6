/*
 * interp-decode-memory.c: loads, stores, atomics, addresses.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>

/* Elements of a scalar or vector operand into in->d: sources of a store, destinations of a load. */
static int decode_elements(struct decoder *d, struct op *op, const struct ptx_operand *o,
			   bool src) {
	const struct ptx_operand *e = o;
	uint32_t n = 1;
	int r = 0;

	if (o->kind == PTX_OPERAND_VECTOR) {
		e = d->m->ptx->operands + o->elements;
		n = o->n_elements;
	}
	if (n != op->vector || n > 4) {
		return -ENOTSUP;
	}
	for (uint32_t i = 0; i < n && r == 0; i++) {
		if (src) {
			r = decode_src(d, &e[i], op->types[0], &op->in.d[i]);
		} else if (e[i].kind != PTX_OPERAND_SINK) {
			r = decode_dst(d, &e[i], &op->in.d[i]);
		}
	}
	return r;
}

/* In an entry `param` is the launch's parameters, in a function the frame's own memory. */
static void settle_param_space(struct decoder *d, struct op *op) {
	if (op->in.space == PTX_SPACE_PARAM && !d->m->funcs[d->current].is_entry) {
		op->in.space = PTX_SPACE_LOCAL;
	}
}

static int decode_load(struct decoder *d, struct op *op) {
	const struct ptx_operand *a = &op->o[1];
	const struct symbol *s;
	int r;

	/* A cache policy may follow. */
	if (op->n < 2 || op->n > 3 || a->kind != PTX_OPERAND_ADDR) {
		return -ENOTSUP;
	}
	r = decode_elements(d, op, &op->o[0], false);
	if (r == 0) {
		r = decode_address(d, a, op, 0, &op->in.imm);
	}
	if (r < 0) {
		return r;
	}
	op->in.exec = mem_ld;
	settle_param_space(d, op);
	s = a->name.len && !a->base_is_reg ? decode_lookup(d, a->name, NULL) : NULL;
	if (s && s->kind == SYMBOL_ENTRY_PARAM) {
		uint64_t end = (uint64_t)ptx_type_bytes(op->types[0]) * op->vector;

		if (a->value < 0 || (uint64_t)a->value + end > s->size ||
		    (s->value + (uint64_t)a->value) % ptx_type_bytes(op->types[0])) {
			return -ENOTSUP;
		}
		op->in.exec = mem_ld_param;
		op->in.imm = s->value + a->value;
	}
	return decode_emit(d, &op->in);
}

static int decode_store(struct decoder *d, struct op *op) {
	int r;

	if (op->n < 2 || op->n > 3 || op->o[0].kind != PTX_OPERAND_ADDR) {
		return -ENOTSUP;
	}
	r = decode_elements(d, op, &op->o[1], true);
	if (r == 0) {
		r = decode_address(d, &op->o[0], op, 0, &op->in.imm);
	}
	if (r < 0) {
		return r;
	}
	op->in.exec = mem_st;
	settle_param_space(d, op);
	return decode_emit(d, &op->in);
}

static const struct {
	const char *name;
	uint8_t atom;
} atoms[] = {
	{"add", ATOM_ADD},   {"and", ATOM_AND}, {"or", ATOM_OR},   {"xor", ATOM_XOR},
	{"exch", ATOM_EXCH}, {"cas", ATOM_CAS}, {"min", ATOM_MIN}, {"max", ATOM_MAX},
	{"inc", ATOM_INC},   {"dec", ATOM_DEC},
};

static bool atom_parse(struct op *op, bool is_red) {
	enum ptx_type type = op->types[0];
	bool is_float = type >= PTX_TYPE_F16 && type <= PTX_TYPE_F64, found = false;

	for (size_t i = 0; i < sizeof(atoms) / sizeof(*atoms); i++) {
		if (strcmp(op->key + (is_red ? 4 : 5), atoms[i].name) == 0) {
			op->in.mode = atoms[i].atom;
			found = true;
		}
	}
	if (!found || op->n_types != 1 || ptx_type_bytes(type) < 2 || ptx_type_bytes(type) > 8) {
		return false;
	}
	if (is_float) {
		bool wide = type == PTX_TYPE_F32 || type == PTX_TYPE_F64;

		return op->in.mode == ATOM_ADD ||
		       (!wide && (op->in.mode == ATOM_MIN || op->in.mode == ATOM_MAX));
	}
	return ptx_type_bytes(type) > 2 || op->in.mode == ATOM_CAS || op->in.mode == ATOM_EXCH;
}

/* atom.OP d, [a], b[, c]   red.OP [a], b; a cache policy is not taken. */
static int decode_atom(struct decoder *d, struct op *op, bool is_red) {
	unsigned at = is_red ? 0 : 1, want;
	int r = 0;

	if (op->vector != 1 || op->key[is_red ? 3 : 4] != '.' || !atom_parse(op, is_red)) {
		return -ENOTSUP;
	}
	want = at + 2 + (op->in.mode == ATOM_CAS);
	if (op->n != want || op->o[at].kind != PTX_OPERAND_ADDR) {
		return -ENOTSUP;
	}
	if (!is_red && op->o[0].kind != PTX_OPERAND_SINK) {
		r = decode_dst(d, &op->o[0], &op->in.d[0]);
	}
	if (r == 0) {
		r = decode_address(d, &op->o[at], op, 0, &op->in.imm);
	}
	for (unsigned i = 1; at + i < op->n && r == 0; i++) {
		r = decode_src(d, &op->o[at + i], op->types[0], &op->in.s[i]);
	}
	op->in.exec = mem_atom;
	op->in.flags |= INSN_ORDERED;
	return r < 0 ? r : decode_emit(d, &op->in);
}

/* cp.async.ca.shared.global [dst], [src], size[, src-size or ignore-src] */
static int decode_cp_async(struct decoder *d, struct op *op) {
	int64_t offset;
	int r;

	if (op_key(op, "cp.async.commit_group") || op_key(op, "cp.async.wait_group") ||
	    op_key(op, "cp.async.wait_all")) {
		op->in.exec = control_nop; /* copies are done when they are issued */
		return decode_emit(d, &op->in);
	}
	if (!op_key(op, "cp.async") || op->n < 3 || op->n > 4 || op->o[2].kind != PTX_OPERAND_INT ||
	    (op->o[2].value != 4 && op->o[2].value != 8 && op->o[2].value != 16)) {
		return -ENOTSUP;
	}
	op->in.exec = mem_cp_async;
	op->in.n = (uint8_t)op->o[2].value;
	op->in.s[3] = PRED_FALSE;
	r = decode_address(d, &op->o[0], op, 0, &op->in.imm);
	if (r == 0) {
		r = decode_address(d, &op->o[1], op, 1, &offset);
	}
	if (r == 0 && offset != (int32_t)offset) {
		r = -ENOTSUP;
	}
	if (r < 0) {
		return r;
	}
	op->in.target = (uint32_t)offset;
	r = decode_constant(d, (uint64_t)op->o[2].value, UINT32_MAX, &op->in.s[2]);
	if (r == 0 && op->n == 4 && decode_pred_src(d, &op->o[3], 3, op) == -ENOTSUP) {
		op->in.s[3] = PRED_FALSE;
		op->in.flags &= (uint16_t)~INSN_NEGATE3;
		op->in.preds = 0;
		r = decode_src(d, &op->o[3], PTX_TYPE_U32, &op->in.s[2]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

/* cvta[.to].SPACE.u64 d, a */
static int decode_cvta(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 2 || op->space == PTX_SPACE_NONE) {
		return -ENOTSUP;
	}
	op->in.exec = mem_cvta;
	op->in.mode = op_key(op, "cvta.to");
	settle_param_space(d, op);
	r = decode_dst(d, &op->o[0], &op->in.d[0]);
	if (r == 0) {
		r = decode_src(d, &op->o[1], op->types[0], &op->in.s[0]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_isspacep(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 2 || op->space == PTX_SPACE_NONE || op->o[0].kind != PTX_OPERAND_REG) {
		return -ENOTSUP;
	}
	op->in.exec = mem_isspacep;
	r = decode_pred_dst(d, op->o[0].name, op, 0);
	if (r == 0) {
		r = decode_src(d, &op->o[1], PTX_TYPE_U64, &op->in.s[0]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

int decode_memory(struct decoder *d, struct op *op, bool *ret_mine) {
	struct ptx_name first = op->part[0];
	bool sized = op->n_types == 1 && ptx_type_bytes(op->types[0]) > 0 &&
		     ptx_type_bytes(op->types[0]) <= 8;

	*ret_mine = true;
	if (ptx_name_is(first, "ld") || ptx_name_is(first, "ldu")) {
		return sized && !strchr(op->key, '.') ? decode_load(d, op) : -ENOTSUP;
	}
	if (ptx_name_is(first, "st")) {
		return sized && !strchr(op->key, '.') ? decode_store(d, op) : -ENOTSUP;
	}
	if (ptx_name_is(first, "atom") || ptx_name_is(first, "red")) {
		return decode_atom(d, op, ptx_name_is(first, "red"));
	}
	if (ptx_name_is(first, "cp")) {
		return decode_cp_async(d, op);
	}
	if (ptx_name_is(first, "cvta")) {
		return decode_cvta(d, op);
	}
	if (ptx_name_is(first, "isspacep")) {
		return decode_isspacep(d, op);
	}
	if (ptx_name_is(first, "fence") || ptx_name_is(first, "membar")) {
		op->in.exec = mem_fence;
		return decode_emit(d, &op->in);
	}
	if (ptx_name_is(first, "prefetch") || ptx_name_is(first, "prefetchu") ||
	    ptx_name_is(first, "applypriority") || ptx_name_is(first, "discard")) {
		op->in.exec = control_nop;
		return decode_emit(d, &op->in);
	}
	*ret_mine = false;
	return 0;
}
