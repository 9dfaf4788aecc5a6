/*
 * fuzz-parser.c: any bytes give a module whose every index is within its arrays, or an error that
 * names a line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool what) {
	if (!what) {
		abort();
	}
}

static void check_operand(const struct ptx_module *m, const struct ptx_operand *o) {
	require(o->first < o->end && o->end < m->tokens.n);
	require(o->var == PTX_NONE || o->var < m->n_vars);
	require(o->pair.len == 0 || o->pair_var == PTX_NONE || o->pair_var < m->n_vars);
	require((size_t)o->elements + o->n_elements <= m->n_operands);
}

static void check_stmt(const struct ptx_module *m, const struct ptx_stmt *s) {
	require(s->first < s->end && s->end < m->tokens.n);
	require((size_t)s->operands + s->n_operands <= m->n_operands);
	require((size_t)s->var + s->n_vars <= m->n_vars);
	require((size_t)s->names + s->n_names <= m->n_operands);
	if (s->kind == PTX_STMT_INSN) {
		require(s->opcode.len > 0);
		require(s->guard_var == PTX_NONE || s->guard_var < m->n_vars);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct ptx_module *m = NULL;
	char error[100] = "";

	if (ptx_module_new(&m, (const char *)bytes, size, error, sizeof(error)) < 0) {
		require(!m && strncmp(error, "line ", 5) == 0);
		return 0;
	}
	for (size_t i = 0; i < m->n_operands; i++) {
		check_operand(m, &m->operands[i]);
	}
	for (size_t i = 0; i < m->n_stmts; i++) {
		check_stmt(m, &m->stmts[i]);
	}
	for (size_t i = 0; i < m->n_funcs; i++) {
		const struct ptx_func *f = &m->funcs[i];

		require((size_t)f->stmts + f->n_stmts <= m->n_stmts);
		require((size_t)f->params + f->n_params <= m->n_vars);
		require(ptx_module_func(m, f->name));
	}
	ptx_module_free(m);
	return 0;
}
