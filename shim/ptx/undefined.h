/*
 * undefined.h: registers that a kernel may read before it has written them.
 *
 * Compilers leave such reads where the value does not matter: what comes of a variable that was set
 * on one of two ways, or of an array whose end was not loaded. In a twin the body stands in a loop,
 * so each of these registers would have to keep its value from one virtual block to the next: up to
 * twice as many registers (kernels of CUB). A twin sets them to 0 before (zeros.h).
 */
#pragma once

#include "shim/ptx/cfg.h"
#include "shim/ptx/registers.h"

/*
 * Which of @registers, those of the module's kernel @f, can be read before they are written, by any
 * way through @f; what is written only where a guard holds is not written.
 *
 * Return: by the register's number; owned by the caller. NULL: no memory, or @f is too large for it
 * to be worth the time.
 */
bool *undefined_find(const struct module_facts *facts, const struct registers *registers,
		     const struct ptx_func *f);
