/*
 * registers.c: a function's declarations stand one after the other in the module's list, so a
 * register is an offset into the range of its declaration.
 */
#include "shim/ptx/registers.h"

#include <errno.h>
#include <stdlib.h>

int registers_init(struct registers *r, const struct ptx_module *m, const struct ptx_func *f) {
	uint64_t limit = 4096 + 64 * (uint64_t)f->n_stmts, n = 0;
	uint32_t first = PTX_NONE, end = 0;
	uint32_t *bases;

	for (uint32_t i = f->stmts; i < f->stmts + f->n_stmts; i++) {
		const struct ptx_stmt *s = &m->stmts[i];

		if (s->kind == PTX_STMT_VAR) {
			first = first == PTX_NONE ? s->var : first;
			end = s->var + s->n_vars;
		}
	}
	if (first == PTX_NONE) {
		first = end = 0;
	}
	bases = calloc((size_t)(end - first) + 1, sizeof(*bases));
	if (!bases) {
		return -ENOMEM;
	}
	for (uint32_t i = first; i < end; i++) {
		const struct ptx_var *v = &m->vars[i];

		bases[i - first] = (uint32_t)n;
		n += v->space != PTX_SPACE_REG ? 0 : v->reg_range ? v->reg_range : 1;
		if (n > limit || n >= PTX_NONE) {
			free(bases);
			return -E2BIG;
		}
	}
	*r = (struct registers){.m = m,
				.first_var = first,
				.n_vars = end - first,
				.bases = bases,
				.n = (uint32_t)n};
	return 0;
}

void registers_deinit(struct registers *r) {
	free(r->bases);
	*r = (struct registers){0};
}

uint32_t registers_find(const struct registers *r, struct ptx_name n, uint32_t var) {
	const struct ptx_var *v;
	uint32_t number = 0;

	if (var == PTX_NONE || var < r->first_var || var - r->first_var >= r->n_vars) {
		return PTX_NONE;
	}
	v = &r->m->vars[var];
	if (v->space != PTX_SPACE_REG) {
		return PTX_NONE;
	}
	/* the parser has checked that a name in a range ends with a number within it */
	for (uint32_t i = v->name.len; v->reg_range > 0 && i < n.len && n.s[i] != '.'; i++) {
		number = number * 10 + (uint32_t)(n.s[i] - '0');
	}
	return number < (v->reg_range ? v->reg_range : 1) ? r->bases[var - r->first_var] + number
							  : PTX_NONE;
}
