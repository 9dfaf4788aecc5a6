/*
 * interp-sync.c: operations in which threads wait for one another: those of a warp (shuffles,
 * votes, matches, reductions) and the barriers of a block.
 *
 * A .sync operation happens when every member that has not exited has arrived, be it from another
 * program counter: what each brought is kept in warp->wait, and each gets its result by its own
 * instruction. Usually all members arrive at once, and nobody waits.
 */
#include "tests/simgpu/interp-internal.h"

/* What the members of a warp operation brought, and what each gets. */
struct exchange {
	uint32_t lanes;
	uint64_t value[WARP_LANES], b[WARP_LANES], c[WARP_LANES];
	uint32_t out[WARP_LANES];
	uint32_t out_pred;
};

static void exchange_gather(struct warp *w, const struct insn *in, uint32_t mask,
			    struct exchange *x) {
	bool is_vote = in->mode >= SYNC_VOTE_ALL && in->mode <= SYNC_BALLOT;

	if (is_vote) {
		uint32_t p = warp_pred_src(w, in, 0);

		FOR_LANES(mask, x->value[i] = p >> i & 1);
		return;
	}
	if (in->mode == SYNC_WARP || in->mode == SYNC_ELECT) {
		return;
	}
	const uint64_t *a = warp_src(w, in->s[0]);

	FOR_LANES(mask, x->value[i] = in->type == PTX_TYPE_B64 ? a[i] : (uint32_t)a[i]);
	if (in->mode == SYNC_SHFL) {
		const uint64_t *b = warp_src(w, in->s[1]), *c = warp_src(w, in->s[2]);

		FOR_LANES(mask, x->b[i] = b[i] & 31; x->c[i] = c[i]);
	}
}

static void exchange_shfl(struct exchange *x, enum shfl_mode mode) {
	FOR_LANES(x->lanes, {
		uint32_t segment = (uint32_t)x->c[i] >> 8 & 31, clamp = (uint32_t)x->c[i] & 31;
		uint32_t first = i & segment, last = first | (clamp & ~segment);
		uint32_t b = (uint32_t)x->b[i], from;
		bool inside;

		switch (mode) {
		case SHFL_UP:
			from = i - b;
			inside = (int32_t)from >= (int32_t)last;
			break;
		case SHFL_DOWN:
			from = i + b;
			inside = from <= last;
			break;
		case SHFL_BFLY:
			from = i ^ b;
			inside = from <= last;
			break;
		default:
			from = first | (b & ~segment);
			inside = from <= last;
			break;
		}
		/* Reading a thread that does not take part is undefined; one gets one's own. */
		if (!inside || !(x->lanes >> from & 1)) {
			from = i;
		}
		x->out[i] = (uint32_t)x->value[from];
		x->out_pred |= (uint32_t)inside << i;
	});
}

static void exchange_vote(struct exchange *x, enum sync_op op) {
	uint32_t votes = 0, result;

	FOR_LANES(x->lanes, votes |= (uint32_t)x->value[i] << i);
	if (op == SYNC_VOTE_ALL) {
		result = votes == x->lanes;
	} else if (op == SYNC_VOTE_ANY) {
		result = votes != 0;
	} else {
		result = votes == 0 || votes == x->lanes;
	}
	x->out_pred = result ? WARP_FULL : 0;
	FOR_LANES(x->lanes, x->out[i] = votes);
}

static void exchange_match(struct exchange *x, bool all) {
	FOR_LANES(x->lanes, {
		uint32_t same = 0;

		for (uint32_t l = x->lanes; l; l &= l - 1) {
			unsigned j = (unsigned)__builtin_ctz(l);

			same |= (uint32_t)(x->value[j] == x->value[i]) << j;
		}
		x->out[i] = all && same != x->lanes ? 0 : same;
		x->out_pred |= (uint32_t)(same == x->lanes) << i;
	});
}

static uint32_t redux_step(const struct insn *in, uint32_t a, uint32_t b) {
	bool is_signed = in->type == PTX_TYPE_S32;
	bool less = is_signed ? (int32_t)a < (int32_t)b : a < b;

	switch (in->mode2) {
	case ATOM_ADD:
		return a + b;
	case ATOM_AND:
		return a & b;
	case ATOM_OR:
		return a | b;
	case ATOM_XOR:
		return a ^ b;
	case ATOM_MIN:
		return less ? a : b;
	default:
		return less ? b : a;
	}
}

