/*
 * real.c: the driver's own functions. See real.h.
 *
 * Not here: which of them we stand in for and under which address (lookup.c).
 */
#include "shim/real.h"
#include "shim/base/early.h"
#include "shim/base/hot.h"
#include "shim/object.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

HOT_LAUNCH _Atomic(const struct real *) real_found;

/* Since 2.34 libdl's functions are in libc. */
static const char *const libc[] = {"libc.so.6", "libdl.so.2", NULL};

EARLY const struct real_dl *real_dl_get(void) {
	static struct real_dl found;
	static atomic_bool is_found;

	/* Threads that come together write the same. */
	if (!atomic_load_explicit(&is_found, memory_order_acquire)) {
#define FIND(field, name) \
	__atomic_store_n(&found.field, (__typeof__(found.field))object_early_symbol(libc, name), __ATOMIC_RELAXED)
		FIND(open, "dlopen");
		FIND(mopen, "dlmopen");
		FIND(close, "dlclose");
		FIND(sym, "dlsym");
		FIND(vsym, "dlvsym");
		FIND(error, "dlerror");
#undef FIND
		atomic_store_explicit(&is_found, found.sym != NULL, memory_order_release);
	}
	return &found;
}

void *real_dlsym(void *handle, const char *name) {
	const struct real_dl *dl = real_dl_get();

	return dl->sym ? dl->sym(handle, name) : NULL;
}

HOT_DATA static struct real first_table;
static atomic_flag first_taken = ATOMIC_FLAG_INIT;

static const struct real *fill(int flags) {
	const struct real_dl *dl = real_dl_get();
	void *driver = dl->open ? dl->open(REAL_DRIVER, RTLD_NOW | flags) : NULL;
	const struct real *first = NULL;
	struct real *r;

	if (!driver) {
		return NULL;
	}
	/* The first who comes, nearly always the only one, needs no memory. */
	r = atomic_flag_test_and_set(&first_taken) ? calloc(1, sizeof(*r)) : &first_table;
	if (!r) {
		dl->close(driver);
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
