/*
 * parse-operand.c: the operands of one instruction.
 *
 * Each operand's extent is found first (up to a comma outside of brackets), then its tokens are
 * matched against the forms that nvcc and people write. What fits none is kept as OTHER.
 */
#include <errno.h>
#include <string.h>

#include "shim/ptx/parser.h"

static int add_operand(struct parser *p, const struct ptx_operand *o) {
	struct ptx_module *m = p->m;
	int r = parser_grow(&m->operands, m->n_operands, &p->operands_capacity, sizeof(*o));

	if (r < 0) {
		return r;
	}
	m->operands[m->n_operands++] = *o;
	return 0;
}

static bool is_kind(const struct parser *p, uint32_t i, enum ptx_token_kind kind) {
	return p->m->tokens.list[i].kind == kind;
}

/* %r7 of a `.reg .b32 %r<8>`: the declaration is found under the name without the number. */
static uint32_t find_in_range(const struct parser *p, struct ptx_name n) {
	uint32_t len = n.len, v, number = 0, scale = 1;

	while (len > 0 && n.s[len - 1] >= '0' && n.s[len - 1] <= '9' && scale <= 100000000) {
		number += (uint32_t)(n.s[--len] - '0') * scale;
		scale *= 10;
	}
	if (len == 0 || len == n.len) {
		return PTX_NONE;
	}
	v = ptx_names_find(&p->names, (struct ptx_name){n.s, len});
	return v != PTX_NAMES_NONE && number < p->m->vars[v].reg_range ? v : PTX_NONE;
}

uint32_t parser_find_var(const struct parser *p, struct ptx_name n) {
	const char *dot = memchr(n.s, '.', n.len);
	uint32_t v;

	if (dot) {
		n.len = (uint32_t)(dot - n.s);
	}
	v = ptx_names_find(&p->names, n);
	return v != PTX_NAMES_NONE ? v : find_in_range(p, n);
}

/* Registers by declaration; names that start with '%' and are declared nowhere are special
 * registers. */
static bool is_reg(const struct parser *p, struct ptx_name n, uint32_t var) {
	return var != PTX_NONE ? p->m->vars[var].space == PTX_SPACE_REG : n.s[0] == '%';
}

/* "+4 - 0x10 ...", to the end of the tokens. Return: whether they have this form. */
static bool offsets(const struct parser *p, uint32_t at, uint32_t end, int64_t *ret) {
	uint64_t sum = 0, v;

	while (at < end) {
		bool minus = false, sign = false;

		while (at < end && (parser_punct_at(p, at, '+') || parser_punct_at(p, at, '-'))) {
			minus ^= parser_punct_at(p, at, '-');
			sign = true;
			at++;
		}
		if (!sign || at >= end || !is_kind(p, at, PTX_TOKEN_INT) ||
		    ptx_token_int(&p->m->tokens, &p->m->tokens.list[at], &v) < 0) {
			return false;
		}
		sum += minus ? -v : v;
		at++;
	}
	*ret = (int64_t)sum;
	return true;
}

static void match_word(const struct parser *p, struct ptx_operand *o) {
	struct ptx_name n = parser_name(p, o->first);
	uint32_t at = o->first + 1, var = parser_find_var(p, n);

	if (o->end - at == 2 && parser_punct_at(p, at, '|') && is_kind(p, at + 1, PTX_TOKEN_WORD)) {
		o->kind = ptx_name_is(n, "_") ? PTX_OPERAND_SINK : PTX_OPERAND_REG;
		o->name = n;
		o->var = var;
		o->pair = parser_name(p, at + 1);
		o->pair_var = parser_find_var(p, o->pair);
	} else if (at == o->end && ptx_name_is(n, "_")) {
		o->kind = PTX_OPERAND_SINK;
	} else if (at == o->end && is_reg(p, n, var)) {
		o->kind = PTX_OPERAND_REG;
		o->name = n;
		o->var = var;
	} else if (at == o->end && ptx_name_is(n, "WARP_SZ")) {
		o->kind = PTX_OPERAND_INT;
		o->value = 32;
	} else if (var != PTX_NONE && is_reg(p, n, var) && offsets(p, at, o->end, &o->value)) {
		o->kind = PTX_OPERAND_SUM;
		o->name = n;
		o->var = var;
		o->base_is_reg = true;
	} else if (!is_reg(p, n, var) && n.s[0] != '.' && offsets(p, at, o->end, &o->value)) {
		o->kind = PTX_OPERAND_SYMBOL;
		o->name = n;
		o->var = var;
	}
}

static void match_number(const struct parser *p, struct ptx_operand *o) {
	const struct ptx_token *list = p->m->tokens.list;
	bool minus = parser_punct_at(p, o->first, '-');
	uint32_t at = o->first + minus;
	uint64_t v;

	if (o->end - at != 1) {
		return;
	}
	if (list[at].kind == PTX_TOKEN_INT && ptx_token_int(&p->m->tokens, &list[at], &v) == 0) {
		o->kind = PTX_OPERAND_INT;
		o->value = (int64_t)(minus ? -v : v);
	} else if (list[at].kind == PTX_TOKEN_FLOAT &&
		   ptx_token_float(&p->m->tokens, &list[at], &o->fvalue, &o->is_f32) == 0) {
		o->kind = PTX_OPERAND_FLOAT;
		o->fvalue = minus ? -o->fvalue : o->fvalue;
	}
}

