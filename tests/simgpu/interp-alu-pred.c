/*
 * interp-alu-pred.c: comparisons, selections by them, and arithmetic on predicates.
 */
#include "tests/simgpu/interp-internal.h"

#include <math.h>

static uint32_t combine(const struct warp *w, const struct insn *in, uint32_t v, unsigned source) {
	switch (in->mode2) {
	case BOOL_AND:
		return v & warp_pred_src(w, in, source);
	case BOOL_OR:
		return v | warp_pred_src(w, in, source);
	case BOOL_XOR:
		return v ^ warp_pred_src(w, in, source);
	default:
		return v;
	}
}

#define COMPARE_LOOP(T, op)                                                              \
	FOR_LANES(mask, T a = (T)pa[i]; T b = (T)pb[i]; out |= (uint32_t)(a op b) << i); \
	break

#define COMPARE_INT(T, name)                                                                  \
	static uint32_t compare_##name(const uint64_t *pa, const uint64_t *pb, uint32_t mask, \
				       unsigned how) {                                        \
		uint32_t out = 0;                                                             \
		switch (how) {                                                                \
		case COMPARE_EQ:                                                              \
			COMPARE_LOOP(T, ==);                                                  \
		case COMPARE_NE:                                                              \
			COMPARE_LOOP(T, !=);                                                  \
		case COMPARE_LT:                                                              \
			COMPARE_LOOP(T, <);                                                   \
		case COMPARE_LE:                                                              \
			COMPARE_LOOP(T, <=);                                                  \
		case COMPARE_GT:                                                              \
			COMPARE_LOOP(T, >);                                                   \
		default:                                                                      \
			COMPARE_LOOP(T, >=);                                                  \
		}                                                                             \
		return out;                                                                   \
	}
COMPARE_INT(uint16_t, u16)
COMPARE_INT(uint32_t, u32)
COMPARE_INT(uint64_t, u64)
COMPARE_INT(int16_t, s16)
COMPARE_INT(int32_t, s32)
COMPARE_INT(int64_t, s64)

/* The value of any floating type as a double: exact. */
static double float_value(uint64_t bits, enum ptx_type type, bool ftz) {
	uint32_t low = (uint32_t)bits;
	double v;
	float f;

	switch (type) {
	case PTX_TYPE_F16:
		v = half_to_double((uint16_t)bits);
		return ftz && fabs(v) < 0x1p-14 ? 0 : v;
	case PTX_TYPE_BF16:
		return bfloat_to_double((uint16_t)bits);
	case PTX_TYPE_F32:
		low = ftz && !(low & 0x7f800000) ? low & 0x80000000 : low;
		memcpy(&f, &low, sizeof(f));
		return (double)f;
	default:
		memcpy(&v, &bits, sizeof(v));
		return v;
	}
}

static bool compare_values(double a, double b, unsigned how) {
	bool unordered = a != a || b != b;

	switch (how) {
	case COMPARE_EQ:
		return a == b;
	case COMPARE_NE:
		return !unordered && a != b;
	case COMPARE_LT:
		return a < b;
	case COMPARE_LE:
		return a <= b;
	case COMPARE_GT:
		return a > b;
	case COMPARE_GE:
		return a >= b;
	case COMPARE_EQU:
		return unordered || a == b;
	case COMPARE_NEU:
		return unordered || a != b;
	case COMPARE_LTU:
		return unordered || a < b;
	case COMPARE_LEU:
		return unordered || a <= b;
	case COMPARE_GTU:
		return unordered || a > b;
	case COMPARE_GEU:
		return unordered || a >= b;
	case COMPARE_NUM:
		return !unordered;
	default:
		return unordered;
	}
}

static uint32_t compare(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	bool ftz = in->flags & INSN_FTZ;
	uint32_t out = 0;

	switch (in->type) {
	case PTX_TYPE_U16:
	case PTX_TYPE_B16:
		return compare_u16(pa, pb, mask, in->mode);
	case PTX_TYPE_U32:
	case PTX_TYPE_B32:
		return compare_u32(pa, pb, mask, in->mode);
	case PTX_TYPE_U64:
	case PTX_TYPE_B64:
		return compare_u64(pa, pb, mask, in->mode);
	case PTX_TYPE_S16:
		return compare_s16(pa, pb, mask, in->mode);
	case PTX_TYPE_S32:
		return compare_s32(pa, pb, mask, in->mode);
	case PTX_TYPE_S64:
		return compare_s64(pa, pb, mask, in->mode);
	default:
		FOR_LANES(mask, {
			double a = float_value(pa[i], in->type, ftz);
			double b = float_value(pb[i], in->type, ftz);

			out |= (uint32_t)compare_values(a, b, in->mode) << i;
		});
		return out;
	}
}

