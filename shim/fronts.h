/*
 * fronts.h: libraries that stand in for functions of the driver, in front of it: tracers, and what
 * shares GPUs. Such a library finds the driver's function behind its own by a look-up, which gives
 * it ours. If it has other ways, what the program calls there goes past us: streams must not move
 * then, for its work would lose its order against what we have moved.
 */
#pragma once

#include <stdbool.h>

#include "shim/object.h"

/* Before there are threads that look up. @o stays loaded. */
void fronts_add(const struct object *o);

/* Code at @caller has got a wrapper of ours from a look-up. */
void fronts_serve(const void *caller);

/* The file of one that has got none so far. NULL: there is none. Takes no lock. */
const char *fronts_missed(void);
