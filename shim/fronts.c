/*
 * fronts.c: see fronts.h.
 */
#include "shim/fronts.h"

#include <stdatomic.h>

#define FRONTS_MAX 16 /* what comes later is taken for one that gets nothing */

static struct front {
	const char *name;
	uintptr_t low, high;
	atomic_bool is_served;
} list[FRONTS_MAX];
static _Atomic unsigned n;
static _Atomic(const char *) too_many;

void fronts_add(const struct object *o) {
	const char *name = *o->name ? o->name : "The program";
	unsigned i = atomic_load(&n);

	if (i == FRONTS_MAX) {
		atomic_store(&too_many, name);
		return;
	}
	list[i].name = name;
	list[i].low = o->low;
	list[i].high = o->high;
	atomic_store(&n, i + 1);
}

void fronts_serve(const void *caller) {
	for (unsigned i = atomic_load(&n); i-- > 0;) {
		if ((uintptr_t)caller >= list[i].low && (uintptr_t)caller < list[i].high) {
			atomic_store(&list[i].is_served, true);
		}
	}
}

const char *fronts_missed(void) {
	for (unsigned i = atomic_load(&n); i-- > 0;) {
		if (!atomic_load_explicit(&list[i].is_served, memory_order_relaxed)) {
			return list[i].name;
		}
	}
	return atomic_load(&too_many);
}
