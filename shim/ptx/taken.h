/*
 * taken.h: of the code in an image what the driver takes for a GPU, and that code with kernels that
 * wait first of all (wait-first.h, sass.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shim/ptx/fatbin.h"

/*
 * The entry of image @image that the driver takes for a GPU of compute capability @sm (90 for 9.0):
 * machine code for it, else the PTX that it compiles. @force_jit: never machine code
 * (CUDA_FORCE_PTX_JIT=1). NULL with @why (if not NULL, at most @why_size bytes): nothing in it is
 * for that GPU, or it can't be told which entry it is.
 */
const struct fatbin_entry *taken_entry(const struct fatbin *f, unsigned image, unsigned sm,
				       bool force_jit, char *why, size_t why_size);

/*
 * A copy of @entry, one of @f's, in which all kernels wait: PTX, terminated, or a fat binary of
 * it where options stand beside it, or an ELF file.
 * Return: 0 with the copy, which becomes the caller's; -ENOTSUP if the kernels have to stay as they
 * are; others as fatbin_unpack() and wait_first_text(); all with @error (if not NULL).
 */
int taken_wait_first(void **ret, struct fatbin *f, const struct fatbin_entry *entry, char *error,
		     size_t error_size);
