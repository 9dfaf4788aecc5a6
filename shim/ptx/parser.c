/*
 * parser.c: tokens to a module: functions, their statements, module-scope items.
 */
#include "shim/ptx/parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/opcodes.h"

int parser_grow(void *list, size_t n, size_t *capacity, size_t size) {
	void *old, *grown;

	if (n < *capacity) {
		return 0;
	}
	if (n >= UINT32_MAX / 2) {
		return -E2BIG; /* indices are 32 bits wide */
	}
	memcpy(&old, list, sizeof(old));
	grown = reallocarray(old, n ? n * 2 : 16, size);
	if (!grown) {
		return -ENOMEM;
	}
	memcpy(list, &grown, sizeof(grown));
	*capacity = n ? n * 2 : 16;
	return 0;
}

int parser_expected(struct parser *p, const char *what) {
	const struct ptx_token *k = parser_token(p);

	if (p->error_size == 0) {
		return -EINVAL;
	}
	if (k->kind == PTX_TOKEN_END) {
		snprintf(p->error, p->error_size, "line %u: expected %s, not the end of the text",
			 k->line, what);
	} else if (k->kind == PTX_TOKEN_STRING) { /* may hold anything */
		snprintf(p->error, p->error_size, "line %u: expected %s, not a string", k->line,
			 what);
	} else {
		snprintf(p->error, p->error_size, "line %u: expected %s, not '%.*s'", k->line, what,
			 (int)(k->len < 80 ? k->len : 80), ptx_token_text(&p->m->tokens, k));
	}
	return -EINVAL;
}

int parser_expect(struct parser *p, char c) {
	char what[4] = {'\'', c, '\'', '\0'};

	if (!parser_punct(p, c)) {
		return parser_expected(p, what);
	}
	p->at++;
	return 0;
}

int parser_expect_name(struct parser *p, struct ptx_name *ret) {
	struct ptx_name n = parser_name(p, p->at);

	if (parser_token(p)->kind != PTX_TOKEN_WORD || n.s[0] == '.') {
		return parser_expected(p, "a name");
	}
	*ret = n;
	p->at++;
	return 0;
}

int parser_expect_int(struct parser *p, uint64_t max, uint64_t *ret) {
	uint64_t v;

	if (parser_token(p)->kind != PTX_TOKEN_INT ||
	    ptx_token_int(&p->m->tokens, parser_token(p), &v) < 0 || v > max) {
		return parser_expected(p, "a whole number in range");
	}
	*ret = v;
	p->at++;
	return 0;
}

int parser_skip_balanced(struct parser *p) {
	size_t depth = 0;

	do {
		if (parser_token(p)->kind == PTX_TOKEN_END) {
			return parser_expected(p, "a closing bracket");
		}
		if (parser_punct(p, '{') || parser_punct(p, '(') || parser_punct(p, '[')) {
			depth++;
		} else if (parser_punct(p, '}') || parser_punct(p, ')') || parser_punct(p, ']')) {
			depth--;
		}
		p->at++;
	} while (depth > 0);
	return 0;
}

/* .visible, .extern, .weak, .common: any number of them. */
static void parse_linkage(struct parser *p, struct parser_linkage *ret) {
	*ret = (struct parser_linkage){.first = p->at};
	for (;; p->at++) {
		if (parser_is(p, ".visible")) {
			ret->is_visible = true;
		} else if (parser_is(p, ".extern")) {
			ret->is_extern = true;
		} else if (parser_is(p, ".weak")) {
			ret->is_weak = true;
		} else if (parser_is(p, ".common")) {
			ret->is_common = true;
		} else {
			return;
		}
	}
}

static int add_stmt(struct parser *p, const struct ptx_stmt *s) {
	struct ptx_module *m = p->m;
	int r = parser_grow(&m->stmts, m->n_stmts, &p->stmts_capacity, sizeof(*s));

	if (r < 0) {
		return r;
	}
	m->stmts[m->n_stmts] = *s;
	m->stmts[m->n_stmts++].end = p->at;
	return 0;
}

static int skip_statement(struct parser *p) {
	while (!parser_punct(p, ';')) {
		if (parser_token(p)->kind == PTX_TOKEN_END || parser_punct(p, '{') ||
		    parser_punct(p, '}')) {
			return parser_expected(p, "a semicolon");
		}
		p->at++;
	}
	p->at++;
	return 0;
}

static void skip_ints(struct parser *p) {
	while (parser_token(p)->kind == PTX_TOKEN_INT) {
		p->at++;
	}
}