static void match_address(const struct parser *p, struct ptx_operand *o) {
	uint32_t at = o->first + 1, end = o->end - 1;
	uint64_t v;

	if (at >= end || !parser_punct_at(p, end, ']')) {
		return;
	}
	if (is_kind(p, at, PTX_TOKEN_WORD)) {
		struct ptx_name n = parser_name(p, at);

		if (n.s[0] != '.' && offsets(p, at + 1, end, &o->value)) {
			o->kind = PTX_OPERAND_ADDR;
			o->name = n;
			o->var = parser_find_var(p, n);
			o->base_is_reg = is_reg(p, n, o->var);
		}
	} else if (is_kind(p, at, PTX_TOKEN_INT) && at + 1 == end &&
		   ptx_token_int(&p->m->tokens, &p->m->tokens.list[at], &v) == 0) {
		o->kind = PTX_OPERAND_ADDR;
		o->value = (int64_t)v;
	}
}

/* All forms but the two that hold other operands. */
static void match_simple(const struct parser *p, struct ptx_operand *o) {
	uint32_t at = o->first;

	o->kind = PTX_OPERAND_OTHER;
	o->var = PTX_NONE;
	if (parser_punct_at(p, at, '!') && o->end - at == 2 && is_kind(p, at + 1, PTX_TOKEN_WORD)) {
		o->kind = PTX_OPERAND_REG;
		o->negated = true;
		o->name = parser_name(p, at + 1);
		o->var = parser_find_var(p, o->name);
	} else if (is_kind(p, at, PTX_TOKEN_WORD)) {
		match_word(p, o);
	} else if (parser_punct_at(p, at, '[')) {
		match_address(p, o);
	} else {
		match_number(p, o);
	}
}

/* The end of the operand that starts at @at: a comma outside of brackets, or @end. Empty if its
 * brackets do not close. */
static uint32_t operand_end(const struct parser *p, uint32_t at, uint32_t end) {
	const struct ptx_tokens *t = &p->m->tokens;
	uint32_t first = at;
	unsigned depth = 0;

	for (; at < end; at++) {
		char c = t->list[at].kind == PTX_TOKEN_PUNCT ? t->text[t->list[at].offset] : 0;

		if (c == '(' || c == '[' || c == '{') {
			depth++;
		} else if (c == ')' || c == ']' || c == '}') {
			if (depth == 0) {
				break;
			}
			depth--;
		} else if (c == ',' && depth == 0) {
			break;
		}
	}
	return depth == 0 ? at : first;
}

/* "{a, b}" or "(a, b)": elements go to m->operands, one after the other. */
static int match_group(struct parser *p, struct ptx_operand *o) {
	uint32_t at = o->first + 1, end = o->end - 1;
	int r;

	o->elements = (uint32_t)p->m->n_operands;
	while (at < end) {
		struct ptx_operand e = {.first = at, .end = operand_end(p, at, end)};

		if (e.first == e.end) {
			p->at = at;
			return parser_expected(p, "an operand");
		}
		match_simple(p, &e);
		r = add_operand(p, &e);
		if (r < 0) {
			return r;
		}
		o->n_elements++;
		at = e.end + (e.end < end);
		if (e.end < end && !parser_punct_at(p, e.end, ',')) {
			p->at = e.end;
			return parser_expected(p, "a comma");
		}
	}
	return 0;
}

static int match(struct parser *p, bool is_call, struct ptx_operand *o) {
	bool is_list = is_call && parser_punct_at(p, o->first, '(');

	if (is_list && parser_punct_at(p, o->end - 1, ')')) {
		o->kind = PTX_OPERAND_LIST;
		o->var = PTX_NONE;
		return match_group(p, o);
	}
	if (parser_punct_at(p, o->first, '{') && parser_punct_at(p, o->end - 1, '}')) {
		o->kind = PTX_OPERAND_VECTOR;
		o->var = PTX_NONE;
		return match_group(p, o);
	}
	match_simple(p, o);
	return 0;
}

/* The ';' that ends the instruction. Braces and brackets must not hide it. Strings are for
 * directives: no instruction takes one. */
static int statement_end(struct parser *p, uint32_t *ret) {
	const struct ptx_token *list = p->m->tokens.list;
	uint32_t at = p->at;

	while (list[at].kind != PTX_TOKEN_END && !parser_punct_at(p, at, ';')) {
		if (list[at].kind == PTX_TOKEN_STRING) {
			p->at = at;
			return parser_expected(p, "an operand");
		}
		at++;
	}
	if (list[at].kind == PTX_TOKEN_END) {
		p->at = at;
		return parser_expected(p, "a semicolon");
	}
	*ret = at;
	return 0;
}

int parser_operands(struct parser *p, bool is_call, uint32_t *ret_first, uint32_t *ret_n) {
	uint32_t end = p->at;
	int r;

	r = statement_end(p, &end);
	if (r < 0) {
		return r;
	}
	p->n_top = 0;
	while (p->at < end) {
		struct ptx_operand o = {.first = p->at, .end = operand_end(p, p->at, end)};

		if (o.first == o.end) {
			return parser_expected(p, "an operand");
		}
		r = match(p, is_call, &o);
		if (r < 0) {
			return r;
		}
		r = parser_grow(&p->top, p->n_top, &p->top_capacity, sizeof(o));
		if (r < 0) {
			return r;
		}
		p->top[p->n_top++] = o;
		p->at = o.end;
		if (p->at < end && (!parser_punct(p, ',') || p->at + 1 == end)) {
			return parser_expected(p, "an operand or a semicolon");
		}
		p->at += p->at < end;
	}
	*ret_first = (uint32_t)p->m->n_operands;
	*ret_n = (uint32_t)p->n_top;
	for (size_t i = 0; i < p->n_top; i++) {
		r = add_operand(p, &p->top[i]);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}
