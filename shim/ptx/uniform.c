/*
 * uniform.c: what threads have in common.
 *
 * Besides "uniform" some kinds of values are followed, because warps are told apart by them:
 * uniform multiples of 32, and 32 * uniform + lane, such as %tid.x. The second becomes uniform when
 * its low five bits are shifted out, masked away, or do not matter to a comparison. What goes up or
 * down by one from lane to lane becomes uniform where the lane's number is taken off, or added,
 * again.
 */
#include "shim/ptx/uniform.h"

#include <errno.h>
#include <stdlib.h>

#include "shim/ptx/known.h"
#include "shim/ptx/memory.h"
#include "shim/ptx/opcodes.h"
#include "shim/ptx/registers.h"

/* More rounds than any real function takes; then everything counts as diverged. */
#define ROUNDS_MAX 64

enum value {
	VALUE_NONE, /* not computed yet */
	VALUE_ZERO,
	VALUE_ROWS, /* uniform multiple of 32 */
	VALUE_SAME, /* uniform */
	VALUE_TID,  /* 32 * uniform + lane, in 32 bits, with a sign bit of 0 */
	VALUE_LANE, /* 32 * uniform + lane */
	VALUE_UP,   /* uniform + lane, as the register's width lets it wrap round */
	VALUE_BACK, /* 32 * uniform + 31 - lane */
	VALUE_DOWN, /* uniform - lane, wrapping round like VALUE_UP */
	VALUE_ANY,
};

struct study {
	const struct cfg *c;
	const struct ptx_module *m;
	const struct ptx_func *f;
	enum uniform_scope scope;
	struct registers registers;
	uint8_t *values; /* owned: enum value, by register: of all its values */
	/* What the latest value is, where it is sure to be that: in one block, and in the next if
	 * nothing else leads there. Good where local_epoch is epoch. Owned, like values. */
	uint8_t *local;
	uint32_t *local_epoch, epoch;
	bool *only_next; /* owned: by block, is only come to from the one before */
	/* Owned: by block, memories (memory.h) of which threads may see different values at its
	 * start; and where the study is. */
	uint8_t *unsettled, unsettled_here;
	bool passes_params;	   /* addresses of parameters that it gives to others are taken */
	bool *diverged, *parted;   /* as in struct uniform */
	const uint8_t *leavers;	   /* borrowed, or NULL */
	const struct quiet *quiet; /* the same */
	struct known known;
	bool changed;
};

static bool is_block(const struct study *u) {
	return u->scope == UNIFORM_BLOCK || u->scope == UNIFORM_BLOCK_MEMORY;
}

static bool is_rows(enum value v) {
	return v == VALUE_ZERO || v == VALUE_ROWS;
}

static bool is_same(enum value v) {
	return is_rows(v) || v == VALUE_SAME;
}

static bool is_lane(enum value v) {
	return v == VALUE_TID || v == VALUE_LANE;
}

static bool is_up(enum value v) {
	return is_lane(v) || v == VALUE_UP;
}

static bool is_down(enum value v) {
	return v == VALUE_BACK || v == VALUE_DOWN;
}

/* Only the low five bits differ. */
static bool is_low(enum value v) {
	return is_lane(v) || v == VALUE_BACK;
}

static bool differs(enum value v) {
	return v != VALUE_NONE && !is_same(v);
}

static enum value join(enum value a, enum value b) {
	if (a == VALUE_NONE || a == b) {
		return b;
	}
	if (b == VALUE_NONE) {
		return a;
	}
	if (is_rows(a) && is_rows(b)) {
		return VALUE_ROWS;
	}
	if (is_lane(a) && is_lane(b)) {
		return VALUE_LANE;
	}
	if (is_up(a) && is_up(b)) {
		return VALUE_UP;
	}
	if (is_down(a) && is_down(b)) {
		return VALUE_DOWN;
	}
	return is_same(a) && is_same(b) ? VALUE_SAME : VALUE_ANY;
}

static enum value special_value(const struct study *u, struct ptx_name n) {
	bool rows = u->scope == UNIFORM_WARP_ROWS;
	enum special_kind kind = special_find(n)->kind;

