/*
 * kernel-count.h: how often one thread has launched each kernel: see counts.h.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"

/* Of one kernel by one thread; written by that thread alone. */
struct kernel_count {
	_Atomic uint64_t launches, blocks;
	_Atomic uint32_t block_threads; /* in the largest block */
	uint32_t declared;		/* own: over which connection; see conn_number */
	/* Blocks that all SMs hold at once, of the shape that it was launched with last; 0: unknown.
	 * Of the thread alone. */
	uint64_t wave_blocks;
	uint32_t wave_threads, wave_shared;
};

/* How many waves of blocks a launch of the shape that it was launched with last has on all SMs; 0:
 * not known. */
static inline uint64_t kernel_count_waves(const struct kernel_count *c, uint64_t blocks) {
	if (blocks <= c->wave_blocks) {
		return 1;
	}
	return c->wave_blocks ? (blocks - 1) / c->wave_blocks + 1 : 0;
}

#define KERNEL_COUNTS 256

/* Those of kernels with successive numbers. Made when the first one is launched. */
struct kernel_counts {
	struct kernel_count list[KERNEL_COUNTS];
};

#define KERNEL_COUNTS_PAGES (PROTO_KERNELS_MAX / KERNEL_COUNTS)
