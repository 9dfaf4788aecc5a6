/*
 * lookup.c: from the driver's addresses to our wrappers.
 */
#include "shim/lookup.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/real.h"

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

bool lookup_is_ours(const void *address) {
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
