/*
 * ops.c: see ops.h.
 */
#include "daemon/watch/ops.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/session/session.h"

int ops_attach(struct ops *ops, struct ops_reader *reader) {
	if (!ops->ring) {
		ops->ring = calloc(OPS_RING, sizeof(*ops->ring));
		if (!ops->ring) {
			return -ENOMEM;
		}
	}
	*reader = (struct ops_reader){.next = ops->n_written};
	ops->n_readers++;
	return 0;
}

void ops_detach(struct ops *ops, struct ops_reader *reader) {
	assert(ops->n_readers > 0);
	if (--ops->n_readers > 0) {
		return;
	}
	for (size_t i = 0; i < OPS_RING; i++) {
		kernel_name_unref(ops->ring[i].name);
	}
	free(ops->ring);
	ops->ring = NULL;
}

static void write_one(struct ops *ops, const struct session *s, uint64_t job, const Sbeet__Op *op) {
	const struct kernel_info *info = op->kernel ? kernels_find(&s->kernels, op->kernel) : NULL;
	struct ops_entry *e = &ops->ring[ops->n_written++ % OPS_RING];

	kernel_name_unref(e->name);
	*e = (struct ops_entry){
		.session = s->id,
		.job = job,
		.blocks = op->blocks,
		.bytes = op->bytes,
		.stream = op->stream,
		.time = op->time_ns,
		.name = info ? kernel_name_ref(info->name) : NULL,
		.kernel = op->kernel,
		.block_threads = op->block_threads,
		.uid = s->cred.uid,
		.kind = (uint16_t)op->kind,
		.enforcement = (uint16_t)op->enforcement,
	};
}

static void write_lost(struct ops *ops, const struct session *s, uint64_t lost) {
	struct ops_entry *e = &ops->ring[ops->n_written++ % OPS_RING];

	kernel_name_unref(e->name);
	*e = (struct ops_entry){.uid = s->cred.uid, .lost = lost};
}

bool ops_write(struct ops *ops, const struct session *s, const Sbeet__OpBatch *batch) {
	if (ops->ring && batch->dropped > 0) {
		write_lost(ops, s, batch->dropped);
	}
	for (size_t i = 0; ops->ring && i < batch->n_ops; i++) {
		write_one(ops, s, batch->job, batch->ops[i]);
	}
	return ops->ring != NULL;
}

const struct ops_entry *ops_read(const struct ops *ops, struct ops_reader *reader) {
	uint64_t behind = ops->n_written - reader->next;

	if (behind == 0) {
		return NULL;
	}
	if (behind > OPS_RING) {
		reader->lost += behind - OPS_RING;
		reader->next += behind - OPS_RING;
	}
	return &ops->ring[reader->next++ % OPS_RING];
}

uint64_t ops_take_lost(struct ops_reader *reader) {
	uint64_t lost = reader->lost;

	reader->lost = 0;
	return lost;
}
