/*
 * ptx.c: small questions about a parsed module: names, types, parts of opcodes, look-up.
 */
#include "shim/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#include "shim/ptx/names.h"

bool ptx_name_is(struct ptx_name n, const char *what) {
	return strlen(what) == n.len && memcmp(n.s, what, n.len) == 0;
}

bool ptx_name_equal(struct ptx_name a, struct ptx_name b) {
	return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

static const struct {
	const char *name;
	unsigned bytes;
} types[_PTX_TYPE_N] = {
	[PTX_TYPE_PRED] = {"pred", 0}, [PTX_TYPE_B8] = {"b8", 1},
	[PTX_TYPE_B16] = {"b16", 2},   [PTX_TYPE_B32] = {"b32", 4},
	[PTX_TYPE_B64] = {"b64", 8},   [PTX_TYPE_B128] = {"b128", 16},
	[PTX_TYPE_U8] = {"u8", 1},     [PTX_TYPE_U16] = {"u16", 2},
	[PTX_TYPE_U32] = {"u32", 4},   [PTX_TYPE_U64] = {"u64", 8},
	[PTX_TYPE_S8] = {"s8", 1},     [PTX_TYPE_S16] = {"s16", 2},
	[PTX_TYPE_S32] = {"s32", 4},   [PTX_TYPE_S64] = {"s64", 8},
	[PTX_TYPE_F16] = {"f16", 2},   [PTX_TYPE_F16X2] = {"f16x2", 4},
	[PTX_TYPE_BF16] = {"bf16", 2}, [PTX_TYPE_BF16X2] = {"bf16x2", 4},
	[PTX_TYPE_F32] = {"f32", 4},   [PTX_TYPE_F64] = {"f64", 8},
};

unsigned ptx_type_bytes(enum ptx_type type) {
	return (unsigned)type < _PTX_TYPE_N ? types[type].bytes : 0;
}

enum ptx_type ptx_type_from_name(struct ptx_name n) {
	if (n.len > 0 && n.s[0] == '.') {
		n.s++;
		n.len--;
	}
	for (unsigned i = 0; i < _PTX_TYPE_N; i++) {
		if (types[i].name && ptx_name_is(n, types[i].name)) {
			return (enum ptx_type)i;
		}
	}
	return PTX_TYPE_NONE;
}

struct ptx_name ptx_opcode_part(struct ptx_name opcode, unsigned index) {
	const char *s = opcode.s, *end = s + opcode.len;

	for (;;) {
		const char *dot = s < end ? memchr(s, '.', (size_t)(end - s)) : NULL;

		if (index == 0) {
			return (struct ptx_name){s, (uint32_t)((dot ? dot : end) - s)};
		}
		if (!dot) {
			return (struct ptx_name){end, 0};
		}
		s = dot + 1;
		index--;
	}
}

struct ptx_name ptx_opcode_next(struct ptx_name *rest) {
	const char *dot = rest->len > 0 ? memchr(rest->s, '.', rest->len) : NULL;
	uint32_t len = dot ? (uint32_t)(dot - rest->s) : rest->len, skip = len + (dot ? 1 : 0);
	struct ptx_name part = {rest->s, len};

	rest->s += skip;
	rest->len -= skip;
	return part;
}

bool ptx_opcode_has(struct ptx_name opcode, const char *part) {
	size_t len = strlen(part);

	ptx_opcode_next(&opcode);
	while (opcode.len > 0) {
		struct ptx_name p = ptx_opcode_next(&opcode);

		if (p.len == len && memcmp(p.s, part, len) == 0) {
			return true;
		}
	}
	return false;
}

const struct ptx_func *ptx_module_func(const struct ptx_module *m, struct ptx_name name) {
	uint32_t i = ptx_names_find(m->func_names, name);

	return i == PTX_NAMES_NONE ? NULL : &m->funcs[i];
}

struct ptx_module *ptx_module_free(struct ptx_module *m) {
	if (!m) {
		return NULL;
	}
	ptx_tokens_deinit(&m->tokens);
	if (m->func_names) {
		ptx_names_deinit(m->func_names);
	}
	free(m->func_names);
	free(m->items);
	free(m->vars);
	free(m->funcs);
	free(m->stmts);
	free(m->operands);
	free(m);
	return NULL;
}