	if (kind == SPECIAL_CTAID || kind == SPECIAL_NCTAID) {
		return VALUE_SAME;
	}
	if (ptx_name_is(n, "%ntid.x")) {
		return rows ? VALUE_ROWS : VALUE_SAME;
	}
	if (ptx_name_is(n, "%ntid.y") || ptx_name_is(n, "%ntid.z") ||
	    ptx_name_is(n, "%dynamic_smem_size") || ptx_name_is(n, "%total_smem_size") ||
	    ptx_name_is(n, "%reserved_smem_offset_1")) {
		return VALUE_SAME;
	}
	if (ptx_name_is(n, "%tid.x") && rows) {
		return VALUE_TID;
	}
	if ((ptx_name_is(n, "%tid.y") || ptx_name_is(n, "%tid.z")) && rows) {
		return VALUE_SAME;
	}
	if (ptx_name_is(n, "%laneid") && !is_block(u)) {
		return VALUE_TID;
	}
	return VALUE_ANY;
}

static enum value name_value(const struct study *u, struct ptx_name n, uint32_t var) {
	uint32_t i;

	if (var == PTX_NONE) {
		return special_value(u, n);
	}
	i = registers_find(&u->registers, n, var);
	if (i == PTX_NONE) {
		return VALUE_ANY;
	}
	return u->local_epoch[i] == u->epoch ? u->local[i] : u->values[i];
}

static enum value operand_value(const struct study *u, const struct ptx_operand *o) {
	enum value v = VALUE_NONE;

	switch (o->kind) {
	case PTX_OPERAND_REG:
		return name_value(u, o->name, o->var);
	case PTX_OPERAND_INT:
		return o->value == 0 ? VALUE_ZERO : o->value % 32 == 0 ? VALUE_ROWS : VALUE_SAME;
	case PTX_OPERAND_FLOAT:
	case PTX_OPERAND_SYMBOL:
	case PTX_OPERAND_SINK:
		return VALUE_SAME;
	case PTX_OPERAND_SUM:
	case PTX_OPERAND_ADDR:
		return o->base_is_reg ? join(name_value(u, o->name, o->var), VALUE_SAME)
				      : VALUE_SAME;
	case PTX_OPERAND_VECTOR:
		for (uint32_t i = 0; i < o->n_elements; i++) {
			v = join(v, operand_value(u, &u->m->operands[o->elements + i]));
		}
		return differs(v) ? VALUE_ANY : v;
	default:
		return VALUE_ANY;
	}
}

/* What is uniform if all sources are. */
static enum value all_same(const struct study *u, const struct ptx_operand *o, uint32_t n) {
	enum value v = VALUE_SAME;

	for (uint32_t i = 0; i < n; i++) {
		enum value w = operand_value(u, &o[i]);

		if (w == VALUE_NONE) {
			return VALUE_NONE;
		}
		if (!is_same(w)) {
			v = VALUE_ANY;
		}
	}
	return v;
}

static enum value add_values(enum value a, enum value b) {
	if (a == VALUE_NONE || b == VALUE_NONE) {
		return VALUE_NONE;
	}
	if (a == VALUE_ZERO || b == VALUE_ZERO) {
		return a == VALUE_ZERO ? b : a;
	}
	if ((is_lane(a) && is_rows(b)) || (is_rows(a) && is_lane(b))) {
		return VALUE_LANE;
	}
	if ((is_up(a) && is_same(b)) || (is_same(a) && is_up(b))) {
		return VALUE_UP;
	}
	if ((is_down(a) && is_same(b)) || (is_same(a) && is_down(b))) {
		return VALUE_DOWN;
	}
	if ((is_up(a) && is_down(b)) || (is_down(a) && is_up(b))) {
		return VALUE_SAME;
	}
	if (is_same(a) && is_same(b)) {
		return is_rows(a) && is_rows(b) ? VALUE_ROWS : VALUE_SAME;
	}
	return VALUE_ANY;
}

/* Minus @v. */
static enum value negative(enum value v) {
	return is_up(v) ? VALUE_DOWN : is_down(v) ? VALUE_UP : v;
}

static enum value subtract_values(enum value a, enum value b) {
	return is_lane(a) && is_lane(b) ? VALUE_ROWS : add_values(a, negative(b));
}

