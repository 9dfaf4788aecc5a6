/*
 * device.c: see device.h. From the bottom up: SMs and placement, EE queues, copy engines, streams,
 * then turns and time. An engine is a set of SMs in use: one for all spaces when the GPU is shared,
 * one for each space when it is exclusive, and then only the active one runs.
 */
#include "tests/simgpu/device.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/heap.h"

struct device_sm {
	unsigned threads, blocks, regs, shared_bytes; /* in use */
};

struct device_engine {
	struct device_engine *next; /* in device->engines */
	struct device_space *spaces; /* through space->next */
	struct device_sm sms[DEVICE_SMS_MAX];
	unsigned busy_sms;
	struct heap blocks;    /* resident; times are the engine's own */
	uint64_t epoch_ns;     /* device time = epoch + engine time, while active */
	uint64_t suspended_ns; /* engine time, while not active */
};

struct device_queue {
	struct device_op *first, **last;
};

struct device_space {
	struct device_space *next; /* in engine->spaces */
	struct device *device;
	struct device_engine *engine;
	void *owner;
	bool failed;
	struct device_stream *streams; /* through stream->next */
	struct device_stream *null_stream;
	struct device_queue ee[DEVICE_PRIORITIES];
	uint16_t sm_blocks[DEVICE_SMS_MAX]; /* of this space on each SM */
	uint16_t sm_virtual[DEVICE_SMS_MAX];
	bool virtual_used[DEVICE_SMS_MAX];
};

struct device_stream {
	struct device_stream *next;
	struct device_space *space;
	enum device_stream_kind kind;
	unsigned priority;
	bool closing;
	struct device_op *first, **last;
};

struct device_copy_engine {
	struct device_queue queue;
	struct device_op *running;
};

struct device {
	struct device_config config;
	const struct device_backend *backend; /* borrowed */
	void *userdata;
	struct device_engine *engines;
	struct device_engine *active; /* NULL: none yet */
	uint64_t turn_end_ns;
	struct device_copy_engine copy[2];
	struct heap copies; /* running copies, engine or none */
	uint64_t now_ns;
	uint64_t seq, order;
	unsigned running; /* ops in state RUNNING */
	size_t n_copies;  /* submitted and not done */
	bool heads_moved; /* heads of streams must be looked at */
	struct power power;
};

/* ---- queues ---- */

static void queue_init(struct device_queue *q) {
	q->first = NULL;
	q->last = &q->first;
}

static void queue_append(struct device_queue *q, struct device_op *op) {
	op->next_queue = NULL;
	*q->last = op;
	q->last = &op->next_queue;
}

static void queue_remove(struct device_queue *q, const struct device_op *op) {
	for (struct device_op **p = &q->first; *p; p = &(*p)->next_queue) {
		if (*p == op) {
			*p = op->next_queue;
			break;
		}
	}
	q->last = &q->first;
	while (*q->last) {
		q->last = &(*q->last)->next_queue;
	}
}

/* ---- time ---- */

static void device_update_power(struct device *d) {
	power_set(&d->power, d->active ? d->active->busy_sms : 0, d->running > 0);
}

static void device_set_now(struct device *d, uint64_t ns) {
	if (ns > d->now_ns) {
		power_advance(&d->power, ns - d->now_ns);
		d->now_ns = ns;
	}
}

static void op_set_running(struct device *d, struct device_op *op) {
	op->state = DEVICE_OP_RUNNING;
	op->start_ns = d->now_ns;
	d->running++;
	device_update_power(d);
}

static void op_unset_running(struct device *d, struct device_op *op) {
	if (op->state == DEVICE_OP_RUNNING) {
		op->state = DEVICE_OP_PENDING;
		d->running--;
		device_update_power(d);
	}
}

/* ---- SMs ---- */

