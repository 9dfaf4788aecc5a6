/*
 * test-interp-int.c: integer and bit instructions of the PTX interpreter, on edge values.
 *
 * The wanted values are computed bit by bit or in wider arithmetic where the interpreter is clever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-ops.h"

#define WANT(name, expr)                                           \
	static uint64_t name(uint64_t a, uint64_t b, uint64_t c) { \
		(void)a, (void)b, (void)c;                         \
		return (uint64_t)(expr);                           \
	}
#define S16(x) ((int64_t)(int16_t)(x))
#define S32(x) ((int64_t)(int32_t)(x))
#define S64(x) ((int64_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))

static const uint64_t edges[] = {
	0,
	1,
	2,
	3,
	31,
	32,
	33,
	63,
	64,
	0x7f,
	0x80,
	0xff,
	0x7fff,
	0x8000,
	0xffff,
	0x7fffffff,
	0x80000000,
	0xfffffffe,
	0xffffffff,
	0x100000000,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xffffffffffffffff,
	0x123456789abcdef0,
	0xdeadbeefcafef00d,
};
static const uint64_t some[] = {
	0, 1, 5, 31, 32, 64, 0xffffffff, 0x8000000000000000, 0xcafef00d12345678};
#define N(x) (sizeof(x) / sizeof(*(x)))
static const struct ops_values values = {edges, edges, some, N(edges), N(edges), N(some)};

WANT(add, a + b)
WANT(sub, a - b)
WANT(mul, a *b)
WANT(mad, a *b + c)
WANT(neg, 0 - a)
WANT(mul_hi_u16, (a * b) >> 16)
WANT(mul_hi_s16, (S16(a) * S16(b)) >> 16)
WANT(mul_hi_u32, (a * b) >> 32)
WANT(mul_hi_s32, (S32(a) * S32(b)) >> 32)
WANT(mul_hi_u64, ((unsigned __int128)a * b) >> 64)
WANT(mul_hi_s64, ((__int128)S64(a) * S64(b)) >> 64)
WANT(mul_wide_s16, S16(a) * S16(b))
WANT(mul_wide_s32, S32(a) * S32(b))
WANT(mad_wide_s32, (uint64_t)(S32(a) * S32(b)) + c)
WANT(mad_hi_u32, ((a * b) >> 32) + c)
WANT(mad_hi_s32, (uint64_t)((S32(a) * S32(b)) >> 32) + c)
WANT(div_u32, b ? a / b : UINT64_MAX)
WANT(rem_u32, b ? a % b : a)
WANT(div_s32, S32(b) ? S32(a) / S32(b) : -1)
WANT(rem_s32, S32(b) ? S32(a) % S32(b) : S32(a))
WANT(div_s16, S16(b) ? S16(a) / S16(b) : -1)
WANT(div_s64, !b ? -1 : S64(b) == -1 ? S64(0 - a) : S64(a) / S64(b))
WANT(rem_s64, !b ? S64(a) : S64(b) == -1 ? 0 : S64(a) % S64(b))
WANT(abs_s32, S32(a) < 0 ? -S32(a) : S32(a))
WANT(abs_s64, S64(a) < 0 ? 0 - a : a)
WANT(min_u32, a < b ? a : b)
WANT(max_u32, a > b ? a : b)
WANT(min_s32, S32(a) < S32(b) ? a : b)
WANT(max_s32, S32(a) > S32(b) ? a : b)
WANT(min_s16, S16(a) < S16(b) ? a : b)
WANT(max_s64, S64(a) > S64(b) ? a : b)
WANT(sad_u32, c + (a > b ? a - b : b - a))
WANT(sad_s32, c + (uint64_t)(S32(a) > S32(b) ? S32(a) - S32(b) : S32(b) - S32(a)))
WANT(mul24_u32, (a & 0xffffff) * (b & 0xffffff))
WANT(mul24_s32, (S32(a << 8) >> 8) * (S32(b << 8) >> 8))
WANT(mul24_hi_u32, ((a & 0xffffff) * (b & 0xffffff)) >> 16)
WANT(mad24_u32, (a & 0xffffff) * (b & 0xffffff) + c)

static int64_t clamp32(int64_t v) {
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
}
WANT(add_sat, clamp32(S32(a) + S32(b)))
WANT(sub_sat, clamp32(S32(a) - S32(b)))

static const struct ops_case arithmetic[] = {
	{"add.u16 d, a, b;", {16, 16, 0, 16}, add},
	{"add.s32 d, a, b;", {32, 32, 0, 32}, add},
	{"add.u64 d, a, b;", {64, 64, 0, 64}, add},
	{"add.sat.s32 d, a, b;", {32, 32, 0, 32}, add_sat},
	{"sub.s16 d, a, b;", {16, 16, 0, 16}, sub},
	{"sub.u32 d, a, b;", {32, 32, 0, 32}, sub},
	{"sub.s64 d, a, b;", {64, 64, 0, 64}, sub},
	{"sub.sat.s32 d, a, b;", {32, 32, 0, 32}, sub_sat},
	{"mul.lo.s16 d, a, b;", {16, 16, 0, 16}, mul},
	{"mul.lo.u32 d, a, b;", {32, 32, 0, 32}, mul},
	{"mul.lo.s64 d, a, b;", {64, 64, 0, 64}, mul},
	{"mul.hi.u16 d, a, b;", {16, 16, 0, 16}, mul_hi_u16},
	{"mul.hi.s16 d, a, b;", {16, 16, 0, 16}, mul_hi_s16},
	{"mul.hi.u32 d, a, b;", {32, 32, 0, 32}, mul_hi_u32},
	{"mul.hi.s32 d, a, b;", {32, 32, 0, 32}, mul_hi_s32},
	{"mul.hi.u64 d, a, b;", {64, 64, 0, 64}, mul_hi_u64},
	{"mul.hi.s64 d, a, b;", {64, 64, 0, 64}, mul_hi_s64},
	{"mul.wide.u16 d, a, b;", {16, 16, 0, 32}, mul},
	{"mul.wide.s16 d, a, b;", {16, 16, 0, 32}, mul_wide_s16},
	{"mul.wide.u32 d, a, b;", {32, 32, 0, 64}, mul},
	{"mul.wide.s32 d, a, b;", {32, 32, 0, 64}, mul_wide_s32},
	{"mad.lo.u16 d, a, b, c;", {16, 16, 16, 16}, mad},
	{"mad.lo.s32 d, a, b, c;", {32, 32, 32, 32}, mad},
	{"mad.lo.u64 d, a, b, c;", {64, 64, 64, 64}, mad},
	{"mad.wide.u32 d, a, b, c;", {32, 32, 64, 64}, mad},
	{"mad.wide.s32 d, a, b, c;", {32, 32, 64, 64}, mad_wide_s32},
	{"mad.hi.u32 d, a, b, c;", {32, 32, 32, 32}, mad_hi_u32},
	{"mad.hi.s32 d, a, b, c;", {32, 32, 32, 32}, mad_hi_s32},
	{"neg.s32 d, a;", {32, 0, 0, 32}, neg},
	{"neg.s64 d, a;", {64, 0, 0, 64}, neg},
	{"abs.s32 d, a;", {32, 0, 0, 32}, abs_s32},
	{"abs.s64 d, a;", {64, 0, 0, 64}, abs_s64},
	{"div.u32 d, a, b;", {32, 32, 0, 32}, div_u32},
	{"rem.u32 d, a, b;", {32, 32, 0, 32}, rem_u32},
	{"div.u64 d, a, b;", {64, 64, 0, 64}, div_u32},
	{"rem.u64 d, a, b;", {64, 64, 0, 64}, rem_u32},
	{"div.s16 d, a, b;", {16, 16, 0, 16}, div_s16},
	{"div.s32 d, a, b;", {32, 32, 0, 32}, div_s32},
	{"rem.s32 d, a, b;", {32, 32, 0, 32}, rem_s32},
	{"div.s64 d, a, b;", {64, 64, 0, 64}, div_s64},
	{"rem.s64 d, a, b;", {64, 64, 0, 64}, rem_s64},
	{"min.u32 d, a, b;", {32, 32, 0, 32}, min_u32},
	{"max.u32 d, a, b;", {32, 32, 0, 32}, max_u32},
	{"min.u64 d, a, b;", {64, 64, 0, 64}, min_u32},
	{"min.s32 d, a, b;", {32, 32, 0, 32}, min_s32},
	{"max.s32 d, a, b;", {32, 32, 0, 32}, max_s32},
	{"min.s16 d, a, b;", {16, 16, 0, 16}, min_s16},
	{"max.s64 d, a, b;", {64, 64, 0, 64}, max_s64},
	{"sad.u32 d, a, b, c;", {32, 32, 32, 32}, sad_u32},
	{"sad.s32 d, a, b, c;", {32, 32, 32, 32}, sad_s32},
	{"mul24.lo.u32 d, a, b;", {32, 32, 0, 32}, mul24_u32},
	{"mul24.lo.s32 d, a, b;", {32, 32, 0, 32}, mul24_s32},
	{"mul24.hi.u32 d, a, b;", {32, 32, 0, 32}, mul24_hi_u32},
	{"mad24.lo.u32 d, a, b, c;", {32, 32, 32, 32}, mad24_u32},
};

/* Chains of two: what stands in the carry between them must come through. */
WANT(add_128_high,
     (uint64_t)((((unsigned __int128)c << 64 | a) + ((unsigned __int128)c << 64 | b)) >> 64))