/* ".loc 1 2 3, function_name $L + 4, inlined_at 1 2 3": ends where the form ends, no semicolon. */
static void skip_loc(struct parser *p) {
	p->at++;
	skip_ints(p);
	while (parser_punct(p, ',')) {
		p->at++;
		while (parser_token(p)->kind == PTX_TOKEN_WORD &&
		       !parser_punct_at(p, p->at + 1, ':')) {
			bool inlined = parser_is(p, "inlined_at");

			p->at++;
			if (inlined) {
				skip_ints(p);
				break;
			}
			if (parser_punct(p, ',')) {
				break;
			}
			if (parser_punct(p, '+')) {
				p->at++;
				skip_ints(p);
				break;
			}
		}
	}
}

static int parse_table(struct parser *p, struct ptx_stmt *s) {
	bool has_names = !parser_is(p, ".callprototype");
	int r;

	s->kind = PTX_STMT_TABLE;
	p->at++;
	if (!has_names) {
		return skip_statement(p);
	}
	r = parser_operands(p, false, &s->names, &s->n_names);
	return r < 0 ? r : parser_expect(p, ';');
}

static int parse_label(struct parser *p, struct ptx_stmt *s) {
	s->kind = PTX_STMT_LABEL;
	s->opcode = parser_name(p, p->at);
	p->at += 2;
	if (parser_is(p, ".branchtargets") || parser_is(p, ".calltargets") ||
	    parser_is(p, ".callprototype")) {
		return parse_table(p, s);
	}
	return 0;
}

static int parse_directive(struct parser *p, struct ptx_stmt *s) {
	s->kind = PTX_STMT_DIRECTIVE;
	if (parser_is(p, ".loc")) {
		skip_loc(p);
		return 0;
	}
	return skip_statement(p);
}

static int parse_body_vars(struct parser *p, struct ptx_stmt *s) {
	struct parser_linkage linkage;
	int r;

	s->kind = PTX_STMT_VAR;
	s->var = (uint32_t)p->m->n_vars;
	parse_linkage(p, &linkage);
	r = parser_vars(p, &linkage);
	s->n_vars = (uint32_t)p->m->n_vars - s->var;
	return r;
}

static int parse_insn(struct parser *p, struct ptx_stmt *s) {
	int r;

	s->kind = PTX_STMT_INSN;
	s->guard_var = PTX_NONE;
	if (parser_punct(p, '@')) {
		p->at++;
		s->guard_negated = parser_punct(p, '!');
		p->at += s->guard_negated;
		r = parser_expect_name(p, &s->guard);
		if (r < 0) {
			return r;
		}
		s->guard_var = parser_find_var(p, s->guard);
	}
	r = parser_expect_name(p, &s->opcode);
	if (r < 0) {
		return r;
	}
	s->op = opcode_find(s->opcode);
	r = parser_operands(p, ptx_name_is(ptx_opcode_part(s->opcode, 0), "call"), &s->operands,
			    &s->n_operands);
	return r < 0 ? r : parser_expect(p, ';');
}

static int open_scope(struct parser *p) {
	int r = parser_grow(&p->scopes, p->n_scopes, &p->scopes_capacity, sizeof(*p->scopes));

	if (r < 0) {
		return r;
	}
	p->scopes[p->n_scopes++] = p->names.n;
	return 0;
}

static void close_scope(struct parser *p) {
	ptx_names_pop_to(&p->names, p->scopes[--p->n_scopes]);
}

static int parse_statement(struct parser *p) {
	const struct ptx_token *k = parser_token(p);
	struct ptx_stmt s = {.first = p->at, .line = k->line};
	int r = 0;

	if (parser_punct(p, ';')) {
		p->at++;
		return 0;
	}
	if (parser_punct(p, '{') || parser_punct(p, '}')) {
		s.kind = parser_punct(p, '{') ? PTX_STMT_OPEN : PTX_STMT_CLOSE;
		p->at++;
		if (s.kind == PTX_STMT_OPEN) {
			r = open_scope(p);
		} else {
			close_scope(p);
		}
	} else if (k->kind == PTX_TOKEN_WORD && parser_punct_at(p, p->at + 1, ':')) {
		r = parse_label(p, &s);
	} else if (parser_at_var(p) || parser_is(p, ".extern") || parser_is(p, ".visible") ||
		   parser_is(p, ".weak") || parser_is(p, ".common")) {
		r = parse_body_vars(p, &s);
	} else if (k->kind == PTX_TOKEN_WORD && parser_name(p, p->at).s[0] == '.') {
		r = parse_directive(p, &s);
	} else {
		r = parse_insn(p, &s);
	}
	return r < 0 ? r : add_stmt(p, &s);
}