static bool sm_has_room(const struct device_config *c, const struct device_sm *sm,
			const struct device_kernel *k) {
	return sm->blocks < c->sm_blocks && k->threads <= c->sm_threads - sm->threads &&
	       k->regs <= c->sm_regs - sm->regs &&
	       k->shared_bytes <= c->sm_shared_bytes - sm->shared_bytes;
}

unsigned device_occupancy(const struct device_config *c, const struct device_kernel *k) {
	struct device_sm sm = {0};
	unsigned n = 0;

	while (sm_has_room(c, &sm, k)) {
		sm.blocks++;
		sm.threads += k->threads;
		sm.regs += k->regs;
		sm.shared_bytes += k->shared_bytes;
		n++;
	}
	return n;
}

/* R1-R3. Return: the SM, or -1. */
static int engine_choose_sm(const struct device *d, const struct device_engine *e,
			    const struct device_kernel *k) {
	int best = -1;

	for (unsigned i = 0; i < d->config.n_sms; i++) {
		const struct device_sm *sm = &e->sms[i];

		if (!sm_has_room(&d->config, sm, k)) {
			continue;
		}
		if (best < 0 || sm->threads < e->sms[best].threads ||
		    (sm->threads == e->sms[best].threads && sm->blocks < e->sms[best].blocks)) {
			best = (int)i;
		}
	}
	return best;
}

/* The number that @space sees for SM @sm, on which it is about to place a block. */
static unsigned space_take_smid(struct device_space *s, unsigned sm) {
	if (!s->device->config.shared) {
		s->sm_blocks[sm]++;
		return sm;
	}
	if (s->sm_blocks[sm]++ == 0) {
		unsigned id = 0;

		while (s->virtual_used[id]) {
			id++;
		}
		s->virtual_used[id] = true;
		s->sm_virtual[sm] = (uint16_t)id;
	}
	return s->sm_virtual[sm];
}

static void space_give_smid(struct device_space *s, unsigned sm) {
	if (--s->sm_blocks[sm] == 0 && s->device->config.shared) {
		s->virtual_used[s->sm_virtual[sm]] = false;
	}
}

static void engine_take_sm(struct device *d, struct device_engine *e, unsigned i,
			   const struct device_kernel *k) {
	struct device_sm *sm = &e->sms[i];

	if (sm->blocks++ == 0) {
		e->busy_sms++;
	}
	sm->threads += k->threads;
	sm->regs += k->regs;
	sm->shared_bytes += k->shared_bytes;
	device_update_power(d);
}

static void engine_give_sm(struct device *d, struct device_engine *e, unsigned i,
			   const struct device_kernel *k) {
	struct device_sm *sm = &e->sms[i];

	if (--sm->blocks == 0) {
		e->busy_sms--;
	}
	sm->threads -= k->threads;
	sm->regs -= k->regs;
	sm->shared_bytes -= k->shared_bytes;
	device_update_power(d);
}

/* ---- blocks ---- */

/* Takes the block off its SM and frees it. Its heap entry is the caller's business. */
static void block_release(struct device *d, struct device_block *b, uint64_t end_ns) {
	struct device_space *s = b->op->stream->space;

	d->backend->block_end(d->userdata, b, end_ns);
	engine_give_sm(d, s->engine, b->sm, &b->op->kernel);
	space_give_smid(s, b->sm);
	free(b);
}

/* Puts the next block of @op on @sm. Return: 0 or negative errno. */
static int block_place(struct device *d, struct device_op *op, unsigned sm) {
	struct device_space *s = op->stream->space;
	struct device_engine *e = s->engine;
	uint64_t delay = op->state == DEVICE_OP_RUNNING && d->now_ns != op->start_ns
				 ? 0
				 : d->config.launch_ns;
	struct device_block *b;
	int r;

	r = heap_reserve(&e->blocks, e->blocks.n + 1);
	if (r < 0) {
		return r;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		return -ENOMEM;
	}
	if (op->state != DEVICE_OP_RUNNING) {
		op_set_running(d, op);
	}
	*b = (struct device_block){.op = op, .index = op->next_block++, .sm = sm};
	b->smid = space_take_smid(s, sm);
	b->start_ns = d->now_ns + delay;
	engine_take_sm(d, e, sm, &op->kernel);
	r = d->backend->block_start(d->userdata, b);
	if (r < 0) {
		engine_give_sm(d, e, sm, &op->kernel);
		space_give_smid(s, sm);
		free(b);
		return r;
	}
	heap_push(&e->blocks, (struct heap_entry){.ns = b->start_ns - e->epoch_ns,
						  .order = d->order++,
						  .item = b});
	return 0;
}