WANT(sub_128_high,
     (uint64_t)((((unsigned __int128)c << 64 | a) - ((unsigned __int128)1 << 64 | b)) >> 64))
WANT(add_64_high, ((c << 32 | a) + (c << 32 | b)) >> 32)
WANT(sub_64_high, ((c << 32 | a) - (c << 32 | b)) >> 32)
/* (a * b + c) of 64 bits out of 32-bit halves; the result is the upper half. */
WANT(mad_64_high, (a * b + (c << 32 | c)) >> 32)

static const struct ops_case carries[] = {
	{"{ .reg .b64 t; add.cc.u64 t, a, b; addc.u64 d, c, c; }", {64, 64, 64, 64}, add_128_high},
	{"{ .reg .b64 t; sub.cc.u64 t, a, b; subc.u64 d, c, 1; }", {64, 64, 64, 64}, sub_128_high},
	{"{ .reg .b32 t; add.cc.u32 t, a, b; addc.u32 d, c, c; }", {32, 32, 32, 32}, add_64_high},
	{"{ .reg .b32 t; sub.cc.u32 t, a, b; subc.u32 d, c, c; }", {32, 32, 32, 32}, sub_64_high},
	{"{ .reg .b32 t; mad.lo.cc.u32 t, a, b, c; madc.hi.u32 d, a, b, c; }",
	 {32, 32, 32, 32},
	 mad_64_high},
};

