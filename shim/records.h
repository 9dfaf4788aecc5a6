/*
 * records.h: from each operation to a batch at the daemon, without a lock on the way.
 *
 * Only while sbeetd asks for them: see lane_record_ops(). Each thread writes into a ring of its
 * own; whoever drains (the tracker, or who closes a job) takes one lock and sends. A thread whose
 * ring is full drains itself. What finds no room in the socket is lost only for jobs under terms,
 * and the next batch says how much.
 *
 * The ring is made of words. Programs launch the same few kernels over and over, so an operation
 * like the one before it is a single word, its time; any other is that word and the words of its
 * struct record. What matters is the number of cache lines, for each one that the reader has looked
 * at must be fetched back from there before it is written again.
 */
#pragma once

#include "proto/units.h"

struct record;
struct worker;

/* By the ring's own thread. */
void records_push(struct worker *w, const struct record *record, nsec_t time);

/* Sends everything that has been written before the call. */
void records_drain(void);

/* After fork, in the child: forget everything without calling the driver. */
void records_after_fork(void);
