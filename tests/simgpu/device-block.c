/*
 * device-block.c: SMs and what is on them: room, placement, %smid, and the EE queues' heads.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/simgpu/device-internal.h"

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

/* xorshift64: the same seed, the same placement. */
static uint64_t device_random(struct device *d) {
	d->place_random ^= d->place_random << 13;
	d->place_random ^= d->place_random >> 7;
	d->place_random ^= d->place_random << 17;
	return d->place_random;
}

/* No GPU promises anything about placement: for half of the blocks the fullest SM that has room, so
 * that others stay empty as long as they can, else the next from a random one on. */
static int engine_choose_unkindly(struct device *d, const struct device_engine *e,
				  const struct device_part *p, const struct device_kernel *k,
				  const bool *kept) {
	unsigned n = d->config.n_sms, start = (unsigned)(device_random(d) % n);
	bool fullest = device_random(d) % 2;
	int best = -1;

	for (unsigned j = 0; j < n; j++) {
		unsigned i = (start + j) % n;

		if (p->shuts_out[i] || kept[i] || !sm_has_room(&d->config, &e->sms[i], k)) {
			continue;
		}
		if (best < 0 || (fullest && e->sms[i].threads > e->sms[best].threads)) {
			best = (int)i;
		}
	}
	return best;
}

/* R1-R3. @kept: SMs that are kept for others. Return: the SM, or -1. */
static int engine_choose_sm(struct device *d, const struct device_engine *e,
			    const struct device_part *p, const struct device_kernel *k,
			    const bool *kept) {
	int best = -1;

	if (d->place_random) {
		return engine_choose_unkindly(d, e, p, k, kept);
	}
	for (unsigned i = 0; i < d->config.n_sms; i++) {
		const struct device_sm *sm = &e->sms[i];

		if (p->shuts_out[i] || kept[i] || !sm_has_room(&d->config, sm, k)) {
			continue;
		}
		if (best < 0 || sm->threads < e->sms[best].threads ||
		    (sm->threads == e->sms[best].threads && sm->blocks < e->sms[best].blocks)) {
			best = (int)i;
		}
	}
	return best;
}

struct device_part *device_op_part(const struct device_op *op) {
	return op->part ? op->part : &op->stream->space->whole;
}

/* The number that @p sees for SM @sm, on which it is about to place a block. */
static unsigned part_take_smid(struct device_part *p, unsigned sm) {
	if (!p->space->device->config.shared) {
		p->sm_blocks[sm]++;
		return sm;
	}
	if (p->sm_blocks[sm]++ == 0) {
		unsigned id = 0;

		while (p->virtual_used[id]) {
			id++;
		}
		p->virtual_used[id] = true;
		p->sm_virtual[sm] = (uint16_t)id;
	}
	return p->sm_virtual[sm];
}

static void part_give_smid(struct device_part *p, unsigned sm) {
	if (--p->sm_blocks[sm] == 0 && p->space->device->config.shared) {
		p->virtual_used[p->sm_virtual[sm]] = false;
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
void device_block_release(struct device *d, struct device_block *b, uint64_t end_ns) {
	struct device_space *s = b->op->stream->space;

	d->backend->block_end(d->userdata, b, end_ns);
	engine_give_sm(d, s->engine, b->sm, &b->op->kernel);
	part_give_smid(device_op_part(b->op), b->sm);
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
		device_op_set_running(d, op);
	}
	*b = (struct device_block){.op = op, .index = op->next_block++, .sm = sm};
	b->smid = part_take_smid(device_op_part(op), sm);
	b->start_ns = d->now_ns + delay;
	if (b->start_ns < e->resumes_ns) {
		b->start_ns = e->resumes_ns;
	}
	engine_take_sm(d, e, sm, &op->kernel);
	r = d->backend->block_start(d->userdata, b);
	if (r < 0) {
		engine_give_sm(d, e, sm, &op->kernel);
		part_give_smid(device_op_part(op), sm);
		free(b);
		return r;
	}
	heap_push(&e->blocks, (struct heap_entry){.ns = b->start_ns - e->epoch_ns,
						  .order = d->order++,
						  .item = b});
	return 0;
}

/* A2: the head of the highest queue that is not empty. */
struct device_queue *device_part_ee_queue(struct device_part *p) {
	for (unsigned i = DEVICE_PRIORITIES; i > 0; i--) {
		if (p->ee[i - 1].first) {
			return &p->ee[i - 1];
		}
	}
	return NULL;
}

/* Assigns a block of the head of @q, a queue of @p, if X1 and R1-R3 let it. */
static bool part_assign(struct device *d, struct device_part *p, struct device_queue *q,
			const bool *kept) {
	struct device_op *op = q->first;
	int sm = op ? engine_choose_sm(d, p->space->engine, p, &op->kernel, kept) : -1;

	if (sm < 0) {
		return false;
	}
	if (block_place(d, op, (unsigned)sm) < 0) {
		device_space_fail(p->space);
		return true;
	}
	if (op->next_block == op->kernel.n_blocks) {
		device_queue_remove(q, op); /* G3 */
	}
	return true;
}

/* One block of this priority for each part of each space in turn until nothing fits. */
static void dispatch_level(struct device *d, struct device_engine *e, unsigned priority,
			   const bool *kept) {
	bool any = true;

	while (any) {
		any = false;
		for (struct device_space *s = e->spaces; s; s = s->next) {
			for (struct device_part *p = s->parts; p; p = p->next) {
				any |= part_assign(d, p, &p->ee[priority], kept);
			}
		}
	}
}

/* A2, and the same between parts and spaces: while a block of this priority waits, its SMs take
 * none of a lower one. */
static void keep_sms(const struct device *d, const struct device_engine *e, unsigned priority,
		     bool *kept) {
	for (const struct device_space *s = e->spaces; s; s = s->next) {
		for (const struct device_part *p = s->parts; p; p = p->next) {
			for (unsigned i = 0; p->ee[priority].first && i < d->config.n_sms; i++) {
				kept[i] |= !p->shuts_out[i];
			}
		}
	}
}

void device_dispatch(struct device *d) {
	bool kept[DEVICE_SMS_MAX] = {false};

	for (unsigned i = DEVICE_PRIORITIES; d->active && i > 0; i--) {
		dispatch_level(d, d->active, i - 1, kept);
		keep_sms(d, d->active, i - 1, kept);
	}
}
