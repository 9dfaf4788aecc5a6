/*
 * real.c: the driver's own functions. See real.h.
 *
 * Not here: which of them we stand in for and under which address (lookup.c).
 */
#include "shim/real.h"
#include "shim/base/hot.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DRIVER_NAME "libcuda.so.1"

HOT_LAUNCH _Atomic(const struct real *) real_found;
static _Atomic(real_dlsym_fn) libc_dlsym;

REAL_EARLY real_dlsym_fn real_dlsym_get(void) {
	/* By version, because a plain look-up of "dlsym" would find ours. 2.34 moved it from libdl
	 * to libc; the older two are the first versions of x86-64 and of aarch64. */
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	real_dlsym_fn f = atomic_load_explicit(&libc_dlsym, memory_order_relaxed);

	for (size_t i = 0; !f && i < sizeof(versions) / sizeof(*versions); i++) {
		f = (real_dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	}
	atomic_store_explicit(&libc_dlsym, f, memory_order_relaxed);
	return f;
}

void *real_dlsym(void *handle, const char *name) {
	real_dlsym_fn f = real_dlsym_get();

	return f ? f(handle, name) : NULL;
}

HOT_DATA static struct real first_table;
static atomic_flag first_taken = ATOMIC_FLAG_INIT;

static const struct real *fill(int flags) {
	void *driver = dlopen(DRIVER_NAME, RTLD_NOW | flags);
	const struct real *first = NULL;
	struct real *r;

	if (!driver) {
		return NULL;
	}
	/* The first who comes, nearly always the only one, needs no memory. */
	r = atomic_flag_test_and_set(&first_taken) ? calloc(1, sizeof(*r)) : &first_table;
	if (!r) {
		dlclose(driver);
		return NULL;
	}
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args)			    CALL(name)
#define CALL(name)					    r->name = (__typeof__(r->name))real_dlsym(driver, #name);
#include "shim/hooks.def"
#include "shim/real.def"
	/* The handle is kept: the driver must not go away under the table. */
	if (!atomic_compare_exchange_strong(&real_found, &first, r)) {
		free(r == &first_table ? NULL : r);
		return first;
	}
	return r;
}

HOT_CODE const struct real *real_get(void) {
	const struct real *r = atomic_load_explicit(&real_found, memory_order_acquire);

	return r ? r : fill(RTLD_LOCAL);
}

const struct real *real_get_loaded(void) {
	const struct real *r = atomic_load_explicit(&real_found, memory_order_acquire);

	return r ? r : fill(RTLD_LOCAL | RTLD_NOLOAD);
}