static enum value multiply_values(enum value a, enum value b) {
	if (a == VALUE_NONE || b == VALUE_NONE) {
		return VALUE_NONE;
	}
	if (is_same(a) && is_same(b)) {
		return is_rows(a) || is_rows(b) ? VALUE_ROWS : VALUE_SAME;
	}
	return VALUE_ANY;
}

static bool is_int(const struct ptx_operand *o, uint32_t n, uint32_t i) {
	return i < n && o[i].kind == PTX_OPERAND_INT;
}

static bool is_whole_numbers(struct ptx_name opcode) {
	static const char *const others[] = {"f16", "f16x2", "bf16", "bf16x2", "tf32",
					     "f32", "f64",   "sat",  "u16x2",  "s16x2"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (ptx_opcode_has(opcode, others[i])) {
			return false;
		}
	}
	return true;
}

/* 32u + lane against 32k, or against a constant 32k + 31: only u and k matter. */
static enum value compare(const struct study *u, const struct ptx_stmt *s,
			  const struct ptx_operand *o, uint32_t n) {
	static const char *const below[] = {"lt", "lo", "ge", "hs"}; /* a < 32k */
	static const char *const above[] = {"gt", "hi", "le", "ls"}; /* a > 32k + 31 */
	struct ptx_name op = ptx_opcode_part(s->opcode, 1);
	enum value a, b;
	bool is_below = false, is_above = false, helps;

	if (n < 3 || !is_whole_numbers(s->opcode)) {
		return all_same(u, o + 1, n - 1);
	}
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		is_below |= ptx_name_is(op, below[i]);
		is_above |= ptx_name_is(op, above[i]);
	}
	a = operand_value(u, &o[1]);
	b = operand_value(u, &o[2]);
	if (a == VALUE_NONE || b == VALUE_NONE) {
		return VALUE_NONE;
	}
	helps = (is_low(a) && is_rows(b) && is_below) ||
		(is_low(a) && is_int(o, n, 2) && (o[2].value & 31) == 31 && is_above) ||
		(is_rows(a) && is_low(b) && is_above) ||
		(is_low(b) && is_int(o, n, 1) && (o[1].value & 31) == 31 && is_below);
	return helps ? all_same(u, o + 3, n - 3) : all_same(u, o + 1, n - 1);
}

/* A copy of 32 bits. */
static bool is_word_mov(struct ptx_name opcode) {
	return ptx_name_is(ptx_opcode_part(opcode, 0), "mov") &&
	       ptx_type_bytes(ptx_type_from_name(ptx_opcode_part(opcode, 1))) == 4;
}

/* @v with its low five bits turned round, as by `not`. */
static enum value turn(enum value v) {
	return is_lane(v) ? VALUE_BACK : v == VALUE_BACK ? VALUE_LANE : VALUE_ANY;
}

/* @v and, or, exclusive or the number @k. VALUE_ANY: nothing special. */
static enum value mask(struct ptx_name first, enum value v, int64_t k) {
	if (ptx_name_is(first, "and") && (k & 31) == 0 && (is_low(v) || is_same(v))) {
		return VALUE_ROWS;
	}
	if ((k & 31) != 31 || !is_low(v)) {
		return VALUE_ANY;
	}
	if (ptx_name_is(first, "and")) {
		return v == VALUE_BACK ? v : VALUE_LANE;
	}
	if (ptx_name_is(first, "or")) {
		return VALUE_SAME;
	}
	return ptx_name_is(first, "xor") ? turn(v) : VALUE_ANY;
}

/* @v shifted by, or masked with, the number @k. VALUE_ANY: nothing special. */
static enum value shift_or_mask(struct ptx_name opcode, enum value v, int64_t k) {
	struct ptx_name first = ptx_opcode_part(opcode, 0);
	bool right = ptx_name_is(first, "shr");

