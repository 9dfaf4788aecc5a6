/*
 * records.c: see records.h.
 */
#include "shim/records.h"
#include "shim/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "proto/limits.h"
#include "shim/books.h"
#include "shim/conn.h"
#include "shim/worker.h"

/* In the word of the time: no record follows, it is like the one before. */
#define AGAIN 1u

_Static_assert(sizeof(struct record) == RECORD_WORDS * sizeof(uint64_t) &&
		       offsetof(struct record, enforcement) + sizeof(uint16_t) ==
			       sizeof(struct record),
	       "whole words, no padding");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* consumer side of all rings */

/* The batch being built. */
static Sbeet__Op ops[PROTO_OPS_MAX];
static Sbeet__Op *op_list[PROTO_OPS_MAX];
static size_t n_ops;

static uint64_t n_dropped; /* operations, since the last batch that was taken */

static void flush(uint64_t job) {
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	int r;

	if (n_ops == 0) {
		return;
	}
	batch.job = job;
	batch.ops = op_list;
	batch.n_ops = n_ops;
	batch.dropped = n_dropped;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	r = books_tell_of(job, &m);
	/* -ENOTCONN: the daemon that this was for is gone, and its account with it. */
	r = r == -ENOENT ? conn_send(job, &m) : r;
	n_dropped = r == -EAGAIN || r == -EBUSY ? n_dropped + n_ops : 0;
	n_ops = 0;
}

/* In line, for it is on the way of each launch. */
static inline bool record_is(const struct record *a, const struct record *b) {
	return a->job == b->job && a->kernel == b->kernel && a->blocks == b->blocks &&
	       a->bytes == b->bytes && a->stream == b->stream &&
	       a->block_threads == b->block_threads && a->kind == b->kind &&
	       a->enforcement == b->enforcement;
}

static void append(const struct record *r, nsec_t time, uint32_t kernel) {
	Sbeet__Op *op = &ops[n_ops];

	sbeet__op__init(op);
	op->kind = (Sbeet__OpKind)r->kind;
	op->time_ns = time;
	op->kernel = kernel;
	op->blocks = r->blocks;
	op->block_threads = r->block_threads;
	op->bytes = r->bytes;
	op->stream = r->stream;
	op->enforcement = (Sbeet__Enforcement)r->enforcement;
	op_list[n_ops++] = op;
}

/* The operation at @at, into ring->read. Return: where the next one is. */
static uint32_t read_one(struct ring *ring, uint32_t at, nsec_t *ret_time) {
	uint64_t first = ring->words[at++ % RING_WORDS], words[RECORD_WORDS];

	*ret_time = first >> 1;
	if (first & AGAIN) {
		return at;
	}
	for (size_t i = 0; i < RECORD_WORDS; i++) {
		words[i] = ring->words[at++ % RING_WORDS];
	}
	memcpy(&ring->read, words, sizeof(words));
	return at;
}

static void drain_ring(struct ring *ring) {
	uint32_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	const struct record *r = &ring->read;
	const struct kernel *kernel = NULL;
	uint32_t id = 0;
	uint64_t job = 0;
	nsec_t time;

	while (at != head) {
		at = read_one(ring, at, &time);
		if (r->job != job) {
			flush(job);
			job = r->job;
			kernel = NULL;
			id = 0;
		} else if (n_ops == PROTO_OPS_MAX) {
			flush(job);
		}
		/* Said before the batch that names it. The same address is the same kernel within
		 * one turn: whoever takes kernels away drains first. */
		if (r->kernel != kernel) {
			kernel = r->kernel;
			id = conn_declare(job, kernel);
		}
		append(r, time, id);
	}
	flush(job);
	atomic_store_explicit(&ring->tail, at, memory_order_release);
}

void records_drain(void) {
	pthread_mutex_lock(&lock);
	worker_for_each(w) {
		drain_ring(&w->ring);
	}
	pthread_mutex_unlock(&lock);
}

void records_push(struct worker *w, const struct record *record, nsec_t time) {
	struct ring *ring = &w->ring;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t words[RECORD_WORDS];

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >
	    RING_WORDS - RECORD_WORDS - 1) {
		records_drain();
	}
	if (record_is(record, &ring->written)) {
		ring->words[head++ % RING_WORDS] = time << 1 | AGAIN;
	} else {
		ring->written = *record;
		memcpy(words, record, sizeof(words));
		ring->words[head++ % RING_WORDS] = time << 1;
		for (size_t i = 0; i < RECORD_WORDS; i++) {
			ring->words[head++ % RING_WORDS] = words[i];
		}
	}
	atomic_store_explicit(&ring->head, head, memory_order_release);
}

void records_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	n_ops = 0;
	n_dropped = 0;
}
