/*
 * interp-warp.c: one warp: which of its threads run together, and the loop that runs them.
 *
 * Threads are scheduled one by one, as on GPUs since Volta: each has its own place (frame and pc).
 * The threads that run together are those at the smallest place, deeper calls first; running the
 * one that is furthest behind makes diverged threads meet again. That alone would starve the holder
 * of a lock behind those who spin for it, so a diverged group that polls memory, or runs for long,
 * is set aside once in a while for the one that has waited longest.
 */
#include "tests/simgpu/interp-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A diverged group that polled so often, or ran for so many instructions, may be spinning. */
#define WARP_POLLS_MAX 64u
#define WARP_ALONE_MAX (1u << 18)
/* Then the one that waited longest runs for so many. */
#define WARP_OTHERS_TURN 256u

void warp_set_frame(struct warp *w, uint32_t base) {
	w->base = base;
	w->frame = w->regs + (size_t)base * WARP_LANES;
	w->pframe = w->preds + base;
}

static int warp_grow_slots(struct warp *w, uint32_t need) {
	uint32_t slots = w->slots;
	uint64_t *regs;
	uint32_t *preds;

	if (need <= slots) {
		return 0;
	}
	if (need > WARP_SLOTS_MAX) {
		return -E2BIG;
	}
	/* At least half as much again, so that deep recursion does not copy at each call. */
	slots = need > slots + slots / 2 ? need : slots + slots / 2;
	regs = realloc(w->regs, (size_t)slots * WARP_LANES * sizeof(*regs));
	if (!regs) {
		return -ENOMEM;
	}
	w->regs = regs;
	preds = realloc(w->preds, (size_t)slots * sizeof(*preds));
	if (!preds) {
		return -ENOMEM;
	}
	w->preds = preds;
	memset(regs + (size_t)w->slots * WARP_LANES, 0,
	       (size_t)(slots - w->slots) * WARP_LANES * sizeof(*regs));
	memset(preds + w->slots, 0, (size_t)(slots - w->slots) * sizeof(*preds));
	w->slots = slots;
	return 0;
}

static int warp_grow_local(struct warp *w, uint32_t need) {
	uint32_t stride;
	uint8_t *local;

	if (need <= w->local_stride) {
		return 0;
	}
	if (need > WARP_LOCAL_MAX) {
		return -E2BIG;
	}
	stride = w->local_stride * 2;
	if (stride < need) {
		stride = need;
	}
	stride = (stride + 15) & ~15u;
	local = aligned_alloc(16, (size_t)stride * WARP_LANES);
	if (!local) {
		return -ENOMEM;
	}
	memset(local, 0, (size_t)stride * WARP_LANES);
	for (unsigned i = 0; w->local && i < WARP_LANES; i++) {
		memcpy(local + (size_t)i * stride, w->local + (size_t)i * w->local_stride,
		       w->local_stride);
	}
	free(w->local);
	w->local = local;
	w->local_stride = stride;
	return 0;
}

int warp_reserve(struct warp *w, uint32_t base, uint32_t slots, uint32_t local_bytes) {
	int r;

	r = warp_grow_slots(w, base + slots);
	if (r < 0) {
		return r;
	}
	warp_set_frame(w, w->base);
	return warp_grow_local(w, local_bytes);
}

/* Threads that exist and their coordinates in the block. */
static void warp_init_threads(struct warp *w, const uint32_t block[3], uint32_t n_threads) {
	for (unsigned i = 0; i < WARP_LANES; i++) {
		uint32_t t = w->index * WARP_LANES + i;

		if (t < n_threads) {
			w->alive |= 1u << i;
		}
		w->tid[0][i] = (uint16_t)(t % block[0]);
		w->tid[1][i] = (uint16_t)(t / block[0] % block[1]);
		w->tid[2][i] = (uint16_t)(t / block[0] / block[1]);
	}
}

int warp_init(struct warp *w, struct interp_block *b, uint32_t index) {
	const struct interp_kernel *k = b->kernel;
	int r;

	*w = (struct warp){.block = b, .constants = b->module->constants, .index = index};
	warp_init_threads(w, b->launch.block, b->n_threads);
	r = warp_reserve(w, 0, k->frame, k->local_bytes);
	if (r < 0) {
		return r;
	}
	for (unsigned i = 0; i < WARP_LANES; i++) {
		w->key[i] = warp_key(0, k->start);
	}
	return 0;
}

void warp_deinit(struct warp *w) {
	free(w->regs);
	free(w->preds);
	free(w->local);
}

void warp_park(struct warp *w, uint32_t mask, uint32_t pc) {
	uint64_t key = warp_key(w->base, pc);

	for (; mask; mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);

		w->key[i] = key;
		w->stamp[i] = w->clock;
	}
}

/* Makes the threads at @key the active ones; the limit is where they meet the next of their frame.
 */
static void warp_activate(struct warp *w, uint32_t runnable, uint64_t key) {
	uint32_t base = warp_key_base(key), limit = UINT32_MAX;

	w->active = 0;
	for (uint32_t left = runnable; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (w->key[i] == key) {
			w->active |= 1u << i;
		} else if (warp_key_base(w->key[i]) == base && w->key[i] > key &&
			   (uint32_t)w->key[i] < limit) {
			limit = (uint32_t)w->key[i];
		}
	}
	w->limit = limit;
	w->pc = (uint32_t)key;
	warp_set_frame(w, base);
}

/* Chooses who runs next: those furthest behind, or, to catch up, those that have waited longest.
 * Returns false if no thread can run. */