WANT(and_, a &b)
WANT(or_, a | b)
WANT(xor_, a ^ b)
WANT(not_, ~a)
WANT(cnot, a == 0)
WANT(shl_16, U32(b) > 15 ? 0 : a << b)
WANT(shl_32, U32(b) > 31 ? 0 : a << b)
WANT(shl_64, U32(b) > 63 ? 0 : a << b)
WANT(shr_u32, U32(b) > 31 ? 0 : a >> b)
WANT(shr_u64, U32(b) > 63 ? 0 : a >> b)
WANT(shr_s16, S16(a) >> (U32(b) > 15 ? 15 : b))
WANT(shr_s32, S32(a) >> (U32(b) > 31 ? 31 : b))
WANT(shr_s64, S64(a) >> (U32(b) > 63 ? 63 : b))

static uint64_t shf(uint64_t a, uint64_t b, uint64_t n, int left) {
	unsigned __int128 v = b << 32 | a;

	return left ? (uint64_t)((v << n) >> 32) : (uint64_t)(v >> n);
}
WANT(shf_l_wrap, shf(a, b, c & 31, 1))
WANT(shf_r_wrap, shf(a, b, c & 31, 0))
WANT(shf_l_clamp, shf(a, b, c > 32 ? 32 : c, 1))
WANT(shf_r_clamp, shf(a, b, c > 32 ? 32 : c, 0))

