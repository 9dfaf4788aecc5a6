/*
 * ptx.h: a parsed PTX module. Syntax only: what an opcode does is the business of its users
 * (cfg.c, transform.c, and the simulated GPU's interpreter).
 *
 * Everything refers to tokens by index, so the exact text of any part can be had again, and all of
 * it is freed at once. Indices into arrays, never pointers, link the parts.
 */
#pragma once

#include "shim/ptx/lexer.h"

struct ptx_names;

/* An index that names nothing. */
#define PTX_NONE UINT32_MAX

/* A piece of the module's text. Not terminated. */
struct ptx_name {
	const char *s;
	uint32_t len;
};

bool ptx_name_is(struct ptx_name n, const char *what);
bool ptx_name_equal(struct ptx_name a, struct ptx_name b);

enum ptx_space {
	PTX_SPACE_NONE,
	PTX_SPACE_REG,
	PTX_SPACE_PARAM,
	PTX_SPACE_LOCAL,
	PTX_SPACE_SHARED,
	PTX_SPACE_GLOBAL,
	PTX_SPACE_CONST,
	PTX_SPACE_TEX, /* .tex, and .texref/.surfref/.samplerref variables */
};

enum ptx_type {
	PTX_TYPE_NONE,
	PTX_TYPE_PRED,
	PTX_TYPE_B8, PTX_TYPE_B16, PTX_TYPE_B32, PTX_TYPE_B64, PTX_TYPE_B128,
	PTX_TYPE_U8, PTX_TYPE_U16, PTX_TYPE_U32, PTX_TYPE_U64,
	PTX_TYPE_S8, PTX_TYPE_S16, PTX_TYPE_S32, PTX_TYPE_S64,
	PTX_TYPE_F16, PTX_TYPE_F16X2, PTX_TYPE_BF16, PTX_TYPE_BF16X2, PTX_TYPE_F32, PTX_TYPE_F64,
	PTX_TYPE_OTHER, /* a type this parser only passes through (.e4m3, .tf32, ...) */
	_PTX_TYPE_N,
};

/* 0 for PRED, NONE and OTHER. */
unsigned ptx_type_bytes(enum ptx_type type);

/* ".u32" or "u32"; PTX_TYPE_NONE if it is no type name. */
enum ptx_type ptx_type_from_name(struct ptx_name n);

/* One name of a declaration: `.shared .align 4 .b8 x[64]`, `.reg .b32 %r<5>`, a parameter. */
struct ptx_var {
	enum ptx_space space;
	enum ptx_type type;
	struct ptx_name name;
	uint32_t vector;     /* 1, 2 or 4 (.v2, .v4) */
	uint32_t align;	     /* bytes; the type's size if not given */
	uint64_t count;	     /* array elements, product of the dimensions; 1: no array; 0: `x[]` */
	bool is_array;
	uint32_t reg_range;  /* N of %r<N>, else 0 */
	bool is_visible, is_extern, is_weak, is_common;
	bool has_init;
	uint32_t init_first, init_end; /* tokens of the initialiser after '=' */
	uint32_t first, end; /* tokens of the whole declaration, ';' included where there is one */
	uint32_t line;
};

enum ptx_operand_kind {
	PTX_OPERAND_REG,    /* %r1, %tid.x, any name declared with .reg; special registers too */
	PTX_OPERAND_INT,
	PTX_OPERAND_FLOAT,
	PTX_OPERAND_SUM,    /* %r1 + 4: name and value; base_is_reg */
	PTX_OPERAND_SYMBOL, /* name of a variable, function or label, with an optional +offset */
	PTX_OPERAND_ADDR,   /* [base+offset]; base may be absent, a register or a symbol */
	PTX_OPERAND_VECTOR, /* {a, b, ...}: elements follow in the operand array */
	PTX_OPERAND_LIST,   /* (a, b, ...) of call: elements follow likewise */
	PTX_OPERAND_SINK,   /* _ */
	PTX_OPERAND_OTHER,  /* kept as tokens only (texture coordinates, ...) */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	bool negated;	       /* !%p1 as a source */
	bool is_f32;	       /* FLOAT: written as 0f */
	struct ptx_name name;  /* REG, SUM, SYMBOL, base of ADDR; empty if there is none */
	bool base_is_reg;      /* ADDR, SUM: the base is a register */
	uint32_t var;	       /* the declaration of `name` in the module's vars, inner scopes first;
				* PTX_NONE: special registers, labels, functions */
	struct ptx_name pair;  /* `%r1|%p1`: the part after the bar; empty if there is none */
	uint32_t pair_var;     /* its declaration, or PTX_NONE */
	int64_t value;	       /* INT, offset of SUM, SYMBOL, ADDR (bits of an unsigned one) */
	double fvalue;
	uint32_t n_elements;   /* VECTOR, LIST */
	uint32_t elements;     /* index of the first one in the module's operands */
	uint32_t first, end;   /* tokens */
};

