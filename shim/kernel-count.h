/*
 * kernel-count.h: how often one thread has launched each kernel: see counts.h.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"

/* Of one kernel by one thread; written by that thread alone. In one cache line. */
struct kernel_count {
	_Atomic uint64_t launches, blocks;
	_Atomic uint32_t block_threads; /* in the largest block */
	uint32_t declared;		/* own: over which connection; see conn_number */
} __attribute__((aligned(32)));

/* A launch of @blocks more. */
static inline void kernel_count_add(struct kernel_count *c, uint64_t blocks) {
	atomic_store_explicit(&c->blocks,
			      atomic_load_explicit(&c->blocks, memory_order_relaxed) + blocks,
			      memory_order_relaxed);
	/* Who sees the launch sees the rest. */
	atomic_store_explicit(&c->launches,
			      atomic_load_explicit(&c->launches, memory_order_relaxed) + 1,
			      memory_order_release);
}

#define KERNEL_COUNTS 256

/* Those of kernels with successive numbers. Made when the first one is launched. */
struct kernel_counts {
	struct kernel_count list[KERNEL_COUNTS];
};

#define KERNEL_COUNTS_PAGES (PROTO_KERNELS_MAX / KERNEL_COUNTS)