	if (v == VALUE_ZERO && (right || ptx_name_is(first, "shl") || ptx_name_is(first, "and"))) {
		return VALUE_ZERO;
	}
	/* The sign of a thread number, as signed divisions by 32 look at it. */
	if (right && v == VALUE_TID && k >= 31 && ptx_name_is(ptx_opcode_part(opcode, 1), "s32")) {
		return VALUE_ZERO;
	}
	if (ptx_name_is(first, "shl") && k >= 5 && k < 64 && is_same(v)) {
		return VALUE_ROWS;
	}
	if (right && k >= 5 && is_low(v)) {
		return VALUE_SAME;
	}
	return mask(first, v, k);
}

/* Copies and conversions of the one source @o. */
static enum value copy(const struct study *u, const struct ptx_stmt *s,
		       const struct ptx_operand *o) {
	bool mov = ptx_name_is(ptx_opcode_part(s->opcode, 0), "mov");
	enum value v = operand_value(u, o);

	if (v == VALUE_TID && !is_word_mov(s->opcode)) {
		return VALUE_LANE;
	}
	/* in more bits it would not wrap round where it did */
	return (v == VALUE_UP || v == VALUE_DOWN) && !mov ? VALUE_ANY : v;
}

static enum value arithmetic(const struct study *u, const struct ptx_stmt *s,
			     const struct ptx_operand *o, uint32_t n) {
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);
	enum value v, w;

	if (n < 2 || !is_whole_numbers(s->opcode)) {
		return all_same(u, o + 1, n > 0 ? n - 1 : 0);
	}
	if (ptx_name_is(first, "mov") || ptx_name_is(first, "cvt") || ptx_name_is(first, "cvta")) {
		return copy(u, s, &o[1]);
	}
	v = operand_value(u, &o[1]);
	if (n < 3) {
		return ptx_name_is(first, "not") && is_low(v) ? turn(v) : all_same(u, o + 1, n - 1);
	}
	w = operand_value(u, &o[2]);
	if (ptx_name_is(first, "add")) {
		return add_values(v, w);
	}
	if (ptx_name_is(first, "sub")) {
		return subtract_values(v, w);
	}
	/* of bits that only one of them has */
	if (ptx_name_is(first, "or") &&
	    ((is_lane(v) && is_rows(w)) || (is_rows(v) && is_lane(w)))) {
		return VALUE_LANE;
	}
	if (ptx_opcode_has(s->opcode, "lo") || ptx_opcode_has(s->opcode, "wide")) {
		enum value product = multiply_values(v, w);

		if (ptx_name_is(first, "mul")) {
			return product;
		}
		if (ptx_name_is(first, "mad") && n == 4) {
			return add_values(product, operand_value(u, &o[3]));
		}
	}
	if (is_int(o, n, 2)) {
		w = shift_or_mask(s->opcode, v, o[2].value);
		if (w != VALUE_ANY) {
			return w;
		}
	}
	return all_same(u, o + 1, n - 1);
}

/* Of the kernel's own, which are the same for all its threads. */
static bool is_own_param(const struct study *u, uint32_t v) {
	return u->f->is_entry && v != PTX_NONE && v >= u->f->params &&
	       v < u->f->params + u->f->n_params;
}

static enum value load_param(const struct study *u, const struct ptx_operand *address) {
	if (address->base_is_reg) {
		return u->f->is_entry && !u->passes_params ? all_same(u, address, 1) : VALUE_ANY;
	}
	return is_own_param(u, address->var) ? VALUE_SAME : VALUE_ANY;
}

/*
 * What lies in memory is trusted within a warp: its lanes load together, and so agree even where a
 * program has a race that it gets away with. Warps would not, so for a block only where asked for.
 */
static bool is_settled(const struct study *u, const struct ptx_stmt *s) {
	unsigned space = memory_weak_load(s);

	return space && u->scope != UNIFORM_BLOCK && !(u->unsettled_here & space);
}

static bool is_quiet(const struct study *u, const struct ptx_stmt *s) {
	return u->quiet && quiet_is_load(u->quiet, u->m, s);
}

static enum value load(const struct study *u, const struct ptx_stmt *s, const struct ptx_operand *o,
		       uint32_t n) {
	bool constant = ptx_opcode_has(s->opcode, "const") || ptx_opcode_has(s->opcode, "nc");

	if (n < 2 || !ptx_name_is(ptx_opcode_part(s->opcode, 0), "ld")) {
		return VALUE_ANY;
	}
	if (ptx_opcode_has(s->opcode, "param")) {
		return load_param(u, &o[1]);
	}
	if (is_quiet(u, s)) {
		return VALUE_SAME;
	}
	return constant || is_settled(u, s) ? all_same(u, o + 1, 1) : VALUE_ANY;
}

