/*
 * interp-move.c: mov in all its forms, and special registers.
 */
#include "tests/simgpu/interp-internal.h"

enum exec_result move_scalar(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);

	FOR_LANES(mask, d[i] = a[i]);
	return EXEC_NEXT;
}

/* d[0] = {s[0], s[1], ...}: n elements of type's size / n; the first is the lowest. */
enum exec_result move_pack(struct warp *w, const struct insn *in, uint32_t mask) {
	unsigned bits = 8 * ptx_type_bytes(in->type) / in->n;
	uint64_t ones = UINT64_MAX >> (64 - bits);
	uint64_t *d = warp_dst(w, in->d[0]);
	uint64_t v[WARP_LANES] = {0};

	for (unsigned k = 0; k < in->n; k++) {
		const uint64_t *a = warp_src(w, in->s[k]);

		FOR_LANES(mask, v[i] |= (a[i] & ones) << k * bits);
	}
	FOR_LANES(mask, d[i] = v[i]);
	return EXEC_NEXT;
}

enum exec_result move_unpack(struct warp *w, const struct insn *in, uint32_t mask) {
	unsigned bits = 8 * ptx_type_bytes(in->type) / in->n;
	uint64_t ones = UINT64_MAX >> (64 - bits);
	uint64_t v[WARP_LANES];

	memcpy(v, warp_src(w, in->s[0]), sizeof(v)); /* a destination may be the source */
	for (unsigned k = 0; k < in->n; k++) {
		if (in->d[k] >= 0) {
			uint64_t *d = warp_dst(w, in->d[k]);

			FOR_LANES(mask, d[i] = v[i] >> k * bits & ones);
		}
	}
	return EXEC_NEXT;
}

/* Address of a .local or .param variable of the frame: imm bytes behind its beginning. */
enum exec_result move_local(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *base = warp_src(w, SLOT_LOCAL);

	FOR_LANES(mask, d[i] = base[i] + (uint64_t)in->imm);
	return EXEC_NEXT;
}

enum special {
	SPECIAL_DYNAMIC_SHARED = MOVE_DYNAMIC_SHARED,
	SPECIAL_TID_X,
	SPECIAL_TID_Y,
	SPECIAL_TID_Z,
	SPECIAL_NTID_X,
	SPECIAL_NTID_Y,
	SPECIAL_NTID_Z,
	SPECIAL_CTAID_X,
	SPECIAL_CTAID_Y,
	SPECIAL_CTAID_Z,
	SPECIAL_NCTAID_X,
	SPECIAL_NCTAID_Y,
	SPECIAL_NCTAID_Z,
	SPECIAL_LANEID,
	SPECIAL_WARPID,
	SPECIAL_NWARPID,
	SPECIAL_SMID,
	SPECIAL_NSMID,
	SPECIAL_GRIDID,
	SPECIAL_MASK_EQ,
	SPECIAL_MASK_LE,
	SPECIAL_MASK_LT,
	SPECIAL_MASK_GE,
	SPECIAL_MASK_GT,
	SPECIAL_CLOCK,
	SPECIAL_CLOCK_HI,
	SPECIAL_CLOCK64,
	SPECIAL_TIMER,
	SPECIAL_TIMER_LO,
	SPECIAL_TIMER_HI,
	SPECIAL_DYNAMIC_SIZE,
	SPECIAL_TOTAL_SIZE,
	SPECIAL_AGGREGATE_SIZE,
	SPECIAL_ZERO,
	SPECIAL_ONE,
};

static const struct {
	const char *name;
	enum special number;
} specials[] = {
	{"%tid.x", SPECIAL_TID_X},
	{"%tid.y", SPECIAL_TID_Y},
	{"%tid.z", SPECIAL_TID_Z},
	{"%ntid.x", SPECIAL_NTID_X},
	{"%ntid.y", SPECIAL_NTID_Y},
	{"%ntid.z", SPECIAL_NTID_Z},
	{"%ctaid.x", SPECIAL_CTAID_X},
	{"%ctaid.y", SPECIAL_CTAID_Y},
	{"%ctaid.z", SPECIAL_CTAID_Z},
	{"%nctaid.x", SPECIAL_NCTAID_X},
	{"%nctaid.y", SPECIAL_NCTAID_Y},
	{"%nctaid.z", SPECIAL_NCTAID_Z},
	{"%laneid", SPECIAL_LANEID},
	{"%warpid", SPECIAL_WARPID},
	{"%nwarpid", SPECIAL_NWARPID},
	{"%smid", SPECIAL_SMID},
	{"%nsmid", SPECIAL_NSMID},
	{"%gridid", SPECIAL_GRIDID},
	{"%lanemask_eq", SPECIAL_MASK_EQ},
	{"%lanemask_le", SPECIAL_MASK_LE},
	{"%lanemask_lt", SPECIAL_MASK_LT},
	{"%lanemask_ge", SPECIAL_MASK_GE},
	{"%lanemask_gt", SPECIAL_MASK_GT},
	{"%clock", SPECIAL_CLOCK},
	{"%clock_hi", SPECIAL_CLOCK_HI},
	{"%clock64", SPECIAL_CLOCK64},
	{"%globaltimer", SPECIAL_TIMER},
	{"%globaltimer_lo", SPECIAL_TIMER_LO},
	{"%globaltimer_hi", SPECIAL_TIMER_HI},
	{"%dynamic_smem_size", SPECIAL_DYNAMIC_SIZE},
	{"%total_smem_size", SPECIAL_TOTAL_SIZE},
	{"%aggr_smem_size", SPECIAL_AGGREGATE_SIZE},
	/* A launch without clusters: every block is one. */
	{"%cluster_ctaid.x", SPECIAL_ZERO},
	{"%cluster_ctaid.y", SPECIAL_ZERO},
	{"%cluster_ctaid.z", SPECIAL_ZERO},
	{"%cluster_ctarank", SPECIAL_ZERO},
	{"%is_explicit_cluster", SPECIAL_ZERO},
	{"%cluster_nctaid.x", SPECIAL_ONE},
	{"%cluster_nctaid.y", SPECIAL_ONE},
	{"%cluster_nctaid.z", SPECIAL_ONE},
	{"%cluster_nctarank", SPECIAL_ONE},
	{"%clusterid.x", SPECIAL_CTAID_X},
	{"%clusterid.y", SPECIAL_CTAID_Y},
	{"%clusterid.z", SPECIAL_CTAID_Z},
	{"%nclusterid.x", SPECIAL_NCTAID_X},
	{"%nclusterid.y", SPECIAL_NCTAID_Y},
	{"%nclusterid.z", SPECIAL_NCTAID_Z},
};

