/*
 * shapes.h: which kernels one thread has launched lately, and in which shapes: what is known of
 * such a launch need not be found out again.
 *
 * By the thread alone, without a lock. A shape counts as long as no function has changed its
 * kernel: see kernel_epoch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "shim/base/hot.h"

struct kernel_count;

/* A kernel launched in blocks of one size. */
struct shape {
	CUfunction function; /* NULL: free */
	struct kernel_count *count;
	uint32_t epoch; /* kernel_epoch, from before its kernel was found */
	uint32_t block_threads, shared_bytes;
	uint32_t wave_blocks : 29; /* that all SMs hold at once; 0: not known */
	uint32_t may_follow : 1;   /* launches of it may go the short way: see route.h */
	uint32_t in_turn : 1;	   /* there are dependent launches: see dependent.h */
	uint32_t waits_first : 1;  /* likewise: it can be a dependent kernel */
} __attribute__((aligned(32)));

#define SHAPE_WAYS 2 /* of a set: one cache line */
#define SHAPE_SETS 128

struct shapes {
	struct shape set[SHAPE_SETS][SHAPE_WAYS] __attribute__((aligned(64)));
};

HOT_INLINE struct shape *shapes_set(struct shapes *s, CUfunction function, uint32_t block_threads,
				    uint32_t shared_bytes) {
	uintptr_t n = (uintptr_t)function;

	return s->set[(n >> 4 ^ n >> 11 ^ block_threads >> 5 ^ shared_bytes >> 4) % SHAPE_SETS];
}

HOT_INLINE bool shape_is(const struct shape *shape, CUfunction function, uint32_t block_threads,
			 uint32_t shared_bytes, uint32_t epoch) {
	return shape->function == function && shape->block_threads == block_threads &&
	       shape->shared_bytes == shared_bytes && shape->epoch == epoch;
}

/* NULL: not known. @epoch: kernel_epoch. */
HOT_INLINE struct shape *shapes_find(struct shapes *s, CUfunction function, uint32_t block_threads,
				     uint32_t shared_bytes, uint32_t epoch) {
	struct shape *set = shapes_set(s, function, block_threads, shared_bytes);

	if (HOT_EXPECT(shape_is(&set[0], function, block_threads, shared_bytes, epoch))) {
		return &set[0];
	}
	return shape_is(&set[1], function, block_threads, shared_bytes, epoch) ? &set[1] : NULL;
}

/* @shape, which is not known, is from now on, instead of the one of its set that was added first.
 * Return: where it is now. */
struct shape *shapes_add(struct shapes *s, const struct shape *shape);

/* How many waves of blocks a launch of @blocks has on all SMs; 0: not known. */
HOT_INLINE uint64_t shape_waves(const struct shape *shape, uint64_t blocks) {
	if (HOT_EXPECT(blocks <= shape->wave_blocks)) {
		return 1;
	}
	return shape->wave_blocks ? (blocks - 1) / shape->wave_blocks + 1 : 0;
}
