/*
 * interp-barrier.c: the barriers of a block: bar and barrier, .sync, .arrive and .red.
 *
 * Strictly by the PTX ISA: all threads of the block that have not exited, or as many as a count
 * says, arrive before anybody goes on. What the ISA leaves undefined ends the kernel with a message
 * instead of some behaviour that a GPU may not share:
 * - threads of one warp that wait at different instructions of which one is aligned (bar is;
 *   barrier is when it says .aligned), or a warp of which an aligned barrier has only a part. It is
 *   told when the barrier completes, not at the first arrival: threads of a warp may arrive one by
 *   one as long as all come to the same instruction;
 * - .red beside .sync or .arrive, or another .red, or another count, in one phase of a barrier;
 * - .arrive without a count, and a thread that arrives twice in one phase.
 */
#include "tests/simgpu/interp-internal.h"

#include <stdio.h>

static uint32_t *barrier_arrived(const struct interp_block *b, unsigned id) {
	return b->barrier_arrived + (size_t)id * b->n_warps;
}

static bool warp_has_arrived(const struct interp_block *b, unsigned id, uint32_t warp) {
	return (barrier_arrived(b, id)[warp] | ~b->warps[warp].alive) == WARP_FULL;
}

/*
 * Without a count all threads that have not exited must arrive. With one, hardware counts whole
 * warps: a warp of which every living thread has arrived counts as 32.
 */
static bool barrier_complete(const struct interp_block *b, unsigned id) {
	const uint32_t *arrived = barrier_arrived(b, id);
	uint32_t count = 0;

	for (uint32_t k = 0; k < b->n_warps; k++) {
		bool whole = warp_has_arrived(b, id, k);

		if (b->barriers[id].expected == 0) {
			if (!whole) {
				return false;
			}
		} else if (arrived[k]) {
			count += whole ? WARP_LANES : (uint32_t)__builtin_popcount(arrived[k]);
		}
	}
	return count >= b->barriers[id].expected;
}

/* Threads of @w that wait at barrier @id. */
static uint32_t barrier_waiting(const struct warp *w, unsigned id) {
	uint32_t lanes = 0;

	for (uint32_t l = w->waiting; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);

		lanes |= (uint32_t)(w->wait[i].barrier == (int32_t)id) << i;
	}
	return lanes;
}

/* What .aligned demands of the threads @lanes of @w, which wait at barrier @id. */
static enum exec_result barrier_check_aligned(struct warp *w, unsigned id, uint32_t lanes) {
	for (uint32_t l = lanes; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l), first = (unsigned)__builtin_ctz(lanes);
		const struct insn *in = warp_lane_insn(w, i);
		const struct insn *other = warp_lane_insn(w, first);

		if (w->key[i] != w->key[first] && ((in->flags | other->flags) & INSN_ALIGNED)) {
			return warp_fault(w, in, i, INTERP_FAULT_UNDEFINED,
					  "an aligned barrier, at which thread (%u,%u,%u) of the "
					  "same warp waits at line %u: undefined by the PTX ISA",
					  w->tid[0][first], w->tid[1][first], w->tid[2][first],
					  w->block->module->ptx->stmts[other->stmt].line);
		}
		if ((in->flags & INSN_ALIGNED) && !warp_has_arrived(w->block, id, w->index)) {
			return warp_fault(w, in, i, INTERP_FAULT_UNDEFINED,
					  "an aligned barrier that only a part of its warp has "
					  "reached: undefined by the PTX ISA");
		}
	}
	return EXEC_NEXT;
}

/* Threads @lanes of @w go on, each with the result that its instruction wants. */
static void barrier_release_warp(struct warp *w, uint32_t lanes, const struct barrier *done) {
	for (uint32_t l = lanes; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		const struct insn *in = warp_lane_insn(w, i);
		uint32_t base = warp_key_base(w->key[i]);

		if (in->mode == BAR_POPC && in->d[0] >= 0) {
			w->regs[((size_t)base + (uint32_t)in->d[0]) * WARP_LANES + i] = done->popc;
		} else if (in->mode >= BAR_AND && in->d[1] >= 0) {
			bool v = in->mode == BAR_AND ? done->popc == done->total : done->popc;
			uint32_t *p = &w->preds[base + (uint32_t)in->d[1]];

			*p = (*p & ~(1u << i)) | (uint32_t)v << i;
		}
		w->key[i]++;
	}
	w->waiting &= ~lanes;
}

/* @running: the warp that executes now; its active threads have been put away already. */
static enum exec_result barrier_try(struct interp_block *b, unsigned id,
				    const struct warp *running) {
	struct barrier done = b->barriers[id];

	if (!barrier_complete(b, id)) {
		return EXEC_NEXT;
	}
	for (uint32_t k = 0; k < b->n_warps; k++) {
		struct warp *w = &b->warps[k];

		if (barrier_check_aligned(w, id, barrier_waiting(w, id)) == EXEC_FAULT) {
			return EXEC_FAULT;
		}
	}
	b->barriers[id] = (struct barrier){0};
	memset(barrier_arrived(b, id), 0, b->n_warps * sizeof(uint32_t));
	b->barriers_used &= ~(1u << id);
	for (uint32_t k = 0; k < b->n_warps; k++) {
		struct warp *w = &b->warps[k];

		/* Who goes on may stand behind those that run: choose anew. */
		if (w != running && w->active) {
			warp_park(w, w->active, w->pc);
			w->active = 0;
		}
		barrier_release_warp(w, barrier_waiting(w, id), &done);
	}
	return EXEC_NEXT;
}

