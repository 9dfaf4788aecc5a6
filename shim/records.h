/*
 * records.h: from each operation to a batch at the daemon, without a lock on the way.
 *
 * Each thread writes into a ring of its own; whoever drains (the tracker, or who closes a job)
 * takes one lock, sends and adds up. Nothing is lost: a thread whose ring is full drains itself.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

struct kernel;
struct lane;
struct worker;

struct record {
	uint64_t job;
	struct lane *lane;
	const struct kernel *kernel; /* NULL: no launch, or not known */
	nsec_t time_ns;
	uint64_t blocks;
	uint64_t bytes;
	uint64_t stream;
	uint32_t block_threads;
	uint8_t kind;	     /* Sbeet__OpKind */
	uint8_t enforcement; /* Sbeet__Enforcement */
};

/* At 2.7 us a launch this lasts 2.7 ms; the tracker comes at least every millisecond. */
#define RING_RECORDS 1024

struct ring {
	_Atomic uint32_t head __attribute__((aligned(64))); /* next to be written, by the owner */
	_Atomic uint32_t tail __attribute__((aligned(64))); /* next to be read, under the lock */
	struct record list[RING_RECORDS];
};

/* By the ring's own thread. */
void records_push(struct worker *w, const struct record *record);

/* Sends everything that has been written before the call. */
void records_drain(void);
