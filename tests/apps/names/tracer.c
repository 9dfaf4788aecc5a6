/*
 * tracer.c: preloaded; counts launches, and passes them on to the function that it finds. TRACER
 * says how: handle (dlsym of the driver), next (RTLD_NEXT), own (by a dlsym that it has by its
 * version), unseen (in the driver's symbols, without the C library).
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/object.h"

typedef __typeof__(cuLaunchKernel) *launch_fn;

static unsigned n;

static bool find_in_driver(const struct object *o, void *ret) {
	return object_is(o, "libcuda.so.1") &&
	       (*(void **)ret = object_symbol(o, "cuLaunchKernel", NULL));
}

static void *find(void) {
	const char *how = getenv("TRACER");
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *(*own)(void *, const char *), *found = NULL;

	if (strcmp(how, "next") == 0) {
		found = dlsym(RTLD_NEXT, "cuLaunchKernel");
	} else if (strcmp(how, "own") == 0) {
		*(void **)&own = dlvsym(RTLD_NEXT, "dlsym", TRACER_GLIBC);
		found = own ? own(driver, "cuLaunchKernel") : NULL;
	} else if (strcmp(how, "unseen") == 0) {
		object_each(find_in_driver, &found);
	} else {
		found = dlsym(driver, "cuLaunchKernel");
	}
	if (!found) {
		fprintf(stderr, "tracer: no cuLaunchKernel\n");
		exit(1);
	}
	return found;
}

__attribute__((visibility("default"))) CUresult cuLaunchKernel(
	CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, CUstream stream, void **params, void **extra) {
	static launch_fn real;

	if (!real) {
		*(void **)&real = find();
	}
	n++;
	return real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

__attribute__((destructor)) static void tell(void) {
	if (n > 0) {
		fprintf(stderr, "tracer: %u launches\n", n);
	}
}
