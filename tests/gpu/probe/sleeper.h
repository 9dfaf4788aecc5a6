/*
 * sleeper.h: one sleeping thread that keeps this process's channel group busy from sleeper_start to
 * sleeper_stop, so that the group does not leave the GPU in a gap between two kernels.
 */
#pragma once

#include <cuda_runtime.h>

#include "probe.h"

#define SLEEPER_LIMIT_NS 200000000ull

static volatile unsigned *sleeper_word; /* the sleeper ends when it has reached its number */
static unsigned sleeper_number;
static cudaStream_t sleeper_stream;

__global__ void sleep_until_told(volatile unsigned *word, unsigned number) {
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		__nanosleep(2000);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while ((int)(*word - number) < 0 && now - begin < SLEEPER_LIMIT_NS);
}

extern "C" void sleeper_init(void) {
	CHECK(cudaHostAlloc((void **)&sleeper_word, sizeof(*sleeper_word), cudaHostAllocMapped));
	*sleeper_word = 0;
	CHECK(cudaStreamCreateWithFlags(&sleeper_stream, cudaStreamNonBlocking));
}

extern "C" void sleeper_start(void) {
	sleep_until_told<<<1, 1, 0, sleeper_stream>>>(sleeper_word, ++sleeper_number);
	CHECK(cudaGetLastError());
}

extern "C" void sleeper_stop(void) {
	*sleeper_word = sleeper_number;
}
