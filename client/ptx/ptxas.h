/*
 * ptxas.h: what the toolkit's assembler says that kernels need.
 *
 * Not a compiler: machine code is thrown away. The assembler is not part of sbeet; without it there
 * is an error that says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ptxas_kernel {
	char *name; /* owned */
	unsigned registers;
	unsigned shared_bytes; /* static ones */
	unsigned spill_bytes;  /* stores of registers to memory */
};

struct ptxas {
	struct ptxas_kernel *kernels; /* owned */
	size_t n;
};

/*
 * Assembles PTX text for @target ("sm_90"). The assembler is looked for along PATH, then in
 * $CUDA_HOME/bin (/usr/local/cuda/bin). Return: 0; -ENOENT: there is none; -EINVAL: it does not
 * take the text; and other errors of the system; all with one line in @error.
 */
int ptxas_init(struct ptxas *ret, const char *text, size_t size, const char *target, char *error,
	       size_t error_size);
void ptxas_deinit(struct ptxas *p);

/* NULL if there is none of that name. */
const struct ptxas_kernel *ptxas_find(const struct ptxas *p, const char *name);
