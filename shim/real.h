/*
 * real.h: the driver's own functions, found by dlopen and dlsym on first use.
 *
 * libcuda is loaded only if the program has loaded it or calls one of its functions. Everything
 * that the shim itself asks of the driver goes through here, so that it never meets its own
 * wrappers. Include this before anything else that reads cuda.h: its internal mode declares every
 * variant of a function under the name that is exported (cuMemAlloc_v2, cuLaunchKernel_ptsz).
 */
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "The shim is compiled with -D__CUDA_API_VERSION_INTERNAL (see shim/meson.build)"
#endif

#include <stdatomic.h>
#include <stddef.h>

#include <cuda.h>

#define REAL_DRIVER "libcuda.so.1"

/* NULL where the driver is older than the function. */
struct real {
#define OP(name, params, args, kind, bytes, stream, traits) __typeof__(name) *name;
#define HOOK(name, params, args)			    __typeof__(name) *name;
#include "shim/hooks.def"
#define CALL(name) __typeof__(name) *name;
#include "shim/real.def"
};

/*
 * Loads the driver where needed. Return: NULL if there is none; else a table that is never freed.
 * Takes no lock: threads that come together each look everything up and one result is kept.
 */
const struct real *real_get(void);

/* The same in line, for the way of a launch. */
extern _Atomic(const struct real *) real_found __attribute__((visibility("hidden")));

static inline const struct real *real_get_inline(void) {
	const struct real *r = atomic_load_explicit(&real_found, memory_order_acquire);

	return r ? r : real_get();
}

/* The same, but only if the program has loaded the driver already. */
const struct real *real_get_loaded(void);

/* The C library's functions whose names ours take. NULL in a program without a dynamic linker. */
struct real_dl {
	void *(*open)(const char *file, int mode);
	void *(*mopen)(long lmid, const char *file, int mode);
	int (*close)(void *handle);
	void *(*sym)(void *handle, const char *name);
	void *(*vsym)(void *handle, const char *name, const char *version);
	char *(*error)(void);
};
const struct real_dl *real_dl_get(void);
void *real_dlsym(void *handle, const char *name);
