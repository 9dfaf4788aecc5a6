/*
 * ops.h: the single operations of jobs, for those who watch them: a ring that forgets, as feed.h is
 * for events. It exists while somebody watches. Names of kernels are kept with the operations, so
 * that they can be told after their program has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

struct kernel_name;
struct session;

/* Of the fastest program (2.7 us a launch) 44 ms, four times what a reader that keeps up lets pass
 * between two looks. About 1.4 MiB. */
#define OPS_RING 16384

struct ops_entry {
	uint64_t session, job, blocks, bytes, stream;
	nsec_t time;
	struct kernel_name *name; /* reference; NULL: no launch, or not known */
	uint32_t kernel, block_threads;
	uid_t uid; /* of the session */
	uint16_t kind, enforcement;
	uint64_t lost; /* no operation, but so many that its program has dropped; else 0 */
};

/* All zero: nobody watches. */
struct ops {
	struct ops_entry *ring; /* owned, OPS_RING; NULL: nobody watches */
	uint64_t n_written;	/* ever; the next one goes to this index modulo the size */
	unsigned n_readers;
};

struct ops_reader {
	uint64_t next;
	uint64_t lost; /* since ops_take_lost() */
};

/* Begins with the next operation that is written. Return: 0 or -ENOMEM. */
int ops_attach(struct ops *ops, struct ops_reader *reader);
void ops_detach(struct ops *ops, struct ops_reader *reader);

/* Adds what @s has sent, if anybody watches. Return: whether anybody does. */
bool ops_write(struct ops *ops, const struct session *s, const Sbeet__OpBatch *batch);

/* The reader's next operation, valid until something is written; NULL: it has read all. */
const struct ops_entry *ops_read(const struct ops *ops, struct ops_reader *reader);

/* How many it has lost before what it read last; 0 from then on. */
uint64_t ops_take_lost(struct ops_reader *reader);