static int parse_body(struct parser *p, struct ptx_func *f) {
	size_t outer = p->n_scopes;
	int r;

	f->has_body = true;
	f->body_first = p->at;
	f->stmts = (uint32_t)p->m->n_stmts;
	p->at++;
	while (!(parser_punct(p, '}') && p->n_scopes == outer)) {
		r = parse_statement(p);
		if (r < 0) {
			return r;
		}
	}
	p->at++;
	f->n_stmts = (uint32_t)p->m->n_stmts - f->stmts;
	f->body_end = p->at;
	return 0;
}

static int parse_triple(struct parser *p, uint32_t v[3]) {
	uint64_t n;
	int r;

	p->at++;
	v[0] = v[1] = v[2] = 1;
	for (unsigned i = 0; i < 3; i++) {
		r = parser_expect_int(p, UINT32_MAX, &n);
		if (r < 0) {
			return r;
		}
		v[i] = (uint32_t)n;
		if (!parser_punct(p, ',')) {
			break;
		}
		p->at++;
	}
	return 0;
}

/* What stands between the parameters and the body or the ';'. */
static int parse_func_directives(struct parser *p, struct ptx_func *f) {
	int r = 0;

	f->directives_first = p->at;
	while (r == 0 && !parser_punct(p, '{') && !parser_punct(p, ';')) {
		if (parser_token(p)->kind == PTX_TOKEN_END) {
			return parser_expected(p, "a function body or a semicolon");
		}
		if (parser_is(p, ".maxntid")) {
			r = parse_triple(p, f->maxntid);
		} else if (parser_is(p, ".reqntid")) {
			r = parse_triple(p, f->reqntid);
		} else if (parser_is(p, ".pragma")) {
			r = skip_statement(p);
		} else {
			f->noreturn |= parser_is(p, ".noreturn");
			p->at++;
		}
	}
	f->directives_end = p->at;
	return r;
}

static int add_func(struct parser *p, const struct ptx_func *f) {
	struct ptx_module *m = p->m;
	uint32_t known = ptx_names_find(m->func_names, f->name);
	int r;

	r = parser_grow(&m->funcs, m->n_funcs, &p->funcs_capacity, sizeof(*f));
	if (r < 0) {
		return r;
	}
	m->funcs[m->n_funcs++] = *f;
	if (known != PTX_NAMES_NONE && (m->funcs[known].has_body || !f->has_body)) {
		return 0;
	}
	return ptx_names_push(m->func_names, f->name, (uint32_t)(m->n_funcs - 1));
}

/* After the linkage, at .entry or .func. Parameters are in scope up to the end of the body. */
static int parse_func(struct parser *p, const struct parser_linkage *linkage) {
	struct ptx_func f = {
		.is_entry = parser_is(p, ".entry"),
		.is_visible = linkage->is_visible,
		.is_extern = linkage->is_extern,
		.is_weak = linkage->is_weak,
		.first = linkage->first,
		.line = parser_token(p)->line,
	};
	uint32_t outer = p->names.n;
	int r = 0;

	p->at++;
	if (parser_is(p, ".attribute")) {
		p->at++;
		r = parser_punct(p, '(') ? parser_skip_balanced(p) : parser_expected(p, "'('");
	}
	if (r == 0 && parser_punct(p, '(')) {
		r = parser_params(p, &f.rets, &f.n_rets);
	}
	if (r == 0) {
		r = parser_expect_name(p, &f.name);
	}
	if (r == 0 && parser_punct(p, '(')) {
		r = parser_params(p, &f.params, &f.n_params);
	}
	if (r == 0) {
		r = parse_func_directives(p, &f);
	}
	if (r == 0) {
		if (parser_punct(p, '{')) {
			r = parse_body(p, &f);
		} else {
			p->at++;
		}
	}
	if (r < 0) {
		return r;
	}
	ptx_names_pop_to(&p->names, outer);
	f.end = p->at;
	return add_func(p, &f);
}

/* "9.0" of .version. */
static int parse_version(struct parser *p) {
	const struct ptx_token *k;
	unsigned *part = &p->m->version_major;

	p->at++;
	k = parser_token(p);
	if (k->kind != PTX_TOKEN_FLOAT || k->len > 8) {
		return parser_expected(p, "a version number");
	}
	for (uint32_t i = 0; i < k->len; i++) {
		char c = ptx_token_text(&p->m->tokens, k)[i];

		if (c == '.') {
			part = &p->m->version_minor;
		} else if (c >= '0' && c <= '9') {
			*part = *part * 10 + (unsigned)(c - '0');
		} else {
			return parser_expected(p, "a version number");
		}
	}
	p->at++;
	return 0;
}

