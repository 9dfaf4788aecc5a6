/*
 * device.c: see device.h. Queues, turns, spaces, and the events that make time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/simgpu/device-internal.h"

/* ---- queues ---- */

void device_queue_init(struct device_queue *q) {
	q->first = NULL;
	q->last = &q->first;
}

void device_queue_append(struct device_queue *q, struct device_op *op) {
	op->next_queue = NULL;
	*q->last = op;
	q->last = &op->next_queue;
}

void device_queue_remove(struct device_queue *q, const struct device_op *op) {
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

void device_update_power(struct device *d) {
	power_set(&d->power, d->active ? d->active->busy_sms : 0, d->running > 0);
}

static void device_set_now(struct device *d, uint64_t ns) {
	if (ns > d->now_ns) {
		power_advance(&d->power, ns - d->now_ns);
		d->now_ns = ns;
	}
}

void device_op_set_running(struct device *d, struct device_op *op) {
	op->state = DEVICE_OP_RUNNING;
	op->start_ns = d->now_ns;
	d->running++;
	device_update_power(d);
}

void device_op_unset_running(struct device *d, struct device_op *op) {
	if (op->state == DEVICE_OP_RUNNING) {
		op->state = DEVICE_OP_PENDING;
		d->running--;
		device_update_power(d);
	}
}

/* ---- turns ---- */

static bool engine_has_work(const struct device_engine *e) {
	if (e->disabled && !e->stays) {
		return false;
	}
	if (e->blocks.n > 0) {
		return true;
	}
	for (struct device_space *s = e->spaces; s; s = s->next) {
		for (struct device_part *p = s->parts; p; p = p->next) {
			if (device_part_ee_queue(p)) {
				return true;
			}
		}
	}
	return false;
}

static uint64_t engine_slice(const struct device *d, const struct device_engine *e) {
	return e->slice_ns > 0 ? e->slice_ns : d->config.slice_ns;
}

static void engine_activate(struct device *d, struct device_engine *e) {
	bool saves = d->active && engine_has_work(d->active);

	if (d->active) {
		d->active->suspended_ns = d->now_ns - d->active->epoch_ns;
		d->active->stays = d->active->stays && d->active == e;
	}
	d->active = e;
	d->preempted = false;
	d->turns++;
	e->resumes_ns = d->now_ns + (saves ? d->config.switch_ns : 0);
	e->epoch_ns = e->resumes_ns - e->suspended_ns;
	d->turn_end_ns = e->resumes_ns + engine_slice(d, e);
	device_update_power(d);
}

/* The active one has no turn any more, whoever is next. */
static void engine_leave(struct device *d) {
	struct device_engine *e = d->active;

	/* Before that it has not begun. */
	e->suspended_ns =
		d->now_ns > e->resumes_ns ? d->now_ns - e->epoch_ns : e->resumes_ns - e->epoch_ns;
	e->stays = false;
	d->active = NULL;
	d->preempted = false;
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

void device_space_preempt(struct device_space *s) {
	struct device *d = s->device;
	uint64_t end;

	if (d->config.shared || d->active != s->engine || !engine_has_work(s->engine)) {
		return;
	}
	end = s->engine->resumes_ns + DEVICE_TURN_MIN_NS;
	end = end > d->now_ns ? end : d->now_ns;
	if (end < d->turn_end_ns) {
		d->turn_end_ns = end;
		d->preempted = true;
		d->preemptions++;
	}
}

void device_space_set_slice(struct device_space *s, uint64_t ns) {
	struct device *d = s->device;
	uint64_t end;

	if (d->config.shared) {
		return;
	}
	s->engine->slice_ns = ns > 0 && ns < DEVICE_TURN_MIN_NS ? DEVICE_TURN_MIN_NS : ns;
	end = s->engine->resumes_ns + engine_slice(d, s->engine);
	if (d->active == s->engine && end < d->turn_end_ns) {
		d->turn_end_ns = end > d->now_ns ? end : d->now_ns;
	}
}

void device_space_enable(struct device_space *s, enum device_turns turns) {
	struct device *d = s->device;
	struct device_engine *e = s->engine;
	bool disable = turns != DEVICE_TURNS;

	if (d->config.shared || e->disabled == disable) {
		return;
	}
	e->disabled = disable;
	e->stays = turns == DEVICE_LAST_TURN && d->active == e;
	if (d->active == e && disable && !e->stays) {
		engine_leave(d);
	}
	device_settle(d);
}

uint64_t device_turns(const struct device *d) {
	return d->turns;
}

uint64_t device_preemptions(const struct device *d) {
	return d->preemptions;
}

/* Brings queues, turns and SMs up to date after any change. */
void device_settle(struct device *d) {
	while (d->heads_moved) {
		d->heads_moved = false;
		for (struct device_engine *e = d->engines; e; e = e->next) {
			for (struct device_space *s = e->spaces; s; s = s->next) {
				device_space_advance(d, s);
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
	device_block_release(s->device, b, DEVICE_NEVER);
	return true;
}

static bool copy_is_of_space(void *item, void *userdata) {
	struct device_op *op = item;

	return op->stream->space == userdata;
}

static void part_clear(struct device_part *p) {
	for (unsigned i = 0; i < DEVICE_PRIORITIES; i++) {
		device_queue_init(&p->ee[i]);
	}
}

/* Ends everything that the space runs or has queued. */
static void space_drop(struct device_space *s) {
	struct device *d = s->device;

	heap_filter(&s->engine->blocks, block_drop, s);
	heap_filter(&d->copies, copy_is_of_space, s);
	for (struct device_part *p = s->parts; p; p = p->next) {
		part_clear(p);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct device_copy_engine *ce = &d->copy[i];

		for (struct device_op *op = ce->queue.first, *next; op; op = next) {
			next = op->next_queue;
			if (op->stream->space == s) {
				device_queue_remove(&ce->queue, op);
			}
		}
		if (ce->running && ce->running->stream->space == s) {
			ce->running = NULL;
		}
		device_copy_engine_next(d, ce);
	}
	for (struct device_stream *st = s->streams; st; st = st->next) {
		while (st->first) {
			device_op_finish(d, st->first, false);
		}
	}
}

void device_space_fail(struct device_space *s) {
	if (!s->failed) {
		s->failed = true;
		s->device->backend->space_failed(s->device->userdata, s);
		space_drop(s);
	}
}

void device_space_stop(struct device_space *s) {
	device_space_fail(s);
	device_settle(s->device);
}

bool device_space_runs_kernel(const struct device_space *s) {
	for (const struct device_stream *st = s->streams; st; st = st->next) {
		if (st->first && st->first->kind == DEVICE_KERNEL &&
		    st->first->state == DEVICE_OP_RUNNING) {
			return true;
		}
	}
	return false;
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
	s->whole.space = s;
	s->parts = &s->whole;
	part_clear(&s->whole);
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
		device_stream_unlink(s->streams);
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
	for (struct device_part *p = s->whole.next, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	free(s);
	device_settle(d);
	return NULL;
}

int device_part_new(struct device_part **ret, struct device_space *s, const uint64_t *sms) {
	struct device_part *p = calloc(1, sizeof(*p));

	if (!p) {
		return -ENOMEM;
	}
	p->space = s;
	part_clear(p);
	for (unsigned i = 0; i < s->device->config.n_sms; i++) {
		p->shuts_out[i] = !(sms[i / 64] >> i % 64 & 1);
	}
	p->next = s->whole.next;
	s->whole.next = p;
	*ret = p;
	return 0;
}

void *device_space_owner(const struct device_space *s) {
	return s->owner;
}

bool device_space_has_failed(const struct device_space *s) {
	return s->failed;
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
		if (d->turn_end_ns < next && (d->preempted || device_next_turn(d))) {
			next = d->turn_end_ns;
		}
	}
	return next > d->now_ns ? next : d->now_ns;
}

static void device_step_copy(struct device *d) {
	struct device_op *op = d->copies.entries[0].item;
	struct device_copy_engine *ce = device_copy_engine(d, op);

	heap_pop(&d->copies);
	device_op_finish(d, op, true);
	if (ce) {
		ce->running = NULL;
		device_copy_engine_next(d, ce);
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
		device_block_release(d, b, d->now_ns);
		if (++op->done_blocks == op->kernel.n_blocks) {
			device_op_finish(d, op, true);
		}
		device_settle(d);
		return;
	}
	result = d->backend->block_run(d->userdata, b, d->now_ns, e->sms[b->sm].threads, &ns);
	if (result == DEVICE_FAULT) {
		device_space_fail(s);
		device_settle(d);
		return;
	}
	b->ended = result == DEVICE_DONE;
	/* A slice that takes no time would stop the clock. */
	heap_delay_first(&e->blocks, e->blocks.entries[0].ns + (ns || b->ended ? ns : 1));
}

/* Who ends with the turn does not wait for the next one. */
static bool device_block_ends(const struct device *d, uint64_t ns) {
	const struct heap_entry *first = &d->active->blocks.entries[0];

	return ((struct device_block *)first->item)->ended && d->active->epoch_ns + first->ns <= ns;
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
	if (d->turn_end_ns <= next && !device_block_ends(d, next)) {
		struct device_engine *e = device_next_turn(d);

		/* A group that is preempted goes off the GPU even if no other wants it. */
		if (!e && d->preempted && d->active->stays) {
			engine_leave(d);
			return;
		}
		e = !e && d->preempted ? d->active : e;
		if (e) {
			engine_activate(d, e);
			device_settle(d);
			return;
		}
		d->turn_end_ns = next + engine_slice(d, d->active);
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
	d->place_random = config->place_seed;
	d->now_ns = now_ns;
	d->backend = backend;
	d->userdata = userdata;
	device_queue_init(&d->copy[0].queue);
	device_queue_init(&d->copy[1].queue);
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
