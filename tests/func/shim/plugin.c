/*
 * plugin.c: a library that is loaded for itself alone and looks for a symbol of its own by
 * RTLD_DEFAULT, which the C library answers by who asks.
 */
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuda_of_the_plugin(void);
EXPORT void *plugin_find(void);

int cuda_of_the_plugin(void) {
	return 1;
}

void *plugin_find(void) {
	/* Asked from here, not by a jump in our caller's name. */
	void *volatile found = dlsym(RTLD_DEFAULT, "cuda_of_the_plugin");

	return found;
}
