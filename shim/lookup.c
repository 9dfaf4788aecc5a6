/*
 * lookup.c: from the driver's addresses to our wrappers, and the interposed dlsym.
 */
#include "shim/lookup.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/real.h"
#include "shim/state.h"

struct pair {
	uintptr_t driver;
	void *ours;
};

enum {
#define OP(name, params, args, kind, bytes, stream, traits) LOOKUP_##name,
#define HOOK(name, params, args)			    LOOKUP_##name,
#include "shim/hooks.def"
	_LOOKUP_N,
};

/* Sorted by address. Built once, like the table in real.c: without a lock, the first one is kept.
 */
struct pairs {
	struct pair list[_LOOKUP_N];
};

static _Atomic(const struct pairs *) pairs;

static int pair_compare(const void *a, const void *b) {
	const struct pair *x = a, *y = b;

	return (x->driver > y->driver) - (x->driver < y->driver);
}

static const struct pairs *pairs_get(const struct real *real) {
	const struct pairs *first = atomic_load_explicit(&pairs, memory_order_acquire);
	struct pairs *p;

	if (first) {
		return first;
	}
	p = malloc(sizeof(*p));
	if (!p) {
		return NULL;
	}
#define OP(name, params, args, kind, bytes, stream, traits) HOOK(name, params, args)
#define HOOK(name, params, args) \
	p->list[LOOKUP_##name] = (struct pair){(uintptr_t)real->name, (void *)name};
#include "shim/hooks.def"
	qsort(p->list, _LOOKUP_N, sizeof(*p->list), pair_compare);
	if (!atomic_compare_exchange_strong(&pairs, &first, p)) {
		free(p);
		return first;
	}
	return p;
}

void *lookup_replace(void *address) {
	const struct real *real = real_get_loaded();
	const struct pairs *p;
	size_t low = 0, high = _LOOKUP_N;

	if (!address || !real) {
		return address;
	}
	p = pairs_get(real);
	while (p && low < high) {
		size_t middle = (low + high) / 2;

		if (p->list[middle].driver == (uintptr_t)address) {
			return p->list[middle].ours;
		}
		if (p->list[middle].driver < (uintptr_t)address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return address;
}

static bool is_ours(const void *address) {
	static const void *const list[] = {
#define OP(name, params, args, kind, bytes, stream, traits) (const void *)name,
#define HOOK(name, params, args)			    (const void *)name,
#include "shim/hooks.def"
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		if (list[i] == address) {
			return true;
		}
	}
	return false;
}

static __attribute__((noinline)) void *dlsym_driver(void *handle, const char *name) {
	void *found = real_dlsym(handle, name);

	if (!found || state_bypass()) {
		return found;
	}
	/* Who looks through the global scope meets our wrapper first, which the preload put there.
	 * He is to find it only where he would have found the driver behind it. */
	if (is_ours(found)) {
		found = real_dlsym(RTLD_NEXT, name);
	}
	return lookup_replace(found);
}

/* For RTLD_NEXT the C library looks at who called: the call must be a jump, so that it sees the
 * program and not us, in debug builds too. */
#ifdef __clang__
#define TAIL_CALLS
#define TAIL_RETURN __attribute__((musttail)) return
#else
#define TAIL_CALLS  __attribute__((optimize("O2")))
#define TAIL_RETURN return
#endif

SBEET_EXPORT TAIL_CALLS void *dlsym(void *restrict handle, const char *restrict name) {
	real_dlsym_fn f;

	if (handle != RTLD_NEXT && name[0] == 'c' && name[1] == 'u') {
		TAIL_RETURN dlsym_driver(handle, name);
	}
	f = real_dlsym_get();
	if (!f) {
		return NULL;
	}
	TAIL_RETURN f(handle, name);
}