static bool warp_pick(struct warp *w) {
	uint32_t runnable = w->alive & ~w->waiting;
	uint64_t best = UINT64_MAX, key = 0;

	if (!runnable) {
		w->active = 0;
		return false;
	}
	for (uint32_t left = runnable; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint64_t v = w->catching_up ? w->stamp[i] : w->key[i];

		if (v < best) {
			best = v;
			key = w->key[i];
		}
	}
	warp_activate(w, runnable, key);
	if (w->catching_up) {
		w->limit = UINT32_MAX;
	}
	w->polls = 0;
	w->alone = 0;
	return true;
}

static bool warp_diverged(const struct warp *w) {
	return (w->alive & ~w->waiting) != w->active;
}

/*
 * Runs the active threads for at most @n instructions, until they end, wait, meet others or may be
 * spinning. Returns the last handler's answer.
 */
static enum exec_result warp_run_group(struct warp *w, uint64_t n, uint64_t *ret_done) {
	const struct insn *insns = w->block->module->insns;
	enum exec_result r = EXEC_NEXT;
	uint64_t done = 0;

	w->clock_ahead = w->block->cycles - w->clock;
	while (done < n) {
		const struct insn *in = insns + w->pc;
		uint32_t mask = w->active;

		done++;
		w->clock += in->cost;
		if (in->guard >= 0) {
			uint32_t p = w->pframe[in->guard];

			mask &= in->guard_negated ? ~p : p;
			if (!mask) {
				r = EXEC_NEXT;
				w->pc++;
				if (w->pc >= w->limit) {
					break;
				}
				continue;
			}
		}
		r = in->exec(w, in, mask);
		if (r == EXEC_NEXT) {
			w->pc++;
		} else if (r != EXEC_JUMP) {
			break;
		}
		if (w->pc >= w->limit) {
			break;
		}
		if (w->polls > WARP_POLLS_MAX && warp_diverged(w)) {
			break;
		}
	}
	w->block->cycles = w->clock_ahead + w->clock;
	*ret_done = done;
	return r;
}

/* After a stretch of the active threads: should others run? */
static void warp_reconsider(struct warp *w, bool yielded) {
	bool spun;

	if (!warp_diverged(w)) {
		w->polls = 0;
		w->alone = 0;
		w->catching_up = false;
		return;
	}
	spun = yielded || w->polls > WARP_POLLS_MAX || w->alone >= WARP_ALONE_MAX;
	if (w->catching_up ? spun || w->alone >= WARP_OTHERS_TURN : spun || w->pc >= w->limit) {
		warp_park(w, w->active, w->pc);
		w->active = 0;
		w->catching_up = spun && !w->catching_up;
	}
}

bool warp_run(struct warp *w, uint64_t budget, uint64_t *ret_done) {
	uint64_t total = 0;
	bool go_on = true;

	while (total < budget && go_on) {
		uint64_t n = budget - total, done;
		enum exec_result r;

		if (!w->active) {
			if (!warp_pick(w)) {
				*ret_done = total;
				return sync_check_deadlock(w);
			}
		}
		if (warp_diverged(w)) {
			uint64_t most = w->catching_up ? WARP_OTHERS_TURN : WARP_ALONE_MAX;

			n = n < most ? n : most;
		}
		r = warp_run_group(w, n, &done);
		total += done;
		w->alone += done;
		if (r == EXEC_FAULT) {
			*ret_done = total;
			return false;
		}
		if (r == EXEC_REGROUP) {
			w->active = 0;
			w->catching_up = false;
			continue;
		}
		if (r == EXEC_YIELD) {
			w->pc++;
			go_on = false;
		}
		warp_reconsider(w, r == EXEC_YIELD);
	}
	*ret_done = total;
	return true;
}

/* "kernel 'k', line 12: st.global.u32 [%rd4], %r1;" */
static int fault_where(const struct warp *w, const struct insn *in, char *text, size_t size) {
	const struct ptx_module *ptx = w->block->module->ptx;
	const struct ptx_stmt *stmt = &ptx->stmts[in->stmt];
	const struct ptx_token *first = &ptx->tokens.list[stmt->first];
	const struct ptx_token *last = &ptx->tokens.list[stmt->end - 1];
	int len = (int)(last->offset + last->len - first->offset);

	if (len > 160) {
		len = 160;
	}
	return snprintf(text, size, "kernel '%.200s', line %u: '%.*s'", w->block->kernel->name,
			stmt->line, len, ptx_token_text(&ptx->tokens, first));
}

enum exec_result warp_fault(struct warp *w, const struct insn *in, unsigned lane,
			    enum interp_fault_kind kind, const char *format, ...) {
	struct interp_block *b = w->block;
	size_t size = sizeof(b->fault_text), at;
	va_list args;
	int n;

	if (b->fault != INTERP_FAULT_NONE) {
		return EXEC_FAULT; /* the first one is the one to tell */
	}
	b->fault = kind;
	n = fault_where(w, in, b->fault_text, size);
	at = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
	n = snprintf(b->fault_text + at, size - at,
		     ", block (%u,%u,%u), thread (%u,%u,%u): ", b->ctaid[0], b->ctaid[1],
		     b->ctaid[2], w->tid[0][lane], w->tid[1][lane], w->tid[2][lane]);
	at += n < 0 ? 0 : (size_t)n < size - at ? (size_t)n : size - at - 1;
	va_start(args, format);
	vsnprintf(b->fault_text + at, size - at, format, args);
	va_end(args);
	return EXEC_FAULT;
}
