/*
 * transform.h: PTX text in, PTX text with persistent-thread twins out, or the reason why not.
 *
 * Pure text work: no driver, no files, no globals, no logging. Any input gives an answer in time
 * and memory linear in its length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kernel of the input. Strings belong to the struct transform. */
struct twin_kernel {
	const char *name;	     /* as in the PTX: mangled */
	bool confinable;	     /* has a twin */
	const char *reason;	     /* NULL, or why not, in a sentence without a full stop */
	unsigned line;		     /* of the instruction that is the reason, or of the kernel */
	const char *instruction;     /* that instruction's text, or NULL */
	size_t n_params;	     /* of the original */
	const size_t *param_offsets; /* byte offset of each parameter in the `extra` buffer */
	size_t params_size;	     /* bytes of all parameters, without the twin's own */
	size_t arg_offset;	     /* where struct twin_arg stands in the twin's `extra` buffer */
	unsigned block_multiple;     /* block x size must be a multiple of this for the twin to be
				      * right;     1: always right */
	bool uses_barriers;	     /* votes at barriers were needed */
	bool waits;		     /* its blocks may wait for each other: a grid that fits on the
				      * GPU at once must run there, whether it has a twin or not */
	const uint32_t *vars; /* which of struct transform.vars it or its callees use; a kernel is
			       * only refused for a variable of its own that has no address */
	size_t n_vars;
};

struct transform {
	const struct twin_kernel *kernels; /* in the order of the text */
	size_t n_kernels;
	const char *const *vars; /* module-scope variables of the original that twins use, in the
				  * order of TWIN_VARS_NAME */
	size_t n_vars;
	const char *ptx; /* the twin module: only twins, callees and what they use; NULL if no
			  * kernel is confinable */
	size_t ptx_size; /* without the final NUL */
};

/*
 * @text need not be terminated. Return: 0; -EINVAL when the text does not parse, with @error (if
 * not NULL, at most @error_size bytes) telling line and what was expected; -E2BIG above 256 MiB;
 * -ENOMEM. *ret is owned by the caller.
 */
int transform_new(struct transform **ret, const char *text, size_t size, char *error,
		  size_t error_size);

/* Takes NULL, returns NULL. */
struct transform *transform_free(struct transform *t);
