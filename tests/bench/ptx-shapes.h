/*
 * ptx-shapes.h: PTX of any length, in shapes that could take a rewriter more than linear time.
 */
#pragma once

#include <stddef.h>

/* Text of a growing length. */
struct ptx_shape_text {
	char *s; /* the caller's, of `size` bytes */
	size_t n, size;
};

struct ptx_shape {
	const char *name;
	/* Adds kernels of some @bytes in all; aborts if the text has no room for them. */
	void (*write)(struct ptx_shape_text *t, size_t bytes);
};

extern const struct ptx_shape ptx_shapes[];
extern const size_t ptx_shapes_n;

/* A whole module, in place of what @t held. */
void ptx_shape_write(struct ptx_shape_text *t, const struct ptx_shape *shape, size_t bytes);
