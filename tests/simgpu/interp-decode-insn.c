/*
 * interp-decode-insn.c: opcodes taken apart, and the instructions that only compute.
 *
 * The handler tables know what there is; this file takes opcodes apart so that it can be looked up.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool op_key(const struct op *op, const char *key) {
	return strcmp(op->key, key) == 0;
}

bool op_has(const struct op *op, const char *part) {
	for (unsigned i = 1; i < op->n_parts; i++) {
		if (ptx_name_is(op->part[i], part)) {
			return true;
		}
	}
	return false;
}

struct insn decode_blank(const struct decoder *d, exec_fn exec) {
	return (struct insn){.exec = exec,
			     .d = {-1, -1, -1, -1},
			     .s = {SLOT_LOCAL, SLOT_LOCAL, SLOT_LOCAL, SLOT_LOCAL},
			     .guard = -1,
			     .stmt = d->stmt,
			     .n = 1,
			     .cost = 1};
}

int decode_emit(struct decoder *d, const struct insn *in) {
	struct interp_module *m = d->m;
	int r = decode_grow(&m->insns, m->n_insns, &m->cap_insns, sizeof(*m->insns));

	if (r == 0) {
		m->insns[m->n_insns++] = *in;
	}
	return r;
}

static const struct {
	const char *name;
	uint8_t round;
} rounds[] = {
	{"rn", ROUND_RN},   {"rz", ROUND_RZ},	{"rm", ROUND_RM},
	{"rp", ROUND_RP},   {"rna", ROUND_RNA}, {"rni", ROUND_RNI},
	{"rzi", ROUND_RZI}, {"rmi", ROUND_RMI}, {"rpi", ROUND_RPI},
};

static const struct {
	const char *name;
	uint16_t flag;
} flags[] = {
	{"ftz", INSN_FTZ},	    {"sat", INSN_SAT},	       {"approx", INSN_APPROX},
	{"full", INSN_APPROX},	    {"relu", INSN_RELU},       {"NaN", INSN_NAN},
	{"volatile", INSN_ORDERED}, {"relaxed", INSN_ORDERED}, {"acquire", INSN_ORDERED},
	{"release", INSN_ORDERED},  {"acq_rel", INSN_ORDERED}, {"mmio", INSN_ORDERED},
};

static const struct {
	const char *name;
	uint8_t space;
} spaces[] = {
	{"global", PTX_SPACE_GLOBAL},	   {"shared", PTX_SPACE_SHARED},
	{"shared::cta", PTX_SPACE_SHARED}, {"local", PTX_SPACE_LOCAL},
	{"param", PTX_SPACE_PARAM},	   {"param::entry", PTX_SPACE_PARAM},
	{"param::func", PTX_SPACE_PARAM},  {"const", PTX_SPACE_CONST},
};

/* Parts that change nothing here: hints, scopes, forms. */
static const char *const ignored[] = {
	"weak",	   "ca",  "cg",	 "cs",	"lu",	   "cv",    "wb", "wt", "nc",	 "cta",
	"cluster", "gpu", "sys", "uni", "aligned", "noftz", "gl", "sc", "proxy", "alias",
};

