/*
 * interp-sync.c: operations in which threads of a warp wait for one another: bar.warp.sync,
 * shuffles, votes, matches, reductions. Barriers of a block are in interp-barrier.c.
 *
 * A .sync operation happens when every member that has not exited has arrived, be it from another
 * program counter: what each brought is kept in warp->wait, and each gets its result by its own
 * instruction. Usually all members arrive at once, and nobody waits.
 *
 * Strictly by the PTX ISA: members wait for one another only at the same operation with the same
 * qualifiers and the same mask. What the ISA leaves undefined ends the kernel with a message: a
 * thread that is not in its own mask, and members that wait at different operations, which can
 * never meet. What a shuffle reads from a thread that does not take part is an undefined value, no
 * undefined behaviour: real kernels throw it away. It is a value here that spoils a result.
 */
#include "tests/simgpu/interp-internal.h"

#include <stdio.h>

/* What a shuffle gives that reads from a thread that does not take part. */
#define SHFL_UNDEFINED 0xbad5bad5u

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
		if (!inside) {
			from = i;
		}
		x->out[i] = x->lanes >> from & 1 ? (uint32_t)x->value[from] : SHFL_UNDEFINED;
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

/* Threads that wait at the same kind of operation for the same members as thread @lane. */
static uint32_t waiting_with(const struct warp *w, unsigned lane) {
	const struct insn *in = warp_lane_insn(w, lane);
	uint32_t with = 0;

	for (uint32_t l = w->waiting; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);
		const struct insn *other = warp_lane_insn(w, i);

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
	exchange_compute(warp_lane_insn(w, lane), &x);
	FOR_LANES(x.lanes, {
		uint32_t base = warp_key_base(w->key[i]);

		exchange_deliver(warp_lane_insn(w, i), &x, w->regs + (size_t)base * WARP_LANES,
				 w->preds + base, 1u << i);
		w->key[i]++;
	});
	w->waiting &= ~x.lanes;
}

void sync_try_all(struct warp *w, uint32_t lanes) {
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
	for (uint32_t l = mask; l; l &= l - 1) {
		unsigned i = (unsigned)__builtin_ctz(l);

		if (!((uint32_t)members[i] >> i & 1)) {
			return warp_fault(w, in, i, INTERP_FAULT_UNDEFINED,
					  "lane %u is not in its own mask 0x%08x: undefined by the "
					  "PTX ISA",
					  i, (uint32_t)members[i]);
		}
	}
	FOR_LANES(mask, {
		w->wait[i] = (struct lane_wait){.members = (uint32_t)members[i],
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

/* A member that @lane waits for, and that is not at the same operation. */
static unsigned missing_member(const struct warp *w, unsigned lane) {
	uint32_t missing = w->wait[lane].members & w->alive & ~waiting_with(w, lane);

	return (unsigned)__builtin_ctz(missing ? missing : 1u << lane);
}

void sync_tell_wait(const struct warp *w, unsigned lane, char *text, size_t size) {
	unsigned other = missing_member(w, lane);

	snprintf(text, size,
		 "waits with mask 0x%08x for thread (%u,%u,%u) of its warp, which waits at line %u",
		 w->wait[lane].members, w->tid[0][other], w->tid[1][other], w->tid[2][other],
		 w->block->module->ptx->stmts[warp_lane_insn(w, other)->stmt].line);
}

bool sync_check_deadlock(struct warp *w) {
	char text[160];
	unsigned lane;

	if (!w->alive || w->alive != w->waiting) {
		return true;
	}
	for (uint32_t l = w->alive; l; l &= l - 1) {
		if (w->wait[__builtin_ctz(l)].barrier >= 0) {
			return true; /* other warps may let it go on */
		}
	}
	lane = (unsigned)__builtin_ctz(w->alive);
	sync_tell_wait(w, lane, text, sizeof(text));
	warp_fault(w, warp_lane_insn(w, lane), lane, INTERP_FAULT_UNDEFINED,
		   "%s at another operation or for others: undefined by the PTX ISA", text);
	return false;
}
