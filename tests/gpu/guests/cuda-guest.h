/*
 * cuda-guest.h: guests that need a real GPU: CUDA programs. Whatever fails is told and ends the guest with exit code 1.
 */
#pragma once

#include <cuda_runtime.h>
#include <stdlib.h>

extern "C" {
#include "guest.h"
}

#define RT(call)                                                               \
	do {                                                                   \
		cudaError_t r_ = (call);                                       \
                                                                               \
		if (r_ != cudaSuccess) {                                       \
			TELL("%s: %s\n", #call, cudaGetErrorName(r_));         \
			exit(1);                                               \
		}                                                              \
	} while (0)
