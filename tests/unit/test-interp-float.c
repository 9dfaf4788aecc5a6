/*
 * test-interp-float.c: floating-point instructions of the PTX interpreter, on edge values.
 *
 * Directed roundings are checked by exact sums and neighbours, not by the host's rounding modes,
 * which the interpreter uses itself.
 */
#include <math.h>
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

static float f(uint64_t bits) {
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

static double d(uint64_t bits) {
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* A GPU's f32 NaN is always the same. */
static uint64_t fb(float v) {
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return isnan(v) ? 0x7fffffff : bits;
}

/* f64 results: NaNs of the host, which come from the same operation. */
static uint64_t db(double v) {
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static uint64_t flush(uint64_t bits) {
	return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

static const uint64_t f32s[] = {
	0,	    0x80000000, 0x3f800000, 0xbf800000, 1,	    0x80000001,
	0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
	0x7fc00000, 0xffc12345, 0x3f7fffff, 0x3f800001, 0x4b800000, 0x4b000001,
	0x33800000, 0x40490fdb, 0x3eaaaaab, 0xc2f6e979, 0x4f000000, 0x4effffff,
	0xcf000000, 0x5f000000, 0x3f000000, 0x3fc00000, 0xbfc00000, 0x42fffffe,
};
static const uint64_t f32_some[] = {0,		0x80000000, 0x3f800000, 0xb3800001,
				    0x7f7fffff, 0x7f800000, 1,		0x7fc00000};
static const uint64_t f64s[] = {
	0,
	0x8000000000000000,
	0x3ff0000000000000,
	0xbff0000000000000,
	1,
	0x000fffffffffffff,
	0x0010000000000000,
	0x7fefffffffffffff,
	0x7ff0000000000000,
	0xfff0000000000000,
	0x7ff8000000000000,
	0x3fefffffffffffff,
	0x3ff0000000000001,
	0x400921fb54442d18,
	0xc05edd2f1a9fbe77,
	0x41dfffffffc00000,
	0x41e0000000000000,
	0xc1e0000000200000,
	0x43e0000000000000,
	0x3fe0000000000000,
	0x3ff8000000000000,
	0x47efffffe0000000,
	0x47effffff0000000,
	0x36a0000000000000,
	0x3810000000000000,
	0x3ca0000000000000,
};
#define N(x) (sizeof(x) / sizeof(*(x)))
static const struct ops_values singles = {f32s, f32s, f32_some, N(f32s), N(f32s), N(f32_some)};
static const struct ops_values doubles = {f64s, f64s, f64s, N(f64s), N(f64s), N(f64s)};

WANT(add_f32, fb(f(a) + f(b)))
WANT(sub_f32, fb(f(a) - f(b)))
WANT(mul_f32, fb(f(a) * f(b)))
WANT(div_f32, fb(f(a) / f(b)))
WANT(fma_f32, fb(fmaf(f(a), f(b), f(c))))
WANT(add_ftz, flush(fb(f(flush(a)) + f(flush(b)))))
WANT(mul_ftz, flush(fb(f(flush(a)) * f(flush(b)))))
static float sat(float v) {
	return v > 0 ? fminf(v, 1) : 0;
}
WANT(add_sat, fb(sat(f(a) + f(b))))
WANT(fma_sat, fb(sat(fmaf(f(a), f(b), f(c)))))
WANT(sqrt_f32, fb(sqrtf(f(a))))
WANT(rcp_f32, fb(1 / f(a)))
WANT(neg_f32, a ^ 0x80000000)
WANT(abs_f32, a & 0x7fffffff)

static float min_of(float a, float b) {
	return isnan(a) ? b : isnan(b) ? a : a < b || (a == b && signbit(a)) ? a : b;
}
static float max_of(float a, float b) {
	return isnan(a) ? b : isnan(b) ? a : a > b || (a == b && !signbit(a)) ? a : b;
}
WANT(min_f32, fb(min_of(f(a), f(b))))
WANT(max_f32, fb(max_of(f(a), f(b))))
WANT(max_nan, isnan(f(a)) || isnan(f(b)) ? 0x7fffffff : fb(max_of(f(a), f(b))))
WANT(copysign_f32, (a & 0x80000000) | (b & 0x7fffffff))
WANT(testp_sub, (a & 0x7f800000) == 0 && (a & 0x7fffff))

/* Exact in double or nearly so: sums of f32 are rounded to odd first, so the next step is right. */
static double sum_to_odd(double x, double y) {
	double s = x + y, t = s - x, e = (x - (s - t)) + (y - t);

	return e != 0 && isfinite(s) && !(db(s) & 1) ? nextafter(s, e > 0 ? INFINITY : -INFINITY)
						     : s;
}

/* @v to f32: up: 1 upwards, -1 downwards, 0 towards zero. */
static float directed(double v, int up) {
	float r = (float)v;

	if (isnan(v) || isinf(v) || (double)r == v) {
		return r;
	}
	if (up == 0) {
		up = v > 0 ? -1 : 1;
	}
	if (up > 0) {
		return (double)r < v ? nextafterf(r, INFINITY) : r;
	}
	return (double)r > v ? nextafterf(r, -INFINITY) : r;
}
/* An exact zero sum of opposite values is -0 when rounding down. */
static double zero_sum(double x, double y, int up) {
	return x + y == 0 && x != 0 && up < 0		      ? -0.0
	       : x == 0 && y == 0 && signbit(x) != signbit(y) ? (up < 0 ? -0.0 : 0.0)
							      : sum_to_odd(x, y);
}
WANT(add_rz, fb(directed(zero_sum(f(a), f(b), 0), 0)))
WANT(add_rm, fb(directed(zero_sum(f(a), f(b), -1), -1)))
WANT(add_rp, fb(directed(zero_sum(f(a), f(b), 1), 1)))
WANT(mul_rz, fb(directed((double)f(a) * (double)f(b), 0)))
WANT(mul_rp, fb(directed((double)f(a) * (double)f(b), 1)))
WANT(fma_rm, fb(directed(zero_sum((double)f(a) * (double)f(b), f(c), -1), -1)))

WANT(ex2, fb((float)exp2((double)f(a))))
WANT(lg2, fb((float)log2((double)f(a))))
WANT(sin_, fb((float)sin((double)f(a))))
WANT(rsqrt, fb((float)(1 / sqrt((double)f(a)))))

static const struct ops_case single[] = {
	{"add.f32 d, a, b;", {32, 32, 0, 32}, add_f32},
	{"sub.rn.f32 d, a, b;", {32, 32, 0, 32}, sub_f32},
	{"mul.f32 d, a, b;", {32, 32, 0, 32}, mul_f32},
	{"div.rn.f32 d, a, b;", {32, 32, 0, 32}, div_f32},
	{"fma.rn.f32 d, a, b, c;", {32, 32, 32, 32}, fma_f32},
	{"add.ftz.f32 d, a, b;", {32, 32, 0, 32}, add_ftz},
	{"mul.rn.ftz.f32 d, a, b;", {32, 32, 0, 32}, mul_ftz},
	{"add.sat.f32 d, a, b;", {32, 32, 0, 32}, add_sat},
	{"fma.rn.sat.f32 d, a, b, c;", {32, 32, 32, 32}, fma_sat},
	{"sqrt.rn.f32 d, a;", {32, 0, 0, 32}, sqrt_f32},
	{"rcp.rn.f32 d, a;", {32, 0, 0, 32}, rcp_f32},
	{"neg.f32 d, a;", {32, 0, 0, 32}, neg_f32},
	{"abs.f32 d, a;", {32, 0, 0, 32}, abs_f32},
	{"min.f32 d, a, b;", {32, 32, 0, 32}, min_f32},
	{"max.f32 d, a, b;", {32, 32, 0, 32}, max_f32},
	{"max.NaN.f32 d, a, b;", {32, 32, 0, 32}, max_nan},
	{"copysign.f32 d, a, b;", {32, 32, 0, 32}, copysign_f32},
	{"testp.subnormal.f32 p, a; selp.u32 d, 1, 0, p;", {32, 0, 0, 32}, testp_sub},
	{"add.rz.f32 d, a, b;", {32, 32, 0, 32}, add_rz},
	{"add.rm.f32 d, a, b;", {32, 32, 0, 32}, add_rm},
	{"add.rp.f32 d, a, b;", {32, 32, 0, 32}, add_rp},
	{"mul.rz.f32 d, a, b;", {32, 32, 0, 32}, mul_rz},
	{"mul.rp.f32 d, a, b;", {32, 32, 0, 32}, mul_rp},
	{"fma.rm.f32 d, a, b, c;", {32, 32, 32, 32}, fma_rm},
	{"ex2.approx.f32 d, a;", {32, 0, 0, 32}, ex2, 2},
	{"lg2.approx.f32 d, a;", {32, 0, 0, 32}, lg2, 2},
	{"sin.approx.f32 d, a;", {32, 0, 0, 32}, sin_, 2},
	{"rsqrt.approx.f32 d, a;", {32, 0, 0, 32}, rsqrt, 2},
	{"div.full.f32 d, a, b;", {32, 32, 0, 32}, div_f32, 2},
};

WANT(add_f64, db(d(a) + d(b)))
WANT(mul_f64, db(d(a) * d(b)))
WANT(div_f64, db(d(a) / d(b)))
WANT(fma_f64, db(fma(d(a), d(b), d(c))))
WANT(sqrt_f64, db(sqrt(d(a))))
WANT(neg_f64, a ^ 0x8000000000000000)
static const struct ops_case double_cases[] = {
	{"add.f64 d, a, b;", {64, 64, 0, 64}, add_f64},
	{"mul.rn.f64 d, a, b;", {64, 64, 0, 64}, mul_f64},
	{"div.rn.f64 d, a, b;", {64, 64, 0, 64}, div_f64},
	{"fma.rn.f64 d, a, b, c;", {64, 64, 64, 64}, fma_f64},
	{"sqrt.rn.f64 d, a;", {64, 0, 0, 64}, sqrt_f64},
	{"neg.f64 d, a;", {64, 0, 0, 64}, neg_f64},
};

WANT(eq, f(a) == f(b))
WANT(ne, !isnan(f(a)) && !isnan(f(b)) && f(a) != f(b))
WANT(neu, f(a) != f(b))
WANT(lt, f(a) < f(b))
WANT(geu, !(f(a) < f(b)))
WANT(nan_, isnan(f(a)) || isnan(f(b)))
WANT(num, !isnan(f(a)) && !isnan(f(b)))
WANT(gt_f64, d(a) > d(b))
WANT(lt_ftz, f(flush(a)) < f(flush(b)))
WANT(slct_f32, f(c) >= 0 ? a : b)
WANT(not_gt, !(f(a) > f(b)))

static const struct ops_case comparisons[] = {
	{"setp.eq.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, eq},
	{"setp.ne.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, ne},
	{"setp.neu.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, neu},
	{"setp.lt.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, lt},
	{"setp.geu.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, geu},
	{"setp.nan.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, nan_},
	{"setp.num.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, num},
	{"setp.lt.ftz.f32 p, a, b; selp.u32 d, 1, 0, p;", {32, 32, 0, 32}, lt_ftz},
	{"setp.gt.f32 p|q, a, b; selp.u32 d, 1, 0, q;", {32, 32, 0, 32}, not_gt},
	{"slct.b32.f32 d, a, b, c;", {32, 32, 32, 32}, slct_f32},
};

/* Of a value that was rounded to a whole number already. */
static int64_t to_s(double v, unsigned bits) {
	double top = ldexp(1, (int)bits - 1);

	return v >= top	  ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
	       : v < -top ? -(int64_t)(((uint64_t)1 << (bits - 1)) - 1) - 1
			  : (int64_t)v;
}
static uint64_t to_u(double v, unsigned bits) {
	return v >= ldexp(1, (int)bits) ? UINT64_MAX >> (64 - bits) : v <= 0 ? 0 : (uint64_t)v;
}
WANT(s32_rzi, isnan(f(a)) ? 0 : to_s(trunc(f(a)), 32))
WANT(s32_rni, isnan(f(a)) ? 0 : to_s(nearbyint(f(a)), 32))
WANT(u32_rmi, isnan(f(a)) ? 0 : to_u(floor(f(a)), 32))
WANT(u8_rpi, isnan(f(a)) ? 0 : to_u(ceil(f(a)), 8))
WANT(s64_rzi, isnan(f(a)) ? INT64_MIN : to_s(trunc(f(a)), 64))
WANT(u64_rzi, isnan(f(a)) ? (uint64_t)1 << 63 : to_u(trunc(f(a)), 64))
WANT(rni, fb(nearbyintf(f(a))))
WANT(rmi, fb(floorf(f(a))))
WANT(f64_f32, db((double)f(a)))
WANT(sat_f32, fb(sat(f(a))))

static const struct ops_case from_single[] = {
	{"cvt.rzi.s32.f32 d, a;", {32, 0, 0, 32}, s32_rzi},
	{"cvt.rni.s32.f32 d, a;", {32, 0, 0, 32}, s32_rni},
	{"cvt.rmi.u32.f32 d, a;", {32, 0, 0, 32}, u32_rmi},
	{"cvt.rpi.u8.f32 d, a;", {32, 0, 0, 32}, u8_rpi},
	{"cvt.rzi.s64.f32 d, a;", {32, 0, 0, 64}, s64_rzi},
	{"cvt.rzi.u64.f32 d, a;", {32, 0, 0, 64}, u64_rzi},
	{"cvt.rni.f32.f32 d, a;", {32, 0, 0, 32}, rni},
	{"cvt.rmi.f32.f32 d, a;", {32, 0, 0, 32}, rmi},
	{"cvt.sat.f32.f32 d, a;", {32, 0, 0, 32}, sat_f32},
	{"cvt.f64.f32 d, a;", {32, 0, 0, 64}, f64_f32},
};

WANT(f32_rn, fb((float)d(a)))
WANT(f32_rz, fb(directed(d(a), 0)))
WANT(f32_rm, fb(directed(d(a), -1)))
WANT(f32_rp, fb(directed(d(a), 1)))
WANT(s32_f64, isnan(d(a)) ? INT32_MIN : to_s(trunc(d(a)), 32))
WANT(gt_d, d(a) > d(b))

static const struct ops_case from_double[] = {
	{"cvt.rn.f32.f64 d, a;", {64, 0, 0, 32}, f32_rn},
	{"cvt.rz.f32.f64 d, a;", {64, 0, 0, 32}, f32_rz},
	{"cvt.rm.f32.f64 d, a;", {64, 0, 0, 32}, f32_rm},
	{"cvt.rp.f32.f64 d, a;", {64, 0, 0, 32}, f32_rp},
	{"cvt.rzi.s32.f64 d, a;", {64, 0, 0, 32}, s32_f64},
	{"setp.gt.f64 p, a, b; selp.u32 d, 1, 0, p;", {64, 64, 0, 32}, gt_f64},
	{"setp.leu.f64 p, a, b; selp.u32 d, 0, 1, p;", {64, 64, 0, 32}, gt_d},
};

static const uint64_t integers[] = {
	0,
	1,
	2,
	3,
	0xffffff,
	0x1000000,
	0x1000001,
	0x1000003,
	0x7fffffff,
	0x80000000,
	0xffffffff,
	0x7fffffbfffffffff,
	0x7fffffc000000001,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xffffffffffffffff,
	0x20000000000001,
	0x20000000000003,
	0xfffffffffffffbff,
	2049,
	65519,
	65520,
};
static const struct ops_values whole = {integers, integers, integers, N(integers), 1, 1};

WANT(f32_s32, fb((float)(int32_t)a))
WANT(f32_u32, fb((float)(uint32_t)a))
WANT(f32_s64, fb((float)(int64_t)a))
WANT(f32_u64, fb((float)a))
WANT(f64_u64, db((double)a))
WANT(f64_s64, db((double)(int64_t)a))
WANT(f64_s32, db((double)(int32_t)a))
WANT(f32_rz_u32, fb(directed((double)(uint32_t)a, 0)))
WANT(f32_rp_s32, fb(directed((double)(int32_t)a, 1)))

static const struct ops_case from_int[] = {
	{"cvt.rn.f32.s32 d, a;", {32, 0, 0, 32}, f32_s32},
	{"cvt.rn.f32.u32 d, a;", {32, 0, 0, 32}, f32_u32},
	{"cvt.rn.f32.s64 d, a;", {64, 0, 0, 32}, f32_s64},
	{"cvt.rn.f32.u64 d, a;", {64, 0, 0, 32}, f32_u64},
	{"cvt.rn.f64.u64 d, a;", {64, 0, 0, 64}, f64_u64},
	{"cvt.rn.f64.s64 d, a;", {64, 0, 0, 64}, f64_s64},
	{"cvt.rn.f64.s32 d, a;", {32, 0, 0, 64}, f64_s32},
	{"cvt.rz.f32.u32 d, a;", {32, 0, 0, 32}, f32_rz_u32},
	{"cvt.rp.f32.s32 d, a;", {32, 0, 0, 32}, f32_rp_s32},
};

/* Halves: found by trying, among all 65536, which one is nearest. Slow and beyond doubt. */
static double half_value(uint64_t bits) {
	int e = (int)(bits >> 10 & 31), m = (int)(bits & 1023);
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return bits & 0x8000 ? -v : v;
}
static uint64_t half_nearest(double v) {
	uint64_t best = 0, sign = signbit(v) ? 0x8000 : 0;
	double m = fabs(v);

	if (isnan(v)) {
		return 0x7fff;
	}
	if (m >= 65520) {
		return sign | 0x7c00;
	}
	for (uint64_t k = 0; k < 0x7c00; k++) {
		double here = fabs(half_value(k) - m), there = fabs(half_value(best) - m);

		if (here < there || (here == there && !(k & 1))) {
			best = k;
		}
	}
	return sign | best;
}
static const uint64_t halves[] = {
	0,	0x8000, 1,	0x3ff,	0x400,	0x3c00, 0x3c01, 0xbc00, 0x7bff,
	0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0x1400, 0x6400, 0x3bff,
};
static const struct ops_values half_values = {halves, halves, halves, N(halves), N(halves), 3};
WANT(f32_f16, fb((float)half_value(a)))
WANT(add_f16, half_nearest(half_value(a) + half_value(b)))
WANT(mul_f16, half_nearest(half_value(a) * half_value(b)))
WANT(fma_f16, half_nearest(half_value(a) * half_value(b) + half_value(c)))
WANT(add_f16x2, half_nearest(half_value(a) + half_value(b)) << 16 |
			half_nearest(half_value(b) + half_value(b)))
WANT(lt_f16, half_value(a) < half_value(b))
WANT(f16_f32, half_nearest(f(a)))
static const struct ops_case half_cases[] = {
	{"cvt.f32.f16 d, a;", {16, 0, 0, 32}, f32_f16},
	{"add.f16 d, a, b;", {16, 16, 0, 16}, add_f16},
	{"mul.rn.f16 d, a, b;", {16, 16, 0, 16}, mul_f16},
	{"fma.rn.f16 d, a, b, c;", {16, 16, 16, 16}, fma_f16},
	{"{ .reg .b32 x, y; mov.b32 x, {b, a}; mov.b32 y, {b, b}; add.rn.f16x2 d, x, y; }",
	 {16, 16, 0, 32},
	 add_f16x2},
	{"setp.lt.f16 p, a, b; selp.u32 d, 1, 0, p;", {16, 16, 0, 32}, lt_f16},
};
static const struct ops_case to_half[] = {
	{"cvt.rn.f16.f32 d, a;", {32, 0, 0, 16}, f16_f32},
};

static void float_single_is_exact_or_close(void **state) {
	ops_run(single, N(single), &singles);
}
static void float_double_is_exact(void **state) {
	ops_run(double_cases, N(double_cases), &doubles);
}
static void float_comparisons_know_nan(void **state) {
	ops_run(comparisons, N(comparisons), &singles);
}
static void float_conversions_round_and_clamp(void **state) {
	ops_run(from_single, N(from_single), &singles);
	ops_run(from_double, N(from_double), &doubles);
	ops_run(from_int, N(from_int), &whole);
}
static void float_halves_are_rounded_once(void **state) {
	ops_run(half_cases, N(half_cases), &half_values);
	ops_run(to_half, N(to_half), &singles);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(float_single_is_exact_or_close),
		cmocka_unit_test(float_double_is_exact),
		cmocka_unit_test(float_comparisons_know_nan),
		cmocka_unit_test(float_conversions_round_and_clamp),
		cmocka_unit_test(float_halves_are_rounded_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
