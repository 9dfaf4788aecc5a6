/*
 * weak.c: a program with weak references to the driver that is not linked with it: it has a GPU
 * where something brings the driver, and goes on without one elsewhere.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "guest.h"

extern int cuInit(unsigned) __attribute__((weak));
extern int cuDeviceGetCount(int *) __attribute__((weak));
extern int cuLaunchKernel(void *, ...) __attribute__((weak));
extern int cuCtxSynchronize(void) __attribute__((weak));
extern int cuGetErrorName(int, const char **) __attribute__((weak));

static void plain(void) {
	int n = -1;

	TELL("%d %d %d %d %d\n", cuInit != NULL, cuDeviceGetCount != NULL, cuLaunchKernel != NULL,
	     cuCtxSynchronize != NULL, cuGetErrorName != NULL);
	if (!cuInit) {
		TELL("without a GPU\n");
		return;
	}
	TELL("init %d\n", cuInit(0));
	TELL("count %d\n", cuDeviceGetCount(&n));
}

/* The driver comes later: the references stay as they are. */
static void loaded_later(void) {
	int n = -1;
	int (*init)(unsigned), (*count)(int *);
	void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	TELL("%d %d\n", cuInit != NULL, cuDeviceGetCount != NULL);
	init = dlsym(h, "cuInit");
	count = dlsym(h, "cuDeviceGetCount");
	TELL("init %d\n", init(0));
	TELL("count %d\n", count(&n));
}

const struct guest guests[] = {
	{"plain", plain},
	{"loaded-later", loaded_later},
	{NULL, NULL},
};
