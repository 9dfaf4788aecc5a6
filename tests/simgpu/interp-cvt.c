/*
 * interp-cvt.c: conversions between all types, with every rounding.
 */
#include "tests/simgpu/interp-internal.h"

#include <fenv.h>
#include <math.h>

static bool type_is_float(enum ptx_type t) {
	return t == PTX_TYPE_F16 || t == PTX_TYPE_BF16 || t == PTX_TYPE_F32 || t == PTX_TYPE_F64;
}

static bool type_is_signed(enum ptx_type t) {
	return t == PTX_TYPE_S8 || t == PTX_TYPE_S16 || t == PTX_TYPE_S32 || t == PTX_TYPE_S64;
}

/* The low bits of v, extended as the type says. */
static inline uint64_t extend(uint64_t v, unsigned shift, bool is_signed) {
	return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static unsigned extend_shift(enum ptx_type t) {
	return 64 - 8 * ptx_type_bytes(t);
}

static int64_t lowest(enum ptx_type t) {
	return type_is_signed(t) ? INT64_MIN >> extend_shift(t) : 0;
}

/* As bits: 2^64-1 of u64 too. */
static uint64_t highest(enum ptx_type t) {
	return type_is_signed(t) ? (uint64_t)INT64_MAX >> extend_shift(t)
				 : UINT64_MAX >> extend_shift(t);
}

static uint64_t saturate_int(uint64_t v, bool from_signed, enum ptx_type to) {
	bool negative = from_signed && (int64_t)v < 0;

	if (negative) {
		return (int64_t)v < lowest(to) ? (uint64_t)lowest(to) : v;
	}
	return v > highest(to) ? highest(to) : v;
}

static enum exec_result cvt_int_int(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);
	unsigned from = extend_shift(in->type2), to = extend_shift(in->type);
	bool from_signed = type_is_signed(in->type2), to_signed = type_is_signed(in->type);

	if (in->flags & INSN_SAT) {
		FOR_LANES(mask, d[i] = saturate_int(extend(a[i], from, from_signed), from_signed,
						    in->type));
	} else if (from_signed) {
		FOR_LANES(mask, d[i] = extend(extend(a[i], from, true), to, to_signed));
	} else {
		FOR_LANES(mask, d[i] = extend(extend(a[i], from, false), to, to_signed));
	}
	return EXEC_NEXT;
}

static double load_float(uint64_t bits, enum ptx_type type, bool ftz) {
	uint32_t low = (uint32_t)bits;
	double v;
	float f;

	switch (type) {
	case PTX_TYPE_F16:
		return half_to_double((uint16_t)bits);
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

/* To a whole number in floating point, as .rni and the others say; others leave it. */
static double round_whole(double v, unsigned round) {
	switch (round) {
	case ROUND_RNI:
		return nearbyint(v);
	case ROUND_RZI:
		return trunc(v);
	case ROUND_RMI:
		return floor(v);
	case ROUND_RPI:
		return ceil(v);
	default:
		return v;
	}
}

/*
 * Out-of-range values clamp. NaN gives zero, or, where source or destination has 64 bits, the
 * highest bit alone.
 */
static uint64_t float_to_int(double v, const struct insn *in) {
	enum ptx_type to = in->type;
	bool wide = in->type2 == PTX_TYPE_F64 || to == PTX_TYPE_S64 || to == PTX_TYPE_U64;
	unsigned bits = 8 * ptx_type_bytes(to);

	if (v != v) {
		return wide ? (uint64_t)1 << (bits - 1) : 0;
	}
	v = round_whole(v, in->round == ROUND_NONE ? ROUND_RZI : in->round);
	if (type_is_signed(to)) {
		if (v >= ldexp(1.0, (int)bits - 1)) {
			return highest(to);
		}
		return v < (double)lowest(to) ? (uint64_t)lowest(to) : (uint64_t)(int64_t)v;
	}
	if (v >= ldexp(1.0, (int)bits)) {
		return highest(to);
	}
	return v <= 0 ? 0 : (uint64_t)v;
}

static enum exec_result cvt_float_int(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);
	bool ftz = in->flags & INSN_FTZ;

	FOR_LANES(mask, d[i] = float_to_int(load_float(a[i], in->type2, ftz), in));
	return EXEC_NEXT;
}

static int host_round(unsigned round) {
	switch (round) {
	case ROUND_RZ:
		return FE_TOWARDZERO;
	case ROUND_RM:
		return FE_DOWNWARD;
	case ROUND_RP:
		return FE_UPWARD;
	default:
		return FE_TONEAREST;
	}
}

/* @v to the type's bits; to f32 in the host's rounding mode of the moment. */
static uint64_t store_float(double v, const struct insn *in, enum ptx_type to) {
	uint64_t bits = 0;
	uint32_t low;
	float f;

	if (in->flags & INSN_RELU) {
		v = v < 0 ? 0 : v;
	}
	if (in->flags & INSN_SAT) {
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	}
	switch (to) {
	case PTX_TYPE_F16:
		return half_from_double(v, in->round);
	case PTX_TYPE_BF16:
		return bfloat_from_double(v, in->round);
	case PTX_TYPE_F32:
		f = (float)v;
		memcpy(&low, &f, sizeof(low));
		if (f != f) {
			return 0x7fffffff;
		}
		return in->flags & INSN_FTZ && !(low & 0x7f800000) ? low & 0x80000000 : low;
	default:
		memcpy(&bits, &v, sizeof(bits));
		return bits;
	}
}

static enum exec_result cvt_float_float(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);
	bool ftz = in->flags & INSN_FTZ;
	int mode = host_round(in->round);

	if (mode != FE_TONEAREST) {
		fesetround(mode);
	}
	FOR_LANES(mask, d[i] = store_float(round_whole(load_float(a[i], in->type2, ftz), in->round),
					   in, in->type));
	if (mode != FE_TONEAREST) {
		fesetround(FE_TONEAREST);
	}
	return EXEC_NEXT;
}

