/*
 * interp-alu-float.c: f32 and f64 arithmetic.
 *
 * Exactly rounded operations use the host's IEEE arithmetic; a directed rounding sets the host's
 * rounding mode once for all lanes of a warp. Approximate functions are computed in double and
 * rounded, which is well within the error that the PTX manual allows. An f32 result that is NaN is
 * the GPU's canonical one. Must be compiled without contraction of products and sums.
 */
#include "tests/simgpu/interp-internal.h"

#include <fenv.h>
#include <math.h>

#define F32_NAN	 0x7fffffffu
#define F32_SIGN 0x80000000u
#define F64_SIGN 0x8000000000000000u

static inline float f32_of(uint64_t bits) {
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

static inline uint32_t f32_bits(float v) {
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return v != v ? F32_NAN : bits;
}

static inline double f64_of(uint64_t bits) {
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint64_t f64_bits(double v) {
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* Denormals become zeros of their sign. */
static inline uint32_t f32_flush(uint32_t bits) {
	return (bits & 0x7f800000) == 0 ? bits & F32_SIGN : bits;
}

static inline float f32_in(uint64_t bits, bool ftz) {
	return f32_of(ftz ? f32_flush((uint32_t)bits) : (uint32_t)bits);
}

/* NaN saturates to 0, and so does -0. */
static inline float f32_saturate(float v) {
	return v > 0 ? (v < 1 ? v : 1) : 0;
}

static inline uint32_t f32_out(float v, uint16_t flags) {
	uint32_t bits = f32_bits(flags & INSN_SAT ? f32_saturate(v) : v);

	return flags & INSN_FTZ ? f32_flush(bits) : bits;
}

static int round_mode(enum insn_round round) {
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

/*
 * The operands are in memory that the compiler knows to be visible to fesetround(), and results go
 * there, so it cannot move the arithmetic out from between the two calls.
 */
static inline int round_begin(const struct insn *in) {
	int mode = round_mode(in->round);

	if (mode != FE_TONEAREST) {
		fesetround(mode);
	}
	return mode;
}

static inline void round_end(int mode) {
	if (mode != FE_TONEAREST) {
		fesetround(FE_TONEAREST);
	}
}

#define F32_PLAIN (INSN_FTZ | INSN_SAT)

#define F32_UNARY(name, expr)                                                                      \
	static enum exec_result name##_f32(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                               \
		const uint64_t *pa = warp_src(w, in->s[0]);                                        \
		uint16_t flags = in->flags;                                                        \
		int mode = round_begin(in);                                                        \
		FOR_LANES(mask, float a = f32_in(pa[i], flags & INSN_FTZ);                         \
			  d[i] = f32_out((float)(expr), flags));                                   \
		round_end(mode);                                                                   \
		return EXEC_NEXT;                                                                  \
	}

#define F32_BINARY(name, expr)                                                                     \
	static enum exec_result name##_f32(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                               \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);           \
		uint16_t flags = in->flags;                                                        \
		int mode = round_begin(in);                                                        \
		if (!(flags & F32_PLAIN)) {                                                        \
			FOR_LANES(mask, float a = f32_of(pa[i]); float b = f32_of(pb[i]);          \
				  d[i] = f32_bits(expr));                                          \
		} else {                                                                           \
			FOR_LANES(mask, float a = f32_in(pa[i], flags & INSN_FTZ);                 \
				  float b = f32_in(pb[i], flags & INSN_FTZ);                       \
				  d[i] = f32_out((expr), flags));                                  \
		}                                                                                  \
		round_end(mode);                                                                   \
		return EXEC_NEXT;                                                                  \
	}

F32_BINARY(add, a + b)
F32_BINARY(sub, a - b)
F32_BINARY(mul, a *b)
F32_BINARY(div, a / b)

/* A product and a sum, rounded once. */
static enum exec_result fma_f32(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	const uint64_t *pc = warp_src(w, in->s[2]);
	uint16_t flags = in->flags;
	bool ftz = flags & INSN_FTZ;
	int mode = round_begin(in);

	FOR_LANES(mask, {
		float v = fmaf(f32_in(pa[i], ftz), f32_in(pb[i], ftz), f32_in(pc[i], ftz));

		d[i] = f32_out(flags & INSN_RELU && v < 0 ? 0 : v, flags);
	});
	round_end(mode);
	return EXEC_NEXT;
}

F32_UNARY(sqrt, sqrtf(a))
F32_UNARY(rcp, 1.0f / a)
F32_UNARY(rsqrt, a == 0 ? copysign(INFINITY, (double)a) : 1.0 / sqrt((double)a))
F32_UNARY(sin, sin((double)a))
F32_UNARY(cos, cos((double)a))
F32_UNARY(ex2, exp2((double)a))
F32_UNARY(lg2, log2((double)a))
F32_UNARY(tanh, tanh((double)a))

/* Sign operations are bit operations: they keep a NaN's bits, but for .ftz. */
static enum exec_result abs_f32(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]);
	bool ftz = in->flags & INSN_FTZ;

	FOR_LANES(mask, uint32_t v = (uint32_t)pa[i]; v = ftz ? f32_flush(v) : v;
		  d[i] = v & ~F32_SIGN);
	return EXEC_NEXT;
}

