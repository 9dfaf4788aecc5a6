/*
 * dependent.h: what dependent.cu and dependent-other.cu share. Each is a module of its own.
 */
#pragma once

#include <cuda_runtime.h>

/* Blocks that fill an SM each, without griddepcontrol. */
void other_fill(cudaStream_t stream, unsigned *x, unsigned blocks);

/* A step that does not commute; @dependent: it may begin before the one before it has ended. */
void other_step(cudaStream_t stream, unsigned *x, unsigned n, unsigned add, bool dependent);

static __device__ inline unsigned long long now_ns(void) {
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

static __device__ inline void let_dependents_begin(void) {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ inline void wait_for_those_before(void) {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
