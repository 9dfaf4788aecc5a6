/*
 * parse-var.c: declarations: registers, variables, parameters.
 */
#include <errno.h>
#include <string.h>

#include "shim/ptx/parser.h"

static const struct {
	const char *name;
	enum ptx_space space;
} spaces[] = {
	{".reg", PTX_SPACE_REG},       {".param", PTX_SPACE_PARAM},   {".local", PTX_SPACE_LOCAL},
	{".shared", PTX_SPACE_SHARED}, {".global", PTX_SPACE_GLOBAL}, {".const", PTX_SPACE_CONST},
	{".tex", PTX_SPACE_TEX},
};

static enum ptx_space space_from_name(struct ptx_name n) {
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (ptx_name_is(n, spaces[i].name)) {
			return spaces[i].space;
		}
	}
	return PTX_SPACE_NONE;
}

bool parser_at_var(const struct parser *p) {
	return parser_token(p)->kind == PTX_TOKEN_WORD &&
	       space_from_name(parser_name(p, p->at)) != PTX_SPACE_NONE;
}

static int parse_align(struct parser *p, uint32_t *ret) {
	uint64_t v;
	int r;

	p->at++;
	r = parser_expect_int(p, 1u << 20, &v);
	if (r < 0) {
		return r;
	}
	if (v == 0 || (v & (v - 1)) != 0) {
		p->at--;
		return parser_expected(p, "a power of two");
	}
	*ret = (uint32_t)v;
	return 0;
}

/* ".ptr .global .align 4": what a parameter points to, of no interest here. */
static int skip_pointee(struct parser *p) {
	uint32_t align;

	p->at++;
	if (parser_at_var(p)) {
		p->at++;
	}
	return parser_is(p, ".align") ? parse_align(p, &align) : 0;
}

/* Everything in front of the name. */
static int parse_prefix(struct parser *p, struct ptx_var *v) {
	int r = 0;

	while (r == 0 && parser_token(p)->kind == PTX_TOKEN_WORD &&
	       parser_name(p, p->at).s[0] == '.') {
		struct ptx_name n = parser_name(p, p->at);
		enum ptx_space space = space_from_name(n);
		enum ptx_type type = ptx_type_from_name(n);

		if (ptx_name_is(n, ".align")) {
			r = parse_align(p, &v->align);
		} else if (ptx_name_is(n, ".ptr")) {
			r = skip_pointee(p);
		} else if (ptx_name_is(n, ".attribute")) {
			p->at++;
			r = parser_punct(p, '(') ? parser_skip_balanced(p)
						 : parser_expected(p, "'('");
		} else if (space != PTX_SPACE_NONE) {
			v->space = space;
			p->at++;
			if (parser_punct(p, '[')) { /* .const[3]: banks of old */
				r = parser_skip_balanced(p);
			}
		} else if (ptx_name_is(n, ".v2") || ptx_name_is(n, ".v4") ||
			   ptx_name_is(n, ".v8")) {
			v->vector = (uint32_t)(n.s[2] - '0');
			p->at++;
		} else {
			if (ptx_name_is(n, ".texref") || ptx_name_is(n, ".surfref") ||
			    ptx_name_is(n, ".samplerref")) {
				v->space = PTX_SPACE_TEX;
			}
			v->type = type == PTX_TYPE_NONE ? PTX_TYPE_OTHER : type;
			p->at++;
		}
	}
	if (r == 0 && (v->space == PTX_SPACE_NONE || v->type == PTX_TYPE_NONE)) {
		return parser_expected(p, "a state space and a type");
	}
	return r;
}

static int parse_dimensions(struct parser *p, struct ptx_var *v) {
	bool open = false;
	uint64_t n;
	int r;

	v->count = 1;
	while (parser_punct(p, '[')) {
		p->at++;
		if (parser_punct(p, ']') && !v->is_array) {
			open = true;
		} else {
			r = parser_expect_int(p, INT64_MAX, &n);
			if (r < 0) {
				return r;
			}
			if (__builtin_mul_overflow(v->count, n, &v->count)) {
				p->at--;
				return parser_expected(p, "a smaller array");
			}
		}
		v->is_array = true;
		r = parser_expect(p, ']');
		if (r < 0) {
			return r;
		}
	}
	if (open) {
		v->count = 0;
	}
	return 0;
}

