/*
 * interp-alu-int.c: integer arithmetic.
 *
 * Handlers are made by macros, one a type: the loop over lanes must be compiled for each type to be
 * fast, and C has no other means.
 */
#include "tests/simgpu/interp-internal.h"

#define UNARY(name, T, expr)                                                                 \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]);                                  \
		FOR_LANES(mask, T a = (T)pa[i]; d[i] = (uint64_t)(expr));                    \
		return EXEC_NEXT;                                                            \
	}

#define BINARY(name, T, expr)                                                                \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);     \
		FOR_LANES(mask, T a = (T)pa[i]; T b = (T)pb[i]; d[i] = (uint64_t)(expr));    \
		return EXEC_NEXT;                                                            \
	}

#define TERNARY(name, T, TC, expr)                                                           \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);     \
		const uint64_t *pc = warp_src(w, in->s[2]);                                  \
		FOR_LANES(mask, T a = (T)pa[i]; T b = (T)pb[i]; TC c = (TC)pc[i];            \
			  d[i] = (uint64_t)(expr));                                          \
		return EXEC_NEXT;                                                            \
	}

/* Division by zero gives what GPUs give: all ones, and the dividend as remainder. The one overflow
 * wraps. */
#define DIVIDE(T, name)                        \
	static inline T name##_div(T a, T b) { \
		return b ? (T)(a / b) : (T)-1; \
	}                                      \
	static inline T name##_rem(T a, T b) { \
		return b ? (T)(a % b) : a;     \
	}
#define DIVIDE_SIGNED(T, UT, name)                                             \
	static inline T name##_div(T a, T b) {                                 \
		return b == 0 ? (T)-1 : b == -1 ? (T)(0 - (UT)a) : (T)(a / b); \
	}                                                                      \
	static inline T name##_rem(T a, T b) {                                 \
		return b == 0 ? a : b == -1 ? (T)0 : (T)(a % b);               \
	}
DIVIDE(uint16_t, u16)
DIVIDE(uint32_t, u32)
DIVIDE(uint64_t, u64)
DIVIDE_SIGNED(int16_t, uint16_t, s16)
DIVIDE_SIGNED(int32_t, uint32_t, s32)
DIVIDE_SIGNED(int64_t, uint64_t, s64)