static bool op_take_part(struct op *op, struct ptx_name p) {
	enum ptx_type type = ptx_type_from_name(p);

	if (type != PTX_TYPE_NONE) {
		if (op->n_types < 4) {
			op->types[op->n_types++] = type;
		}
		return true;
	}
	for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
		if (ptx_name_is(p, rounds[i].name)) {
			op->round = rounds[i].round;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (ptx_name_is(p, flags[i].name)) {
			op->flags |= flags[i].flag;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		if (ptx_name_is(p, spaces[i].name)) {
			op->space = op->space ? op->space : spaces[i].space;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++) {
		if (ptx_name_is(p, ignored[i]) && !(ptx_name_is(p, "uni") && op_key(op, "vote"))) {
			return true;
		}
	}
	if (ptx_name_is(p, "sync")) {
		op->sync = true;
		return true;
	}
	if (ptx_name_is(p, "v2") || ptx_name_is(p, "v4") || ptx_name_is(p, "v8")) {
		op->vector = (uint8_t)(p.s[1] - '0');
		return true;
	}
	return p.len > 4 && (memcmp(p.s, "L1::", 4) == 0 || memcmp(p.s, "L2::", 4) == 0);
}

static int op_parse(struct decoder *d, const struct ptx_stmt *stmt, struct op *op) {
	size_t used = 0;

	*op = (struct op){.stmt = stmt,
			  .o = d->m->ptx->operands + stmt->operands,
			  .n = stmt->n_operands,
			  .vector = 1};
	for (unsigned i = 0; i < OP_PARTS_MAX; i++) {
		struct ptx_name p = ptx_opcode_part(stmt->opcode, i);

		if (!p.len) {
			break;
		}
		op->part[op->n_parts++] = p;
		if (i > 0 && op_take_part(op, p)) {
			continue;
		}
		if (used + p.len + 2 > sizeof(op->key)) {
			return -ENOTSUP;
		}
		used += (size_t)snprintf(op->key + used, sizeof(op->key) - used, "%s%.*s",
					 i ? "." : "", (int)p.len, p.s);
	}
	if (op->space == PTX_SPACE_CONST) {
		op->space = PTX_SPACE_GLOBAL; /* constants live in device memory */
	}
	return 0;
}

static int op_begin(struct decoder *d, struct op *op) {
	op->in = decode_blank(d, control_unsupported);
	op->in.flags = op->flags;
	op->in.round = op->round;
	op->in.space = op->space;
	op->in.type = (uint8_t)op->types[0];
	op->in.type2 = (uint8_t)op->types[1];
	op->in.n = op->vector;
	op->in.cost = cost_of(op->stmt->opcode, op->space);
	if (op->stmt->guard.len) {
		op->in.guard_negated = op->stmt->guard_negated;
		return decode_pred_name(d, op->stmt->guard, &op->in.guard);
	}
	return 0;
}

/* The type that stands for others in the tables. */
static enum ptx_type table_type(enum ptx_type t) {
	switch (t) {
	case PTX_TYPE_B16:
	case PTX_TYPE_S16:
		return PTX_TYPE_U16;
	case PTX_TYPE_B32:
	case PTX_TYPE_S32:
		return PTX_TYPE_U32;
	case PTX_TYPE_B64:
	case PTX_TYPE_S64:
		return PTX_TYPE_U64;
	default:
		return t;
	}
}

static const struct alu_entry *table_find(const char *key, enum ptx_type type) {
	static const struct alu_entry *const tables[] = {
		alu_int_table, alu_bits_table, alu_float_table, alu_half_table, alu_pred_table,
	};

	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		for (const struct alu_entry *e = tables[t]; e->opcode; e++) {
			if (e->type == type && strcmp(e->opcode, key) == 0) {
				return e;
			}
		}
	}
	return NULL;
}

static const struct alu_entry *alu_find(struct op *op) {
	static const char tail[] = ".xorsign.abs";
	size_t n = strlen(op->key);
	const struct alu_entry *e;

	if (n > sizeof(tail) && strcmp(op->key + n - sizeof(tail) + 1, tail) == 0) {
		op->key[n - sizeof(tail) + 1] = '\0';
		op->in.mode = 1;
	}
	if (op->n_types > 1 && strncmp(op->key, "dp", 2) != 0) {
		return NULL;
	}
	e = table_find(op->key, op->types[0]);
	return e ? e : table_find(op->key, table_type(op->types[0]));
}

/* What .cc and the c at the end of addc, subc, madc mean: see EXTENDED in interp-alu-int.c. */
static void alu_carry(struct op *op) {
	size_t n = strcspn(op->key, ".");

	if (strstr(op->key, ".cc")) {
		op->in.mode = 1;
	}
	if (n == 4 && op->key[3] == 'c' &&
	    (strncmp(op->key, "add", 3) == 0 || strncmp(op->key, "sub", 3) == 0 ||
	     strncmp(op->key, "mad", 3) == 0)) {
		op->in.mode2 = 1;
	}
}

/* "mad.lo.cc" as PTX writes it to "mad.cc.lo" as the table has it. */
static void alu_order_key(struct op *op) {
	char half[4];

	if (strncmp(op->key, "mad", 3) == 0) {
		char *cc = strstr(op->key, ".cc");

		if (cc && cc - op->key >= 6) {
			memcpy(half, cc - 3, 3);
			memcpy(cc - 3, ".cc", 3);
			memcpy(cc, half, 3);
		}
	}
}

static int decode_alu(struct decoder *d, struct op *op) {
	const struct alu_entry *e;
	int r = 0;

	alu_order_key(op);
	e = alu_find(op);
	if (!e || strlen(e->operands) != op->n) {
		return -ENOTSUP;
	}
	alu_carry(op);
	op->in.exec = e->exec;
	if (e->operands[0] == 'p') {
		r = op->o[0].kind == PTX_OPERAND_REG ? decode_pred_dst(d, op->o[0].name, op, 0)
						     : -ENOTSUP;
	} else {
		r = decode_dst(d, &op->o[0], &op->in.d[0]);
	}
	if (op->o[0].pair.len) {
		return -ENOTSUP;
	}
	for (unsigned i = 1; i < op->n && r == 0; i++) {
		r = e->operands[i] == 'p'
			    ? decode_pred_src(d, &op->o[i], i - 1, op)
			    : decode_src(d, &op->o[i], op->types[0], &op->in.s[i - 1]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_mov_vector(struct decoder *d, struct op *op, const struct ptx_operand *v,
			     bool pack) {
	const struct ptx_operand *e = d->m->ptx->operands + v->elements;
	int r = 0;

	if (v->n_elements < 2 || v->n_elements > 4 || v->n_elements == 3 ||
	    ptx_type_bytes(op->types[0]) < v->n_elements || ptx_type_bytes(op->types[0]) > 8) {
		return -ENOTSUP;
	}
	op->in.n = (uint8_t)v->n_elements;
	op->in.exec = pack ? move_pack : move_unpack;
	for (uint32_t i = 0; i < v->n_elements && r == 0; i++) {
		if (pack) {
			r = decode_src(d, &e[i], op->types[0], &op->in.s[i]);
		} else if (e[i].kind != PTX_OPERAND_SINK) {
			r = decode_dst(d, &e[i], &op->in.d[i]);
		}
	}
	if (r == 0) {
		r = pack ? decode_dst(d, &op->o[0], &op->in.d[0])
			 : decode_src(d, &op->o[1], op->types[0], &op->in.s[0]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_mov(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 2 || op->types[0] == PTX_TYPE_PRED || ptx_type_bytes(op->types[0]) > 8) {
		return op->types[0] == PTX_TYPE_PRED ? decode_alu(d, op) : -ENOTSUP;
	}
	if (op->o[1].kind == PTX_OPERAND_VECTOR) {
		return decode_mov_vector(d, op, &op->o[1], true);
	}
	if (op->o[0].kind == PTX_OPERAND_VECTOR) {
		return decode_mov_vector(d, op, &op->o[0], false);
	}
	op->in.exec = move_scalar;
	r = decode_dst(d, &op->o[0], &op->in.d[0]);
	if (r < 0) {
		return r;
	}
	/* A special register goes straight to where it is wanted. */
	if (op->o[1].kind == PTX_OPERAND_REG && !decode_lookup(d, op->o[1].name, NULL)) {
		int special = move_special_number(op->o[1].name);

		if (special < 0) {
			return -ENOTSUP;
		}
		op->in.exec = move_special;
		op->in.mode = (uint8_t)special;
		return decode_emit(d, &op->in);
	}
	r = decode_src(d, &op->o[1], op->types[0], &op->in.s[0]);
	return r < 0 ? r : decode_emit(d, &op->in);
}

static const struct {
	const char *name;
	uint8_t compare;
} compares[] = {
	{"eq", COMPARE_EQ},   {"ne", COMPARE_NE},   {"lt", COMPARE_LT},	  {"le", COMPARE_LE},
	{"gt", COMPARE_GT},   {"ge", COMPARE_GE},   {"lo", COMPARE_LT},	  {"ls", COMPARE_LE},
	{"hi", COMPARE_GT},   {"hs", COMPARE_GE},   {"equ", COMPARE_EQU}, {"neu", COMPARE_NEU},
	{"ltu", COMPARE_LTU}, {"leu", COMPARE_LEU}, {"gtu", COMPARE_GTU}, {"geu", COMPARE_GEU},
	{"num", COMPARE_NUM}, {"nan", COMPARE_NAN},
};

static bool compare_parse(struct op *op) {
	bool found = false;

	for (size_t i = 0; i < sizeof(compares) / sizeof(*compares); i++) {
		if (ptx_name_is(op->part[1], compares[i].name)) {
			op->in.mode = compares[i].compare;
			found = true;
		}
	}
	if (op_has(op, "and")) {
		op->in.mode2 = BOOL_AND;
	} else if (op_has(op, "or")) {
		op->in.mode2 = BOOL_OR;
	} else if (op_has(op, "xor")) {
		op->in.mode2 = BOOL_XOR;
	}
	return found;
}

/* setp.CMP[.BOOL].type p[|q], a, b[, [!]c]   set.CMP[.BOOL].dtype.stype d, a, b[, [!]c] */
static int decode_setp(struct decoder *d, struct op *op, bool is_set) {
	enum ptx_type type = is_set ? op->types[1] : op->types[0];
	int r;

	if (!compare_parse(op) || ptx_type_bytes(type) < 2 || ptx_type_bytes(type) > 8 ||
	    op->n != 3u + (op->in.mode2 != BOOL_NONE)) {
		return -ENOTSUP;
	}
	op->in.exec = is_set ? alu_set : alu_setp;
	op->in.type = (uint8_t)type;
	op->in.type2 = (uint8_t)op->types[0];
	if (is_set) {
		bool known = op->types[0] == PTX_TYPE_F32 || op->types[0] == PTX_TYPE_F16 ||
			     op->types[0] == PTX_TYPE_BF16 ||
			     table_type(op->types[0]) == PTX_TYPE_U32 ||
			     table_type(op->types[0]) == PTX_TYPE_U16;

		if (!known || type == PTX_TYPE_F16X2 || type == PTX_TYPE_BF16X2) {
			return -ENOTSUP;
		}
		r = decode_dst(d, &op->o[0], &op->in.d[0]);
	} else if (op->o[0].kind == PTX_OPERAND_SINK) {
		r = 0;
	} else {
		r = decode_pred_dst(d, op->o[0].name, op, 0);
	}
	if (r == 0 && op->o[0].pair.len) {
		r = decode_pred_dst(d, op->o[0].pair, op, 1);
	}
	for (unsigned i = 0; i < 2 && r == 0; i++) {
		r = decode_src(d, &op->o[1 + i], type, &op->in.s[i]);
	}
	if (r == 0 && op->n == 4) {
		r = decode_pred_src(d, &op->o[3], 2, op);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_cvt(struct decoder *d, struct op *op) {
	int r;

	op->in.exec = op->n_types == 2 ? cvt_handler(op->types[0], op->types[1]) : NULL;
	if (!op_key(op, "cvt") || !op->in.exec || op->n < 2 || op->n > 3) {
		return -ENOTSUP;
	}
	/* f32 to f32 of the same width with .rn etc. rounds to a whole number only with .rni etc.
	 */
	r = decode_dst(d, &op->o[0], &op->in.d[0]);
	for (unsigned i = 1; i < op->n && r == 0; i++) {
		r = decode_src(d, &op->o[i], op->types[1], &op->in.s[i - 1]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

static int decode_slct(struct decoder *d, struct op *op) {
	int r;

	if (op->n != 4 || op->n_types != 2) {
		return -ENOTSUP;
	}
	op->in.exec = alu_slct;
	r = decode_dst(d, &op->o[0], &op->in.d[0]);
	for (unsigned i = 1; i < 4 && r == 0; i++) {
		r = decode_src(d, &op->o[i], op->types[i == 3], &op->in.s[i - 1]);
	}
	return r < 0 ? r : decode_emit(d, &op->in);
}

int decode_insn(struct decoder *d, const struct ptx_stmt *stmt) {
	struct ptx_name first = ptx_opcode_part(stmt->opcode, 0);
	struct op op;
	bool mine = false;
	int r;

	r = op_parse(d, stmt, &op);
	if (r == 0) {
		r = op_begin(d, &op);
	}
	if (r == 0) {
		r = decode_memory(d, &op, &mine);
	}
	if (r == 0 && !mine) {
		r = decode_control(d, &op, &mine);
	}
	if (r < 0 || mine) {
		return r;
	}
	if (ptx_name_is(first, "mov")) {
		return decode_mov(d, &op);
	}
	if (ptx_name_is(first, "setp") || ptx_name_is(first, "set")) {
		return decode_setp(d, &op, ptx_name_is(first, "set"));
	}
	if (ptx_name_is(first, "cvt")) {
		return decode_cvt(d, &op);
	}
	if (ptx_name_is(first, "slct")) {
		return decode_slct(d, &op);
	}
	return decode_alu(d, &op);
}
