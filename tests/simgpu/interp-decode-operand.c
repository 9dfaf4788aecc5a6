/*
 * interp-decode-operand.c: operands to slots: constants, registers, predicates and addresses.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdlib.h>

uint32_t decode_temp(struct decoder *d) {
	struct function *f = &d->functions[d->current];

	d->temps++;
	if (d->temps > f->max_temps) {
		f->max_temps = d->temps;
	}
	return f->first_temp + d->temps - 1;
}

static bool constant_is_fixup(const struct interp_module *m, uint32_t constant) {
	for (size_t i = 0; i < m->n_fixups; i++) {
		if (m->fixups[i].constant == constant) {
			return true;
		}
	}
	return false;
}

static int constant_rehash(struct decoder *d) {
	struct interp_module *m = d->m;
	size_t size = d->const_hash_size ? 2 * d->const_hash_size : 256;
	uint32_t *hash = calloc(size, sizeof(*hash));

	if (!hash) {
		return -ENOMEM;
	}
	free(d->const_hash);
	d->const_hash = hash;
	d->const_hash_size = size;
	for (size_t i = 0; i < m->n_constants; i++) {
		size_t at = (m->constants[i].lane[0] * 0x9e3779b97f4a7c15 >> 20) & (size - 1);

		if (constant_is_fixup(m, (uint32_t)i)) {
			continue;
		}
		while (hash[at]) {
			at = (at + 1) & (size - 1);
		}
		hash[at] = (uint32_t)i + 1;
	}
	return 0;
}

static int constant_append(struct interp_module *m, uint64_t value) {
	int r = decode_grow(&m->constants, m->n_constants, &m->cap_constants,
			    sizeof(*m->constants));

	if (r < 0) {
		return r;
	}
	for (unsigned l = 0; l < WARP_LANES; l++) {
		m->constants[m->n_constants].lane[l] = value;
	}
	m->n_constants++;
	return 0;
}

/* Variables' addresses come later: each has a constant of its own, which is not in the hash, and a
 * fixup. */
static int constant_of_var(struct decoder *d, uint64_t addend, uint32_t var, int32_t *ret) {
	struct interp_module *m = d->m;
	int r;

	for (size_t i = 0; i < m->n_fixups; i++) {
		if (m->fixups[i].var == var && (uint64_t)m->fixups[i].addend == addend) {
			*ret = ~(int32_t)m->fixups[i].constant;
			return 0;
		}
	}
	r = decode_grow(&m->fixups, m->n_fixups, &m->cap_fixups, sizeof(*m->fixups));
	if (r == 0) {
		r = constant_append(m, addend);
	}
	if (r < 0) {
		return r;
	}
	m->fixups[m->n_fixups++] = (struct fixup){
		.constant = (uint32_t)m->n_constants - 1, .var = var, .addend = (int64_t)addend};
	*ret = ~(int32_t)(m->n_constants - 1);
	return 0;
}

int decode_constant(struct decoder *d, uint64_t value, uint32_t var, int32_t *ret) {
	struct interp_module *m = d->m;
	size_t at;
	int r = 0;

	if (var != UINT32_MAX) {
		return constant_of_var(d, value, var, ret);
	}
	if (2 * (m->n_constants + 1) > d->const_hash_size) {
		r = constant_rehash(d);
		if (r < 0) {
			return r;
		}
	}
	at = (value * 0x9e3779b97f4a7c15 >> 20) & (d->const_hash_size - 1);
	for (; d->const_hash[at]; at = (at + 1) & (d->const_hash_size - 1)) {
		uint32_t c = d->const_hash[at] - 1;

		if (m->constants[c].lane[0] == value) {
			*ret = ~(int32_t)c;
			return 0;
		}
	}
	r = constant_append(m, value);
	if (r < 0) {
		return r;
	}
	d->const_hash[at] = (uint32_t)m->n_constants;
	*ret = ~(int32_t)(m->n_constants - 1);
	return 0;
}

static uint64_t float_literal(const struct ptx_operand *o, enum ptx_type type) {
	uint64_t bits = 0;
	float f = (float)o->fvalue;

	if (type == PTX_TYPE_F16) {
		return half_from_double(o->fvalue, ROUND_RN);
	}
	if (type == PTX_TYPE_BF16) {
		return bfloat_from_double(o->fvalue, ROUND_RN);
	}
	if (type == PTX_TYPE_F32 || (type != PTX_TYPE_F64 && o->is_f32)) {
		memcpy(&bits, &f, sizeof(f));
	} else {
		memcpy(&bits, &o->fvalue, sizeof(bits));
	}
	return bits;
}

/* A special register, read into @slot. */
static int emit_special(struct decoder *d, int number, uint64_t addend, uint32_t slot) {
	struct insn in = decode_blank(d, move_special);

	in.mode = (uint8_t)number;
	in.imm = (int64_t)addend;
	in.d[0] = (int32_t)slot;
	return decode_emit(d, &in);
}

