/*
 * interp-alu-bits.c: logic, shifts, bit fields, bytes.
 */
#include "tests/simgpu/interp-internal.h"

#define BITS_UNARY(name, T, expr)                                                            \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]);                                  \
		FOR_LANES(mask, T a = (T)pa[i]; d[i] = (uint64_t)(expr));                    \
		return EXEC_NEXT;                                                            \
	}

/* b, c and e are of 64 bits; expressions take what they need. */
#define BITS_BINARY(name, T, expr)                                                            \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) {  \
		uint64_t *d = warp_dst(w, in->d[0]);                                          \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);      \
		FOR_LANES(mask, T a = (T)pa[i]; uint64_t b = pb[i]; d[i] = (uint64_t)(expr)); \
		return EXEC_NEXT;                                                             \
	}

#define BITS_TERNARY(name, T, expr)                                                          \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);     \
		const uint64_t *pc = warp_src(w, in->s[2]);                                  \
		FOR_LANES(mask, T a = (T)pa[i]; uint64_t b = pb[i]; uint64_t c = pc[i];      \
			  d[i] = (uint64_t)(expr));                                          \
		return EXEC_NEXT;                                                            \
	}

#define BITS_QUATERNARY(name, T, expr)                                                       \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                         \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);     \
		const uint64_t *pc = warp_src(w, in->s[2]), *pe = warp_src(w, in->s[3]);     \
		FOR_LANES(mask, T a = (T)pa[i]; uint64_t b = pb[i]; uint64_t c = pc[i];      \
			  uint64_t e = pe[i]; d[i] = (uint64_t)(expr));                      \
		return EXEC_NEXT;                                                            \
	}

/* Bitwise operations need no type: what stands above the type's bits is never read. */
BITS_BINARY(and_bits, uint64_t, a &b)
BITS_BINARY(or_bits, uint64_t, a | b)
BITS_BINARY(xor_bits, uint64_t, a ^ b)
BITS_UNARY(not_bits, uint64_t, ~a)
BITS_UNARY(cnot_16, uint16_t, a == 0)
BITS_UNARY(cnot_32, uint32_t, a == 0)
BITS_UNARY(cnot_64, uint64_t, a == 0)

/* Shift amounts are 32 bits and clamp to the width. */
static inline uint64_t shift_left(uint64_t a, uint64_t n, unsigned bits) {
	return (uint32_t)n >= bits ? 0 : a << (uint32_t)n;
}
static inline uint64_t shift_right(uint64_t a, uint64_t n, unsigned bits) {
	return (uint32_t)n >= bits ? 0 : a >> (uint32_t)n;
}
static inline int64_t shift_right_signed(int64_t a, uint64_t n, unsigned bits) {
	return a >> ((uint32_t)n >= bits ? bits - 1 : (uint32_t)n);
}
BITS_BINARY(shl_16, uint16_t, shift_left(a, b, 16))
BITS_BINARY(shl_32, uint32_t, shift_left(a, b, 32))
BITS_BINARY(shl_64, uint64_t, shift_left(a, b, 64))
BITS_BINARY(shr_u16, uint16_t, shift_right(a, b, 16))
BITS_BINARY(shr_u32, uint32_t, shift_right(a, b, 32))
BITS_BINARY(shr_u64, uint64_t, shift_right(a, b, 64))
BITS_BINARY(shr_s16, int16_t, shift_right_signed(a, b, 16))
BITS_BINARY(shr_s32, int32_t, shift_right_signed(a, b, 32))
BITS_BINARY(shr_s64, int64_t, shift_right_signed(a, b, 64))

