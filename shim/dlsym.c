/*
 * dlsym.c: the interposed dlsym. By itself, so that tests which link the shim instead of preloading
 * it can leave it out.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "shim/lookup.h"
#include "shim/real.h"
#include "shim/state.h"

static __attribute__((noinline)) void *dlsym_driver(void *handle, const char *name) {
	void *found = real_dlsym(handle, name);

	if (!found || state_bypass()) {
		return found;
	}
	/* Who looks through the global scope meets our wrapper first, which the preload put there.
	 * He is to find it only where he would have found the driver behind it. */
	if (lookup_is_ours(found)) {
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

SBEET_EXPORT TAIL_CALLS REAL_EARLY void *dlsym(void *restrict handle, const char *restrict name) {
	real_dlsym_fn f;

	/* The driver's names go on with a capital; cuda..., cublas... and curl... are others'. */
	if (handle != RTLD_NEXT && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' &&
	    name[2] <= 'Z') {
		TAIL_RETURN dlsym_driver(handle, name);
	}
	f = real_dlsym_get();
	if (!f) {
		return NULL;
	}
	TAIL_RETURN f(handle, name);
}