static enum exec_result neg_f32(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]);
	bool ftz = in->flags & INSN_FTZ;

	FOR_LANES(mask, uint32_t v = (uint32_t)pa[i]; v = ftz ? f32_flush(v) : v;
		  d[i] = v ^ F32_SIGN);
	return EXEC_NEXT;
}

/* The other operand where one is NaN (with .NaN: NaN); -0 is less than +0. */
static inline double least(double a, double b, bool nan) {
	if (a != a || b != b) {
		return nan ? NAN : a != a ? b : a;
	}
	return a < b || (a == b && signbit(a)) ? a : b;
}

static inline double greatest(double a, double b, bool nan) {
	if (a != a || b != b) {
		return nan ? NAN : a != a ? b : a;
	}
	return a > b || (a == b && !signbit(a)) ? a : b;
}

/* .xorsign.abs: of the magnitudes, with the signs' product. */
static inline float f32_choose(float a, float b, uint16_t mode, bool nan, bool max) {
	float v;

	if (mode) {
		v = (float)(max ? greatest(fabs((double)a), fabs((double)b), nan)
				: least(fabs((double)a), fabs((double)b), nan));
		return signbit(a) != signbit(b) ? -v : v;
	}
	return (float)(max ? greatest(a, b, nan) : least(a, b, nan));
}
F32_BINARY(min, f32_choose(a, b, in->mode, in->flags &INSN_NAN, false))
F32_BINARY(max, f32_choose(a, b, in->mode, in->flags &INSN_NAN, true))

static enum exec_result copysign_f32(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);

	/* The magnitude is b's. */
	FOR_LANES(mask, d[i] = (pa[i] & F32_SIGN) | (pb[i] & ~(uint64_t)F32_SIGN));
	return EXEC_NEXT;
}

static enum exec_result copysign_f64(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);

	FOR_LANES(mask, d[i] = (pa[i] & F64_SIGN) | (pb[i] & ~F64_SIGN));
	return EXEC_NEXT;
}

#define F64_UNARY(name, expr)                                                                      \
	static enum exec_result name##_f64(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                               \
		const uint64_t *pa = warp_src(w, in->s[0]);                                        \
		int mode = round_begin(in);                                                        \
		FOR_LANES(mask, double a = f64_of(pa[i]); d[i] = f64_bits(expr));                  \
		round_end(mode);                                                                   \
		return EXEC_NEXT;                                                                  \
	}

#define F64_BINARY(name, expr)                                                                     \
	static enum exec_result name##_f64(struct warp *w, const struct insn *in, uint32_t mask) { \
		uint64_t *d = warp_dst(w, in->d[0]);                                               \
		const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);           \
		int mode = round_begin(in);                                                        \
		FOR_LANES(mask, double a = f64_of(pa[i]); double b = f64_of(pb[i]);                \
			  d[i] = f64_bits(expr));                                                  \
		round_end(mode);                                                                   \
		return EXEC_NEXT;                                                                  \
	}

F64_BINARY(add, a + b)
F64_BINARY(sub, a - b)
F64_BINARY(mul, a *b)
F64_BINARY(div, a / b)
F64_BINARY(min, least(a, b, false))
F64_BINARY(max, greatest(a, b, false))
F64_UNARY(sqrt, sqrt(a))

/*
 * The approximations of f64 look at the upper 32 bits only, flush denormals and give a result whose
 * lower 32 bits are zero; the library routines of CUDA refine it.
 */