/* Funnel shifts: the 64 bits b:a, shifted by c, wrapped or clamped at 32. */
static inline uint32_t funnel_left(uint32_t a, uint64_t b, uint32_t n) {
	uint64_t v = ((uint64_t)(uint32_t)b << 32) | a;

	return n >= 32 ? a : (uint32_t)(v << n >> 32);
}
static inline uint32_t funnel_right(uint32_t a, uint64_t b, uint32_t n) {
	uint64_t v = ((uint64_t)(uint32_t)b << 32) | a;

	return n >= 32 ? (uint32_t)b : (uint32_t)(v >> n);
}
BITS_TERNARY(shf_l_wrap, uint32_t, funnel_left(a, b, c & 31))
BITS_TERNARY(shf_r_wrap, uint32_t, funnel_right(a, b, c & 31))
BITS_TERNARY(shf_l_clamp, uint32_t, funnel_left(a, b, (uint32_t)c))
BITS_TERNARY(shf_r_clamp, uint32_t, funnel_right(a, b, (uint32_t)c))

BITS_UNARY(popc_32, uint32_t, __builtin_popcount(a))
BITS_UNARY(popc_64, uint64_t, __builtin_popcountll(a))
BITS_UNARY(clz_32, uint32_t, a ? __builtin_clz(a) : 32)
BITS_UNARY(clz_64, uint64_t, a ? __builtin_clzll(a) : 64)

static inline uint64_t reverse_64(uint64_t a) {
	a = (a >> 1 & 0x5555555555555555) | (a & 0x5555555555555555) << 1;
	a = (a >> 2 & 0x3333333333333333) | (a & 0x3333333333333333) << 2;
	a = (a >> 4 & 0x0f0f0f0f0f0f0f0f) | (a & 0x0f0f0f0f0f0f0f0f) << 4;
	return __builtin_bswap64(a);
}
BITS_UNARY(brev_32, uint32_t, reverse_64(a) >> 32)
BITS_UNARY(brev_64, uint64_t, reverse_64(a))

/* The most significant bit that differs from the sign (of an unsigned one: that is set); its place,
 * or how far it would have to be shifted; all ones if there is none. */
static inline uint32_t find_bit(uint64_t a, unsigned bits, bool shift_amount) {
	unsigned place;

	if (!a) {
		return UINT32_MAX;
	}
	place = 63 - (unsigned)__builtin_clzll(a);
	return shift_amount ? bits - 1 - place : place;
}
BITS_UNARY(bfind_u32, uint32_t, find_bit(a, 32, false))
BITS_UNARY(bfind_u64, uint64_t, find_bit(a, 64, false))
BITS_UNARY(bfind_s32, int32_t, find_bit((uint32_t)(a < 0 ? ~a : a), 32, false))
BITS_UNARY(bfind_s64, int64_t, find_bit((uint64_t)(a < 0 ? ~a : a), 64, false))
BITS_UNARY(bfind_shift_u32, uint32_t, find_bit(a, 32, true))
BITS_UNARY(bfind_shift_u64, uint64_t, find_bit(a, 64, true))
BITS_UNARY(bfind_shift_s32, int32_t, find_bit((uint32_t)(a < 0 ? ~a : a), 32, true))
BITS_UNARY(bfind_shift_s64, int64_t, find_bit((uint64_t)(a < 0 ? ~a : a), 64, true))

/* Bit-field extraction as the PTX manual's pseudo code says: beyond the top stands the sign. */
static inline uint64_t field_extract(uint64_t a, uint64_t b, uint64_t c, unsigned bits,
				     bool is_signed) {
	unsigned pos = b & 0xff, len = c & 0xff, top = pos + len - 1;
	uint64_t field, ones = bits == 64 ? UINT64_MAX : UINT32_MAX;
	bool sign;

	if (top > bits - 1) {
		top = bits - 1;
	}
	sign = is_signed && len && (a >> top & 1);
	field = pos < bits && len ? a >> pos : 0;
	/* Bits of the field that lie within the value. */
	len = pos >= bits || !len ? 0 : top - pos + 1;
	if (len < 64) {
		field &= ((uint64_t)1 << len) - 1;
		field |= sign ? ~(uint64_t)0 << len : 0;
	}
	return field & ones;
}
BITS_TERNARY(bfe_u32, uint32_t, field_extract(a, b, c, 32, false))
BITS_TERNARY(bfe_u64, uint64_t, field_extract(a, b, c, 64, false))
BITS_TERNARY(bfe_s32, uint32_t, field_extract(a, b, c, 32, true))
BITS_TERNARY(bfe_s64, uint64_t, field_extract(a, b, c, 64, true))

