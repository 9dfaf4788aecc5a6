/*
 * order.h: a program whose launches come from several places, into one stream. Each kernel changes
 * what the one before has left, so one that overtakes leaves other numbers.
 */
#pragma once

#include <cuda.h>

/* As cuLaunchKernel() for one-dimensional grids without shared memory. */
typedef CUresult (*order_launch_fn)(CUfunction kernel, unsigned blocks, unsigned threads,
				    CUstream stream, void **params);

/* By the constructor of a plug-in. */
__attribute__((visibility("default"))) void order_register(order_launch_fn launch);