/* .sync and .arrive go together; each reduction only with itself. */
static enum barrier_op barrier_kind(const struct insn *in) {
	return in->mode == BAR_ARRIVE ? BAR_SYNC : in->mode;
}

/* What is wrong with the arrival of thread @lane at barrier @id, or NULL. */
static const char *barrier_fault(const struct warp *w, const struct insn *in, unsigned lane,
				 uint32_t id, uint32_t count) {
	const struct interp_block *b = w->block;
	uint32_t all = b->n_warps * WARP_LANES, before;

	if (id >= BLOCK_BARRIERS) {
		return "a block has barriers 0 to 15";
	}
	if (count % WARP_LANES) {
		return "the number is no multiple of 32";
	}
	if (in->mode == BAR_ARRIVE && count == 0) {
		return "an arrival needs a number";
	}
	if (!(b->barriers_used >> id & 1)) {
		return NULL;
	}
	before = b->barriers[id].expected;
	if ((before ? before : all) != (count ? count : all)) {
		return "others arrived there with another number";
	}
	if (b->barriers[id].kind != barrier_kind(in)) {
		return "others arrived there for another kind of result";
	}
	if (barrier_arrived(b, id)[w->index] >> lane & 1) {
		return "this thread has arrived there already";
	}
	return NULL;
}

enum exec_result barrier_exec(struct warp *w, const struct insn *in, uint32_t mask) {
	struct interp_block *b = w->block;
	const uint64_t *ids = warp_src(w, in->s[0]), *counts = warp_src(w, in->s[1]);
	uint32_t pred = in->mode >= BAR_POPC ? warp_pred_src(w, in, 2) : 0;
	uint32_t used = 0;

	warp_park(w, w->active & ~mask, w->pc + 1);
	warp_park(w, mask, in->mode == BAR_ARRIVE ? w->pc + 1 : w->pc);
	for (uint32_t l = mask; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		uint32_t id = (uint32_t)ids[i], count = (uint32_t)counts[i];
		const char *wrong = barrier_fault(w, in, i, id, count);

		if (wrong) {
			return warp_fault(w, in, i, INTERP_FAULT_UNDEFINED,
					  "barrier %u, number of threads %u: %s: undefined by the "
					  "PTX ISA",
					  id, count, wrong);
		}
		if (!(b->barriers_used >> id & 1)) {
			b->barriers[id].expected = count;
			b->barriers[id].kind = barrier_kind(in);
			b->barriers_used |= 1u << id;
		}
		b->barriers[id].total++;
		b->barriers[id].popc += pred >> i & 1;
		barrier_arrived(b, id)[w->index] |= 1u << i;
		used |= 1u << id;
		w->wait[i].barrier = (int32_t)id;
	}
	if (in->mode != BAR_ARRIVE) {
		w->waiting |= mask;
	}
	for (; used; used &= used - 1) {
		if (barrier_try(b, (unsigned)__builtin_ctz(used), w) == EXEC_FAULT) {
			return EXEC_FAULT;
		}
	}
	return EXEC_REGROUP;
}

enum exec_result barrier_after_exit(struct warp *w) {
	sync_try_all(w, w->waiting);
	for (uint32_t used = w->block->barriers_used; used; used &= used - 1) {
		if (barrier_try(w->block, (unsigned)__builtin_ctz(used), w) == EXEC_FAULT) {
			return EXEC_FAULT;
		}
	}
	return EXEC_REGROUP;
}

/* The first living thread of the block that has not arrived at barrier @id. */
static bool barrier_find_missing(const struct interp_block *b, unsigned id, const struct warp **ret,
				 unsigned *ret_lane) {
	for (uint32_t k = 0; k < b->n_warps; k++) {
		uint32_t missing = b->warps[k].alive & ~barrier_arrived(b, id)[k];

		if (missing) {
			*ret = &b->warps[k];
			*ret_lane = (unsigned)__builtin_ctz(missing);
			return true;
		}
	}
	return false;
}

void barrier_tell_wait(const struct warp *w, unsigned lane, char *text, size_t size) {
	const struct interp_block *b = w->block;
	unsigned id = (unsigned)w->wait[lane].barrier, other;
	const struct warp *of;

	if (barrier_find_missing(b, id, &of, &other)) {
		snprintf(text, size,
			 "waits at barrier %u for thread (%u,%u,%u), which waits at line %u", id,
			 of->tid[0][other], of->tid[1][other], of->tid[2][other],
			 b->module->ptx->stmts[warp_lane_insn(of, other)->stmt].line);
	} else {
		snprintf(text, size, "waits at barrier %u for %u threads, more than there are", id,
			 b->barriers[id].expected);
	}
}
