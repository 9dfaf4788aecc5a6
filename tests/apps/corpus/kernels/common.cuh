/*
 * common.cuh: what the kernels of the corpus share. They take a few kinds of arguments, which the
 * table in corpus.c names by letters: it tells sizes and contents.
 */
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#define IN_WORDS 4096
#define IN(in, i) ((in)[(i) % IN_WORDS])
#define KERNEL	 extern "C" __global__ void

__device__ static inline u32 block_number() {
	return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

__device__ static inline u32 thread_number() {
	return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

__device__ static inline u32 block_threads() {
	return blockDim.x * blockDim.y * blockDim.z;
}

/* Number of this thread in the grid. */
__device__ static inline u32 self() {
	return block_number() * block_threads() + thread_number();
}

/* Every block says once that it ran. */
__device__ static inline void mark(u32 *marks) {
	if (thread_number() == 0) {
		atomicAdd(&marks[block_number()], 1u);
	}
}

__device__ static inline u32 mix(u32 x) {
	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ x >> 16;
}