static inline uint64_t field_insert(uint64_t a, uint64_t b, uint64_t c, uint64_t e, unsigned bits) {
	unsigned pos = c & 0xff, len = e & 0xff;
	uint64_t field;

	if (pos >= bits || !len) {
		return b;
	}
	field = len >= 64 ? UINT64_MAX : ((uint64_t)1 << len) - 1;
	field <<= pos;
	return (b & ~field) | (a << pos & field);
}
BITS_QUATERNARY(bfi_32, uint32_t, (uint32_t)field_insert(a, b, c, e, 32))
BITS_QUATERNARY(bfi_64, uint64_t, field_insert(a, b, c, e, 64))

/* The n-th set bit from @base on, upwards or (n < 0) downwards; n 0: @base itself if set. */
static inline uint32_t find_nth(uint32_t a, uint32_t base, int32_t n) {
	int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;

	if (n == 0) {
		return base < 32 && (a >> base & 1) ? base : UINT32_MAX;
	}
	if (left > 32) {
		return UINT32_MAX;
	}
	for (int at = (int)(base & 31); at >= 0 && at < 32; at += step) {
		if (a >> at & 1 && --left == 0) {
			return (uint32_t)at;
		}
	}
	return UINT32_MAX;
}
BITS_TERNARY(fns_32, uint32_t, find_nth(a, (uint32_t)b, (int32_t)c))

/* The three-input logic function whose truth table is e (its low 8 bits). */
static inline uint64_t logic_3(uint64_t a, uint64_t b, uint64_t c, unsigned table) {
	uint64_t v = 0;

	v |= table & 0x01 ? ~a & ~b & ~c : 0;
	v |= table & 0x02 ? ~a & ~b & c : 0;
	v |= table & 0x04 ? ~a & b & ~c : 0;
	v |= table & 0x08 ? ~a & b & c : 0;
	v |= table & 0x10 ? a & ~b & ~c : 0;
	v |= table & 0x20 ? a & ~b & c : 0;
	v |= table & 0x40 ? a & b & ~c : 0;
	v |= table & 0x80 ? a & b & c : 0;
	return v;
}
BITS_QUATERNARY(lop3_32, uint64_t, logic_3(a, b, c, (unsigned)e))

