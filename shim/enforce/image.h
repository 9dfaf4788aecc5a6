/*
 * image.h: what is made of a code image that the program loads: the twins of its kernels, from its
 * PTX, for GPUs of one compute capability; and its form for dependent launches.
 *
 * Finds the PTX that the driver would use, transforms it, and remembers the answer as long as
 * somebody has it: a program that loads the same image for each of its GPUs, or over and over, pays
 * once. No driver calls.
 */
#pragma once

#include <stddef.h>

#include "shim/ptx/transform.h"

struct image {
	const struct transform *transform; /* NULL: refused as a whole */
	const void *code; /* what is loaded: transform->ptx, or a fat binary of it; NULL: nothing */
	const char *refusal; /* why, else NULL */
};

/*
 * The image as the program passed it, or the file at @path if @image is NULL; @sm: 90 for compute
 * capability 9.0. Always an answer: what can't be used gives an image with a refusal. NULL: no
 * memory.
 */
const struct image *image_get(const void *image, const char *path, unsigned sm);

/* Takes NULL, returns NULL. */
const struct image *image_put(const struct image *i);

/*
 * The image with kernels that wait first of all: PTX (shim/ptx/wait-first.h), terminated, or
 * machine code (shim/ptx/sass.h), an ELF file; @image, @path as above. Only where the driver would
 * take that very machine code for each of the @n_sms GPUs of compute capability @sms, or that PTX,
 * and all are of one. NULL:
 * where it would not, or it can't be done, or there is no memory. To be freed.
 */
void *image_wait_first(const void *image, const char *path, const unsigned *sms, unsigned n_sms);

void image_after_fork(void);
