/*
 * plug-weak.c: a plug-in that uses the driver where it is there: weak references, and not linked
 * with it.
 */
#include <stddef.h>

#include "plug.h"

#pragma weak cuInit
#pragma weak cuDeviceGetCount
#pragma weak cuLaunchKernel
#pragma weak cuStreamSynchronize

EXPORT int plug_opened(void) {
	int n = -1, r;

	if (!cuInit) {
		return -2;
	}
	r = (int)cuInit(0);
	return r ? r : cuDeviceGetCount ? (int)cuDeviceGetCount(&n) : -3;
}

EXPORT int plug_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream,
		       void **params) {
	return cuLaunchKernel ? (int)cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream,
						    params, NULL)
			      : -2;
}

EXPORT int plug_synchronize(CUstream stream) {
	return cuStreamSynchronize ? (int)cuStreamSynchronize(stream) : -2;
}