static uint64_t count(uint64_t a) {
	uint64_t n = 0;

	for (; a; a &= a - 1) {
		n++;
	}
	return n;
}
static uint64_t highest(uint64_t a, uint64_t none) {
	for (unsigned i = 64; i-- > 0;) {
		if (a >> i & 1) {
			return i;
		}
	}
	return none;
}
static uint64_t reverse(uint64_t a, unsigned bits) {
	uint64_t v = 0;

	for (unsigned i = 0; i < bits; i++) {
		v |= (a >> i & 1) << (bits - 1 - i);
	}
	return v;
}
WANT(popc, count(a))
WANT(clz_32, 31 - highest(a, -1))
WANT(clz_64, 63 - highest(a, -1))
WANT(brev_32, reverse(a, 32))
WANT(brev_64, reverse(a, 64))
WANT(bfind_u, highest(a, -1))
WANT(bfind_s32, highest(U32(S32(a) < 0 ? ~a : a), -1))
WANT(bfind_s64, highest(S64(a) < 0 ? ~a : a, -1))
WANT(bfind_shift, a ? 31 - highest(a, 0) : UINT64_MAX)

/* The PTX manual's pseudo code. */
static uint64_t bfe(uint64_t a, uint64_t b, uint64_t c, unsigned bits, int is_signed) {
	unsigned pos = b & 0xff, len = c & 0xff, msb = bits - 1;
	uint64_t d = 0, sign = 0;

	if (is_signed && len) {
		sign = a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1;
	}
	for (unsigned i = 0; i <= msb; i++) {
		d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
	}
	return d;
}
WANT(bfe_u32, bfe(a, b, c, 32, 0))
WANT(bfe_s32, bfe(a, b, c, 32, 1))
WANT(bfe_u64, bfe(a, b, c, 64, 0))
WANT(bfe_s64, bfe(a, b, c, 64, 1))

static uint64_t bfi(uint64_t a, uint64_t f, uint64_t b, uint64_t c, unsigned bits) {
	unsigned pos = b & 0xff, len = c & 0xff;

	for (unsigned i = 0; i < len && pos + i < bits; i++) {
		f = (f & ~((uint64_t)1 << (pos + i))) | (a >> i & 1) << (pos + i);
	}
	return f;
}
/* Inserted into a constant, so that three operands are enough. */
WANT(bfi_32, bfi(a, 0x0f0f5a5a, b, c, 32))
WANT(bfi_64, bfi(a, 0x0f0f5a5a33cc55aa, b, c, 64))

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, unsigned table) {
	uint64_t v = 0;

	for (unsigned i = 0; i < 32; i++) {
		unsigned index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);

		v |= (uint64_t)(table >> index & 1) << i;
	}
	return v;
}
WANT(lop3_96, lop3(a, b, c, 0x96))
WANT(lop3_ca, lop3(a, b, c, 0xca))
WANT(lop3_1d, lop3(a, b, c, 0x1d))

