/*
 * hazards.c: barriers and warp-wide instructions against threads that have ended.
 */
#include "shim/ptx/hazards.h"

#include "shim/ptx/opcodes.h"

unsigned hazards_free_barrier(const struct module_facts *facts) {
	uint32_t used = 0;
	unsigned number = 0;

	for (size_t i = 0; i < facts->m->n_funcs; i++) {
		used |= facts->funcs[i].named_barriers;
	}
	while (number < 16 && (used & (1u << number))) {
		number++;
	}
	return number;
}

int hazards_judge(struct hazards *ret, const struct module_facts *facts, const struct ptx_func *f) {
	const struct facts *k = &facts->funcs[f - facts->m->funcs];
	struct hazards h = {.block_multiple = 1, .refusal = {.stmt = PTX_NONE, .line = f->line}};

	h.vote = k->has & FACTS_BARRIER;
	if (k->has & FACTS_WARP) {
		h.refusal.reason = "threads of a warp may have ended where others wait for them";
	} else if (k->has & FACTS_BARRIER_COUNTED) {
		h.refusal.reason = "threads may have ended where others wait for a number of them";
	}
	*ret = h;
	return 0;
}
