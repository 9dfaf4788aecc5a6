/*
 * kernels.h: the kernels in a file, which of them can be confined to a set of SMs, and which can be
 * launched as dependent ones (shim/enforce/dependent.h).
 *
 * The rewriter's answers (shim/ptx), collected over all images of a file: of each image the entry
 * that a GPU would be given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/base/input.h"
#include "shim/ptx/fatbin.h"
#include "shim/ptx/transform.h"

/* Strings belong to struct kernels. */
struct kernel_row {
	const char *name; /* as in the file: C++ names are mangled */
	const struct fatbin_entry *entry;
	bool confinable;
	const char *reason;	 /* why not; NULL */
	unsigned line;		 /* of the PTX: the instruction's, or the kernel's; 0: no PTX */
	const char *instruction; /* there; NULL: the reason is in the kernel as a whole */
	bool votes, waits;	 /* as in struct twin_kernel: uses_barriers, waits */
	unsigned block_multiple; /* confinable if a block's size is a multiple of this */
	const char *plain;	 /* why its launches are no dependent ones; NULL: they are */
};

/* One entry that was looked into. */
struct kernel_unit {
	const struct fatbin_entry *entry;
	struct transform *transform; /* owned; NULL: machine code, or an error */
	char *error;		     /* owned: why the entry could not be read; NULL */
	char *plain;		     /* owned: as in its rows */
};

struct kernels {
	struct fatbin *fatbin; /* owned; NULL: the file has no GPU code at all */
	bool force_jit;	       /* CUDA_FORCE_PTX_JIT=1, as the driver and the shim read it */
	struct kernel_unit *units;
	size_t n_units;
	struct kernel_row *rows;
	size_t n_rows, n_confinable, allocated;
};

/* No such entry: --entry is out of range. */
#define KERNELS_E_NO_ENTRY 1

/*
 * @in outlives the result. @sm: choose entries as for a GPU of this compute capability; 0: the
 * newest ones. @entry: only this one, from 0; -1: all that are chosen.
 * Return: 0; KERNELS_E_NO_ENTRY; -EINVAL and others of fatbin_new() with one line in @error.
 */
int kernels_init(struct kernels *ret, const struct input *in, unsigned sm, int entry, char *error,
		 size_t error_size);
void kernels_deinit(struct kernels *k);
