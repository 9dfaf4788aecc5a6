/*
 * exports.h: between the two halves of the fake driver.
 */
#pragma once

#include "shim/real.h"

/* As the driver: the newest variant of @symbol that @version knows, with per-thread default streams
 * if the flags ask for them. */
CUresult exports_find(const char *symbol, void **function, int version, cuuint64_t flags);

/* Defined in fake.c where a function does more than nothing. */
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args)			    CALL(name)
#define CALL(name)					    extern __typeof__(name) do_##name __attribute__((weak));
#include "shim/hooks.def"
#include "shim/real.def"