/*
 * A shuffle by which all lanes ask one and the same: the first, which every warp has, or in whole
 * warps any that they agree on. Where lanes leave, it may be gone, and the answer be anything.
 */
static enum value shuffle(const struct study *u, const struct ptx_stmt *s,
			  const struct ptx_operand *o, uint32_t n) {
	enum value lane;

	if (n != 5 || !ptx_opcode_has(s->opcode, "idx") || !known_is_31(&u->known, &o[3]) ||
	    u->leavers) {
		return VALUE_ANY;
	}
	lane = u->scope == UNIFORM_WARP_ROWS ? all_same(u, &o[2], 1) : operand_value(u, &o[2]);
	if (u->scope != UNIFORM_WARP_ROWS && lane != VALUE_NONE && lane != VALUE_ZERO) {
		return VALUE_ANY;
	}
	return lane == VALUE_ZERO ? VALUE_SAME : lane;
}

/* Of an instruction that all threads of the scope run together. */
static enum value result(const struct study *u, const struct ptx_stmt *s, const struct opcode *op) {
	const struct ptx_operand *o = &u->m->operands[s->operands];
	struct ptx_name first = ptx_opcode_part(s->opcode, 0);
	uint32_t n = s->n_operands;

	switch (op->class) {
	case OPCODE_PLAIN:
		if (ptx_name_is(first, "addc") || ptx_name_is(first, "subc") ||
		    ptx_name_is(first, "madc")) {
			return VALUE_ANY; /* the carry comes from elsewhere */
		}
		return ptx_name_is(first, "setp") ? compare(u, s, o, n) : arithmetic(u, s, o, n);
	case OPCODE_LOAD:
		return load(u, s, o, n);
	case OPCODE_BARRIER:
		return n == 3 ? VALUE_SAME : VALUE_ANY;
	case OPCODE_WARP:
		if (is_block(u) || n == 0 || !known_is_full_mask(&u->known, &o[n - 1])) {
			return VALUE_ANY;
		}
		if (ptx_name_is(first, "shfl")) {
			return shuffle(u, s, o, n);
		}
		return ptx_name_is(first, "vote") || ptx_name_is(first, "redux") ? VALUE_SAME
										 : VALUE_ANY;
	default:
		return VALUE_ANY;
	}
}

static void set_value(struct study *u, struct ptx_name n, uint32_t var, enum value v, bool sure) {
	uint32_t i = registers_find(&u->registers, n, var);

	if (i != PTX_NONE) {
		u->local[i] = (uint8_t)(sure ? v : join(name_value(u, n, var), v));
		u->local_epoch[i] = u->epoch;
		v = join(u->values[i], v);
		u->changed |= v != u->values[i];
		u->values[i] = (uint8_t)v;
	}
}

/* @sure: the instruction is not skipped. */
static void set_operand(struct study *u, const struct ptx_operand *o, enum value v, bool sure) {
	/* Of a value that is taken apart, only sameness holds for each of its parts. */
	enum value part = is_same(v) ? VALUE_SAME : differs(v) ? VALUE_ANY : v;

	if (o->kind == PTX_OPERAND_REG) {
		set_value(u, o->name, o->var, v, sure);
	}
	for (uint32_t i = 0; i < o->n_elements; i++) {
		const struct ptx_operand *e = &u->m->operands[o->elements + i];

		if (e->kind == PTX_OPERAND_REG) {
			set_value(u, e->name, e->var, part, sure);
		}
	}
	if (o->pair.len > 0) {
		set_value(u, o->pair, o->pair_var, v, sure);
	}
}

