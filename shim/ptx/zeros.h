/*
 * zeros.h: where a twin sets the registers to 0 that may be read before they are written
 * (undefined.h).
 *
 * As late as it can: at the kernel's start each would be a register more up to where it is written
 * or read, and some kernels have hundreds. A place will do if nothing has written the register on
 * any way to it, so that it may hold anything there.
 */
#pragma once

#include "shim/ptx/cfg.h"
#include "shim/ptx/registers.h"

/* Register number @reg is set in front of statement @stmt. */
struct zero {
	uint32_t stmt, reg;
};

struct zeros {
	struct zero *list; /* owned; in the order of the text */
	size_t n;
};

/*
 * For those of @undefined (by register number) below @limit. Return: 0; -ENOMEM; -E2BIG if @f is
 * too large or too entangled for it.
 */
int zeros_place(struct zeros *ret, const struct module_facts *facts,
		const struct registers *registers, const struct ptx_func *f, const bool *undefined,
		uint32_t limit);
