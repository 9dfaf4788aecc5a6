/*
 * bind.h: the functions of the driver that the program's objects were linked against.
 *
 * libsbeet.so exports none of the driver's names, so nothing that the program defines or looks up
 * meets ours by accident. Instead, each slot in which the dynamic linker has put a function of the
 * driver gets our wrapper, and no other slot is touched. Where a call is bound at its first use,
 * the slot gets the wrapper at once if the linker would find the driver's function.
 *
 * Objects that are there at start are bound before main(), others when dlopen() has loaded them:
 * what their constructors call is the driver's.
 *
 * Objects of a dlopen() with RTLD_DEEPBIND look past preloaded libraries. So their slots for
 * dlsym() and the like get ours, too.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "shim/real.h"

/* At start. @ours: what takes the place of the C library's functions; kept. */
void bind_start(const struct real_dl *ours);

/* Whether that has been called. */
bool bind_has_started(void);

/* Ours for a function of the C library, by its address. NULL: there is none. */
void *bind_ours(const void *address);

/*
 * A dlopen() has returned. @deep_from: which objects it has loaded with RTLD_DEEPBIND, by the first
 * one's number; UINT_MAX: none. Keeps errno; dlerror() has nothing to say afterwards.
 */
void bind_opened(unsigned deep_from);

/* The same for a dlopen() that is about to be called by its own caller: bind_expected() then binds
 * what it has loaded. */
void bind_expect(unsigned deep_from);
void bind_expected(void);