static void exchange_redux(const struct insn *in, struct exchange *x) {
	unsigned first = (unsigned)__builtin_ctz(x->lanes);
	uint32_t sum = (uint32_t)x->value[first];

	for (uint32_t l = x->lanes & (x->lanes - 1); l; l &= l - 1) {
		sum = redux_step(in, sum, (uint32_t)x->value[__builtin_ctz(l)]);
	}
	FOR_LANES(x->lanes, x->out[i] = sum);
}

static void exchange_compute(const struct insn *in, struct exchange *x) {
	x->out_pred = 0;
	switch (in->mode) {
	case SYNC_SHFL:
		exchange_shfl(x, in->mode2);
		break;
	case SYNC_MATCH_ANY:
	case SYNC_MATCH_ALL:
		exchange_match(x, in->mode == SYNC_MATCH_ALL);
		break;
	case SYNC_REDUX:
		exchange_redux(in, x);
		break;
	case SYNC_ELECT:
		x->out_pred = x->lanes & -x->lanes;
		FOR_LANES(x->lanes, x->out[i] = (uint32_t)__builtin_ctz(x->lanes));
		break;
	case SYNC_WARP:
		break;
	default:
		exchange_vote(x, in->mode);
		break;
	}
}

/* To @mask of the frame at @frame and @pframe. */
static void exchange_deliver(const struct insn *in, const struct exchange *x, uint64_t *frame,
			     uint32_t *pframe, uint32_t mask) {
	if (in->d[0] >= 0) {
		uint64_t *d = frame + (size_t)in->d[0] * WARP_LANES;

		FOR_LANES(mask, d[i] = x->out[i]);
	}
	if (in->d[1] >= 0) {
		pframe[in->d[1]] = (pframe[in->d[1]] & ~mask) | (x->out_pred & mask);
	}
}

static const struct insn *lane_insn(const struct warp *w, unsigned lane) {
	return &w->block->module->insns[(uint32_t)w->key[lane]];
}

/* Threads that wait at the same kind of operation for the same members as thread @lane. */
static uint32_t waiting_with(const struct warp *w, unsigned lane) {
	const struct insn *in = lane_insn(w, lane);
	uint32_t with = 0;

	for (uint32_t l = w->waiting; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		const struct insn *other = lane_insn(w, i);

		if (w->wait[i].barrier < 0 && w->wait[i].members == w->wait[lane].members &&
		    other->mode == in->mode && other->mode2 == in->mode2 &&
		    other->type == in->type) {
			with |= 1u << i;
		}
	}
	return with;
}

/* Lets the warp operation at which thread @lane waits happen if all its members are there. */
static void sync_try(struct warp *w, unsigned lane) {
	struct exchange x = {.lanes = waiting_with(w, lane)};

	if (w->wait[lane].members & w->alive & ~x.lanes) {
		return;
	}
	FOR_LANES(x.lanes, {
		x.value[i] = w->wait[i].value;
		x.b[i] = w->wait[i].b;
		x.c[i] = w->wait[i].c;
	});
	exchange_compute(lane_insn(w, lane), &x);
	FOR_LANES(x.lanes, {
		uint32_t base = warp_key_base(w->key[i]);

		exchange_deliver(lane_insn(w, i), &x, w->regs + (size_t)base * WARP_LANES,
				 w->preds + base, 1u << i);
		w->key[i]++;
	});
	w->waiting &= ~x.lanes;
}

static void sync_try_all(struct warp *w, uint32_t lanes) {
	for (uint32_t l = lanes; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);

		if (w->waiting >> i & 1 && w->wait[i].barrier < 0) {
			sync_try(w, i);
		}
	}
}

enum exec_result sync_warp(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *members = warp_src(w, in->s[3]);
	uint32_t first = (uint32_t)members[__builtin_ctz(mask)], differ = 0;
	struct exchange x = {.lanes = mask};

	FOR_LANES(mask, differ |= (uint32_t)members[i] ^ first);
	exchange_gather(w, in, mask, &x);
	if (!differ && (first & w->alive) == mask) {
		exchange_compute(in, &x);
		exchange_deliver(in, &x, w->frame, w->pframe, mask);
		return EXEC_NEXT;
	}
	warp_park(w, w->active & ~mask, w->pc + 1);
	warp_park(w, mask, w->pc);
	FOR_LANES(mask, {
		w->wait[i] = (struct lane_wait){.members = (uint32_t)members[i] | 1u << i,
						.barrier = -1,
						.value = x.value[i],
						.b = x.b[i],
						.c = x.c[i]};
	});
	w->waiting |= mask;
	sync_try_all(w, mask);
	return EXEC_REGROUP;
}

