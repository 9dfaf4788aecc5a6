/*
 * pre-malloc.c: a preload that counts the C library's allocations, and finds these when first
 * called.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "plug.h"

static unsigned n_allocations;
static void *(*real_malloc)(size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void find_all(void) {
	if (!real_malloc) {
		real_free = dlsym(RTLD_NEXT, "free");
		real_realloc = dlsym(RTLD_NEXT, "realloc");
		real_malloc = dlsym(RTLD_NEXT, "malloc");
	}
	__atomic_add_fetch(&n_allocations, 1, __ATOMIC_RELAXED);
}

EXPORT void *malloc(size_t n) {
	find_all();
	return real_malloc(n);
}

EXPORT void *realloc(void *p, size_t n) {
	find_all();
	return real_realloc(p, n);
}

EXPORT void free(void *p) {
	find_all();
	real_free(p);
}
