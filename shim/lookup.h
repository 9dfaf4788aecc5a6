/*
 * lookup.h: our wrapper for an address of the driver, so that whatever way a program takes to find
 * a function (dlsym, cuGetProcAddress), it gets ours where we have one.
 */
#pragma once

#include <stdbool.h>

/*
 * Return: the wrapper of the function of the driver that starts at @address, else @address (NULL
 * included). The address tells the exact variant, so there is no table of names, versions and
 * flags.
 */
void *lookup_replace(void *address);

/* Whether @address is one of our wrappers. */
bool lookup_is_ours(const void *address);
