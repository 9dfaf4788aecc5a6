/*
 * wrangler.c: a program or plug-in that has pointers with the names of the driver's functions, as
 * cuew has. Linked with -rdynamic, or a library of which run() is called.
 */
#include <dlfcn.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int (*cuInit)(unsigned flags);
EXPORT int (*cuDeviceGetCount)(int *n);
EXPORT int (*cuDeviceGet)(int *device, int number);
EXPORT int (*cuDevicePrimaryCtxRetain)(void **context, int device);
EXPORT int (*cuCtxSetCurrent)(void *context);
EXPORT int (*cuCtxSynchronize)(void);
EXPORT int run(void);

int run(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	int n = -1, device = -1;

#define FIND(name)                                       \
	*(void **)&name = dlsym(driver, #name);          \
	if (!name) {                                     \
		printf("no %s: %s\n", #name, dlerror()); \
		return 1;                                \
	}
	FIND(cuInit)
	FIND(cuDeviceGetCount)
	FIND(cuDeviceGet)
	FIND(cuDevicePrimaryCtxRetain)
	FIND(cuCtxSetCurrent)
	FIND(cuCtxSynchronize)
	printf("init %d\n", cuInit(0));
	printf("count %d, %d\n", cuDeviceGetCount(&n), n);
	printf("device %d, %d\n", cuDeviceGet(&device, 0), device);
	printf("context %d\n", cuDevicePrimaryCtxRetain(&context, device));
	printf("current %d\n", cuCtxSetCurrent(context));
	printf("synchronized %d\n", cuCtxSynchronize());
	return 0;
}

#ifdef WRANGLER_PROGRAM
int main(void) {
	return run();
}
#endif
