/*
 * interp-control.c: branches, calls, exits.
 *
 * A call puts the caller's place into the callee's frame (SLOT_RETURN), so threads that call from
 * different places can run the callee together and return each to its own.
 */
#include "tests/simgpu/interp-internal.h"

#include <errno.h>

enum exec_result control_nop(struct warp *w, const struct insn *in, uint32_t mask) {
	return EXEC_NEXT;
}

enum exec_result control_sleep(struct warp *w, const struct insn *in, uint32_t mask) {
	return EXEC_YIELD;
}

enum exec_result control_trap(struct warp *w, const struct insn *in, uint32_t mask) {
	return warp_fault(w, in, (unsigned)__builtin_ctz(mask), INTERP_FAULT_INSTRUCTION,
			  "the kernel ended itself by a trap");
}

enum exec_result control_unsupported(struct warp *w, const struct insn *in, uint32_t mask) {
	return warp_fault(w, in, (unsigned)__builtin_ctz(mask), INTERP_FAULT_INSTRUCTION,
			  "instruction not supported by the simulated GPU");
}

enum exec_result control_bra(struct warp *w, const struct insn *in, uint32_t mask) {
	if (mask == w->active) {
		w->pc = in->target;
		return EXEC_JUMP;
	}
	warp_park(w, mask, in->target);
	warp_park(w, w->active & ~mask, w->pc + 1);
	return EXEC_REGROUP;
}

/* brx.idx: s[0] the index, target: first of imm entries in the module's targets. */
enum exec_result control_brx(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *index = warp_src(w, in->s[0]);

	warp_park(w, w->active & ~mask, w->pc + 1);
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint32_t at = (uint32_t)index[i];

		if (at >= (uint64_t)in->imm) {
			return warp_fault(w, in, i, INTERP_FAULT_INSTRUCTION,
					  "index %u into a table of %u branch targets", at,
					  (unsigned)in->imm);
		}
		warp_park(w, 1u << i, w->block->module->targets[in->target + at]);
	}
	return EXEC_REGROUP;
}

/* Copies the arguments of one thread into the frame it is about to enter. */
static void call_pass(struct warp *w, const struct call *c, unsigned lane, uint64_t local_base,
		      uint64_t callee_local) {
	const struct call_arg *args = w->block->module->call_args + c->args;
	uint8_t *local = w->local + (size_t)lane * w->local_stride;

	for (uint32_t j = 0; j < c->n_args; j++) {
		const struct call_arg *a = &args[j];

		if (a->in_register) {
			memcpy(local + callee_local + a->formal, &warp_src(w, a->actual)[lane],
			       a->size);
		} else {
			memcpy(local + callee_local + a->formal, local + local_base + a->actual,
			       a->size);
		}
	}
}

/* The threads of @mask enter @callee together. */
static enum exec_result call_enter(struct warp *w, const struct insn *in, const struct call *c,
				   uint32_t callee, uint32_t mask) {
	const struct interp_kernel *from = &w->block->module->funcs[c->caller];
	const struct interp_kernel *to = &w->block->module->funcs[callee];
	uint32_t base = w->base, new_base = base + from->frame;
	uint64_t local_max = 0;
	uint64_t *ret, *local_slot;
	int r;

	for (uint32_t left = mask; left; left &= left - 1) {
		uint64_t at = warp_dst(w, SLOT_LOCAL)[__builtin_ctz(left)];

		local_max = at > local_max ? at : local_max;
	}
	r = warp_reserve(w, new_base, to->frame,
			 (uint32_t)local_max + from->local_bytes + to->local_bytes);
	if (r < 0) {
		return warp_fault(w, in, (unsigned)__builtin_ctz(mask), INTERP_FAULT_INSTRUCTION,
				  r == -ENOMEM ? "no host memory left for the call stack"
					       : "call stack overflow");
	}
	ret = w->regs + ((size_t)new_base + SLOT_RETURN) * WARP_LANES;
	local_slot = w->regs + ((size_t)new_base + SLOT_LOCAL) * WARP_LANES;
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint64_t at = warp_dst(w, SLOT_LOCAL)[i];

		ret[i] = ((uint64_t)base << 32) | (w->pc + 1);
		local_slot[i] = at + from->local_bytes;
		call_pass(w, c, i, at, at + from->local_bytes);
		w->key[i] = warp_key(new_base, to->start);
		w->stamp[i] = w->clock;
	}
	return EXEC_NEXT;
}

enum exec_result control_call(struct warp *w, const struct insn *in, uint32_t mask) {
	const struct interp_module *m = w->block->module;
	const struct call *c = &m->calls[in->target];
	uint32_t left = mask;

	while (left) {
		unsigned first = (unsigned)__builtin_ctz(left);
		uint32_t callee = c->callee, together = left;

		if (callee == UINT32_MAX) {
			const uint64_t *to = warp_src(w, in->s[0]);
			uint64_t index = to[first] - INTERP_FUNCTION_FIRST;

			if (index >= m->n_funcs || !m->funcs[index].defined ||
			    m->funcs[index].is_entry) {
				return warp_fault(w, in, first, INTERP_FAULT_INSTRUCTION,
						  "call of 0x%llx, which is no function",
						  (unsigned long long)to[first]);
			}
			callee = (uint32_t)index;
			for (uint32_t l = left; l; l &= l - 1) {
				unsigned i = (unsigned)__builtin_ctz(l);

				if (to[i] != to[first]) {
					together &= ~(1u << i);
				}
			}
		}
		if (call_enter(w, in, c, callee, together) == EXEC_FAULT) {
			return EXEC_FAULT;
		}
		left &= ~together;
	}
	warp_park(w, w->active & ~mask, w->pc + 1);
	return EXEC_REGROUP;
}

/* Stands behind each call: fetches return values out of the frame that the callee has left. */
enum exec_result control_call_return(struct warp *w, const struct insn *in, uint32_t mask) {
	const struct interp_module *m = w->block->module;
	const struct call *c = &m->calls[in->target];
	const struct call_arg *rets = m->call_args + c->args + c->n_args;
	const uint64_t *local_slot = warp_src(w, SLOT_LOCAL);

	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint8_t *local = w->local + (size_t)i * w->local_stride + local_slot[i];
		const uint8_t *callee = local + m->funcs[c->caller].local_bytes;

		for (uint32_t j = 0; j < c->n_rets; j++) {
			if (rets[j].in_register) {
				memcpy(&warp_dst(w, rets[j].actual)[i], callee + rets[j].formal,
				       rets[j].size);
			} else {
				memcpy(local + rets[j].actual, callee + rets[j].formal,
				       rets[j].size);
			}
		}
	}
	return EXEC_NEXT;
}

enum exec_result control_exit(struct warp *w, const struct insn *in, uint32_t mask) {
	warp_park(w, w->active & ~mask, w->pc + 1);
	w->alive &= ~mask;
	return barrier_after_exit(w);
}

enum exec_result control_ret(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *ret = warp_src(w, SLOT_RETURN);

	if (w->base == 0) {
		return control_exit(w, in, mask);
	}
	warp_park(w, w->active & ~mask, w->pc + 1);
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		w->key[i] = warp_key((uint32_t)(ret[i] >> 32), (uint32_t)ret[i]);
		w->stamp[i] = w->clock;
	}
	return EXEC_REGROUP;
}