static inline uint32_t permute_byte(uint64_t bytes, uint32_t selector) {
	uint32_t byte = bytes >> (selector & 7) * 8 & 0xff;

	return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
static inline uint32_t permute(uint32_t a, uint64_t b, uint64_t c) {
	uint64_t bytes = ((uint64_t)(uint32_t)b << 32) | a;
	uint32_t v = 0;

	for (unsigned k = 0; k < 4; k++) {
		v |= permute_byte(bytes, c >> 4 * k & 15) << 8 * k;
	}
	return v;
}
/* The modes give each result byte's source as a function of c's two low bits. */
static const uint16_t permute_modes[6][4] = {
	{0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
	{0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
	{0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
	{0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
	{0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
	{0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
};
BITS_TERNARY(prmt_32, uint32_t, permute(a, b, c))
BITS_TERNARY(prmt_f4e, uint32_t, permute(a, b, permute_modes[0][c & 3]))
BITS_TERNARY(prmt_b4e, uint32_t, permute(a, b, permute_modes[1][c & 3]))
BITS_TERNARY(prmt_rc8, uint32_t, permute(a, b, permute_modes[2][c & 3]))
BITS_TERNARY(prmt_ecl, uint32_t, permute(a, b, permute_modes[3][c & 3]))
BITS_TERNARY(prmt_ecr, uint32_t, permute(a, b, permute_modes[4][c & 3]))
BITS_TERNARY(prmt_rc16, uint32_t, permute(a, b, permute_modes[5][c & 3]))

/* Sign or zero extension of the low b bits; b of 32 and more: wrapped or clamped. */
static inline uint32_t extend_bits(uint32_t a, uint32_t n, bool is_signed) {
	if (n == 0) {
		return 0;
	}
	if (n >= 32) {
		return a;
	}
	return is_signed ? (uint32_t)((int32_t)(a << (32 - n)) >> (32 - n))
			 : a & (((uint32_t)1 << n) - 1);
}
BITS_BINARY(szext_wrap_u32, uint32_t, extend_bits(a, b & 31, false))
BITS_BINARY(szext_wrap_s32, uint32_t, extend_bits(a, b & 31, true))
BITS_BINARY(szext_clamp_u32, uint32_t, extend_bits(a, (uint32_t)b, false))
BITS_BINARY(szext_clamp_s32, uint32_t, extend_bits(a, (uint32_t)b, true))

/* b bits from place a on. */
static inline uint32_t bit_mask(uint32_t a, uint32_t b) {
	uint32_t ones = b >= 32 ? UINT32_MAX : ((uint32_t)1 << b) - 1;

	return a >= 32 ? 0 : ones << a;
}
BITS_BINARY(bmsk_wrap, uint32_t, bit_mask(a & 31, b & 31))
BITS_BINARY(bmsk_clamp, uint32_t, bit_mask(a, (uint32_t)b))

/* Dot products of bytes; type is a's, type2 b's. */
static inline int32_t dot_byte(uint32_t v, unsigned k, bool is_signed) {
	uint32_t byte = v >> 8 * k & 0xff;

	return is_signed ? (int8_t)byte : (int32_t)byte;
}
static uint32_t dot_4(const struct insn *in, uint32_t a, uint32_t b, uint32_t c) {
	for (unsigned k = 0; k < 4; k++) {
		c += (uint32_t)(dot_byte(a, k, in->type == PTX_TYPE_S32) *
				dot_byte(b, k, in->type2 == PTX_TYPE_S32));
	}
	return c;
}
static uint32_t dot_2(const struct insn *in, uint32_t a, uint32_t b, uint32_t c, unsigned first) {
	for (unsigned k = 0; k < 2; k++) {
		uint32_t half = a >> 16 * k & 0xffff;
		int32_t x = in->type == PTX_TYPE_S32 ? (int16_t)half : (int32_t)half;

		c += (uint32_t)x * (uint32_t)dot_byte(b, first + k, in->type2 == PTX_TYPE_S32);
	}
	return c;
}
BITS_TERNARY(dp4a, uint32_t, dot_4(in, a, (uint32_t)b, (uint32_t)c))
BITS_TERNARY(dp2a_lo, uint32_t, dot_2(in, a, (uint32_t)b, (uint32_t)c, 0))
BITS_TERNARY(dp2a_hi, uint32_t, dot_2(in, a, (uint32_t)b, (uint32_t)c, 2))

/* a if the predicate is true, else b. The value's type does not matter. */
static enum exec_result selp(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	uint32_t p = warp_pred_src(w, in, 2);

	FOR_LANES(mask, d[i] = p >> i & 1 ? pa[i] : pb[i]);
	return EXEC_NEXT;
}

#define ANY_WIDTH(op, operands, handler)                                                \
	{op, PTX_TYPE_U16, operands, handler}, {op, PTX_TYPE_U32, operands, handler}, { \
		op, PTX_TYPE_U64, operands, handler                                     \
	}
#define WIDTHS_32_64(op, operands, handler)              \
	{op, PTX_TYPE_U32, operands, handler##_32}, {    \
		op, PTX_TYPE_U64, operands, handler##_64 \
	}
#define SIGNS_32_64(op, operands, handler)                                                        \
	{op, PTX_TYPE_U32, operands, handler##_u32}, {op, PTX_TYPE_U64, operands, handler##_u64}, \
		{op, PTX_TYPE_S32, operands, handler##_s32}, {                                    \
		op, PTX_TYPE_S64, operands, handler##_s64                                         \
	}

const struct alu_entry alu_bits_table[] = {
	ANY_WIDTH("and", "rrr", and_bits),
	ANY_WIDTH("or", "rrr", or_bits),
	ANY_WIDTH("xor", "rrr", xor_bits),
	ANY_WIDTH("not", "rr", not_bits),
	{"cnot", PTX_TYPE_U16, "rr", cnot_16},
	WIDTHS_32_64("cnot", "rr", cnot),
	{"shl", PTX_TYPE_U16, "rrr", shl_16},
	WIDTHS_32_64("shl", "rrr", shl),
	{"shr", PTX_TYPE_U16, "rrr", shr_u16},
	{"shr", PTX_TYPE_S16, "rrr", shr_s16},
	SIGNS_32_64("shr", "rrr", shr),
	{"shf.l.wrap", PTX_TYPE_U32, "rrrr", shf_l_wrap},
	{"shf.r.wrap", PTX_TYPE_U32, "rrrr", shf_r_wrap},
	{"shf.l.clamp", PTX_TYPE_U32, "rrrr", shf_l_clamp},
	{"shf.r.clamp", PTX_TYPE_U32, "rrrr", shf_r_clamp},
	WIDTHS_32_64("popc", "rr", popc),
	WIDTHS_32_64("clz", "rr", clz),
	WIDTHS_32_64("brev", "rr", brev),
	SIGNS_32_64("bfind", "rr", bfind),
	SIGNS_32_64("bfind.shiftamt", "rr", bfind_shift),
	SIGNS_32_64("bfe", "rrrr", bfe),
	WIDTHS_32_64("bfi", "rrrrr", bfi),
	{"fns", PTX_TYPE_U32, "rrrr", fns_32},
	{"lop3", PTX_TYPE_U32, "rrrrr", lop3_32},
	{"prmt", PTX_TYPE_U32, "rrrr", prmt_32},
	{"prmt.f4e", PTX_TYPE_U32, "rrrr", prmt_f4e},
	{"prmt.b4e", PTX_TYPE_U32, "rrrr", prmt_b4e},
	{"prmt.rc8", PTX_TYPE_U32, "rrrr", prmt_rc8},
	{"prmt.ecl", PTX_TYPE_U32, "rrrr", prmt_ecl},
	{"prmt.ecr", PTX_TYPE_U32, "rrrr", prmt_ecr},
	{"prmt.rc16", PTX_TYPE_U32, "rrrr", prmt_rc16},
	{"szext.wrap", PTX_TYPE_U32, "rrr", szext_wrap_u32},
	{"szext.wrap", PTX_TYPE_S32, "rrr", szext_wrap_s32},
	{"szext.clamp", PTX_TYPE_U32, "rrr", szext_clamp_u32},
	{"szext.clamp", PTX_TYPE_S32, "rrr", szext_clamp_s32},
	{"bmsk.wrap", PTX_TYPE_U32, "rrr", bmsk_wrap},
	{"bmsk.clamp", PTX_TYPE_U32, "rrr", bmsk_clamp},
	{"dp4a", PTX_TYPE_U32, "rrrr", dp4a},
	{"dp2a.lo", PTX_TYPE_U32, "rrrr", dp2a_lo},
	{"dp2a.hi", PTX_TYPE_U32, "rrrr", dp2a_hi},
	ANY_WIDTH("selp", "rrrp", selp),
	{"selp", PTX_TYPE_F32, "rrrp", selp},
	{"selp", PTX_TYPE_F64, "rrrp", selp},
	{NULL},
};
