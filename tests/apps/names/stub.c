/*
 * stub.c: a program with a thin library of stubs in it: functions with the driver's names, which
 * load the driver when they are first called. Linked with -rdynamic.
 */
#include <dlfcn.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *n);
EXPORT int cuCtxSynchronize(void);

static void *find(const char *name) {
	static void *driver;

	if (!driver) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	}
	return driver ? dlsym(driver, name) : NULL;
}

int cuInit(unsigned flags) {
	int (*real)(unsigned);

	*(void **)&real = find("cuInit");
	return real ? real(flags) : 999;
}

int cuDeviceGetCount(int *n) {
	int (*real)(int *);

	*(void **)&real = find("cuDeviceGetCount");
	return real ? real(n) : 999;
}

int cuCtxSynchronize(void) {
	int (*real)(void);

	*(void **)&real = find("cuCtxSynchronize");
	return real ? real() : 999;
}

int main(void) {
	int n = -1;

	printf("init %d\n", cuInit(0));
	printf("count %d, %d\n", cuDeviceGetCount(&n), n);
	printf("synchronized %d\n", cuCtxSynchronize()); /* there is no context */
	return 0;
}
