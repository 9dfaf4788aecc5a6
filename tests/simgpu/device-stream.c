/*
 * device-stream.c: streams and copy engines: what goes to which queue when.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/simgpu/device-internal.h"

/* ---- copies ---- */

bool device_op_is_copy(const struct device_op *op) {
	return op->kind >= DEVICE_COPY_IN && op->kind <= DEVICE_COPY_LOCAL;
}

static uint64_t copy_duration_ns(const struct device_config *c, const struct device_op *op) {
	uint64_t rate =
		op->kind == DEVICE_COPY_LOCAL ? c->device_bytes_per_ms : c->host_bytes_per_ms;

	return c->copy_latency_ns + (uint64_t)((unsigned __int128)op->bytes * 1000000 / rate);
}

struct device_copy_engine *device_copy_engine(struct device *d, const struct device_op *op) {
	if (op->kind == DEVICE_COPY_LOCAL) {
		return NULL;
	}
	return &d->copy[d->config.copy_engines > 1 && op->kind == DEVICE_COPY_OUT];
}

static void copy_start(struct device *d, struct device_op *op) {
	device_op_set_running(d, op);
	heap_push(&d->copies,
		  (struct heap_entry){.ns = d->now_ns + copy_duration_ns(&d->config, op),
				      .order = d->order++,
				      .item = op});
}

/* C2, C3. */
void device_copy_engine_next(struct device *d, struct device_copy_engine *ce) {
	struct device_op *op = ce->queue.first;

	if (!ce->running && op) {
		device_queue_remove(&ce->queue, op);
		ce->running = op;
		copy_start(d, op);
	}
}

/* ---- streams ---- */

/* N1 and N2, for every kind of operation. */
static bool op_may_start(const struct device_op *op) {
	const struct device_stream *st = op->stream;
	const struct device_space *s = st->space;

	if (st->kind == DEVICE_STREAM_BLOCKING) {
		const struct device_op *head = s->null_stream ? s->null_stream->first : NULL;

		return !head || head->seq > op->seq;
	}
	if (st->kind == DEVICE_STREAM_NULL) {
		for (const struct device_stream *o = s->streams; o; o = o->next) {
			if (o->kind == DEVICE_STREAM_BLOCKING && o->first &&
			    o->first->seq < op->seq) {
				return false;
			}
		}
	}
	return true;
}

void device_stream_unlink(struct device_stream *st) {
	struct device_space *s = st->space;

	for (struct device_stream **p = &s->streams; *p; p = &(*p)->next) {
		if (*p == st) {
			*p = st->next;
			break;
		}
	}
	if (s->null_stream == st) {
		s->null_stream = NULL;
	}
	free(st);
}

/* G4, C4: the head of its stream is done. */
void device_op_finish(struct device *d, struct device_op *op, bool ok) {
	struct device_stream *st = op->stream;

	device_op_unset_running(d, op);
	assert(st->first == op);
	st->first = op->next;
	if (!st->first) {
		st->last = &st->first;
	}
	d->heads_moved = true;
	if (device_op_is_copy(op)) {
		d->n_copies--;
	}
	if (op->kind == DEVICE_VALUE && op->state == DEVICE_OP_PENDING) {
		d->n_values--;
	}
	/* A dropped record counts as reached: whoever waits for it must not wait for ever. */
	if (op->kind == DEVICE_EVENT && op->event->n_others > 0) {
		op->event->n_others--;
	} else if (op->kind == DEVICE_EVENT && op->event_number > op->event->done) {
		op->event->done = op->event_number;
		op->event->done_ns = d->now_ns;
	}
	d->backend->op_done(d->userdata, op, ok);
}

/* Whether stream_advance() would change something. */
static bool stream_may_advance(const struct device_stream *st) {
	const struct device_op *op = st->first;

	if (!op) {
		return false;
	}
	if (op->state == DEVICE_OP_PENDING) {
		return (op->kind == DEVICE_WAIT && op->event->done >= op->event_number) ||
		       (op->kind == DEVICE_VALUE &&
			st->space->device->backend->value_reached(st->space->device->userdata, op));
	}
	return op->state == DEVICE_OP_QUEUED && op_may_start(op);
}

static unsigned op_priority(const struct device_op *op) {
	unsigned priority = op->level > 0 ? op->level - 1 : op->stream->priority;

	return priority < DEVICE_PRIORITIES ? priority : DEVICE_PRIORITIES - 1;
}