static int parse_initialiser(struct parser *p, struct ptx_var *v) {
	unsigned depth = 0;

	p->at++;
	v->has_init = true;
	v->init_first = p->at;
	while (depth > 0 || !(parser_punct(p, ',') || parser_punct(p, ';'))) {
		if (parser_token(p)->kind == PTX_TOKEN_END || parser_punct(p, ';')) {
			return parser_expected(p, "the end of the initialiser");
		}
		if (parser_punct(p, '{') || parser_punct(p, '(')) {
			depth++;
		} else if (parser_punct(p, '}') || parser_punct(p, ')')) {
			if (depth == 0) {
				return parser_expected(p, "a value");
			}
			depth--;
		}
		p->at++;
	}
	if (p->at == v->init_first) {
		return parser_expected(p, "a value");
	}
	v->init_end = p->at;
	return 0;
}

static int add_var(struct parser *p, const struct ptx_var *v) {
	struct ptx_module *m = p->m;
	int r = parser_grow(&m->vars, m->n_vars, &p->vars_capacity, sizeof(*v));

	if (r < 0) {
		return r;
	}
	m->vars[m->n_vars++] = *v;
	if (ptx_name_is(v->name, "_")) {
		return 0;
	}
	return ptx_names_push(&p->names, v->name, (uint32_t)(m->n_vars - 1));
}

/* A name and what follows it: range, dimensions, initialiser. */
static int parse_declarator(struct parser *p, struct ptx_var *v) {
	uint64_t n;
	int r;

	v->line = parser_token(p)->line;
	r = parser_expect_name(p, &v->name);
	if (r < 0) {
		return r;
	}
	if (parser_punct(p, '<') && v->space == PTX_SPACE_REG) {
		p->at++;
		r = parser_expect_int(p, UINT32_MAX, &n);
		if (r < 0) {
			return r;
		}
		v->reg_range = (uint32_t)n;
		r = parser_expect(p, '>');
		if (r < 0) {
			return r;
		}
	}
	r = parse_dimensions(p, v);
	if (r == 0 && parser_punct(p, '=')) {
		r = parse_initialiser(p, v);
	}
	return r;
}

static uint32_t natural_align(const struct ptx_var *v) {
	uint32_t bytes = ptx_type_bytes(v->type);

	return bytes == 0 ? 1 : bytes * v->vector;
}

int parser_vars(struct parser *p, const struct parser_linkage *linkage) {
	struct ptx_var prefix = {
		.vector = 1,
		.is_visible = linkage->is_visible,
		.is_extern = linkage->is_extern,
		.is_weak = linkage->is_weak,
		.is_common = linkage->is_common,
		.first = linkage->first,
	};
	size_t first = p->m->n_vars;
	int r;

	r = parse_prefix(p, &prefix);
	if (r < 0) {
		return r;
	}
	if (prefix.align == 0) {
		prefix.align = natural_align(&prefix);
	}
	for (;;) {
		struct ptx_var v = prefix;

		r = parse_declarator(p, &v);
		if (r == 0) {
			r = add_var(p, &v);
		}
		if (r < 0) {
			return r;
		}
		if (!parser_punct(p, ',')) {
			break;
		}
		p->at++;
	}
	r = parser_expect(p, ';');
	for (size_t i = first; i < p->m->n_vars; i++) {
		p->m->vars[i].end = p->at;
	}
	return r;
}

int parser_params(struct parser *p, uint32_t *ret_first, uint32_t *ret_n) {
	size_t first = p->m->n_vars;
	int r;

	r = parser_expect(p, '(');
	while (r == 0 && !parser_punct(p, ')')) {
		struct ptx_var v = {.vector = 1, .first = p->at};

		r = parse_prefix(p, &v);
		if (r == 0) {
			r = parse_declarator(p, &v);
		}
		if (r < 0) {
			return r;
		}
		if (v.align == 0) {
			v.align = natural_align(&v);
		}
		v.end = p->at;
		r = add_var(p, &v);
		if (r == 0 && !parser_punct(p, ')')) {
			r = parser_expect(p, ',');
			if (r == 0 && parser_punct(p, ')')) {
				r = parser_expected(p, "a parameter");
			}
		}
	}
	if (r < 0) {
		return r;
	}
	p->at++;
	*ret_first = (uint32_t)first;
	*ret_n = (uint32_t)(p->m->n_vars - first);
	return 0;
}