/* Pairs of halves: one predicate for each. */
static enum exec_result setp_pair(struct warp *w, const struct insn *in, uint32_t mask,
				  enum ptx_type half) {
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	bool ftz = in->flags & INSN_FTZ;
	uint32_t low = 0, high = 0;

	FOR_LANES(mask, {
		low |= (uint32_t)compare_values(float_value(pa[i] & 0xffff, half, ftz),
						float_value(pb[i] & 0xffff, half, ftz), in->mode)
		       << i;
		high |= (uint32_t)compare_values(float_value(pa[i] >> 16 & 0xffff, half, ftz),
						 float_value(pb[i] >> 16 & 0xffff, half, ftz),
						 in->mode)
			<< i;
	});
	low = combine(w, in, low, 2);
	high = combine(w, in, high, 2);
	warp_set_pred(w, in->d[0], low, mask);
	warp_set_pred(w, in->d[1], high, mask);
	return EXEC_NEXT;
}

enum exec_result alu_setp(struct warp *w, const struct insn *in, uint32_t mask) {
	uint32_t v, p, q;

	if (in->type == PTX_TYPE_F16X2 || in->type == PTX_TYPE_BF16X2) {
		return setp_pair(w, in, mask,
				 in->type == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16);
	}
	v = compare(w, in, mask);
	/* Both before either is written: a destination may be the source as well. */
	p = combine(w, in, v, 2);
	q = combine(w, in, ~v, 2);
	warp_set_pred(w, in->d[0], p, mask);
	warp_set_pred(w, in->d[1], q, mask);
	return EXEC_NEXT;
}

/* type2: of the result: all ones, or 1.0. */
enum exec_result alu_set(struct warp *w, const struct insn *in, uint32_t mask) {
	uint32_t v = combine(w, in, compare(w, in, mask), 2);
	uint64_t *d = warp_dst(w, in->d[0]);
	uint64_t yes = UINT64_MAX;

	if (in->type2 == PTX_TYPE_F32) {
		yes = 0x3f800000;
	} else if (in->type2 == PTX_TYPE_F16) {
		yes = 0x3c00;
	} else if (in->type2 == PTX_TYPE_BF16) {
		yes = 0x3f80;
	}
	FOR_LANES(mask, d[i] = v >> i & 1 ? yes : 0);
	return EXEC_NEXT;
}

/* a if c >= 0, else b; type2: of c. A NaN is not >= 0. */
enum exec_result alu_slct(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	const uint64_t *pc = warp_src(w, in->s[2]);
	uint64_t *d = warp_dst(w, in->d[0]);
	bool ftz = in->flags & INSN_FTZ;

	FOR_LANES(mask, {
		bool first = in->type2 == PTX_TYPE_F32 ? float_value(pc[i], PTX_TYPE_F32, ftz) >= 0
						       : (int32_t)pc[i] >= 0;

		d[i] = first ? pa[i] : pb[i];
	});
	return EXEC_NEXT;
}

#define PRED_HANDLER(name, expr)                                                   \
	static enum exec_result pred_##name(struct warp *w, const struct insn *in, \
					    uint32_t mask) {                       \
		uint32_t a = warp_pred_src(w, in, 0);                              \
		uint32_t b = warp_pred_src(w, in, 1);                              \
		(void)b;                                                           \
		warp_set_pred(w, in->d[0], expr, mask);                            \
		return EXEC_NEXT;                                                  \
	}
PRED_HANDLER(and, a &b)
PRED_HANDLER(or, a | b)
PRED_HANDLER(xor, a ^ b)
PRED_HANDLER(not, ~a)
PRED_HANDLER(mov, a)

static enum exec_result pred_selp(struct warp *w, const struct insn *in, uint32_t mask) {
	uint32_t c = warp_pred_src(w, in, 2);

	warp_set_pred(w, in->d[0], (warp_pred_src(w, in, 0) & c) | (warp_pred_src(w, in, 1) & ~c),
		      mask);
	return EXEC_NEXT;
}

const struct alu_entry alu_pred_table[] = {
	{"and", PTX_TYPE_PRED, "ppp", pred_and},
	{"or", PTX_TYPE_PRED, "ppp", pred_or},
	{"xor", PTX_TYPE_PRED, "ppp", pred_xor},
	{"not", PTX_TYPE_PRED, "pp", pred_not},
	{"mov", PTX_TYPE_PRED, "pp", pred_mov},
	{"selp", PTX_TYPE_PRED, "pppp", pred_selp},
	{NULL},
};