/* Operations whose low bits do not depend on the sign. */
#define MODULAR(T, name)                                       \
	BINARY(add_##name, T, (T)(a + b))                      \
	BINARY(sub_##name, T, (T)(a - b))                      \
	BINARY(mul_lo_##name, T, (T)((uint64_t)a * b))         \
	TERNARY(mad_lo_##name, T, T, (T)((uint64_t)a * b + c)) \
	UNARY(neg_##name, T, (T)(0 - (uint64_t)a))
MODULAR(uint16_t, u16)
MODULAR(uint32_t, u32)
MODULAR(uint64_t, u64)

#define ORDERED(T, UT, name)                    \
	BINARY(min_##name, T, a < b ? a : b)    \
	BINARY(max_##name, T, a > b ? a : b)    \
	BINARY(div_##name, T, name##_div(a, b)) \
	BINARY(rem_##name, T, name##_rem(a, b)) \
	TERNARY(sad_##name, T, UT, (UT)(c + (UT)(a < b ? (UT)b - (UT)a : (UT)a - (UT)b)))
ORDERED(uint16_t, uint16_t, u16)
ORDERED(uint32_t, uint32_t, u32)
ORDERED(uint64_t, uint64_t, u64)
ORDERED(int16_t, uint16_t, s16)
ORDERED(int32_t, uint32_t, s32)
ORDERED(int64_t, uint64_t, s64)

UNARY(abs_s16, int16_t, (uint16_t)(a < 0 ? 0 - (uint16_t)a : (uint16_t)a))
UNARY(abs_s32, int32_t, a < 0 ? 0 - (uint32_t)a : (uint32_t)a)
UNARY(abs_s64, int64_t, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)

BINARY(min_relu_s32, int32_t, (a < b ? a : b) > 0 ? (a < b ? a : b) : 0)
BINARY(max_relu_s32, int32_t, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0)

/* High halves and double-width products. */
#define WIDE_PRODUCT(T, TT, name, bits)                          \
	BINARY(mul_hi_##name, T, (T)(((TT)a * (TT)b) >> (bits))) \
	TERNARY(mad_hi_##name, T, T, (uint64_t)(T)(((TT)a * (TT)b) >> (bits)) + (uint64_t)c)
WIDE_PRODUCT(uint16_t, uint32_t, u16, 16)
WIDE_PRODUCT(uint32_t, uint64_t, u32, 32)
WIDE_PRODUCT(uint64_t, unsigned __int128, u64, 64)
WIDE_PRODUCT(int16_t, int32_t, s16, 16)
WIDE_PRODUCT(int32_t, int64_t, s32, 32)
WIDE_PRODUCT(int64_t, __int128, s64, 64)
BINARY(mul_wide_u16, uint16_t, (uint32_t)a *b)
BINARY(mul_wide_s16, int16_t, (uint32_t)((int32_t)a *b))
BINARY(mul_wide_u32, uint32_t, (uint64_t)a *b)
BINARY(mul_wide_s32, int32_t, (int64_t)a *b)
TERNARY(mad_wide_u16, uint16_t, uint32_t, (uint32_t)a *b + c)
TERNARY(mad_wide_s16, int16_t, uint32_t, (uint32_t)((int32_t)a *b) + c)
TERNARY(mad_wide_u32, uint32_t, uint64_t, (uint64_t)a *b + c)
TERNARY(mad_wide_s32, int32_t, uint64_t, (uint64_t)((int64_t)a *b) + c)

/* 24-bit multiplication: the low 24 bits of the operands. */
static inline int64_t s24(uint64_t v) {
	return (int32_t)((uint32_t)v << 8) >> 8;
}
static inline uint64_t u24(uint64_t v) {
	return v & 0xffffff;
}
BINARY(mul24_lo_u32, uint64_t, (uint32_t)(u24(a) * u24(b)))
BINARY(mul24_lo_s32, uint64_t, (uint32_t)(s24(a) * s24(b)))
BINARY(mul24_hi_u32, uint64_t, (uint32_t)((u24(a) * u24(b)) >> 16))
BINARY(mul24_hi_s32, uint64_t, (uint32_t)((s24(a) * s24(b)) >> 16))
TERNARY(mad24_lo_u32, uint64_t, uint64_t, (uint32_t)(u24(a) * u24(b) + c))
TERNARY(mad24_lo_s32, uint64_t, uint64_t, (uint32_t)((uint64_t)(s24(a) * s24(b)) + c))
TERNARY(mad24_hi_u32, uint64_t, uint64_t, (uint32_t)(((u24(a) * u24(b)) >> 16) + c))
TERNARY(mad24_hi_s32, uint64_t, uint64_t, (uint32_t)((uint64_t)((s24(a) * s24(b)) >> 16) + c))

static inline int32_t saturate_s32(int64_t v) {
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
BINARY(add_sat_s32, int32_t, saturate_s32((int64_t)a + b))
BINARY(sub_sat_s32, int32_t, saturate_s32((int64_t)a - b))
TERNARY(mad_hi_sat_s32, int32_t, int32_t, saturate_s32((((int64_t)a * b) >> 32) + c))

/* add and sub exist with .sat for s32 only; the flag is looked at once a warp. */
static enum exec_result add_s32(struct warp *w, const struct insn *in, uint32_t mask) {
	return in->flags & INSN_SAT ? add_sat_s32(w, in, mask) : add_u32(w, in, mask);
}
static enum exec_result sub_s32(struct warp *w, const struct insn *in, uint32_t mask) {
	return in->flags & INSN_SAT ? sub_sat_s32(w, in, mask) : sub_u32(w, in, mask);
}
static enum exec_result mad_hi_s32_any(struct warp *w, const struct insn *in, uint32_t mask) {
	return in->flags & INSN_SAT ? mad_hi_sat_s32(w, in, mask) : mad_hi_s32(w, in, mask);
}
static enum exec_result min_s32_any(struct warp *w, const struct insn *in, uint32_t mask) {
	return in->flags & INSN_RELU ? min_relu_s32(w, in, mask) : min_s32(w, in, mask);
}
static enum exec_result max_s32_any(struct warp *w, const struct insn *in, uint32_t mask) {
	return in->flags & INSN_RELU ? max_relu_s32(w, in, mask) : max_s32(w, in, mask);
}

/*
 * Extended precision: CC.CF is a bit a lane. @TT holds sums of T exactly. Only the forms with .cc
 * write the flag (in->mode is 1 then), only addc, subc and madc read it (mode2 is 1).
 */
#define EXTENDED(T, TT, bits, name)                                                             \
	static enum exec_result carry_add_##name(struct warp *w, const struct insn *in,         \
						 uint32_t mask) {                               \
		uint64_t *d = warp_dst(w, in->d[0]);                                            \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);        \
		uint32_t carry = in->mode2 ? w->carry : 0, out = 0;                             \
		FOR_LANES(mask, TT v = (TT)(T)pa[i] + (T)pb[i] + (carry >> i & 1); d[i] = (T)v; \
			  out |= (uint32_t)(v >> (bits)&1) << i);                               \
		w->carry = in->mode ? (w->carry & ~mask) | out : w->carry;                      \
		return EXEC_NEXT;                                                               \
	}                                                                                       \
	static enum exec_result carry_sub_##name(struct warp *w, const struct insn *in,         \
						 uint32_t mask) {                               \
		uint64_t *d = warp_dst(w, in->d[0]);                                            \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);        \
		uint32_t carry = in->mode2 ? w->carry : 0, out = 0;                             \
		FOR_LANES(mask, TT v = (TT)(T)pa[i] - (T)pb[i] - (carry >> i & 1); d[i] = (T)v; \
			  out |= (uint32_t)(v >> (bits)&1) << i);                               \
		w->carry = in->mode ? (w->carry & ~mask) | out : w->carry;                      \
		return EXEC_NEXT;                                                               \
	}
EXTENDED(uint32_t, uint64_t, 32, u32)
EXTENDED(uint64_t, unsigned __int128, 64, u64)

#define EXTENDED_MAD(T, PT, TT, part, bits, name)                                            \
	static enum exec_result carry_mad_##name(struct warp *w, const struct insn *in,      \
						 uint32_t mask) {                            \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);     \
		const uint64_t *pc = warp_src(w, in->s[2]);                                  \
		uint32_t carry = in->mode2 ? w->carry : 0, out = 0;                          \
		FOR_LANES(mask, PT p = (PT)(T)pa[i] * (PT)(T)pb[i];                          \
			  TT v = (TT)(TT)((TT)(p >> (part)) & (((TT)1 << (bits)) - 1)) +     \
				 (((TT)pc[i]) & (((TT)1 << (bits)) - 1)) + (carry >> i & 1); \
			  d[i] = (uint64_t)v & (UINT64_MAX >> (64 - (bits)));                \
			  out |= (uint32_t)(v >> (bits)&1) << i);                            \
		w->carry = in->mode ? (w->carry & ~mask) | out : w->carry;                   \
		return EXEC_NEXT;                                                            \
	}
EXTENDED_MAD(uint32_t, uint64_t, uint64_t, 0, 32, lo_u32)
EXTENDED_MAD(uint32_t, uint64_t, uint64_t, 32, 32, hi_u32)
EXTENDED_MAD(int32_t, int64_t, uint64_t, 32, 32, hi_s32)
EXTENDED_MAD(uint64_t, unsigned __int128, unsigned __int128, 0, 64, lo_u64)
EXTENDED_MAD(uint64_t, unsigned __int128, unsigned __int128, 64, 64, hi_u64)
EXTENDED_MAD(int64_t, __int128, unsigned __int128, 64, 64, hi_s64)

#define FOR_TYPES(op, handler)                                                                \
	{op, PTX_TYPE_U16, "rrr", handler##_u16}, {op, PTX_TYPE_U32, "rrr", handler##_u32}, { \
		op, PTX_TYPE_U64, "rrr", handler##_u64                                        \
	}
#define FOR_SIGNED(op, handler)                                           \
	FOR_TYPES(op, handler), {op, PTX_TYPE_S16, "rrr", handler##_s16}, \
		{op, PTX_TYPE_S32, "rrr", handler##_s32}, {               \
		op, PTX_TYPE_S64, "rrr", handler##_s64                    \
	}
#define FOR_TYPES_3(op, handler)                                                                \
	{op, PTX_TYPE_U16, "rrrr", handler##_u16}, {op, PTX_TYPE_U32, "rrrr", handler##_u32}, { \
		op, PTX_TYPE_U64, "rrrr", handler##_u64                                         \
	}
#define FOR_CARRY(op, handler)                         \
	{op, PTX_TYPE_U32, "rrr", handler##_u32}, {    \
		op, PTX_TYPE_U64, "rrr", handler##_u64 \
	}
#define FOR_CARRY_MAD(op)                                             \
	{op ".lo", PTX_TYPE_U32, "rrrr", carry_mad_lo_u32},           \
		{op ".lo", PTX_TYPE_U64, "rrrr", carry_mad_lo_u64},   \
		{op ".hi", PTX_TYPE_U32, "rrrr", carry_mad_hi_u32},   \
		{op ".hi", PTX_TYPE_S32, "rrrr", carry_mad_hi_s32},   \
		{op ".hi", PTX_TYPE_U64, "rrrr", carry_mad_hi_u64}, { \
		op ".hi", PTX_TYPE_S64, "rrrr", carry_mad_hi_s64      \
	}

const struct alu_entry alu_int_table[] = {
	{"add", PTX_TYPE_S32, "rrr", add_s32},
	{"sub", PTX_TYPE_S32, "rrr", sub_s32},
	{"mad.hi", PTX_TYPE_S32, "rrrr", mad_hi_s32_any},
	{"min", PTX_TYPE_S32, "rrr", min_s32_any},
	{"max", PTX_TYPE_S32, "rrr", max_s32_any},
	FOR_TYPES("add", add),
	FOR_TYPES("sub", sub),
	FOR_TYPES("mul.lo", mul_lo),
	FOR_TYPES_3("mad.lo", mad_lo),
	{"neg", PTX_TYPE_U16, "rr", neg_u16},
	{"neg", PTX_TYPE_U32, "rr", neg_u32},
	{"neg", PTX_TYPE_U64, "rr", neg_u64},
	{"abs", PTX_TYPE_S16, "rr", abs_s16},
	{"abs", PTX_TYPE_S32, "rr", abs_s32},
	{"abs", PTX_TYPE_S64, "rr", abs_s64},
	FOR_SIGNED("min", min),
	FOR_SIGNED("max", max),
	FOR_SIGNED("div", div),
	FOR_SIGNED("rem", rem),
	FOR_SIGNED("mul.hi", mul_hi),
	FOR_TYPES_3("mad.hi", mad_hi),
	{"mad.hi", PTX_TYPE_S16, "rrrr", mad_hi_s16},
	{"mad.hi", PTX_TYPE_S64, "rrrr", mad_hi_s64},
	FOR_TYPES_3("sad", sad),
	{"sad", PTX_TYPE_S16, "rrrr", sad_s16},
	{"sad", PTX_TYPE_S32, "rrrr", sad_s32},
	{"sad", PTX_TYPE_S64, "rrrr", sad_s64},
	{"mul.wide", PTX_TYPE_U16, "rrr", mul_wide_u16},
	{"mul.wide", PTX_TYPE_S16, "rrr", mul_wide_s16},
	{"mul.wide", PTX_TYPE_U32, "rrr", mul_wide_u32},
	{"mul.wide", PTX_TYPE_S32, "rrr", mul_wide_s32},
	{"mad.wide", PTX_TYPE_U16, "rrrr", mad_wide_u16},
	{"mad.wide", PTX_TYPE_S16, "rrrr", mad_wide_s16},
	{"mad.wide", PTX_TYPE_U32, "rrrr", mad_wide_u32},
	{"mad.wide", PTX_TYPE_S32, "rrrr", mad_wide_s32},
	{"mul24.lo", PTX_TYPE_U32, "rrr", mul24_lo_u32},
	{"mul24.lo", PTX_TYPE_S32, "rrr", mul24_lo_s32},
	{"mul24.hi", PTX_TYPE_U32, "rrr", mul24_hi_u32},
	{"mul24.hi", PTX_TYPE_S32, "rrr", mul24_hi_s32},
	{"mad24.lo", PTX_TYPE_U32, "rrrr", mad24_lo_u32},
	{"mad24.lo", PTX_TYPE_S32, "rrrr", mad24_lo_s32},
	{"mad24.hi", PTX_TYPE_U32, "rrrr", mad24_hi_u32},
	{"mad24.hi", PTX_TYPE_S32, "rrrr", mad24_hi_s32},
	FOR_CARRY("add.cc", carry_add),
	FOR_CARRY("addc", carry_add),
	FOR_CARRY("addc.cc", carry_add),
	FOR_CARRY("sub.cc", carry_sub),
	FOR_CARRY("subc", carry_sub),
	FOR_CARRY("subc.cc", carry_sub),
	FOR_CARRY_MAD("mad.cc"),
	FOR_CARRY_MAD("madc"),
	FOR_CARRY_MAD("madc.cc"),
	{NULL},
};