static void study_insn(struct study *u, const struct ptx_stmt *s, bool diverged) {
	const struct opcode *op = s->op;
	const struct ptx_operand *o = &u->m->operands[s->operands];
	enum value v, guard = VALUE_SAME;

	if (op->class == OPCODE_CALL) {
		/* results in registers, as in old code */
		return s->n_operands > 0 && o->kind == PTX_OPERAND_LIST
			       ? set_operand(u, o, VALUE_ANY, true)
			       : 0;
	}
	if (op->n_results == 0 || s->n_operands == 0) {
		return;
	}
	if (s->guard.len > 0) {
		guard = name_value(u, s->guard, s->guard_var);
	}
	v = diverged || differs(guard) ? VALUE_ANY : result(u, s, op);
	set_operand(u, o, v, s->guard.len == 0);
}

/*
 * What is unsettled behind @s. A barrier that all threads come to settles everything, and so does a
 * meeting of the whole warp within it; other questions to the whole warp order nothing.
 */
static unsigned settle(const struct study *u, uint32_t b, const struct ptx_stmt *s,
		       unsigned before) {
	const struct cfg_block *k = &u->c->blocks[b];
	bool together = !u->diverged[b] && s->guard.len == 0;

	if (s->op->class == OPCODE_BARRIER) {
		return together && k->event == CFG_BARRIER ? 0 : MEMORY_ALL;
	}
	if (s->op->class == OPCODE_WARP) {
		bool full = s->n_operands > 0 &&
			    known_is_full_mask(&u->known,
					       &u->m->operands[s->operands + s->n_operands - 1]);

		if (!together || !full || is_block(u)) {
			return MEMORY_ALL;
		}
		return ptx_name_is(ptx_opcode_part(s->opcode, 0), "bar") ? 0 : before;
	}
	return is_quiet(u, s) ? before : before | memory_unsettled(s);
}

/* Whether threads may part at the end of block @b: at its branch, or by skipping its event. */
static bool parts(const struct study *u, uint32_t b) {
	const struct cfg_block *k = &u->c->blocks[b];
	const struct ptx_stmt *s;
	enum value v = VALUE_SAME;

	if (k->last == PTX_NONE) {
		return false;
	}
	s = &u->m->stmts[k->last];
	if (s->guard.len > 0) {
		v = name_value(u, s->guard, s->guard_var);
	}
	if (!differs(v) && ptx_name_is(ptx_opcode_part(s->opcode, 0), "brx") && s->n_operands > 0) {
		v = join(v, operand_value(u, &u->m->operands[s->operands]));
	}
	return differs(v);
}

/* What a branch decides diverges with it, and with the branch's own block. */
static void spread(struct study *u, uint32_t b) {
	for (uint32_t i = u->c->control[b]; i < u->c->control[b + 1]; i++) {
		uint32_t to = u->c->controlled[i];

		u->changed |= !u->diverged[to];
		u->diverged[to] = true;
	}
}

static void study_block(struct study *u, uint32_t b) {
	const struct cfg_block *k = &u->c->blocks[b];

	u->unsettled_here = u->unsettled[b];
	for (uint32_t i = k->first; i < k->end; i++) {
		const struct ptx_stmt *s = &u->m->stmts[i];

		if (s->kind == PTX_STMT_INSN) {
			study_insn(u, s, u->diverged[b]);
			u->unsettled_here = (uint8_t)settle(u, b, s, u->unsettled_here);
		}
	}
	for (uint32_t i = 0; i < k->n_edges; i++) {
		uint8_t *next = &u->unsettled[u->c->edges[k->edges + i]];

		u->changed |= (*next | u->unsettled_here) != *next;
		*next |= u->unsettled_here;
	}
}

static void study_round(struct study *u) {
	u->changed = false;
	for (uint32_t b = 0; b < u->c->n_blocks; b++) {
		u->epoch += !u->only_next[b];
		study_block(u, b);
		u->parted[b] = parts(u, b);
		if ((u->parted[b] && !(u->leavers && u->leavers[b])) || u->diverged[b]) {
			spread(u, b);
		}
	}
}

/* Registers that nothing computes hold anything. */
static void give_up_on_unknown(struct study *u) {
	for (uint32_t i = 0; i < u->registers.n; i++) {
		if (u->values[i] == VALUE_NONE) {
			u->values[i] = VALUE_ANY;
			u->changed = true;
		}
	}
}