/* Moves the head of @st to where it waits for its turn, or past it. */
static void stream_advance(struct device *d, struct device_stream *st) {
	struct device_op *op = st->first;
	struct device_copy_engine *ce;

	if (op->state == DEVICE_OP_PENDING) {
		device_op_finish(d, op, true);
		return;
	}
	op->state = DEVICE_OP_PENDING;
	switch (op->kind) {
	case DEVICE_KERNEL:
		device_queue_append(&device_op_part(op)->ee[op_priority(op)], op); /* G2, A1 */
		break;
	case DEVICE_COPY_IN:
	case DEVICE_COPY_OUT:
	case DEVICE_COPY_LOCAL:
		ce = device_copy_engine(d, op);
		if (ce) {
			device_queue_append(&ce->queue, op); /* C1 */
			device_copy_engine_next(d, ce);
		} else {
			copy_start(d, op);
		}
		break;
	case DEVICE_EVENT:
	case DEVICE_ACTION:
		device_op_finish(d, op, true);
		break;
	case DEVICE_HOST:
		d->backend->host_due(d->userdata, op);
		break;
	case DEVICE_VALUE:
		d->n_values++;
		break; /* looked at again at once */
	case DEVICE_WAIT:
		break; /* likewise */
	}
}

/* Advances heads until nothing moves, the operation that was submitted first always first. */
void device_space_advance(struct device *d, struct device_space *s) {
	for (;;) {
		struct device_stream *best = NULL;

		for (struct device_stream *st = s->streams, *next; st; st = next) {
			next = st->next;
			if (st->closing && !st->first) {
				device_stream_unlink(st);
			} else if (stream_may_advance(st) &&
				   (!best || st->first->seq < best->first->seq)) {
				best = st;
			}
		}
		if (!best) {
			return;
		}
		stream_advance(d, best);
	}
}

/* ---- from outside ---- */

int device_stream_new(struct device_stream **ret, struct device_space *s,
		      enum device_stream_kind kind, unsigned priority) {
	struct device_stream *st = calloc(1, sizeof(*st)), **last;

	if (!st) {
		return -ENOMEM;
	}
	st->space = s;
	st->kind = kind;
	st->priority = priority < DEVICE_PRIORITIES ? priority : DEVICE_PRIORITIES - 1;
	st->last = &st->first;
	for (last = &s->streams; *last; last = &(*last)->next) {
	}
	*last = st;
	if (kind == DEVICE_STREAM_NULL) {
		s->null_stream = st;
	}
	*ret = st;
	return 0;
}

void device_stream_set_part(struct device_stream *st, const struct device_part *part) {
	st->part = part;
}

struct device_stream *device_stream_free(struct device_stream *st) {
	if (st && st->first) {
		st->closing = true;
	} else if (st) {
		device_stream_unlink(st);
	}
	return NULL;
}

struct device_space *device_stream_space(const struct device_stream *st) {
	return st->space;
}

void device_submit(struct device_stream *st, struct device_op *op) {
	struct device *d = st->space->device;

	op->state = DEVICE_OP_QUEUED;
	op->seq = ++d->seq;
	op->stream = st;
	op->next = NULL;
	op->next_block = 0;
	op->done_blocks = 0;
	if (device_op_is_copy(op) && !st->space->failed &&
	    heap_reserve(&d->copies, d->n_copies + 1) < 0) {
		device_space_fail(st->space);
	}
	if (st->space->failed) {
		d->backend->op_done(d->userdata, op, false);
		return;
	}
	if (device_op_is_copy(op)) {
		d->n_copies++;
	}
	*st->last = op;
	st->last = &op->next;
	d->heads_moved = true;
	device_settle(d);
}

void device_op_complete(struct device_op *op) {
	struct device *d = op->stream->space->device;

	device_op_finish(d, op, true);
	device_settle(d);
}

void device_poke(struct device *d) {
	d->heads_moved = true;
	device_settle(d);
}

bool device_awaits_value(const struct device *d) {
	return d->n_values > 0;
}

bool device_stream_passed(const struct device_stream *st, uint64_t seq) {
	const struct device_op *op = st->first;

	/* As a driver does: what is in front of its first events, by the legacy stream's rules,
	 * is not waited for. */
	while (op && op->kind == DEVICE_EVENT) {
		op = op->next;
	}
	return !op || op->seq > seq;
}

bool device_space_passed(const struct device_space *s, uint64_t seq) {
	for (const struct device_stream *st = s->streams; st; st = st->next) {
		if (!device_stream_passed(st, seq)) {
			return false;
		}
	}
	return true;
}

size_t device_busy_streams(const struct device_space *s, const struct device_part *part,
			   struct device_stream **ret, size_t max) {
	size_t n = 0;

	for (struct device_stream *st = s->streams; st; st = st->next) {
		if (st->first && (!part || st->part == part)) {
			if (n < max) {
				ret[n] = st;
			}
			n++;
		}
	}
	return n;
}

uint64_t device_last_seq(const struct device *d) {
	return d->seq;
}