static int parse_target(struct parser *p) {
	struct ptx_name n;
	int r;

	do {
		p->at++;
		r = parser_expect_name(p, &n);
		if (r < 0) {
			return r;
		}
		if (n.len > 3 && memcmp(n.s, "sm_", 3) == 0) {
			p->m->target = n;
			p->m->target_sm = 0;
			for (uint32_t i = 3; i < n.len && i < 8 && n.s[i] >= '0' && n.s[i] <= '9';
			     i++) {
				p->m->target_sm = p->m->target_sm * 10 + (unsigned)(n.s[i] - '0');
			}
		}
	} while (parser_punct(p, ','));
	return 0;
}

static int parse_address_size(struct parser *p) {
	uint64_t v = 0;
	int r;

	p->at++;
	r = parser_expect_int(p, 64, &v);
	if (r == 0 && v != 32 && v != 64) {
		p->at--;
		return parser_expected(p, "32 or 64");
	}
	if (r == 0) {
		p->m->address_size = (unsigned)v;
	}
	return r;
}

/* .file 1 "name", 12345, 678 */
static void skip_file(struct parser *p) {
	p->at++;
	skip_ints(p);
	if (parser_token(p)->kind == PTX_TOKEN_STRING) {
		p->at++;
	}
	while (parser_punct(p, ',')) {
		p->at++;
		skip_ints(p);
	}
}

static int parse_module_directive(struct parser *p) {
	if (parser_is(p, ".version")) {
		return parse_version(p);
	}
	if (parser_is(p, ".target")) {
		return parse_target(p);
	}
	if (parser_is(p, ".address_size")) {
		return parse_address_size(p);
	}
	if (parser_is(p, ".file")) {
		skip_file(p);
		return 0;
	}
	if (parser_is(p, ".loc")) {
		skip_loc(p);
		return 0;
	}
	if (parser_is(p, ".pragma") || parser_is(p, ".alias")) {
		return skip_statement(p);
	}
	if (parser_is(p, ".section")) {
		p->at++;
		if (parser_token(p)->kind == PTX_TOKEN_WORD) {
			p->at++;
		}
		return parser_punct(p, '{') ? parser_skip_balanced(p) : parser_expected(p, "'{'");
	}
	return parser_expected(p, "a declaration, a function or a directive");
}

static int parse_item(struct parser *p) {
	struct ptx_module *m = p->m;
	struct parser_linkage linkage;
	struct ptx_item item;
	int r;

	parse_linkage(p, &linkage);
	item = (struct ptx_item){.first = linkage.first, .n = 1};
	if (parser_is(p, ".func") || parser_is(p, ".entry")) {
		item.kind = PTX_ITEM_FUNC;
		item.index = (uint32_t)m->n_funcs;
		r = parse_func(p, &linkage);
	} else if (parser_at_var(p) || p->at != linkage.first) {
		item.kind = PTX_ITEM_VAR;
		item.index = (uint32_t)m->n_vars;
		r = parser_vars(p, &linkage);
		item.n = (uint32_t)(m->n_vars - item.index);
	} else {
		item.kind = PTX_ITEM_DIRECTIVE;
		r = parse_module_directive(p);
	}
	if (r < 0) {
		return r;
	}
	item.end = p->at;
	r = parser_grow(&m->items, m->n_items, &p->items_capacity, sizeof(item));
	if (r < 0) {
		return r;
	}
	m->items[m->n_items++] = item;
	return 0;
}

static int parse_module(struct parser *p) {
	int r;

	if (!parser_is(p, ".version")) {
		return parser_expected(p, ".version");
	}
	while (parser_token(p)->kind != PTX_TOKEN_END) {
		r = parse_item(p);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int ptx_module_new(struct ptx_module **ret, const char *text, size_t size, char *error,
		   size_t error_size) {
	struct parser p = {.error = error, .error_size = error ? error_size : 0};
	unsigned line;
	int r;

	p.m = calloc(1, sizeof(*p.m));
	if (!p.m) {
		return -ENOMEM;
	}
	p.m->address_size = 32;
	p.m->func_names = calloc(1, sizeof(*p.m->func_names));
	r = p.m->func_names ? ptx_tokens_init(&p.m->tokens, text, size, &line) : -ENOMEM;
	if (r == -EINVAL && p.error_size > 0) {
		snprintf(
			error, error_size,
			"line %u: expected PTX, not these bytes, or a comment or string has no end",
			line);
	}
	if (r == 0) {
		r = ptx_tokens_join(&p.m->tokens, size);
	}
	/* Never NULL, so that the place of no operands at all can be named too. */
	if (r == 0) {
		r = parser_grow(&p.m->operands, 0, &p.operands_capacity, sizeof(*p.m->operands));
	}
	if (r == 0) {
		r = parse_module(&p);
	}
	ptx_names_deinit(&p.names);
	free(p.scopes);
	free(p.top);
	if (r < 0) {
		ptx_module_free(p.m);
		return r;
	}
	*ret = p.m;
	return 0;
}
