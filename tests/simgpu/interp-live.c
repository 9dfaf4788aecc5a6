/*
 * interp-live.c: how many registers a function needs: the most that are live at once.
 *
 * PTX has as many registers as a program likes; this estimates what the assembler would make of
 * them, since occupancy depends on it. Liveness by iteration over the instructions, backwards,
 * until nothing changes; sets are bits by slot.
 */
#include "tests/simgpu/interp-decode.h"

#include <errno.h>
#include <stdlib.h>

/* What the assembler needs besides: addresses of parameters, a stack pointer, scratch. */
#define LIVE_EXTRA 8u
#define LIVE_MAX   255u
/* Functions beyond these bounds are not looked at: they need all registers anyway. */
#define LIVE_BITS_MAX (64u * 1024 * 1024)
#define LIVE_PASSES   16

struct live {
	const struct interp_module *m;
	const struct interp_kernel *f;
	size_t words;	/* of a set */
	uint64_t *sets; /* [instruction - start]: live before it */
};

static uint64_t *live_set(const struct live *l, uint32_t pc) {
	return l->sets + (size_t)(pc - l->f->start) * l->words;
}

static bool is_slot(const struct live *l, const struct insn *in, int32_t number, unsigned pred) {
	return number >= SLOTS_FIRST && (uint32_t)number < l->f->slots && !(in->preds & pred);
}

static void set_bit(uint64_t *set, int32_t slot) {
	set[slot / 64] |= (uint64_t)1 << slot % 64;
}

/* A store keeps its values in d: they are read. */
static bool reads_d(const struct insn *in) {
	return in->exec == mem_st;
}

static void live_after(const struct live *l, uint32_t pc, uint64_t *out) {
	const struct insn *in = &l->m->insns[pc];
	bool ends = (in->exec == control_ret || in->exec == control_exit) && in->guard < 0;
	bool jumps = in->exec == control_bra && in->guard < 0;

	memset(out, 0, l->words * sizeof(*out));
	if (!ends && !jumps && pc + 1 < l->f->end) {
		memcpy(out, live_set(l, pc + 1), l->words * sizeof(*out));
	}
	if (in->exec == control_bra) {
		for (size_t i = 0; i < l->words; i++) {
			out[i] |= live_set(l, in->target)[i];
		}
	}
	for (int64_t k = 0; in->exec == control_brx && k < in->imm; k++) {
		const uint64_t *at = live_set(l, l->m->targets[in->target + (uint64_t)k]);

		for (size_t i = 0; i < l->words; i++) {
			out[i] |= at[i];
		}
	}
}

/* A call reads its arguments' registers and writes those of its returns. */
static void live_call(const struct live *l, const struct insn *in, uint64_t *set) {
	const struct call *c = &l->m->calls[in->target];
	const struct call_arg *args = l->m->call_args + c->args;

	if (in->exec == control_call_return) {
		for (uint32_t i = c->n_args; i < c->n_args + c->n_rets; i++) {
			if (args[i].in_register) {
				set[args[i].actual / 64] &= ~((uint64_t)1 << args[i].actual % 64);
			}
		}
		return;
	}
	for (uint32_t i = 0; i < c->n_args; i++) {
		if (args[i].in_register && args[i].actual >= 0) {
			set_bit(set, args[i].actual);
		}
	}
}

/* Turns what is live after the instruction into what is live before. */
static void live_before(const struct live *l, uint32_t pc, uint64_t *set) {
	const struct insn *in = &l->m->insns[pc];

	if (in->exec == control_call || in->exec == control_call_return) {
		live_call(l, in, set);
	} else if (!reads_d(in) && in->guard < 0) {
		for (unsigned i = 0; i < 4; i++) {
			if (is_slot(l, in, in->d[i], INSN_PRED_D << i)) {
				set[in->d[i] / 64] &= ~((uint64_t)1 << in->d[i] % 64);
			}
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		if (reads_d(in) && is_slot(l, in, in->d[i], INSN_PRED_D << i)) {
			set_bit(set, in->d[i]);
		}
		if (is_slot(l, in, in->s[i], INSN_PRED_S << i)) {
			set_bit(set, in->s[i]);
		}
	}
}

/* One pass backwards. Returns whether anything changed. */
static bool live_pass(const struct live *l, uint64_t *scratch) {
	bool changed = false;

	for (uint32_t pc = l->f->end; pc-- > l->f->start;) {
		live_after(l, pc, scratch);
		live_before(l, pc, scratch);
		if (memcmp(scratch, live_set(l, pc), l->words * sizeof(*scratch)) != 0) {
			memcpy(live_set(l, pc), scratch, l->words * sizeof(*scratch));
			changed = true;
		}
	}
	return changed;
}

/* Registers of 32 bits that the set's slots take; @wide: slots of 64 bits. */
static uint32_t live_count(const struct live *l, const uint64_t *set, const uint64_t *wide) {
	uint32_t n = 0;

	for (size_t i = 0; i < l->words; i++) {
		n += (uint32_t)__builtin_popcountll(set[i]) +
		     (uint32_t)__builtin_popcountll(set[i] & wide[i]);
	}
	return n;
}

static uint32_t live_most(const struct live *l, const uint64_t *wide) {
	uint32_t most = 0;

	for (uint32_t pc = l->f->start; pc < l->f->end; pc++) {
		uint32_t n = live_count(l, live_set(l, pc), wide);

		most = n > most ? n : most;
	}
	return most;
}

int live_estimate(struct interp_module *m, struct interp_kernel *f, const uint64_t *wide) {
	size_t words = (f->slots + 63) / 64, n = f->end - f->start;
	struct live l = {.m = m, .f = f, .words = words};
	uint64_t *scratch;

	f->max_live = LIVE_MAX;
	if (words * 64 * n > LIVE_BITS_MAX) {
		return 0;
	}
	l.sets = calloc(n * words, sizeof(*l.sets));
	scratch = calloc(words, sizeof(*scratch));
	if (!l.sets || !scratch) {
		free(l.sets);
		free(scratch);
		return -ENOMEM;
	}
	for (unsigned pass = 0; pass < LIVE_PASSES && live_pass(&l, scratch); pass++) {
	}
	f->max_live = live_most(&l, wide) + LIVE_EXTRA;
	f->max_live = f->max_live > LIVE_MAX ? LIVE_MAX : f->max_live;
	free(l.sets);
	free(scratch);
	return 0;
}
