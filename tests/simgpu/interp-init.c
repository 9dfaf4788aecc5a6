/*
 * interp-init.c: initial values of module-scope variables.
 */
#include "tests/simgpu/interp-internal.h"

#include <errno.h>
#include <stdlib.h>

/* A walk over the tokens of one initialiser. */
struct initialiser {
	const struct interp_module *m;
	const struct ptx_var *var;
	uint32_t at, end;
	uint8_t *bytes;
	uint64_t size, done; /* in bytes */
};

static const struct ptx_token *token(const struct initialiser *v, uint32_t at) {
	return &v->m->ptx->tokens.list[at < v->end ? at : v->end - 1];
}

static bool is_punct(const struct initialiser *v, char c) {
	const struct ptx_token *t = token(v, v->at);

	return v->at < v->end && t->kind == PTX_TOKEN_PUNCT &&
	       v->m->ptx->tokens.text[t->offset] == c;
}

static bool take_punct(struct initialiser *v, char c) {
	bool yes = is_punct(v, c);

	v->at += yes;
	return yes;
}

static int address_of(const struct initialiser *v, struct ptx_name name, uint64_t *ret) {
	for (size_t i = 0; i < v->m->n_vars; i++) {
		if (ptx_name_equal(v->m->vars[i].ptx->name, name)) {
			*ret = v->m->vars[i].addr;
			return 0;
		}
	}
	for (size_t i = 0; i < v->m->n_funcs; i++) {
		if (ptx_name_equal(v->m->funcs[i].ptx->name, name)) {
			*ret = INTERP_FUNCTION_FIRST + i;
			return 0;
		}
	}
	return -EINVAL;
}

/* A number, or (with @mask and generic() around it) an address, plus and minus numbers. */
static int read_sum(struct initialiser *v, uint64_t *ret);

static int read_term(struct initialiser *v, uint64_t *ret) {
	const struct ptx_tokens *tokens = &v->m->ptx->tokens;
	const struct ptx_token *t = token(v, v->at);
	struct ptx_name name = {ptx_token_text(tokens, t), t->len};
	double f;
	float single;
	bool is_f32;
	int r;

	if (v->at >= v->end) {
		return -EINVAL;
	}
	v->at++;
	switch (t->kind) {
	case PTX_TOKEN_INT:
		return ptx_token_int(tokens, t, ret);
	case PTX_TOKEN_FLOAT:
		r = ptx_token_float(tokens, t, &f, &is_f32);
		single = (float)f;
		*ret = 0;
		if (r == 0 && v->var->type == PTX_TYPE_F32) {
			memcpy(ret, &single, sizeof(single));
		} else if (r == 0 && v->var->type == PTX_TYPE_F16) {
			*ret = half_from_double(f, ROUND_RN);
		} else if (r == 0) {
			memcpy(ret, &f, sizeof(f));
		}
		return r;
	case PTX_TOKEN_WORD:
		if (ptx_name_is(name, "generic") && take_punct(v, '(')) {
			r = read_sum(v, ret);
			return r == 0 && !take_punct(v, ')') ? -EINVAL : r;
		}
		return address_of(v, name, ret);
	default:
		return -EINVAL;
	}
}

/* The sign bit of a negative number in floating point. */
static uint64_t negate(const struct initialiser *v, uint64_t bits) {
	switch (v->var->type) {
	case PTX_TYPE_F64:
		return bits ^ (uint64_t)1 << 63;
	case PTX_TYPE_F32:
		return bits ^ (uint64_t)1 << 31;
	case PTX_TYPE_F16:
	case PTX_TYPE_BF16:
		return bits ^ (uint64_t)1 << 15;
	default:
		return 0 - bits;
	}
}

static int read_sum(struct initialiser *v, uint64_t *ret) {
	uint64_t sum = 0, term;
	bool minus = take_punct(v, '-');
	int r;

	do {
		r = read_term(v, &term);
		if (r < 0) {
			return r;
		}
		sum += minus ? negate(v, term) : term;
		minus = is_punct(v, '-');
	} while (take_punct(v, '+') || take_punct(v, '-'));
	*ret = sum;
	return 0;
}

/* 0xFF00(symbol): the byte of the address that the mask selects. */
static int read_element(struct initialiser *v, uint64_t *ret) {
	const struct ptx_token *t = token(v, v->at);
	uint64_t mask;
	int r;

	if (t->kind == PTX_TOKEN_INT && v->at + 1 < v->end) {
		v->at++;
		if (take_punct(v, '(')) {
			r = ptx_token_int(&v->m->ptx->tokens, t, &mask);
			if (r == 0) {
				r = read_sum(v, ret);
			}
			if (r < 0 || !mask || !take_punct(v, ')')) {
				return r < 0 ? r : -EINVAL;
			}
			*ret = (*ret & mask) >> __builtin_ctzll(mask);
			return 0;
		}
		v->at--;
	}
	return read_sum(v, ret);
}

/* Braces only group: elements stand in order. */
static int read_all(struct initialiser *v) {
	unsigned bytes = ptx_type_bytes(v->var->type);

	while (v->at < v->end) {
		uint64_t element = 0;
		int r;

		if (take_punct(v, '{') || take_punct(v, '}') || take_punct(v, ',') ||
		    take_punct(v, ';')) {
			continue;
		}
		r = read_element(v, &element);
		if (r < 0) {
			return r;
		}
		if (!bytes || v->size - v->done < bytes) {
			return -EINVAL;
		}
		memcpy(v->bytes + v->done, &element, bytes);
		v->done += bytes;
	}
	return 0;
}

static int init_var(const struct interp_module *m, const struct module_var *var,
		    const struct interp_memory *memory) {
	struct initialiser v = {.m = m,
				.var = var->ptx,
				.at = var->ptx->init_first,
				.end = var->ptx->init_end,
				.size = var->size};
	uint64_t start, end;
	uint8_t *host;
	int r = 0;

	if (!var->size) {
		return 0;
	}
	host = memory->resolve(memory->userdata, var->addr, var->size, true, &start, &end);
	if (!host) {
		return -EFAULT;
	}
	v.bytes = calloc(1, var->size);
	if (!v.bytes) {
		return -ENOMEM;
	}
	if (var->ptx->has_init) {
		r = read_all(&v);
	}
	if (r == 0) {
		memcpy(host, v.bytes, var->size);
	}
	free(v.bytes);
	return r;
}

int interp_module_init_vars(struct interp_module *m, const struct interp_memory *memory) {
	for (size_t i = 0; i < m->n_vars; i++) {
		int r = init_var(m, &m->vars[i], memory);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}
