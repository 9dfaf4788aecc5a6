/*
 * room.c: see room.h.
 */
#include "shim/ptx/room.h"

#include "shim/ptx/twin.h"

/* Shared memory is given out in units of 128 bytes, before sm_80 of 256. */
#define UNIT 128

/* More than any block of any GPU can have. */
#define BYTES_MAX (1u << 20)

#define SLOT_ALIGN 8
#define SLOT_BYTES sizeof(struct twin_slot)

void room_add_var(struct room *r, const struct ptx_var *v) {
	uint64_t bytes = (uint64_t)ptx_type_bytes(v->type) * v->vector;

	if (bytes == 0 || v->count == 0 || v->is_extern || v->align > UNIT ||
	    __builtin_mul_overflow(bytes, v->count, &bytes) || bytes > BYTES_MAX - r->bytes) {
		r->unknown = true;
		return;
	}
	r->bytes += bytes;
	r->align = v->align > r->align ? v->align : r->align;
	r->n++;
}

static bool asks_for_size(struct ptx_name n) {
	return ptx_name_is(n, "%total_smem_size") || ptx_name_is(n, "%aggr_smem_size");
}

void room_add_insn(struct room *r, const struct ptx_module *m, const struct ptx_stmt *s) {
	for (uint32_t i = 0; i < s->n_operands; i++) {
		const struct ptx_operand *o = &m->operands[s->operands + i];

		r->unknown |= o->kind == PTX_OPERAND_REG && asks_for_size(o->name);
	}
}

static uint64_t units(uint64_t bytes) {
	return (bytes + UNIT - 1) / UNIT;
}

/* Nobody knows in which order the assembler puts variables, so how much lies between them. */
bool room_has_slot(const struct room *r) {
	uint64_t most;

	if (r->unknown || r->n == 0) {
		return false;
	}
	most = r->bytes + (uint64_t)(r->n - 1) * (r->align - 1);
	most = (most + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN + SLOT_BYTES;
	return units(most) == units(r->bytes);
}
