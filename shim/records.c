/*
 * records.c: see records.h.
 */
#include "shim/records.h"
#include "shim/state.h"

#include <pthread.h>
#include <stdbool.h>

#include "proto/limits.h"
#include "shim/conn.h"
#include "shim/job.h"
#include "shim/worker.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* consumer side of all rings */

/* The batch being built. */
static Sbeet__Op ops[PROTO_OPS_MAX];
static Sbeet__Op *op_list[PROTO_OPS_MAX];
static size_t n_ops;

static void flush(uint64_t job, uint32_t generation) {
	Sbeet__OpBatch batch = SBEET__OP_BATCH__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	if (n_ops == 0) {
		return;
	}
	batch.job = job;
	batch.ops = op_list;
	batch.n_ops = n_ops;
	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	/* -ENOTCONN: the daemon that this was for is gone, and its account with it. */
	conn_send(generation, &m);
	n_ops = 0;
}

static void append(const struct record *r, uint32_t generation) {
	Sbeet__Op *op = &ops[n_ops];

	sbeet__op__init(op);
	op->kind = (Sbeet__OpKind)r->kind;
	op->time_ns = r->time_ns;
	op->kernel = conn_declare(generation, r->kernel);
	op->blocks = r->blocks;
	op->block_threads = r->block_threads;
	op->bytes = r->bytes;
	op->stream = r->stream;
	op->enforcement = (Sbeet__Enforcement)r->enforcement;
	op_list[n_ops++] = op;
}

static void add_up(const struct record *r) {
	struct job_sums *sums = &r->lane->sums;

	if (r->kind == SBEET__OP_KIND__OP_KIND_LAUNCH || r->kind == SBEET__OP_KIND__OP_KIND_GRAPH) {
		sums->launches++;
	} else {
		sums->copies++;
		sums->bytes += r->bytes;
	}
}

static void drain_ring(struct ring *ring) {
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t job = 0;
	uint32_t generation = 0;

	for (; tail != head; tail++) {
		const struct record *r = &ring->list[tail % RING_RECORDS];

		if (r->job != job || n_ops == PROTO_OPS_MAX) {
			flush(job, generation);
			job = r->job;
			generation = r->lane->generation;
		}
		append(r, generation);
		add_up(r);
	}
	flush(job, generation);
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

void records_drain(void) {
	pthread_mutex_lock(&lock);
	worker_for_each(w) {
		drain_ring(&w->ring);
	}
	pthread_mutex_unlock(&lock);
}

void records_push(struct worker *w, const struct record *record) {
	struct ring *ring = &w->ring;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) == RING_RECORDS) {
		records_drain();
	}
	ring->list[head % RING_RECORDS] = *record;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

void records_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	n_ops = 0;
}
