/*
 * registers.h: a number for each register that a function declares, by declaration and not by name:
 * inner braces may declare a name again.
 */
#pragma once

#include "shim/ptx/ptx.h"

struct registers {
	const struct ptx_module *m; /* borrowed */
	uint32_t first_var, n_vars; /* of the module, declared in the function */
	uint32_t *bases;	    /* owned: by variable, the number of its first register */
	uint32_t n;		    /* registers in all */
};

/* Return: 0; -ENOMEM; -E2BIG for more registers than the function's text can be about. */
int registers_init(struct registers *r, const struct ptx_module *m, const struct ptx_func *f);
void registers_deinit(struct registers *r);

/* Of the name @n, declared as @var; an element's ".x" does not count. PTX_NONE for anything but a
 * register of the function. */
uint32_t registers_find(const struct registers *r, struct ptx_name n, uint32_t var);
