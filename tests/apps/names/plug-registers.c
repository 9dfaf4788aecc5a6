/*
 * plug-registers.c: the same, but nothing looks its function up: its constructor tells of it.
 */
#include "order.h"

static CUresult launch(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream,
		       void **params) {
	return cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

__attribute__((constructor)) static void start(void) {
	order_register(launch);
}