int move_special_number(struct ptx_name name) {
	for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++) {
		if (ptx_name_is(name, specials[i].name)) {
			return (int)specials[i].number;
		}
	}
	/* %envreg0 to 31 belong to the driver and are zero; %pm0 to 7 count what is not simulated.
	 */
	if ((name.len > 7 && memcmp(name.s, "%envreg", 7) == 0) ||
	    (name.len > 3 && memcmp(name.s, "%pm", 3) == 0)) {
		return SPECIAL_ZERO;
	}
	return -1;
}

bool move_reads_timer(const struct insn *in) {
	return in->exec == move_special && in->mode >= SPECIAL_TIMER &&
	       in->mode <= SPECIAL_TIMER_HI;
}

static uint64_t globaltimer(const struct interp_block *b) {
	const struct interp_machine *m = &b->machine;

	return m->globaltimer_ns ? m->globaltimer_ns(m->userdata) : b->cycles;
}

/* Those that are the same for all threads of a warp. */
static uint64_t special_uniform(const struct warp *w, enum special number) {
	const struct interp_block *b = w->block;

	switch (number) {
	case SPECIAL_DYNAMIC_SHARED:
		return b->dynamic_shared;
	case SPECIAL_NTID_X:
	case SPECIAL_NTID_Y:
	case SPECIAL_NTID_Z:
		return b->launch.block[number - SPECIAL_NTID_X];
	case SPECIAL_CTAID_X:
	case SPECIAL_CTAID_Y:
	case SPECIAL_CTAID_Z:
		return b->ctaid[number - SPECIAL_CTAID_X];
	case SPECIAL_NCTAID_X:
	case SPECIAL_NCTAID_Y:
	case SPECIAL_NCTAID_Z:
		return b->launch.grid[number - SPECIAL_NCTAID_X];
	case SPECIAL_WARPID:
		return w->index;
	case SPECIAL_NWARPID:
		return 64;
	case SPECIAL_SMID:
		return b->place.smid;
	case SPECIAL_NSMID:
		return b->place.nsmid;
	case SPECIAL_GRIDID:
		return b->launch.grid_id;
	case SPECIAL_CLOCK:
	case SPECIAL_CLOCK64:
		return w->clock_ahead + w->clock;
	case SPECIAL_CLOCK_HI:
		return (w->clock_ahead + w->clock) >> 32;
	case SPECIAL_TIMER:
	case SPECIAL_TIMER_LO:
		return globaltimer(b);
	case SPECIAL_TIMER_HI:
		return globaltimer(b) >> 32;
	case SPECIAL_DYNAMIC_SIZE:
		return b->launch.dynamic_shared_bytes;
	case SPECIAL_TOTAL_SIZE:
	case SPECIAL_AGGREGATE_SIZE:
		return b->shared_size;
	case SPECIAL_ONE:
		return 1;
	default:
		return 0;
	}
}

enum exec_result move_special(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint16_t *tid;
	uint64_t v;

	switch (in->mode) {
	case SPECIAL_TID_X:
	case SPECIAL_TID_Y:
	case SPECIAL_TID_Z:
		tid = w->tid[in->mode - SPECIAL_TID_X];
		FOR_LANES(mask, d[i] = tid[i]);
		break;
	case SPECIAL_LANEID:
		FOR_LANES(mask, d[i] = i);
		break;
	case SPECIAL_MASK_EQ:
		FOR_LANES(mask, d[i] = 1u << i);
		break;
	case SPECIAL_MASK_LE:
		FOR_LANES(mask, d[i] = WARP_FULL >> (31 - i));
		break;
	case SPECIAL_MASK_LT:
		FOR_LANES(mask, d[i] = (1u << i) - 1);
		break;
	case SPECIAL_MASK_GE:
		FOR_LANES(mask, d[i] = WARP_FULL << i);
		break;
	case SPECIAL_MASK_GT:
		FOR_LANES(mask, d[i] = (WARP_FULL << i) - (1u << i));
		break;
	default:
		v = special_uniform(w, in->mode) + (uint64_t)in->imm;
		FOR_LANES(mask, d[i] = v);
		break;
	}
	return EXEC_NEXT;
}
