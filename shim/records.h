/*
 * records.h: from each operation to a batch at the daemon, without a lock on the way.
 *
 * Each thread writes into a ring of its own; whoever drains (the tracker, or who closes a job)
 * takes one lock, sends and adds up. Nothing is lost: a thread whose ring is full drains itself.
 *
 * The ring is made of words. Programs launch the same few kernels over and over, so an operation
 * like the one before it is a single word, its time; any other is that word and the words of its
 * struct record. What matters is the number of cache lines, for each one that the reader has looked
 * at must be fetched back from there before it is written again.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

struct kernel;
struct lane;
struct worker;

/* An operation but for its time. Whole words, without padding. */
struct record {
	uint64_t job;
	struct lane *lane;
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

/* By the ring's own thread. */
void records_push(struct worker *w, const struct record *record, nsec_t time);

/* Sends everything that has been written before the call. */
void records_drain(void);

/* After fork, in the child: forget everything without calling the driver. */
void records_after_fork(void);