/* A2: the head of the highest queue that is not empty. */
static struct device_queue *space_ee_queue(struct device_space *s) {
	for (unsigned p = DEVICE_PRIORITIES; p > 0; p--) {
		if (s->ee[p - 1].first) {
			return &s->ee[p - 1];
		}
	}
	return NULL;
}

static void space_fail(struct device_space *s);

/* Assigns one block of the space if X1 and R1-R3 let it. */
static bool space_assign(struct device *d, struct device_space *s) {
	struct device_queue *q = space_ee_queue(s);
	struct device_op *op = q ? q->first : NULL;
	int sm = op ? engine_choose_sm(d, s->engine, &op->kernel) : -1;

	if (sm < 0) {
		return false;
	}
	if (block_place(d, op, (unsigned)sm) < 0) {
		space_fail(s);
		return true;
	}
	if (op->next_block == op->kernel.n_blocks) {
		queue_remove(q, op); /* G3 */
	}
	return true;
}

/* One block for each space in turn until nothing fits. */
static void device_dispatch(struct device *d) {
	struct device_engine *e = d->active;
	bool any = e != NULL;

	while (any) {
		any = false;
		for (struct device_space *s = e->spaces; s; s = s->next) {
			any |= space_assign(d, s);
		}
	}
}

/* ---- copies ---- */

static bool op_is_copy(const struct device_op *op) {
	return op->kind >= DEVICE_COPY_IN && op->kind <= DEVICE_COPY_LOCAL;
}

static uint64_t copy_duration_ns(const struct device_config *c, const struct device_op *op) {
	uint64_t rate = op->kind == DEVICE_COPY_LOCAL ? c->device_bytes_per_us : c->host_bytes_per_us;

	return c->copy_latency_ns + (uint64_t)((unsigned __int128)op->bytes * 1000 / rate);
}

static struct device_copy_engine *copy_engine(struct device *d, const struct device_op *op) {
	if (op->kind == DEVICE_COPY_LOCAL) {
		return NULL;
	}
	return &d->copy[d->config.copy_engines > 1 && op->kind == DEVICE_COPY_OUT];
}

static void copy_start(struct device *d, struct device_op *op) {
	op_set_running(d, op);
	heap_push(&d->copies, (struct heap_entry){.ns = d->now_ns + copy_duration_ns(&d->config, op),
						  .order = d->order++,
						  .item = op});
}