static inline double f64_upper(double v) {
	return f64_of(f64_bits(v) & 0xffffffff00000000u);
}
static inline double f64_flush(double v) {
	return (f64_bits(v) & 0x7ff0000000000000u) == 0 ? f64_of(f64_bits(v) & F64_SIGN) : v;
}
static inline double rcp_value(double a, const struct insn *in) {
	return in->flags & INSN_APPROX ? f64_flush(f64_upper(1.0 / f64_flush(f64_upper(a))))
				       : 1.0 / a;
}
static inline double rsqrt_value(double a) {
	double v = f64_flush(f64_upper(a));

	return v == 0 ? copysign(INFINITY, v) : f64_upper(1.0 / sqrt(v));
}
F64_UNARY(rcp, rcp_value(a, in))
F64_UNARY(rsqrt, rsqrt_value(a))

static enum exec_result abs_f64(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]);

	FOR_LANES(mask, d[i] = pa[i] & ~F64_SIGN);
	return EXEC_NEXT;
}

static enum exec_result neg_f64(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]);

	FOR_LANES(mask, d[i] = pa[i] ^ F64_SIGN);
	return EXEC_NEXT;
}

static enum exec_result fma_f64(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	const uint64_t *pc = warp_src(w, in->s[2]);
	int mode = round_begin(in);

	FOR_LANES(mask, d[i] = f64_bits(fma(f64_of(pa[i]), f64_of(pb[i]), f64_of(pc[i]))));
	round_end(mode);
	return EXEC_NEXT;
}

/* testp: is the value finite, infinite, a number, a NaN, normal, subnormal? */
#define TESTP(name, cond)                                                                          \
	static enum exec_result testp_##name##_f32(struct warp *w, const struct insn *in,          \
						   uint32_t mask) {                                \
		const uint64_t *pa = warp_src(w, in->s[0]);                                        \
		uint32_t out = 0;                                                                  \
		FOR_LANES(mask, uint64_t m = pa[i] & 0x7fffffff; uint64_t inf = 0x7f800000;        \
			  uint64_t low = 0x00800000; (void)low; (void)inf;                         \
			  out |= (uint32_t)(cond) << i);                                           \
		warp_set_pred(w, in->d[0], out, mask);                                             \
		return EXEC_NEXT;                                                                  \
	}                                                                                          \
	static enum exec_result testp_##name##_f64(struct warp *w, const struct insn *in,          \
						   uint32_t mask) {                                \
		const uint64_t *pa = warp_src(w, in->s[0]);                                        \
		uint32_t out = 0;                                                                  \
		FOR_LANES(mask, uint64_t m = pa[i] & ~F64_SIGN; uint64_t inf = 0x7ff0000000000000; \
			  uint64_t low = 0x0010000000000000; (void)low; (void)inf;                 \
			  out |= (uint32_t)(cond) << i);                                           \
		warp_set_pred(w, in->d[0], out, mask);                                             \
		return EXEC_NEXT;                                                                  \
	}
TESTP(finite, m < inf)
TESTP(infinite, m == inf)
TESTP(number, m <= inf)
TESTP(notanumber, m > inf)
TESTP(normal, m >= low && m < inf)
TESTP(subnormal, m &&m < low)

#define FLOATS(op, operands, handler)                     \
	{op, PTX_TYPE_F32, operands, handler##_f32}, {    \
		op, PTX_TYPE_F64, operands, handler##_f64 \
	}

const struct alu_entry alu_float_table[] = {
	FLOATS("add", "rrr", add),
	FLOATS("sub", "rrr", sub),
	FLOATS("mul", "rrr", mul),
	FLOATS("div", "rrr", div),
	FLOATS("fma", "rrrr", fma),
	FLOATS("mad", "rrrr", fma),
	FLOATS("min", "rrr", min),
	FLOATS("max", "rrr", max),
	FLOATS("abs", "rr", abs),
	FLOATS("neg", "rr", neg),
	FLOATS("sqrt", "rr", sqrt),
	FLOATS("rcp", "rr", rcp),
	FLOATS("rsqrt", "rr", rsqrt),
	FLOATS("copysign", "rrr", copysign),
	{"sin", PTX_TYPE_F32, "rr", sin_f32},
	{"cos", PTX_TYPE_F32, "rr", cos_f32},
	{"ex2", PTX_TYPE_F32, "rr", ex2_f32},
	{"lg2", PTX_TYPE_F32, "rr", lg2_f32},
	{"tanh", PTX_TYPE_F32, "rr", tanh_f32},
	FLOATS("testp.finite", "pr", testp_finite),
	FLOATS("testp.infinite", "pr", testp_infinite),
	FLOATS("testp.number", "pr", testp_number),
	FLOATS("testp.notanumber", "pr", testp_notanumber),
	FLOATS("testp.normal", "pr", testp_normal),
	FLOATS("testp.subnormal", "pr", testp_subnormal),
	{NULL},
};
