/*
 * plug-table.c: a plug-in with a table of the driver's functions: variables that have the
 * functions' names and are visible to all, as loaders written for programs (cuew and others) have
 * them.
 */
#include <dlfcn.h>

#include "plug.h"

#undef cuMemAlloc
typedef int (*function)(); /* of any parameters */
EXPORT function table_init __asm__("cuInit");
EXPORT function table_count __asm__("cuDeviceGetCount");
EXPORT function table_launch __asm__("cuLaunchKernel");
EXPORT function table_synchronize __asm__("cuStreamSynchronize");
function table_init, table_count, table_launch, table_synchronize;

static void fill(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	table_init = (function)dlsym(driver, "cuInit");
	table_count = (function)dlsym(driver, "cuDeviceGetCount");
	table_launch = (function)dlsym(driver, "cuLaunchKernel");
	table_synchronize = (function)dlsym(driver, "cuStreamSynchronize");
}

EXPORT int plug_opened(void) {
	int n = -1, r;

	fill();
	r = table_init(0);
	return r ? r : table_count(&n);
}

EXPORT int plug_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream,
		       void **params) {
	if (!table_launch) {
		fill();
	}
	return table_launch(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, 0);
}

EXPORT int plug_synchronize(CUstream stream) {
	return table_synchronize(stream);
}
