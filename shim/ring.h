/*
 * ring.h: what one thread has written about its operations and nobody has read yet: see records.h.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct kernel;

/* An operation but for its time. Whole words, without padding. */
struct record {
	uint64_t job;
	const struct kernel *kernel; /* NULL: no launch, or not known */
	uint64_t blocks;
	uint64_t bytes;
	uint64_t stream;
	uint32_t block_threads;
	uint16_t kind;	      /* Sbeet__OpKind */
	uint16_t enforcement; /* Sbeet__Enforcement */
};

#define RECORD_WORDS (sizeof(struct record) / sizeof(uint64_t))

/* At 2.7 us a launch this lasts 2.5 ms if no launch is like the one before it, else 22 ms; the
 * tracker comes at least every millisecond. */
#define RING_WORDS 8192

struct ring {
	/* the owner's */
	_Atomic uint32_t head __attribute__((aligned(64))); /* next to be written */
	struct record written;				    /* the last one */

	/* the reader's, under the lock */
	_Atomic uint32_t tail __attribute__((aligned(64))); /* next to be read */
	struct record read;

	uint64_t words[RING_WORDS] __attribute__((aligned(64)));
};
