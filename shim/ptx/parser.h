/*
 * parser.h: what the parser's three files share. Private to them.
 *
 * parser.c knows modules, functions and statements; parse-var.c declarations; parse-operand.c the
 * operands of an instruction. All of them move p->at forward over the tokens and never back, except
 * within one operand, so time is linear. Nesting is counted or kept in arrays, never recursed into.
 */
#pragma once

#include "shim/ptx/names.h"
#include "shim/ptx/ptx.h"

struct parser {
	struct ptx_module *m; /* owned until done */
	uint32_t at;	      /* token */
	size_t items_capacity, vars_capacity, funcs_capacity, stmts_capacity, operands_capacity;
	struct ptx_names names; /* name to index in m->vars, innermost scope last */
	uint32_t *scopes;	/* owned: names.n at each open brace of the body */
	size_t n_scopes, scopes_capacity;
	struct ptx_operand *top; /* owned: operands of the instruction being read */
	size_t n_top, top_capacity;
	char *error;
	size_t error_size;
};

/* Makes room for one more of @size bytes in *list. Return: 0, -ENOMEM. */
int parser_grow(void *list, size_t n, size_t *capacity, size_t size);

/* Says "line N: expected WHAT, not TOKEN" of the current token. Return: -EINVAL, always. */
int parser_expected(struct parser *p, const char *what);

static inline const struct ptx_token *parser_token(const struct parser *p) {
	return &p->m->tokens.list[p->at];
}
static inline bool parser_is(const struct parser *p, const char *what) {
	return ptx_token_is(&p->m->tokens, parser_token(p), what);
}
/* Whether token @i is the one punctuation character @c. */
static inline bool parser_punct_at(const struct parser *p, uint32_t i, char c) {
	const struct ptx_token *k = &p->m->tokens.list[i];

	return k->kind == PTX_TOKEN_PUNCT && p->m->tokens.text[k->offset] == c;
}
static inline bool parser_punct(const struct parser *p, char c) {
	return parser_punct_at(p, p->at, c);
}
static inline struct ptx_name parser_name(const struct parser *p, uint32_t i) {
	const struct ptx_token *k = &p->m->tokens.list[i];

	return (struct ptx_name){ptx_token_text(&p->m->tokens, k), k->len};
}

/* Goes on if the current token is @c, else complains. */
int parser_expect(struct parser *p, char c);
/* Any word that may name something: not one that starts with a dot. */
int parser_expect_name(struct parser *p, struct ptx_name *ret);
int parser_expect_int(struct parser *p, uint64_t max, uint64_t *ret);

/* From an opening bracket of any kind to behind its closing one. */
int parser_skip_balanced(struct parser *p);

/* .visible, .extern, .weak, .common: any number of them. */
struct parser_linkage {
	bool is_visible, is_extern, is_weak, is_common;
	uint32_t first; /* token */
};

/* Whether the current token starts a declaration of variables. */
bool parser_at_var(const struct parser *p);
/* One declaration with all its names up to and with the ';'. Adds to m->vars and names. */
int parser_vars(struct parser *p, const struct parser_linkage *linkage);
/* "( decl, decl )", adding to m->vars and names. */
int parser_params(struct parser *p, uint32_t *ret_first, uint32_t *ret_n);

/* The declaration in m->vars that @n means here, or PTX_NONE. A trailing ".x" selects an element.
 */
uint32_t parser_find_var(const struct parser *p, struct ptx_name n);

/* Operands up to the ';', which is left. Adds to m->operands. */
int parser_operands(struct parser *p, bool is_call, uint32_t *ret_first, uint32_t *ret_n);