static uint64_t prmt(uint64_t a, uint64_t b, uint64_t c) {
	uint64_t v = 0;

	for (unsigned i = 0; i < 4; i++) {
		unsigned s = c >> 4 * i & 15, byte = (b << 32 | a) >> 8 * (s & 7) & 0xff;

		if (s & 8) {
			byte = byte & 0x80 ? 0xff : 0;
		}
		v |= (uint64_t)byte << 8 * i;
	}
	return v;
}
WANT(prmt_, prmt(a, b, c))
WANT(prmt_f4e, prmt(a, b, 0x3210 + 0x1111 * (c & 3)))
WANT(prmt_rc8, prmt(a, b, 0x1111 * (c & 3)))
WANT(szext_s, b & 31 ? S32(a << (32 - (b & 31))) >> (32 - (b & 31)) : 0)
WANT(bmsk, U32(a) > 31 ? 0 : (b > 31 ? UINT32_MAX : ((uint64_t)1 << b) - 1) << a)

static uint64_t dp4a_u(uint64_t a, uint64_t b, uint64_t c) {
	for (unsigned i = 0; i < 4; i++) {
		c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
	}
	return c;
}
static uint64_t dp4a_s(uint64_t a, uint64_t b, uint64_t c) {
	for (unsigned i = 0; i < 4; i++) {
		c += (uint64_t)(int64_t)((int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i));
	}
	return c;
}

static const struct ops_case bits[] = {
	{"and.b32 d, a, b;", {32, 32, 0, 32}, and_},
	{"or.b64 d, a, b;", {64, 64, 0, 64}, or_},
	{"xor.b16 d, a, b;", {16, 16, 0, 16}, xor_},
	{"not.b32 d, a;", {32, 0, 0, 32}, not_},
	{"cnot.b32 d, a;", {32, 0, 0, 32}, cnot},
	{"cnot.b64 d, a;", {64, 0, 0, 64}, cnot},
	{"shl.b16 d, a, b;", {16, 32, 0, 16}, shl_16},
	{"shl.b32 d, a, b;", {32, 32, 0, 32}, shl_32},
	{"shl.b64 d, a, b;", {64, 32, 0, 64}, shl_64},
	{"shr.u32 d, a, b;", {32, 32, 0, 32}, shr_u32},
	{"shr.b64 d, a, b;", {64, 32, 0, 64}, shr_u64},
	{"shr.s16 d, a, b;", {16, 32, 0, 16}, shr_s16},
	{"shr.s32 d, a, b;", {32, 32, 0, 32}, shr_s32},
	{"shr.s64 d, a, b;", {64, 32, 0, 64}, shr_s64},
	{"shf.l.wrap.b32 d, a, b, c;", {32, 32, 32, 32}, shf_l_wrap},
	{"shf.r.wrap.b32 d, a, b, c;", {32, 32, 32, 32}, shf_r_wrap},
	{"shf.l.clamp.b32 d, a, b, c;", {32, 32, 32, 32}, shf_l_clamp},
	{"shf.r.clamp.b32 d, a, b, c;", {32, 32, 32, 32}, shf_r_clamp},
	{"popc.b32 d, a;", {32, 0, 0, 32}, popc},
	{"popc.b64 d, a;", {64, 0, 0, 32}, popc},
	{"clz.b32 d, a;", {32, 0, 0, 32}, clz_32},
	{"clz.b64 d, a;", {64, 0, 0, 32}, clz_64},
	{"brev.b32 d, a;", {32, 0, 0, 32}, brev_32},
	{"brev.b64 d, a;", {64, 0, 0, 64}, brev_64},
	{"bfind.u32 d, a;", {32, 0, 0, 32}, bfind_u},
	{"bfind.u64 d, a;", {64, 0, 0, 32}, bfind_u},
	{"bfind.s32 d, a;", {32, 0, 0, 32}, bfind_s32},
	{"bfind.s64 d, a;", {64, 0, 0, 32}, bfind_s64},
	{"bfind.shiftamt.u32 d, a;", {32, 0, 0, 32}, bfind_shift},
	{"bfe.u32 d, a, b, c;", {32, 32, 32, 32}, bfe_u32},
	{"bfe.s32 d, a, b, c;", {32, 32, 32, 32}, bfe_s32},
	{"bfe.u64 d, a, b, c;", {64, 32, 32, 64}, bfe_u64},
	{"bfe.s64 d, a, b, c;", {64, 32, 32, 64}, bfe_s64},
	{"bfi.b32 d, a, 0x0f0f5a5a, b, c;", {32, 32, 32, 32}, bfi_32},
	{"bfi.b64 d, a, 0x0f0f5a5a33cc55aa, b, c;", {64, 32, 32, 64}, bfi_64},
	{"lop3.b32 d, a, b, c, 0x96;", {32, 32, 32, 32}, lop3_96},
	{"lop3.b32 d, a, b, c, 0xca;", {32, 32, 32, 32}, lop3_ca},
	{"lop3.b32 d, a, b, c, 0x1d;", {32, 32, 32, 32}, lop3_1d},
	{"prmt.b32 d, a, b, c;", {32, 32, 32, 32}, prmt_},
	{"prmt.b32.f4e d, a, b, c;", {32, 32, 32, 32}, prmt_f4e},
	{"prmt.b32.rc8 d, a, b, c;", {32, 32, 32, 32}, prmt_rc8},
	{"szext.wrap.s32 d, a, b;", {32, 32, 0, 32}, szext_s},
	{"bmsk.clamp.b32 d, a, b;", {32, 32, 0, 32}, bmsk},
	{"dp4a.u32.u32 d, a, b, c;", {32, 32, 32, 32}, dp4a_u},
	{"dp4a.s32.s32 d, a, b, c;", {32, 32, 32, 32}, dp4a_s},
};