struct opcode;

enum ptx_stmt_kind {
	PTX_STMT_INSN,
	PTX_STMT_LABEL,
	PTX_STMT_VAR,	   /* declaration in a body: .reg, .local, .shared, .param */
	PTX_STMT_OPEN,	   /* { */
	PTX_STMT_CLOSE,	   /* } */
	PTX_STMT_TABLE,	   /* label: .branchtargets / .calltargets / .callprototype ...; */
	PTX_STMT_DIRECTIVE, /* .loc, .pragma, ... */
};

struct ptx_stmt {
	enum ptx_stmt_kind kind;
	struct ptx_name guard; /* INSN: name after '@', empty if there is none */
	bool guard_negated;
	uint32_t guard_var;    /* its declaration, or PTX_NONE */
	struct ptx_name opcode; /* INSN: the whole "ld.global.u32"; LABEL and TABLE: the label */
	const struct opcode *op; /* INSN: what opcodes.h knows of it */
	uint32_t operands;     /* INSN: index of the first in the module's operands */
	uint32_t n_operands;   /* top-level ones */
	uint32_t var;	       /* VAR: index of the first in the module's vars */
	uint32_t n_vars;
	uint32_t names, n_names; /* TABLE .branchtargets/.calltargets: operands (SYMBOL) */
	uint32_t first, end;   /* tokens, ';' included */
	uint32_t line;
};

struct ptx_func {
	bool is_entry, is_visible, is_extern, is_weak, has_body, noreturn;
	struct ptx_name name;
	uint32_t params, n_params; /* in the module's vars */
	uint32_t rets, n_rets;
	uint32_t stmts, n_stmts;   /* in the module's stmts, without the outer braces */
	uint32_t directives_first, directives_end; /* tokens between the parameter list and the body:
						    * .maxntid, .reqntid, .minnctapersm, .noreturn... */
	uint32_t maxntid[3], reqntid[3]; /* 0: not given */
	uint32_t body_first, body_end;	/* tokens, braces included */
	uint32_t first, end;	/* tokens of the whole */
	uint32_t line;
};

enum ptx_item_kind {
	PTX_ITEM_VAR,
	PTX_ITEM_FUNC,
	PTX_ITEM_DIRECTIVE, /* .version, .target, .file, .section ..., .pragma, .alias */
};

struct ptx_item {
	enum ptx_item_kind kind;
	uint32_t index; /* of the first var (one declaration, n names) or the func */
	uint32_t n;
	uint32_t first, end; /* tokens */
};

struct ptx_module {
	struct ptx_tokens tokens;
	unsigned version_major, version_minor;
	unsigned target_sm; /* 75 for sm_75; the letter of sm_90a is in target */
	struct ptx_name target;
	unsigned address_size; /* 32 or 64 */
	struct ptx_item *items;
	size_t n_items;
	struct ptx_var *vars;
	size_t n_vars;
	struct ptx_func *funcs;
	size_t n_funcs;
	struct ptx_stmt *stmts;
	size_t n_stmts;
	struct ptx_operand *operands; /* never NULL */
	size_t n_operands;
	struct ptx_names *func_names; /* owned; for ptx_module_func() */
};

/*
 * Parses @text, which must outlive the module. Return: 0; -EINVAL with @error (if not NULL) telling
 * the line and what was expected; -E2BIG; -ENOMEM. Linear in @size, no recursion on input depth.
 */
int ptx_module_new(struct ptx_module **ret, const char *text, size_t size, char *error,
		   size_t error_size);
struct ptx_module *ptx_module_free(struct ptx_module *m);

/* NULL if there is none. A definition is preferred to a declaration. */
const struct ptx_func *ptx_module_func(const struct ptx_module *m, struct ptx_name name);

/* The part of a dotted opcode: 0 is "ld" of "ld.global.u32", 1 "global"; empty beyond the last. */
struct ptx_name ptx_opcode_part(struct ptx_name opcode, unsigned index);
bool ptx_opcode_has(struct ptx_name opcode, const char *part); /* any part but the first */
/* Takes the first part off @rest. Empty when there is none: the way to see all in linear time. */
struct ptx_name ptx_opcode_next(struct ptx_name *rest);