static int src_symbol(struct decoder *d, const struct ptx_operand *o, int32_t *ret) {
	const struct symbol *s = decode_lookup(d, o->name, NULL);
	uint64_t offset = (uint64_t)o->value;
	struct insn in;
	uint32_t temp;

	switch (s ? s->kind : SYMBOL_LABEL) {
	case SYMBOL_VAR:
		return decode_constant(d, offset, s->value, ret);
	case SYMBOL_FUNC:
		return decode_constant(d, INTERP_FUNCTION_FIRST + s->value, UINT32_MAX, ret);
	case SYMBOL_ENTRY_PARAM:
		return decode_constant(d, s->value + offset, UINT32_MAX, ret);
	case SYMBOL_SHARED:
		if (!d->shared[s->value].dynamic) {
			return decode_constant(d, d->shared[s->value].offset + offset, UINT32_MAX,
					       ret);
		}
		temp = decode_temp(d);
		*ret = (int32_t)temp;
		return emit_special(d, MOVE_DYNAMIC_SHARED, offset, temp);
	case SYMBOL_LOCAL:
		temp = decode_temp(d);
		in = decode_blank(d, move_local);
		in.d[0] = *ret = (int32_t)temp;
		in.imm = (int64_t)(s->value + offset);
		return decode_emit(d, &in);
	default:
		return -ENOTSUP;
	}
}

static int src_reg(struct decoder *d, const struct ptx_operand *o, int32_t *ret) {
	uint32_t index, temp;
	const struct symbol *s = decode_lookup(d, o->name, &index);
	int special;

	if (s) {
		if (s->kind != SYMBOL_REG) {
			return -ENOTSUP;
		}
		*ret = (int32_t)(s->value + index);
		return 0;
	}
	special = move_special_number(o->name);
	if (special < 0) {
		return -ENOTSUP;
	}
	temp = decode_temp(d);
	*ret = (int32_t)temp;
	return emit_special(d, special, 0, temp);
}

int decode_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type type, int32_t *ret) {
	switch (o->kind) {
	case PTX_OPERAND_REG:
		return o->negated ? -ENOTSUP : src_reg(d, o, ret);
	case PTX_OPERAND_INT:
		return decode_constant(d, (uint64_t)o->value, UINT32_MAX, ret);
	case PTX_OPERAND_FLOAT:
		return decode_constant(d, float_literal(o, type), UINT32_MAX, ret);
	case PTX_OPERAND_SYMBOL:
		return src_symbol(d, o, ret);
	default:
		return -ENOTSUP;
	}
}

int decode_dst(struct decoder *d, const struct ptx_operand *o, int32_t *ret) {
	uint32_t index;
	const struct symbol *s;

	if (o->kind == PTX_OPERAND_SINK) {
		*ret = (int32_t)decode_temp(d);
		return 0;
	}
	s = o->kind == PTX_OPERAND_REG ? decode_lookup(d, o->name, &index) : NULL;
	if (!s || s->kind != SYMBOL_REG) {
		return -ENOTSUP;
	}
	*ret = (int32_t)(s->value + index);
	return 0;
}

int decode_pred_name(struct decoder *d, struct ptx_name name, int32_t *ret) {
	uint32_t index;
	const struct symbol *s;

	if (ptx_name_is(name, "_")) {
		*ret = -1;
		return 0;
	}
	s = decode_lookup(d, name, &index);
	if (!s || s->kind != SYMBOL_PRED) {
		return -ENOTSUP;
	}
	*ret = (int32_t)(s->value + index);
	return 0;
}

int decode_pred_dst(struct decoder *d, struct ptx_name name, struct op *op, unsigned n) {
	op->in.preds |= (uint8_t)(INSN_PRED_D << n);
	return decode_pred_name(d, name, &op->in.d[n]);
}

int decode_pred_src(struct decoder *d, const struct ptx_operand *o, unsigned n, struct op *op) {
	op->in.preds |= (uint8_t)(INSN_PRED_S << n);
	if (o->kind == PTX_OPERAND_INT) {
		op->in.s[n] = o->value ? PRED_TRUE : PRED_FALSE;
		return 0;
	}
	if (o->kind != PTX_OPERAND_REG) {
		return -ENOTSUP;
	}
	if (o->negated) {
		op->in.flags |= (uint16_t)(INSN_NEGATE0 << n);
	}
	return decode_pred_name(d, o->name, &op->in.s[n]);
}

int decode_address(struct decoder *d, const struct ptx_operand *o, struct op *op, unsigned n,
		   int64_t *ret_offset) {
	struct ptx_operand base = *o;
	const struct symbol *s;

	if (o->kind != PTX_OPERAND_ADDR) {
		return -ENOTSUP;
	}
	*ret_offset = o->value;
	if (o->base_is_reg) {
		return src_reg(d, &base, &op->in.s[n]);
	}
	if (!o->name.len) {
		return decode_constant(d, 0, UINT32_MAX, &op->in.s[n]);
	}
	s = decode_lookup(d, o->name, NULL);
	if (s && s->kind == SYMBOL_LOCAL) {
		op->in.s[n] = SLOT_LOCAL;
		op->in.space = PTX_SPACE_LOCAL;
		*ret_offset += s->value;
		return 0;
	}
	if (s && s->kind == SYMBOL_SHARED) {
		op->in.space = PTX_SPACE_SHARED;
	}
	base.value = 0;
	return src_symbol(d, &base, &op->in.s[n]);
}
