/*
 * interp-decode.h: what the decoder's files share: symbols, and one instruction being decoded.
 */
#pragma once

#include "tests/simgpu/interp-internal.h"

enum symbol_kind {
	SYMBOL_REG,	    /* value: slot; of a range: of its first */
	SYMBOL_PRED,	    /* likewise */
	SYMBOL_LOCAL,	    /* value: offset in the frame's local memory */
	SYMBOL_ENTRY_PARAM, /* value: offset in the parameter buffer */
	SYMBOL_SHARED,	    /* value: index in decoder.shared */
	SYMBOL_VAR,	    /* value: index in module.vars */
	SYMBOL_FUNC,	    /* value: index in module.funcs */
	SYMBOL_LABEL,	    /* value: pc, once that is known */
	SYMBOL_TABLE,	    /* value: statement */
};

struct symbol {
	struct ptx_name name;
	uint32_t scope;
	enum symbol_kind kind;
	uint32_t value;
	uint32_t range; /* N of %r<N> */
	uint64_t size;	/* of a variable, in bytes */
};

/* Names of one function, or of the module. */
struct symbols {
	struct symbol *list; /* owned */
	size_t n, cap;
	uint32_t *hash; /* owned; index + 1 */
	size_t hash_size;
};

int symbols_add(struct symbols *s, const struct symbol *symbol);
/* The index of @name in exactly @scope, -1 if there is none. */
int64_t symbols_find(const struct symbols *s, struct ptx_name name, uint32_t scope);
void symbols_deinit(struct symbols *s);

/* A formal that is a register: loaded from, or stored to, the frame's local memory. */
struct reg_formal {
	uint32_t slot, offset;
	enum ptx_type type;
};

/* What is known of a function before its instructions are decoded. */
struct function {
	struct symbols symbols;
	uint32_t *parents; /* owned; scope that a scope stands in */
	size_t n_scopes, cap_scopes;
	struct reg_formal *reg_rets, *reg_params; /* owned */
	size_t n_reg_rets, n_reg_params;
	uint32_t first_temp; /* slot of the first temporary */
	uint32_t max_temps;
	uint32_t local; /* bytes of local memory so far */
};

struct shared_var {
	const struct ptx_var *ptx;
	uint64_t size, align;
	uint32_t offset;
	bool dynamic;
	uint8_t *users; /* owned; [entry]: reached by it */
};

/* A place that must learn a label's pc. */
struct patch {
	bool in_targets; /* index of module.targets, else of module.insns */
	uint32_t index;
	uint32_t symbol;
};

struct decoder {
	struct interp_module *m;
	struct symbols globals;
	struct function *functions; /* owned; as module.funcs */
	struct shared_var *shared;  /* owned */
	size_t n_shared, cap_shared;
	struct patch *patches; /* owned; of the current function */
	size_t n_patches, cap_patches;
	uint32_t *const_hash; /* owned; index + 1 of a constant by value */
	size_t const_hash_size;
	uint32_t current; /* function */
	uint32_t scope;
	uint32_t stmt;
	uint32_t temps; /* used by the current instruction */
	char *error;	/* borrowed, or NULL */
	size_t error_size;
};

/* One instruction, its opcode taken apart. */
#define OP_PARTS_MAX 24
struct op {
	const struct ptx_stmt *stmt;
	const struct ptx_operand *o; /* top-level operands */
	uint32_t n;
	struct ptx_name part[OP_PARTS_MAX];
	unsigned n_parts;
	char key[64]; /* parts that are not type, rounding, flag, space or hint */
	enum ptx_type types[4];
	unsigned n_types;
	uint16_t flags;
	uint8_t round;
	uint8_t space;
	uint8_t vector;
	bool sync;
	struct insn in; /* being filled: guard, flags, type, space, cost are set */
};

static inline uint64_t decode_align_up(uint64_t v, uint64_t align) {
	return align > 1 ? (v + align - 1) / align * align : v;
}

/* Makes room for one more. Return: 0 or -ENOMEM. */
int decode_grow(void *array, size_t n, size_t *cap, size_t size);

/* Looks @name up from the current scope outwards. NULL if there is none; *ret_index (if not NULL)
 * tells which of a range. */
const struct symbol *decode_lookup(const struct decoder *d, struct ptx_name name,
				   uint32_t *ret_index);

/* Appends an instruction. */
int decode_emit(struct decoder *d, const struct insn *in);
struct insn decode_blank(const struct decoder *d, exec_fn exec);

/* Source numbers. @var: UINT32_MAX, or the variable whose address is to be added. */
int decode_constant(struct decoder *d, uint64_t value, uint32_t var, int32_t *ret);
uint32_t decode_temp(struct decoder *d);

/* Operands. Return: 0, -ENOTSUP for a form that is not known, -ENOMEM. */
int decode_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type type, int32_t *ret);
int decode_dst(struct decoder *d, const struct ptx_operand *o, int32_t *ret);
int decode_pred_src(struct decoder *d, const struct ptx_operand *o, unsigned n, struct op *op);
int decode_pred_dst(struct decoder *d, struct ptx_name name, struct op *op, unsigned n);
int decode_pred_name(struct decoder *d, struct ptx_name name, int32_t *ret);
/* [base+offset]: op->in.s[@n], op->in.imm (if @n is 0), and the space if the opcode left it open.
 */
int decode_address(struct decoder *d, const struct ptx_operand *o, struct op *op, unsigned n,
		   int64_t *ret_offset);

/* interp-decode-insn.c, -memory.c, -control.c: decode and emit. -ENOTSUP if they do not know it. */
int decode_insn(struct decoder *d, const struct ptx_stmt *stmt);
int decode_memory(struct decoder *d, struct op *op, bool *ret_mine);
int decode_control(struct decoder *d, struct op *op, bool *ret_mine);
/* Prologue: parameters that are registers. */
int decode_reg_params(struct decoder *d);

/* interp-check.c: of an instruction that could not be decoded: 0 if it is PTX all the same, -EINVAL
 * if a driver would refuse it too; then the decoder's error tells why. */
int check_insn(struct decoder *d, const struct ptx_stmt *stmt);

/* interp-reach.c: walks every body and places the shared variables; then, once everything is
 * decoded, passes on to each kernel what a function that it reaches lacks or needs.
 * Return: 0, -E2BIG, -ENOMEM. */
struct reach;
int reach_new(struct reach **ret, struct decoder *d);
int reach_inherit(struct reach *reach, struct decoder *d);
struct reach *reach_free(struct reach *reach);

/* interp-live.c: sets f->max_live, registers of 32 bits live at once. @wide: a bit for each slot,
 * set if it holds 64 bits. */
int live_estimate(struct interp_module *m, struct interp_kernel *f, const uint64_t *wide);

bool op_key(const struct op *op, const char *key);
bool op_has(const struct op *op, const char *part);
