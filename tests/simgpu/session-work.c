/*
 * session-work.c: requests about streams and events, and the operations that go into streams.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/session-internal.h"

/* ---- green contexts ---- */

void session_part_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_part *q = packet;
	struct context *ctx = session_object(c, q->context, OBJECT_CONTEXT);
	struct part *p = ctx ? calloc(1, sizeof(*p)) : NULL;
	uint32_t handle = 0;

	if (!ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (p && device_part_new(&p->device, ctx->space, q->sms) == 0) {
		p->context = ctx;
		handle = session_add(c, OBJECT_PART, p);
	}
	if (!handle) {
		free(p);
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	session_reply_values(c, q->h.id, handle, 0, 0);
}

/* Streams that are left go on. */
void session_part_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct part *p = session_object(c, q->object, OBJECT_PART);

	if (!p) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	free(p);
	session_drop(c, q->object);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

/* ---- streams and events ---- */

static void stream_drop(struct client *c, uint32_t handle) {
	struct stream *st = session_object(c, handle, OBJECT_STREAM);

	for (struct wait *w = c->waits; w; w = w->next) {
		if (w->stream == st->device) {
			w->stream = NULL; /* then the whole context is waited for */
		}
	}
	device_stream_free(st->device);
	free(st);
	session_drop(c, handle);
}

void session_stream_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct part *part = session_object(c, q->object, OBJECT_PART);
	struct context *ctx = part ? part->context : session_object(c, q->object, OBJECT_CONTEXT);
	struct stream *st = calloc(1, sizeof(*st));
	uint32_t handle = 0;

	if (!ctx || q->other > DEVICE_STREAM_NON_BLOCKING ||
	    (part && q->other != DEVICE_STREAM_NON_BLOCKING)) {
		free(st);
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (st && device_stream_new(&st->device, ctx->space, q->other, (unsigned)q->value) == 0) {
		st->context = ctx;
		device_stream_set_part(st->device, part ? part->device : NULL);
		handle = session_add(c, OBJECT_STREAM, st);
		if (!handle) {
			device_stream_free(st->device);
		}
	}
	if (!handle) {
		free(st);
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	session_reply_values(c, q->h.id, handle, 0, 0);
}

void session_stream_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	if (!session_object(c, q->object, OBJECT_STREAM)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	stream_drop(c, q->object);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

void session_stream_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st = session_object(c, q->object, OBJECT_STREAM);

	if (!st) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	session_wait(c, &(struct wait){.id = q->h.id,
				       .context = st->context,
				       .stream = st->device,
				       .seq = device_last_seq(st->context->gpu->device)});
}

void session_stream_query(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	const struct stream *st = session_object(c, q->object, OBJECT_STREAM);
	int result = CUDA_ERROR_INVALID_HANDLE;

	if (st) {
		result = st->context->fault;
		if (!result && !device_stream_passed(st->device, UINT64_MAX)) {
			result = CUDA_ERROR_NOT_READY;
		}
	}
	client_reply(c, q->h.id, result);
}

void session_event_new(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct context *ctx = session_object(c, q->object, OBJECT_CONTEXT);
	struct event *e = ctx ? calloc(1, sizeof(*e)) : NULL;
	struct mark *mark = calloc(1, sizeof(*mark));
	uint32_t handle = e && mark ? session_add(c, OBJECT_EVENT, e) : 0;

	if (!handle) {
		free(mark);
		free(e);
		client_reply(c, q->h.id,
			     ctx ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	mark->n_refs = 1;
	e->context = ctx;
	e->mark = mark;
	session_reply_values(c, q->h.id, handle, 0, 0);
}

void session_event_free(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct event *e = session_object(c, q->object, OBJECT_EVENT);

	if (!e) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	session_drop(c, q->object);
	mark_unref(e->mark);
	free(e);
	client_reply(c, q->h.id, CUDA_SUCCESS);
}

/* Return: whether there was memory for it. */
static bool event_mark(struct event *e) {
	struct mark *mark = calloc(1, sizeof(*mark));

	if (mark) {
		mark_unref(e->mark);
		mark->n_refs = 1;
		mark->device.recorded = 1;
		e->mark = mark;
		e->n_marks++;
	}
	return mark;
}

/* Records, or lets a stream wait: object = event, other = stream. */
static void event_submit(struct client *c, const struct wire_object *q, enum device_op_kind kind) {
	struct event *e = session_object(c, q->object, OBJECT_EVENT);
	struct stream *st = session_object(c, q->other, OBJECT_STREAM);
	struct op *op;

	if (!e || !st || (kind == DEVICE_EVENT && e->context != st->context)) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op = session_op_new(st->context, kind, 0);
	if (!op || (kind == DEVICE_EVENT && !event_mark(e))) {
		op_free(op);
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->mark = e->mark;
	op->mark->n_refs++;
	op->base.event = &op->mark->device;
	op->base.event_number = op->mark->device.recorded;
	client_reply(c, q->h.id, st->context->fault);
	/* As a driver does: a stream with nothing but that has nothing to do. */
	if (kind == DEVICE_WAIT && op->mark->device.done >= op->base.event_number) {
		op_free(op);
		return;
	}
	device_submit(st->device, &op->base);
}

void session_event_record(struct client *c, const void *packet, size_t n, int fd) {
	event_submit(c, packet, DEVICE_EVENT);
}

/* Operations that record @e together, one for each of @n streams. NULL: no memory. */
static struct op **event_ops(struct event *e, size_t n) {
	struct op **ops = calloc(n, sizeof(*ops));
	size_t made = 0;

	while (ops && made < n && (ops[made] = session_op_new(e->context, DEVICE_EVENT, 0))) {
		made++;
	}
	if (ops && made == n && event_mark(e)) {
		e->mark->device.n_others = n - 1;
		return ops;
	}
	while (made > 0) {
		op_free(ops[--made]);
	}
	free(ops);
	return NULL;
}

/* A stream with nothing to do gets nothing: that would hold up others if it is the NULL stream. */
static bool event_submit_all(struct event *e, const struct device_part *part) {
	const struct device_space *space = e->context->space;
	size_t n = device_busy_streams(space, part, NULL, 0);
	struct device_stream **streams = calloc(n + 1, sizeof(*streams));
	struct op **ops = streams && n > 0 ? event_ops(e, n) : NULL;
	bool recorded = ops || (streams && n == 0 && event_mark(e));

	if (recorded && n == 0) {
		e->mark->device.done = e->mark->device.recorded;
		e->mark->device.done_ns = device_now_ns(e->context->gpu->device);
	} else if (recorded) {
		/* Behind others, so none of these is done before the last is submitted. */
		device_busy_streams(space, part, streams, n);
		for (size_t i = 0; i < n; i++) {
			ops[i]->mark = e->mark;
			ops[i]->mark->n_refs++;
			ops[i]->base.event = &e->mark->device;
			ops[i]->base.event_number = e->mark->device.recorded;
			device_submit(streams[i], &ops[i]->base);
		}
	}
	free(streams);
	free(ops);
	return recorded;
}

/* object = event, other = context or green context. */
void session_event_record_all(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct event *e = session_object(c, q->object, OBJECT_EVENT);
	const struct part *part = session_object(c, q->other, OBJECT_PART);
	const struct context *ctx =
		part ? part->context : session_object(c, q->other, OBJECT_CONTEXT);

	if (!e || !ctx || e->context != ctx) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
	} else if (ctx->fault || !event_submit_all(e, part ? part->device : NULL)) {
		client_reply(c, q->h.id, ctx->fault ? ctx->fault : CUDA_ERROR_OUT_OF_MEMORY);
	} else {
		client_reply(c, q->h.id, CUDA_SUCCESS);
	}
}

void session_event_wait(struct client *c, const void *packet, size_t n, int fd) {
	event_submit(c, packet, DEVICE_WAIT);
}

void session_event_sync(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct event *e = session_object(c, q->object, OBJECT_EVENT);

	if (!e) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	e->mark->n_refs++;
	session_wait(c, &(struct wait){.id = q->h.id, .context = e->context, .mark = e->mark});
}

/* Reply: the time of the last record that was reached, and whether there is one. */
void session_event_query(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	const struct event *e = session_object(c, q->object, OBJECT_EVENT);

	if (!e || e->context->fault) {
		client_reply(c, q->h.id, e ? e->context->fault : CUDA_ERROR_INVALID_HANDLE);
	} else if (e->mark->device.done < e->mark->device.recorded) {
		client_reply(c, q->h.id, CUDA_ERROR_NOT_READY);
	} else {
		session_reply_values(c, q->h.id, e->mark->device.done_ns, e->n_marks, 0);
	}
}

/* ---- values in memory ---- */

/* An operation about the word of @q. Return: NULL when it is refused: that was replied. */
static struct op *value_op(struct client *c, const struct wire_object *q, struct stream **ret,
			   enum device_op_kind kind) {
	struct stream *st = session_object(c, q->object, OBJECT_STREAM);
	struct op *op = NULL;
	int result = CUDA_ERROR_INVALID_HANDLE;

	if (st) {
		result = CUDA_ERROR_INVALID_VALUE;
		if (q->value % sizeof(uint32_t) == 0 &&
		    exec_resolve(st->context, q->value, sizeof(uint32_t), true)) {
			op = session_op_new(st->context, kind, 0);
			result = op ? st->context->fault : CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	*ret = st;
	client_reply(c, q->h.id, result);
	return op;
}

void session_value_wait(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st;
	struct op *op = value_op(c, q, &st, DEVICE_VALUE);

	if (op) {
		op->value = q->value;
		op->wanted = (uint32_t)q->value2;
		op->compare = q->other;
		device_submit(st->device, &op->base);
	}
}

void session_value_write(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st;
	struct op *op = value_op(c, q, &st, DEVICE_ACTION);

	if (op) {
		op->fill = (struct wire_fill){.target = q->value,
					      .width = 1,
					      .height = 1,
					      .element = sizeof(uint32_t),
					      .value = (uint32_t)q->value2};
		device_submit(st->device, &op->base);
	}
}

/* ---- work ---- */

void session_launch(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_launch *q = packet;
	struct stream *st = session_object(c, q->stream, OBJECT_STREAM);
	struct module *m = session_object(c, q->module, OBJECT_MODULE);
	struct part *part = session_object(c, q->part, OBJECT_PART);
	struct op *op;
	const struct interp_kernel *kernel;
	uint64_t threads, blocks;
	unsigned shared;

	/* A module's memory is its context's, and goes with it. */
	if (!st || !m || m->context != st->context || q->params_size > n - sizeof(*q) ||
	    (q->part != 0 && (!part || part->context != st->context))) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	kernel = q->kernel < interp_module_n_kernels(m->interp)
			 ? interp_module_kernel(m->interp, q->kernel)
			 : NULL;
	op = kernel ? session_op_new(st->context, DEVICE_KERNEL, q->params_size) : NULL;
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	module_kernel_info(m, kernel, &op->kernel);
	memcpy(op->data, q->params, q->params_size);
	op->launch = (struct interp_launch){
		.kernel = kernel,
		.grid = {q->grid[0], q->grid[1], q->grid[2]},
		.block = {q->block[0], q->block[1], q->block[2]},
		.dynamic_shared_bytes = q->shared_bytes,
		.params = op->data,
		.params_size = q->params_size,
		.grid_id = device_last_seq(st->context->gpu->device) + 1,
	};
	threads = (uint64_t)q->block[0] * q->block[1] * q->block[2];
	blocks = (uint64_t)q->grid[0] * q->grid[1] * q->grid[2];
	shared = (unsigned)op->kernel.static_shared_bytes + q->shared_bytes;
	if (threads > 0 && threads <= 1024 && q->params_size == op->kernel.params_size) {
		op->base.kernel = config_block_needs(st->context->gpu->config, (unsigned)threads,
						     op->kernel.regs_per_thread, shared);
	}
	op->base.kernel.n_blocks = blocks;
	op->base.level = q->level;
	op->base.part = part ? part->device : NULL;
	/* The client has checked all this against its own copy; a kernel that never fits would
	 * stop the queue. */
	if (blocks == 0 || op->base.kernel.threads == 0 ||
	    device_occupancy(&st->context->gpu->config->device, &op->base.kernel) == 0) {
		op_free(op);
		client_reply(c, q->h.id, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
		return;
	}
	op->module = m;
	m->n_refs++;
	client_reply(c, q->h.id, st->context->fault);
	device_submit(st->device, &op->base);
}

/* One side of a copy: the rows lie beside each other, so that their bytes bound the time that they
 * take, and inside what the client may touch. */
static bool copy_side_ok(struct context *ctx, enum wire_place place, uint64_t addr, uint64_t pitch,
			 uint64_t width, uint64_t height, bool write) {
	uint64_t size;

	if (place == WIRE_INLINE) {
		return true;
	}
	if ((height > 1 && pitch < width) || __builtin_mul_overflow(pitch, height - 1, &size) ||
	    __builtin_add_overflow(size, width, &size)) {
		return false;
	}
	return (place == WIRE_DEVICE) == (addr >= WIRE_DEVICE_BASE(0)) &&
	       exec_resolve(ctx, addr, size, write);
}

/* A driver reads so little pinned memory at the call if nothing is in front of the copy in its own
 * stream, whatever it has to wait for by the legacy stream's rules (an H200: 4 bytes, not 1 MiB).
 */
#define EARLY_MAX 64

static bool is_read_early(const struct stream *st, const struct wire_copy *q, uint64_t bytes) {
	return q->from == WIRE_HOST && q->to == WIRE_DEVICE && !q->wait && q->height == 1 &&
	       bytes <= EARLY_MAX &&
	       device_stream_passed(st->device, device_last_seq(st->context->gpu->device));
}

void session_copy(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_copy *q = packet;
	struct stream *st = session_object(c, q->stream, OBJECT_STREAM);
	struct op *op = NULL;
	uint64_t bytes;
	size_t inline_bytes;
	bool ok, early;

	ok = st && q->width > 0 && q->height > 0 && q->from <= WIRE_DEVICE &&
	     q->to <= WIRE_DEVICE && !__builtin_mul_overflow(q->width, q->height, &bytes);
	ok = ok && (q->from != WIRE_INLINE || bytes == n - sizeof(*q)) &&
	     (q->to != WIRE_INLINE || bytes <= WIRE_INLINE_MAX);
	ok = ok &&
	     copy_side_ok(st->context, q->from, q->source, q->source_pitch, q->width, q->height,
			  false) &&
	     copy_side_ok(st->context, q->to, q->target, q->target_pitch, q->width, q->height,
			  true);
	if (!ok) {
		client_reply(c, q->h.id, st ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	early = is_read_early(st, q, bytes);
	inline_bytes = early || q->from == WIRE_INLINE || q->to == WIRE_INLINE ? bytes : 0;
	op = session_op_new(st->context,
			    q->to != WIRE_DEVICE     ? DEVICE_COPY_OUT
			    : q->from == WIRE_DEVICE ? DEVICE_COPY_LOCAL
						     : DEVICE_COPY_IN,
			    inline_bytes);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->copy = *q;
	op->base.bytes = bytes;
	if (q->from == WIRE_INLINE) {
		memcpy(op->data, q + 1, inline_bytes);
	} else if (early) {
		memcpy(op->data, exec_resolve(st->context, q->source, bytes, false), bytes);
		op->copy.from = WIRE_INLINE;
	}
	if (q->wait) {
		op->reply_id = q->h.id;
	} else {
		client_reply(c, q->h.id, st->context->fault);
	}
	device_submit(st->device, &op->base);
}

void session_fill(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_fill *q = packet;
	struct stream *st = session_object(c, q->stream, OBJECT_STREAM);
	struct op *op = NULL;
	uint64_t row, bytes;
	bool ok;

	ok = st && q->width > 0 && q->height > 0 &&
	     (q->element == 1 || q->element == 2 || q->element == 4) &&
	     !__builtin_mul_overflow(q->width, q->element, &row) &&
	     !__builtin_mul_overflow(row, q->height, &bytes) &&
	     copy_side_ok(st->context, WIRE_DEVICE, q->target, q->pitch, row, q->height, true);
	if (!ok) {
		client_reply(c, q->h.id, st ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op = session_op_new(st->context, DEVICE_COPY_LOCAL, 0);
	if (!op) {
		client_reply(c, q->h.id, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	op->fill = *q;
	op->base.bytes = bytes;
	if (q->wait) {
		op->reply_id = q->h.id;
	} else {
		client_reply(c, q->h.id, st->context->fault);
	}
	device_submit(st->device, &op->base);
}

/* ---- graphs ---- */

/* All three begin so. */
_Static_assert(offsetof(struct wire_launch, stream) == sizeof(struct wire_header) &&
		       offsetof(struct wire_copy, stream) == sizeof(struct wire_header) &&
		       offsetof(struct wire_fill, stream) == sizeof(struct wire_header),
	       "the stream stands behind the header");

/* One request of a batch, its stream filled in. Return: 0 or a CUresult. */
static int batch_request(struct client *c, uint32_t stream, int fd, uint64_t at, uint64_t size) {
	struct wire_header *h = calloc(1, size);
	int result = CUDA_ERROR_INVALID_VALUE;

	if (!h) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (pread(fd, h, size, (off_t)at) == (ssize_t)size &&
	    (h->type == WIRE_LAUNCH || h->type == WIRE_COPY || h->type == WIRE_FILL)) {
		h->id = 0;
		memcpy(h + 1, &stream, sizeof(stream));
		c->unasked = 0;
		session_handle(c, h, size, -1);
		result = c->unasked;
	}
	free(h);
	return result;
}

/* What stands before a request that cannot be done is done, as with a graph whose node fails. */
void session_batch(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	int result = session_object(c, q->object, OBJECT_STREAM) && fd >= 0
			     ? CUDA_SUCCESS
			     : CUDA_ERROR_INVALID_HANDLE;
	uint64_t size, at = 0;

	while (result == CUDA_SUCCESS && !c->broken && at < q->value) {
		if (pread(fd, &size, sizeof(size), (off_t)at) != (ssize_t)sizeof(size) ||
		    size < sizeof(struct wire_header) + sizeof(uint32_t) ||
		    size > WIRE_PACKET_MAX) {
			result = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		at += sizeof(size);
		result = batch_request(c, q->object, fd, at, size);
		at += WIRE_BATCH_ROUND(size);
	}
	client_reply(c, q->h.id, result);
}

/* ---- host functions ---- */

void session_hand_host(struct client *c) {
	struct op *op = c->host_due;

	if (!op || !c->host_next_id) {
		return;
	}
	c->host_due = op->next;
	if (!c->host_due) {
		c->host_last = &c->host_due;
	}
	c->host_running = op;
	session_reply_values(c, c->host_next_id, op->value, 0, 0);
	c->host_next_id = 0;
}

void session_host_function(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;
	struct stream *st = session_object(c, q->object, OBJECT_STREAM);
	struct op *op = st ? session_op_new(st->context, DEVICE_HOST, 0) : NULL;

	if (!op) {
		client_reply(c, q->h.id, st ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	op->value = q->value;
	client_reply(c, q->h.id, st->context->fault);
	device_submit(st->device, &op->base);
}

void session_host_next(struct client *c, const void *packet, size_t n, int fd) {
	const struct wire_object *q = packet;

	c->host_next_id = q->h.id;
	session_hand_host(c);
}

void session_host_done(struct client *c, const void *packet, size_t n, int fd) {
	struct op *op = c->host_running;

	/* NULL: its context has failed in the meantime, and dropped it. */
	c->host_running = NULL;
	if (op) {
		device_op_complete(&op->base);
	}
}