WANT(lt_s32, S32(a) < S32(b))
WANT(ge_u64, a >= b)
WANT(le_s16, S16(a) <= S16(b))
WANT(hi_u32, a > b)
WANT(eq, a == b)
WANT(ne_and, a != b && c > 5)
WANT(lt_or_not, a < b || !(c > 5))
WANT(gt_xor, (S32(a) > S32(b)) ^ (c > 5))
WANT(not_lt, !(a < b))
WANT(set_, a < b ? UINT64_MAX : 0)
WANT(set_f32, a < b ? 0x3f800000 : 0)
WANT(selp_, c > 5 ? a : b)
WANT(slct_, S32(c) >= 0 ? a : b)

static const struct ops_case compares[] = {
	{"setp.lt.s32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, lt_s32},
	{"setp.ge.u64 p, a, b; selp.u32 d, 1, 0, p;", {64, 64, 0, 32}, ge_u64},
	{"setp.le.s16 p, a, b; selp.u32 d, 1, 0, p;", {16, 16, 0, 32}, le_s16},
	{"setp.hi.u32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, hi_u32},
	{"setp.eq.b64 p, a, b; selp.u32 d, 1, 0, p;", {64, 64, 0, 32}, eq},
	{"setp.gt.u32 q, c, 5; setp.ne.and.s32 p, a, b, q; selp.u32 d, 1, 0, p;",
	 {32, 32, 32, 32},
	 ne_and},
	{"setp.gt.u32 q, c, 5; setp.lt.or.u32 p, a, b, !q; selp.u32 d, 1, 0, p;",
	 {32, 32, 32, 32},
	 lt_or_not},
	{"setp.gt.u32 q, c, 5; setp.gt.xor.s32 p, a, b, q; selp.u32 d, 1, 0, p;",
	 {32, 32, 32, 32},
	 gt_xor},
	{"setp.lt.u32 p|q, a, b; selp.u32 d, 1, 0, q;", {32, 32, 0, 32}, not_lt},
	{"set.lt.u32.u32 d, a, b;", {32, 32, 0, 32}, set_},
	{"set.lt.f32.u32 d, a, b;", {32, 32, 0, 32}, set_f32},
	{"setp.gt.u32 p, c, 5; selp.b64 d, a, b, p;", {64, 64, 32, 64}, selp_},
	{"slct.u64.s32 d, a, b, c;", {64, 64, 32, 64}, slct_},
	{"setp.gt.u32 p, c, 5; not.pred q, p; selp.b32 d, b, a, q;", {32, 32, 32, 32}, selp_},
	{"setp.gt.u32 p, c, 5; mov.b32 d, b; @p mov.b32 d, a;", {32, 32, 32, 32}, selp_},
	{"setp.gt.u32 p, c, 5; mov.b32 d, a; @!p mov.b32 d, b;", {32, 32, 32, 32}, selp_},
};

WANT(s8_s32, (int8_t)a)
WANT(u8_u32, (uint8_t)a)
WANT(s16_, S16(a))
WANT(s32_, S32(a))
WANT(same, a)
WANT(sat_u8_s32, S32(a) < 0 ? 0 : a > 255 ? 255 : a)
WANT(sat_s8_s64, S64(a) < -128 ? -128 : S64(a) > 127 ? 127 : S64(a))
WANT(sat_u32_s64, S64(a) < 0 ? 0 : a > UINT32_MAX ? UINT32_MAX : a)
WANT(sat_s32_u64, a > INT32_MAX ? INT32_MAX : a)
WANT(pack, b << 32 | a)
WANT(high, a >> 32)
WANT(pack4, (b & 0xffff) << 48 | (a & 0xffff) << 32 | (b & 0xffff) << 16 | (a & 0xffff))

static const struct ops_case moves[] = {
	{"cvt.s32.s8 d, a;", {32, 0, 0, 32}, s8_s32},
	{"cvt.u32.u8 d, a;", {32, 0, 0, 32}, u8_u32},
	{"cvt.s8.s32 d, a;", {32, 0, 0, 32}, s8_s32},
	{"cvt.s64.s32 d, a;", {32, 0, 0, 64}, s32_},
	{"cvt.u64.u32 d, a;", {32, 0, 0, 64}, same},
	{"cvt.s32.s16 d, a;", {16, 0, 0, 32}, s16_},
	{"cvt.u32.u64 d, a;", {64, 0, 0, 32}, same},
	{"cvt.u16.u32 d, a;", {32, 0, 0, 16}, same},
	{"cvt.sat.u8.s32 d, a;", {32, 0, 0, 32}, sat_u8_s32},
	{"cvt.sat.s8.s64 d, a;", {64, 0, 0, 32}, sat_s8_s64},
	{"cvt.sat.u32.s64 d, a;", {64, 0, 0, 32}, sat_u32_s64},
	{"cvt.sat.s32.u64 d, a;", {64, 0, 0, 32}, sat_s32_u64},
	{"mov.b64 d, {a, b};", {32, 32, 0, 64}, pack},
	{"mov.b64 {_, d}, a;", {64, 0, 0, 32}, high},
	{"mov.b64 d, {a, b, a, b};", {16, 16, 0, 64}, pack4},
	{"{ .reg .b32 a; cvt.u32.u64 a, %rd0; } mov.b32 d, a;", {32, 0, 0, 32}, same},
};

#define GROUP(name, table)                         \
	static void name(void **state) {           \
		ops_run(table, N(table), &values); \
	}
GROUP(int_arithmetic_is_right_on_edges, arithmetic)
GROUP(int_carries_come_through, carries)
GROUP(int_bits_are_right_on_edges, bits)
GROUP(int_comparisons_and_selections_are_right, compares)
GROUP(int_conversions_and_moves_are_right, moves)

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(int_arithmetic_is_right_on_edges),
		cmocka_unit_test(int_carries_come_through),
		cmocka_unit_test(int_bits_are_right_on_edges),
		cmocka_unit_test(int_comparisons_and_selections_are_right),
		cmocka_unit_test(int_conversions_and_moves_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