static void find_only_next(struct study *u) {
	const struct cfg *c = u->c;

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t b = 0; b < c->n_blocks; b++) {
			for (uint32_t i = 0; i < c->blocks[b].n_edges; i++) {
				uint32_t to = c->edges[c->blocks[b].edges + i];

				u->only_next[to] =
					pass == 0 ? to > 0 : u->only_next[to] && to == b + 1;
			}
		}
	}
}

static void diverge_all(struct study *u) {
	for (uint32_t b = 0; b < u->c->n_blocks; b++) {
		u->diverged[b] = u->parted[b] = true;
	}
}

static void run(struct study *u) {
	for (unsigned rounds = 0; rounds < ROUNDS_MAX; rounds++) {
		study_round(u);
		if (!u->changed) {
			give_up_on_unknown(u);
		}
		if (!u->changed) {
			/* a guard on the event itself */
			for (uint32_t b = 0; b < u->c->n_blocks; b++) {
				u->diverged[b] |= u->c->blocks[b].event != CFG_NONE && u->parted[b];
			}
			return;
		}
	}
	diverge_all(u);
}

static int study_alloc(struct study *u) {
	size_t n_registers = (size_t)u->registers.n + 1, n_blocks = (size_t)u->c->n_blocks + 1;

	u->values = calloc(n_registers, sizeof(*u->values));
	u->local = calloc(n_registers, sizeof(*u->local));
	u->local_epoch = calloc(n_registers, sizeof(*u->local_epoch));
	u->only_next = calloc(n_blocks, sizeof(*u->only_next));
	u->unsettled = calloc(n_blocks, sizeof(*u->unsettled));
	if (!u->values || !u->local || !u->local_epoch || !u->only_next || !u->unsettled) {
		return -ENOMEM;
	}
	u->unsettled[0] = u->f->is_entry ? 0 : MEMORY_ALL;
	return 0;
}

/* Then an address of a parameter may be one of them, and they differ from thread to thread. */
static void find_passed_params(struct study *u) {
	for (uint32_t i = u->f->stmts; i < u->f->stmts + u->f->n_stmts; i++) {
		const struct ptx_stmt *s = &u->m->stmts[i];

		for (uint32_t k = 0; s->kind == PTX_STMT_INSN && k < s->n_operands; k++) {
			const struct ptx_operand *o = &u->m->operands[s->operands + k];

			u->passes_params |= o->kind == PTX_OPERAND_SYMBOL && o->var != PTX_NONE &&
					    u->m->vars[o->var].space == PTX_SPACE_PARAM &&
					    !is_own_param(u, o->var);
		}
	}
}

/* All but the result. */
static void study_deinit(struct study *u) {
	known_deinit(&u->known);
	registers_deinit(&u->registers);
	free(u->values);
	free(u->local);
	free(u->local_epoch);
	free(u->only_next);
	free(u->unsettled);
}

int uniform_init(struct uniform *u, const struct cfg *c, const struct ptx_module *m,
		 const struct ptx_func *f, enum uniform_scope scope, const uint8_t *leavers,
		 const struct quiet *quiet) {
	struct study x = {
		.c = c, .m = m, .f = f, .scope = scope, .leavers = leavers, .quiet = quiet};
	int r = -ENOMEM;

	x.diverged = calloc((size_t)c->n_blocks + 1, sizeof(*x.diverged));
	x.parted = calloc((size_t)c->n_blocks + 1, sizeof(*x.parted));
	if (x.diverged && x.parted) {
		r = known_init(&x.known, m, f);
	}
	if (r == 0) {
		r = c->control ? registers_init(&x.registers, m, f) : -E2BIG;
	}
	if (r == 0) {
		r = study_alloc(&x);
	}
	if (r == 0) {
		find_only_next(&x);
		find_passed_params(&x);
		run(&x);
	} else if (r == -E2BIG) {
		diverge_all(&x);
		r = 0;
	}
	study_deinit(&x);
	if (r < 0) {
		free(x.diverged);
		free(x.parted);
		return r;
	}
	u->diverged = x.diverged;
	u->parted = x.parted;
	return 0;
}

void uniform_deinit(struct uniform *u) {
	free(u->diverged);
	free(u->parted);
	*u = (struct uniform){0};
}
