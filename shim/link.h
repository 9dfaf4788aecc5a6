/*
 * link.h: what went into cuLink, for a program that links at run time.
 *
 * The cubin that comes out carries no PTX, so its kernels could not be confined. But where one PTX
 * text was all that went in, that text is the program's source, and stands for the cubin while the
 * link state lives (as the cubin does).
 */
#pragma once

#include <stddef.h>

#include <cuda.h>

#include "shim/enforce/jit.h"

/* @jit: the options for all that goes in. */
void link_created(CUlinkState state, const struct jit *jit);

/* @ptx: @size bytes of PTX text; NULL: anything else, and then there is no single source. @jit: the
 * options for this alone, which come before the others; NULL for none. */
void link_added(CUlinkState state, const void *ptx, size_t size, const struct jit *jit);
void link_completed(CUlinkState state, const void *cubin);
void link_destroyed(CUlinkState state);

/* A copy of the PTX from which @image was linked, with a final NUL, and in @ret_jit what it was
 * compiled with; NULL if there is none. To be freed by link_source_free(), which takes NULL. */
char *link_source_of(const void *image, struct jit *ret_jit);
void link_source_free(char *ptx);

/* After fork, in the child: forget everything without calling the driver. */
void link_after_fork(void);
