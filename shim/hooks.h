/*
 * hooks.h: what hooks.c calls for each HOOK of hooks.def: on_NAME, in hooks-copy.c, hooks-graph.c, hooks-launch.c,
 * hooks-module.c, hooks-stream.c, hooks-sync.c and hooks-start.c.
 *
 * on_NAME is called with state_bypass() false and the driver's function known to exist. It calls
 * the driver's function exactly once, with the program's own arguments, and returns its answer; but
 * for the ones that load code, see dependent.h.
 */
#pragma once

#include <cuda.h>

#include "shim/real.h"

/* A program that calls what its driver does not have would not have started without us. */
#define DRIVER_OR_RETURN(name)                       \
	const struct real *real = real_get_inline(); \
	if (!real) {                                 \
		return CUDA_ERROR_NO_DEVICE;         \
	}                                            \
	if (!real->name) {                           \
		return CUDA_ERROR_NOT_FOUND;         \
	}

#define OP(name, params, args, kind, bytes, stream, traits)
#define FOLLOW(name, params, args, per_thread)
#define CHANGE(name, params, args)
#define BY_HAND(name, params, args)
#define HOOK(name, params, args) CUresult on_##name params;
#include "shim/hooks.def"
