/*
 * looks.c: a plug-in that is linked with the driver and looks for names by its own scope.
 */
#include <dlfcn.h>
#include <stdio.h>

extern int cuInit(unsigned flags);
__attribute__((visibility("default"))) int run(void);

int run(void) {
	int (*volatile linked)(unsigned) = cuInit;
	void *volatile by_default = dlsym(RTLD_DEFAULT, "cuInit");
	void *volatile next = dlsym(RTLD_NEXT, "cuInit");
	void *volatile nothing = dlsym(RTLD_NEXT, "cuNothing");
	const char *error = dlerror();

	printf("plug-in: default %d, next %d, nothing %d, %s\n", by_default == (void *)linked,
	       next == (void *)linked, nothing != NULL, error ? error : "no error");
	return linked(0);
}