/* C2, C3. */
static void copy_engine_next(struct device *d, struct device_copy_engine *ce) {
	struct device_op *op = ce->queue.first;

	if (!ce->running && op) {
		queue_remove(&ce->queue, op);
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

static void stream_unlink(struct device_stream *st) {
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
static void op_finish(struct device *d, struct device_op *op, bool ok) {
	struct device_stream *st = op->stream;

	op_unset_running(d, op);
	assert(st->first == op);
	st->first = op->next;
	if (!st->first) {
		st->last = &st->first;
	}
	d->heads_moved = true;
	if (op_is_copy(op)) {
		d->n_copies--;
	}
	/* A dropped record counts as reached: whoever waits for it must not wait for ever. */
	if (op->kind == DEVICE_EVENT && op->event_number > op->event->done) {
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
		return op->kind == DEVICE_WAIT && op->event->done >= op->event_number;
	}
	return op->state == DEVICE_OP_QUEUED && op_may_start(op);
}

/* Moves the head of @st to where it waits for its turn, or past it. */
static void stream_advance(struct device *d, struct device_stream *st) {
	struct device_op *op = st->first;
	struct device_copy_engine *ce;

	if (op->state == DEVICE_OP_PENDING) {
		op_finish(d, op, true);
		return;
	}
	op->state = DEVICE_OP_PENDING;
	switch (op->kind) {
	case DEVICE_KERNEL:
		queue_append(&st->space->ee[st->priority], op); /* G2, A1 */
		break;
	case DEVICE_COPY_IN:
	case DEVICE_COPY_OUT:
	case DEVICE_COPY_LOCAL:
		ce = copy_engine(d, op);
		if (ce) {
			queue_append(&ce->queue, op); /* C1 */
			copy_engine_next(d, ce);
		} else {
			copy_start(d, op);
		}
		break;
	case DEVICE_EVENT:
	case DEVICE_ACTION:
		op_finish(d, op, true);
		break;
	case DEVICE_HOST:
		d->backend->host_due(d->userdata, op);
		break;
	case DEVICE_WAIT:
		break; /* looked at again at once */
	}
}

/* Advances heads until nothing moves, the operation that was submitted first always first. */
static void space_advance(struct device *d, struct device_space *s) {
	for (;;) {
		struct device_stream *best = NULL;

		for (struct device_stream *st = s->streams, *next; st; st = next) {
			next = st->next;
			if (st->closing && !st->first) {
				stream_unlink(st);
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

static bool engine_has_work(const struct device_engine *e) {
	if (e->blocks.n > 0) {
		return true;
	}
	for (struct device_space *s = e->spaces; s; s = s->next) {
		if (space_ee_queue(s)) {
			return true;
		}
	}
	return false;
}

/* ---- turns ---- */

static void engine_activate(struct device *d, struct device_engine *e) {
	if (d->active) {
		d->active->suspended_ns = d->now_ns - d->active->epoch_ns;
	}
	d->active = e;
	e->epoch_ns = d->now_ns - e->suspended_ns;
	d->turn_end_ns = d->now_ns + d->config.slice_ns;
	device_update_power(d);
}

/* The next engine after the active one that has work; NULL: none but the active one. */
static struct device_engine *device_next_turn(const struct device *d) {
	struct device_engine *start = d->active, *e = start ? start->next : d->engines;

	for (;; e = e->next) {
		if (!e) {
			e = d->engines;
		}
		if (!e || e == start) {
			return NULL;
		}
		if (engine_has_work(e)) {
			return e;
		}
		if (!start && !e->next) {
			return NULL;
		}
	}
}

/* Brings queues, turns and SMs up to date after any change. */
static void device_settle(struct device *d) {
	while (d->heads_moved) {
		d->heads_moved = false;
		for (struct device_engine *e = d->engines; e; e = e->next) {
			for (struct device_space *s = e->spaces; s; s = s->next) {
				space_advance(d, s);
			}
		}
	}
	if (!d->active || !engine_has_work(d->active)) {
		struct device_engine *e = device_next_turn(d);

		if (e) {
			engine_activate(d, e);
		}
	}
	device_dispatch(d);
}

/* ---- spaces ---- */

/* For heap_filter(): stops a block of the space. */
static bool block_drop(void *item, void *userdata) {
	struct device_block *b = item;
	struct device_space *s = userdata;

	if (b->op->stream->space != s) {
		return false;
	}
	block_release(s->device, b, DEVICE_NEVER);
	return true;
}

static bool copy_is_of_space(void *item, void *userdata) {
	struct device_op *op = item;

	return op->stream->space == userdata;
}

/* Ends everything that the space runs or has queued. */
static void space_drop(struct device_space *s) {
	struct device *d = s->device;

	heap_filter(&s->engine->blocks, block_drop, s);
	heap_filter(&d->copies, copy_is_of_space, s);
	for (unsigned p = 0; p < DEVICE_PRIORITIES; p++) {
		queue_init(&s->ee[p]);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct device_copy_engine *ce = &d->copy[i];

		for (struct device_op *op = ce->queue.first, *next; op; op = next) {
			next = op->next_queue;
			if (op->stream->space == s) {
				queue_remove(&ce->queue, op);
			}
		}
		if (ce->running && ce->running->stream->space == s) {
			ce->running = NULL;
		}
		copy_engine_next(d, ce);
	}
	for (struct device_stream *st = s->streams; st; st = st->next) {
		while (st->first) {
			op_finish(d, st->first, false);
		}
	}
}

static void space_fail(struct device_space *s) {
	if (!s->failed) {
		s->failed = true;
		s->device->backend->space_failed(s->device->userdata, s);
		space_drop(s);
	}
}

static int engine_new(struct device *d, struct device_engine **ret) {
	struct device_engine *e = calloc(1, sizeof(*e)), **last = &d->engines;

	if (!e) {
		return -ENOMEM;
	}
	while (*last) {
		last = &(*last)->next;
	}
	*last = e;
	*ret = e;
	return 0;
}

static void engine_free(struct device *d, struct device_engine *e) {
	for (struct device_engine **p = &d->engines; *p; p = &(*p)->next) {
		if (*p == e) {
			*p = e->next;
			break;
		}
	}
	if (d->active == e) {
		d->active = NULL;
		device_update_power(d);
	}
	heap_deinit(&e->blocks);
	free(e);
}

int device_space_new(struct device_space **ret, struct device *d, void *owner) {
	struct device_space *s, **last;
	int r;

	s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->device = d;
	s->owner = owner;
	for (unsigned p = 0; p < DEVICE_PRIORITIES; p++) {
		queue_init(&s->ee[p]);
	}
	if (d->config.shared && d->engines) {
		s->engine = d->engines;
	} else {
		r = engine_new(d, &s->engine);
		if (r < 0) {
			free(s);
			return r;
		}
	}
	for (last = &s->engine->spaces; *last; last = &(*last)->next) {
	}
	*last = s;
	*ret = s;
	return 0;
}

struct device_space *device_space_free(struct device_space *s) {
	struct device *d;

	if (!s) {
		return NULL;
	}
	d = s->device;
	s->failed = true;
	space_drop(s);
	while (s->streams) {
		stream_unlink(s->streams);
	}
	for (struct device_space **p = &s->engine->spaces; *p; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	if (!s->engine->spaces) {
		engine_free(d, s->engine);
	}
	free(s);
	device_settle(d);
	return NULL;
}

void *device_space_owner(const struct device_space *s) {
	return s->owner;
}

bool device_space_has_failed(const struct device_space *s) {
	return s->failed;
}

/* ---- streams, from outside ---- */

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

struct device_stream *device_stream_free(struct device_stream *st) {
	if (st && st->first) {
		st->closing = true;
	} else if (st) {
		stream_unlink(st);
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
	if (op_is_copy(op) && !st->space->failed &&
	    heap_reserve(&d->copies, d->n_copies + 1) < 0) {
		space_fail(st->space);
	}
	if (st->space->failed) {
		d->backend->op_done(d->userdata, op, false);
		return;
	}
	if (op_is_copy(op)) {
		d->n_copies++;
	}
	*st->last = op;
	st->last = &op->next;
	d->heads_moved = true;
	device_settle(d);
}

void device_op_complete(struct device_op *op) {
	struct device *d = op->stream->space->device;

	op_finish(d, op, true);
	device_settle(d);
}

void device_poke(struct device *d) {
	d->heads_moved = true;
	device_settle(d);
}

bool device_stream_passed(const struct device_stream *st, uint64_t seq) {
	return !st->first || st->first->seq > seq;
}

bool device_space_passed(const struct device_space *s, uint64_t seq) {
	for (const struct device_stream *st = s->streams; st; st = st->next) {
		if (!device_stream_passed(st, seq)) {
			return false;
		}
	}
	return true;
}

uint64_t device_last_seq(const struct device *d) {
	return d->seq;
}

/* ---- events ---- */

uint64_t device_now_ns(const struct device *d) {
	return d->now_ns;
}

uint64_t device_next_ns(const struct device *d) {
	uint64_t next = d->copies.n > 0 ? d->copies.entries[0].ns : DEVICE_NEVER;

	if (d->active && d->active->blocks.n > 0) {
		uint64_t ns = d->active->epoch_ns + d->active->blocks.entries[0].ns;

		next = ns < next ? ns : next;
		if (d->turn_end_ns < next && device_next_turn(d)) {
			next = d->turn_end_ns;
		}
	}
	return next > d->now_ns ? next : d->now_ns;
}

static void device_step_copy(struct device *d) {
	struct device_op *op = d->copies.entries[0].item;
	struct device_copy_engine *ce = copy_engine(d, op);

	heap_pop(&d->copies);
	op_finish(d, op, true);
	if (ce) {
		ce->running = NULL;
		copy_engine_next(d, ce);
	}
	device_settle(d);
}

static void device_step_block(struct device *d) {
	struct device_engine *e = d->active;
	struct device_block *b = e->blocks.entries[0].item;
	struct device_op *op = b->op;
	struct device_space *s = op->stream->space;
	enum device_result result;
	uint64_t ns = 0;

	if (b->ended) {
		heap_pop(&e->blocks);
		block_release(d, b, d->now_ns);
		if (++op->done_blocks == op->kernel.n_blocks) {
			op_finish(d, op, true);
		}
		device_settle(d);
		return;
	}
	result = d->backend->block_run(d->userdata, b, d->now_ns, e->sms[b->sm].threads, &ns);
	if (result == DEVICE_FAULT) {
		space_fail(s);
		device_settle(d);
		return;
	}
	b->ended = result == DEVICE_DONE;
	/* A slice that takes no time would stop the clock. */
	heap_delay_first(&e->blocks, e->blocks.entries[0].ns + (ns || b->ended ? ns : 1));
}

void device_step(struct device *d) {
	uint64_t next = device_next_ns(d);

	if (next == DEVICE_NEVER) {
		return;
	}
	device_set_now(d, next);
	if (d->copies.n > 0 && d->copies.entries[0].ns <= next) {
		device_step_copy(d);
		return;
	}
	/* Who ends with the turn does not wait for the next one. */
	if (d->turn_end_ns <= next &&
	    !((struct device_block *)d->active->blocks.entries[0].item)->ended) {
		struct device_engine *e = device_next_turn(d);

		if (e) {
			engine_activate(d, e);
			device_settle(d);
			return;
		}
		d->turn_end_ns = next + d->config.slice_ns;
	}
	device_step_block(d);
}

void device_pass(struct device *d, uint64_t ns) {
	uint64_t next = device_next_ns(d);

	device_set_now(d, ns < next ? ns : next);
}

/* ---- the device ---- */

int device_new(struct device **ret, const struct device_config *config, uint64_t now_ns,
	       const struct device_backend *backend, void *userdata) {
	struct device *d = calloc(1, sizeof(*d));

	if (!d) {
		return -ENOMEM;
	}
	d->config = *config;
	d->now_ns = now_ns;
	d->backend = backend;
	d->userdata = userdata;
	queue_init(&d->copy[0].queue);
	queue_init(&d->copy[1].queue);
	power_init(&d->power, &config->power, config->n_sms);
	*ret = d;
	return 0;
}

struct device *device_free(struct device *d) {
	if (!d) {
		return NULL;
	}
	assert(!d->engines);
	heap_deinit(&d->copies);
	free(d);
	return NULL;
}

const struct power *device_power(const struct device *d) {
	return &d->power;
}
