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

void link_created(CUlinkState state);

/* @ptx: @size bytes of PTX text; NULL: anything else, and then there is no single source. */
void link_added(CUlinkState state, const void *ptx, size_t size);
void link_completed(CUlinkState state, const void *cubin);
void link_destroyed(CUlinkState state);

/* A copy of the PTX from which @image was linked, with a final NUL; NULL if there is none. To be
 * freed by link_source_free(), which takes NULL. */
char *link_source_of(const void *image);
void link_source_free(char *ptx);
