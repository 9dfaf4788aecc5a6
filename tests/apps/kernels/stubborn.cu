/*
 * stubborn.cu: a kernel that nobody can turn into persistent threads, because a function that it
 * calls ends the thread. Adds one to every even element.
 */
#include "shapes.h"

__device__ __noinline__ void leave_if_odd(unsigned v) {
	if (v % 2) {
		asm volatile("exit;");
	}
}

extern "C" __global__ void stubborn(unsigned *data, unsigned n) {
	unsigned i = blockIdx.x * STUBBORN_BLOCK + threadIdx.x;

	if (i < n) {
		leave_if_odd(data[i]);
		data[i]++;
	}
}