/* Integers to f32 and f64 directly: through a double first they would be rounded twice. */
static uint64_t int_to_f32(uint64_t v, bool is_signed) {
	float f = is_signed ? (float)(int64_t)v : (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static uint64_t int_to_f64(uint64_t v, bool is_signed) {
	double f = is_signed ? (double)(int64_t)v : (double)v;
	uint64_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* To 16 bits: as the sum of two halves that a double holds exactly, rounded to odd. */
static double int_to_odd(uint64_t v, bool is_signed) {
	double high = is_signed ? (double)((int64_t)v >> 32) : (double)(v >> 32);

	return half_sum_to_odd(high * 0x1p32, (double)(uint32_t)v);
}

static enum exec_result cvt_int_float(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);
	unsigned shift = extend_shift(in->type2);
	bool is_signed = type_is_signed(in->type2);
	int mode = host_round(in->round);

	if (in->type != PTX_TYPE_F32 && in->type != PTX_TYPE_F64) {
		FOR_LANES(mask,
			  d[i] = store_float(int_to_odd(extend(a[i], shift, is_signed), is_signed),
					     in, in->type));
		return EXEC_NEXT;
	}
	if (mode != FE_TONEAREST) {
		fesetround(mode);
	}
	if (in->type == PTX_TYPE_F32) {
		FOR_LANES(mask, d[i] = int_to_f32(extend(a[i], shift, is_signed), is_signed));
	} else {
		FOR_LANES(mask, d[i] = int_to_f64(extend(a[i], shift, is_signed), is_signed));
	}
	if (mode != FE_TONEAREST) {
		fesetround(FE_TONEAREST);
	}
	if (in->flags & INSN_SAT) {
		FOR_LANES(mask,
			  d[i] = store_float(load_float(d[i], in->type, false), in, in->type));
	}
	return EXEC_NEXT;
}

/* Two f32 into a pair: the first source goes into the upper half. */
static enum exec_result cvt_pair(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]), *b = warp_src(w, in->s[1]);
	enum ptx_type half = in->type == PTX_TYPE_F16X2 ? PTX_TYPE_F16 : PTX_TYPE_BF16;

	FOR_LANES(mask, {
		uint64_t high = store_float(load_float(a[i], PTX_TYPE_F32, false), in, half);
		uint64_t low = store_float(load_float(b[i], PTX_TYPE_F32, false), in, half);

		d[i] = high << 16 | low;
	});
	return EXEC_NEXT;
}

exec_fn cvt_handler(enum ptx_type to, enum ptx_type from) {
	if (to == PTX_TYPE_F16X2 || to == PTX_TYPE_BF16X2) {
		return from == PTX_TYPE_F32 ? cvt_pair : NULL;
	}
	if (ptx_type_bytes(to) == 0 || ptx_type_bytes(to) > 8 || ptx_type_bytes(from) == 0 ||
	    ptx_type_bytes(from) > 8 || from == PTX_TYPE_F16X2 || from == PTX_TYPE_BF16X2) {
		return NULL;
	}
	if (type_is_float(from)) {
		return type_is_float(to) ? cvt_float_float : cvt_float_int;
	}
	return type_is_float(to) ? cvt_int_float : cvt_int_int;
}