/* The forms without .sync, of PTX for GPUs before Volta: among those that run together. */
enum exec_result sync_warp_unsynced(struct warp *w, const struct insn *in, uint32_t mask) {
	struct exchange x = {.lanes = mask};

	exchange_gather(w, in, mask, &x);
	exchange_compute(in, &x);
	exchange_deliver(in, &x, w->frame, w->pframe, mask);
	return EXEC_NEXT;
}

enum exec_result sync_activemask(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);

	FOR_LANES(mask, d[i] = mask);
	return EXEC_NEXT;
}

static uint32_t *barrier_arrived(const struct interp_block *b, unsigned id) {
	return b->barrier_arrived + (size_t)id * b->n_warps;
}

/*
 * Without a count all threads that have not exited must arrive. With one, hardware counts whole
 * warps: a warp of which every living thread has arrived counts as 32.
 */
static bool barrier_complete(const struct interp_block *b, unsigned id) {
	const uint32_t *arrived = barrier_arrived(b, id);
	uint32_t count = 0;

	for (uint32_t k = 0; k < b->n_warps; k++) {
		bool whole = (arrived[k] | ~b->warps[k].alive) == WARP_FULL;

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

/* Threads of @w that wait at barrier @id go on, each with the result that its instruction wants. */
static void barrier_release_warp(struct warp *w, unsigned id, const struct barrier *done) {
	uint32_t released = 0;

	for (uint32_t l = w->waiting; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		const struct insn *in = lane_insn(w, i);
		uint32_t base = warp_key_base(w->key[i]);

		if (w->wait[i].barrier != (int32_t)id) {
			continue;
		}
		if (in->mode == BAR_POPC && in->d[0] >= 0) {
			w->regs[((size_t)base + (uint32_t)in->d[0]) * WARP_LANES + i] = done->popc;
		} else if (in->mode >= BAR_AND && in->d[1] >= 0) {
			bool v = in->mode == BAR_AND ? done->popc == done->total : done->popc;
			uint32_t *p = &w->preds[base + (uint32_t)in->d[1]];

			*p = (*p & ~(1u << i)) | (uint32_t)v << i;
		}
		w->key[i]++;
		released |= 1u << i;
	}
	w->waiting &= ~released;
}

/* @running: the warp that executes now; its active threads have been put away already. */
static void barrier_try(struct interp_block *b, unsigned id, const struct warp *running) {
	struct barrier done = b->barriers[id];

	if (!barrier_complete(b, id)) {
		return;
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
		barrier_release_warp(w, id, &done);
	}
}

enum exec_result sync_barrier(struct warp *w, const struct insn *in, uint32_t mask) {
	struct interp_block *b = w->block;
	const uint64_t *ids = warp_src(w, in->s[0]), *counts = warp_src(w, in->s[1]);
	uint32_t pred = in->mode >= BAR_POPC ? warp_pred_src(w, in, 2) : 0;
	uint32_t used = 0;

	warp_park(w, w->active & ~mask, w->pc + 1);
	warp_park(w, mask, in->mode == BAR_ARRIVE ? w->pc + 1 : w->pc);
	for (uint32_t l = mask; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		uint32_t id = (uint32_t)ids[i], count = (uint32_t)counts[i];

		if (id >= BLOCK_BARRIERS || count % WARP_LANES) {
			return warp_fault(w, in, i, INTERP_FAULT_INSTRUCTION,
					  id >= BLOCK_BARRIERS
						  ? "barrier %u of 16"
						  : "barrier %u for %u threads, which is no "
						    "multiple of 32",
					  id, count);
		}
		b->barriers[id].expected = count;
		b->barriers[id].total++;
		b->barriers[id].popc += pred >> i & 1;
		barrier_arrived(b, id)[w->index] |= 1u << i;
		used |= 1u << id;
		w->wait[i].barrier = (int32_t)id;
	}
	if (in->mode != BAR_ARRIVE) {
		w->waiting |= mask;
	}
	b->barriers_used |= used;
	for (; used; used &= used - 1) {
		barrier_try(b, (unsigned)__builtin_ctz(used), w);
	}
	return EXEC_REGROUP;
}

void sync_after_exit(struct warp *w) {
	sync_try_all(w, w->waiting);
	for (uint32_t used = w->block->barriers_used; used; used &= used - 1) {
		barrier_try(w->block, (unsigned)__builtin_ctz(used), w);
	}
}
