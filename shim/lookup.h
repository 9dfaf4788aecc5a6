/*
 * lookup.h: our wrapper for an address of the driver, so that whatever way a program takes to find
 * a function (dlsym, cuGetProcAddress), it gets ours where we have one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/early.h"

/* Whether the driver may have a function @name: cuda..., cublas... and curl... are others'. */
EARLY static inline bool lookup_is_of_driver(const char *name) {
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/*
 * Return: the wrapper of the function of the driver that starts at @address, else @address (NULL
 * included). The address tells the exact variant, so there is no table of names, versions and
 * flags.
 */
void *lookup_replace(void *address);

/*
 * The same for what cuGetProcAddress() has found as @symbol, as of @version of CUDA, with @flags. A
 * libcuda.so.1 that passes everything on to another one may answer with that one's functions: then
 * the name tells the variant.
 */
void *lookup_replace_named(void *address, const char *symbol, int version, uint64_t flags);
