/*
 * hooks.h: what hooks.c calls for each HOOK of hooks.def: on_NAME, in hooks-copy.c, hooks-graph.c, hooks-launch.c,
 * hooks-module.c, hooks-stream.c, hooks-sync.c and hooks-start.c.
 *
 * on_NAME is called with state_bypass() false and the driver's function known to exist. It calls
 * the driver's function exactly once, with the program's own arguments, and returns its answer.
 */
#pragma once

#include <cuda.h>

#define OP(name, params, args, kind, bytes, stream, traits)
#define FOLLOW(name, params, args, per_thread)
#define CHANGE(name, params, args)
#define HOOK(name, params, args) CUresult on_##name params;
#include "shim/hooks.def"
